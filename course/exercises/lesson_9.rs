//! Lesson 9: trust regions and PPO. `check 9` says how far you are.
//!
//! The old policy is the one that collected the rollout. Logarithms are natural.

/// 9.1 PPO's clipped objective of a decision, which is to become large.
///
/// The ratio is the probability now, divided by that of the old policy.
pub fn surrogate(log_prob: f64, old_log_prob: f64, advantage: f64, clip: f64) -> f64 {
    todo!() // for you to write
}

/// 9.2 The derivative of that objective with respect to `log_prob`.
pub fn surrogate_slope(log_prob: f64, old_log_prob: f64, advantage: f64, clip: f64) -> f64 {
    todo!() // for you to write
}

/// 9.3 The divergence KL(old || new) of two policies over the same actions, from their logits.
pub fn kl_divergence(old_logits: &[f64], new_logits: &[f64]) -> f64 {
    todo!() // for you to write
}

/// 9.4 The estimate of KL(old || new) from the log-probabilities of decisions of the old policy: the mean of (r - 1) - ln r (k3).
pub fn approx_kl(log_probs: &[f64], old_log_probs: &[f64]) -> f64 {
    todo!() // for you to write
}

/// 9.5 The step of a trust region: along the inverse of the Fisher matrix times the gradient, and so long that the divergence, half of
/// step times matrix times step, is delta. There are two or three parameters.
pub fn natural_step(gradient: &[f64], fisher: &[Vec<f64>], delta: f64) -> Vec<f64> {
    todo!() // for you to write
}
