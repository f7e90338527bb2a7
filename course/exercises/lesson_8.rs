//! Lesson 8: actor-critic and GAE. `check 8` says how far you are.

use gradus_course::End;

/// 8.1 The advantage of each step of a rollout, by generalised advantage estimation.
///
/// `values[t]` is the value of the state of step t, `next_values[t]` that of the state it led to. `ends[t]` says how its episode goes on after it:
/// `End::Running`, `End::Terminated` or `End::Truncated`. After either end, the next step in the list belongs to another episode.
pub fn gae(rewards: &[f64], values: &[f64], next_values: &[f64], ends: &[End], gamma: f64, lambda: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 8.2 The share of the targets' variance that the values explain. The targets are not all the same.
pub fn explained_variance(values: &[f64], targets: &[f64]) -> f64 {
    todo!() // for you to write
}

/// 8.3 The loss of a step: the actor's term, the critic's term (half the squared error) and the entropy bonus.
pub fn loss(
    logits: &[f64],
    action: usize,
    advantage: f64,
    value: f64,
    target: f64,
    value_coefficient: f64,
    entropy_coefficient: f64,
) -> f64 {
    todo!() // for you to write
}

/// 8.4 The derivatives of that loss: with respect to each logit, and with respect to the value.
pub fn loss_slopes(
    logits: &[f64],
    action: usize,
    advantage: f64,
    value: f64,
    target: f64,
    value_coefficient: f64,
    entropy_coefficient: f64,
) -> (Vec<f64>, f64) {
    todo!() // for you to write
}

/// 8.5 The log-probability (of a density) of an action with several dimensions, each of which has a normal distribution.
///
/// `log_std[j]` is the logarithm of the standard deviation of dimension j.
pub fn gaussian_log_prob(mean: &[f64], log_std: &[f64], action: &[f64]) -> f64 {
    todo!() // for you to write
}
