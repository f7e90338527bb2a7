//! The gradient oracle: if all completions can be enumerated, the expected return J and its gradient are known exactly. The mean of an
//! estimator over many rollouts must be this gradient, or the biased gradient that follows from the estimator's definition.
//!
//! The environment is target sum with one prompt and a vocabulary of seven tokens. Answers have at most three tokens, so there are 259
//! completions. An agent's gradient is recorded when the agent applies it, so the recorded gradient includes every operation of the agent.
//! The expected gradient is computed here from the definitions, without the agents' code:
//!
//! | the estimator depends on | what is enumerated |
//! | --- | --- |
//! | one completion (a return, a baseline that is independent of it, values) | all completions |
//! | a group, or the statistics of a whole batch (deviations, whitening, the number of tokens) | groups and batches of two: all 67 081 pairs |
//! | a group within a batch (`group_std = "batch"`) | batches of two pairs: all combinations of four rewards |
//! | a rollout of an earlier policy (ratios and clips) | completions, groups or batches as above, with the probabilities of that policy |
//!
//! So large batches are not needed: the bias of a small batch is larger, but it is known exactly.

mod dpo;
mod enumeration;
mod grpo;
mod kl_penalty;
mod ppo;
mod reinforce;
mod statistics;

use enumeration::Oracle;
use gradus::agents::OptimiserConfig;
use gradus::nets::Network;

/// Number of completions in a rollout, if the expected gradient does not depend on it.
const BATCH: usize = 48;
/// Number of completions in a group, if groups need not be enumerated.
const GROUP: usize = 4;

/// Returns the settings of an optimiser that does not clip the gradient.
fn optimiser() -> OptimiserConfig {
    OptimiserConfig { max_grad_norm: f32::INFINITY, ..OptimiserConfig::default() }
}

/// The probabilities of all completions add up to 1, and the enumerated gradient is the slope of the expected return J.
#[test]
fn the_enumerated_gradient_is_the_slope_of_the_expected_return() {
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
        oracle.update_log_probs();
        oracle.expected_return()
    };
    let slope = (moved(0.002) - moved(-0.002)) / 0.004;
    assert!((slope / norm - 1.0).abs() < 1e-3, "slope {slope}, norm of the gradient {norm}");
}
