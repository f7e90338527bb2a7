//! Lesson 8: actor-critic and GAE, with answers.

use gradus_course::End;

/// The logarithms of the probabilities, and the entropy.
fn log_softmax(logits: &[f64]) -> (Vec<f64>, f64) {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|z| (z - largest).exp()).sum();
    let log_p: Vec<f64> = logits.iter().map(|z| z - largest - sum.ln()).collect();
    let entropy = -log_p.iter().map(|log_p| log_p.exp() * log_p).sum::<f64>();
    (log_p, entropy)
}

/// 8.1
pub fn gae(rewards: &[f64], values: &[f64], next_values: &[f64], ends: &[End], gamma: f64, lambda: f64) -> Vec<f64> {
    let mut advantages = vec![0.0; rewards.len()];
    let mut following = 0.0;
    for t in (0..rewards.len()).rev() {
        let next_value = if ends[t] == End::Terminated { 0.0 } else { next_values[t] };
        let error = rewards[t] + gamma * next_value - values[t];
        following = if ends[t] == End::Running { error + gamma * lambda * following } else { error };
        advantages[t] = following;
    }
    advantages
}

/// 8.2
pub fn explained_variance(values: &[f64], targets: &[f64]) -> f64 {
    let variance = |numbers: &[f64]| {
        let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
        numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / numbers.len() as f64
    };
    let errors: Vec<f64> = targets.iter().zip(values).map(|(target, value)| target - value).collect();
    1.0 - variance(&errors) / variance(targets)
}

/// 8.3
pub fn loss(
    logits: &[f64],
    action: usize,
    advantage: f64,
    value: f64,
    target: f64,
    value_coefficient: f64,
    entropy_coefficient: f64,
) -> f64 {
    let (log_p, entropy) = log_softmax(logits);
    -advantage * log_p[action] + value_coefficient * (value - target).powi(2) / 2.0 - entropy_coefficient * entropy
}

/// 8.4
pub fn loss_slopes(
    logits: &[f64],
    action: usize,
    advantage: f64,
    value: f64,
    target: f64,
    value_coefficient: f64,
    entropy_coefficient: f64,
) -> (Vec<f64>, f64) {
    let (log_p, entropy) = log_softmax(logits);
    let slope = |b: usize| {
        let p = log_p[b].exp();
        let taken = if b == action { 1.0 } else { 0.0 };
        -advantage * (taken - p) + entropy_coefficient * p * (log_p[b] + entropy)
    };
    ((0..logits.len()).map(slope).collect(), value_coefficient * (value - target))
}

/// 8.5
pub fn gaussian_log_prob(mean: &[f64], log_std: &[f64], action: &[f64]) -> f64 {
    let mut log_p = 0.0;
    for j in 0..mean.len() {
        let distance = (action[j] - mean[j]) / log_std[j].exp();
        log_p -= distance * distance / 2.0 + log_std[j] + 0.5 * (2.0 * std::f64::consts::PI).ln();
    }
    log_p
}
