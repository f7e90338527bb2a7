//! Exp3: exponential weights for rewards that an adversary may choose (Auer et al., SIAM Journal on Computing 32, 2002).

use super::softmax;

/// Computes p(a) = (1 - gamma) w(a) / sum_b w(b) + gamma / K for every arm a, where `logs` are the logarithms of the weights w and K is the number of arms.
///
/// ```
/// let mut probabilities = [0.0; 2];
/// gradus_agents::bandit::exp3_probabilities(&[0.0, 0.0], 0.1, &mut probabilities);
/// assert_eq!(probabilities, [0.5, 0.5]);
/// ```
pub fn exp3_probabilities(logs: &[f64], gamma: f64, probabilities: &mut [f64]) {
    softmax(logs, probabilities);
    let share = gamma / logs.len() as f64;
    probabilities.iter_mut().for_each(|p| *p = (1.0 - gamma) * *p + share);
}

/// Returns what the logarithm of the chosen arm's weight grows by: gamma R / (K p). The estimate R / p of the arm's reward has the right mean, because the arm is chosen with
/// probability p. Rewards must be between 0 and 1.
pub fn exp3_step(reward: f64, probability: f64, gamma: f64, arms: usize) -> f64 {
    gamma * reward / (probability * arms as f64)
}
