//! The gradient oracle: where all that can be said can be enumerated, the expected return J and its gradient are known exactly, and the
//! average of an estimator over many rollouts must come to it, or to the bias that its definition has.
//!
//! The world is target sum with one prompt and answers of at most three tokens of seven: 259 completions. The gradient that an agent
//! follows is taken from it at the moment it would step, so that everything an agent does is in it. What it should be is written out here
//! from the definitions, without the agents' code:
//!
//! | what an estimator looks at | what is enumerated |
//! | --- | --- |
//! | one completion (a return, a baseline that is independent of it, values) | all completions |
//! | a group, or the statistics of a whole batch (deviations, whitening, the number of tokens) | groups and batches of two: all 67 081 pairs |
//! | a group within a batch (`group_std = "batch"`) | a batch of two pairs: all rewards of four completions |
//! | a rollout of an earlier policy (ratios and clips) | the same, by what that policy says |
//!
//! So nothing has to be left to a limit of large batches: a small one has the larger bias, and it is known.

mod enumeration;
mod grpo;
mod kl_penalty;
mod ppo;
mod reinforce;
mod standing;
mod statistics;

use enumeration::Oracle;
use gradus::agents::OptimiserConfig;
use gradus::nets::Network;

/// Completions of a rollout, where nothing depends on how many they are.
const BATCH: usize = 48;
/// Completions of a group, where they need not be enumerated.
const GROUP: usize = 4;

/// An optimiser that does not cut the gradient.
fn optimiser() -> OptimiserConfig {
    OptimiserConfig { max_grad_norm: f32::INFINITY, ..OptimiserConfig::default() }
}

/// The probabilities of all completions add up to 1, and the enumerated gradient is the slope of J.
#[test]
fn the_oracle_is_right() {
    let mut oracle = Oracle::new();
    assert_eq!(oracle.completions.len(), 43 + 216);
    let sum: f64 = oracle.completions.iter().map(|y| y.probability).sum();
    assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    let gradient = oracle.policy_gradient();
    let at = oracle.policy.parameters().to_vec();
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    let mut moved = |h: f64| {
        let parameters: Vec<f32> = at.iter().zip(&gradient).map(|(x, g)| x - (h * g / norm) as f32).collect();
        oracle.policy.set_parameters(&parameters);
        oracle.look();
        oracle.expected_return()
    };
    let slope = (moved(0.002) - moved(-0.002)) / 0.004;
    assert!((slope / norm - 1.0).abs() < 1e-3, "slope {slope}, norm of the gradient {norm}");
}
