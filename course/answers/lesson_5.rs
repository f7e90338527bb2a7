//! Lesson 5: function approximation and DQN, with answers.

use gradus_course::End;

/// The index of the largest value.
fn argmax(values: &[f64]) -> usize {
    (0..values.len()).fold(0, |best, a| if values[a] > values[best] { a } else { best })
}

/// 5.1
pub fn semi_gradient_td(weights: &mut [f64], features: &[f64], reward: f64, next_features: &[f64], gamma: f64, end: End, alpha: f64) {
    let value = |x: &[f64]| -> f64 { weights.iter().zip(x).map(|(w, x)| w * x).sum() };
    let following = if end == End::Terminated { 0.0 } else { value(next_features) };
    let error = reward + gamma * following - value(features);
    for (w, x) in weights.iter_mut().zip(features) {
        *w += alpha * error * x;
    }
}

/// 5.2
pub fn dqn_targets(rewards: &[f64], next_values: &[Vec<f64>], ends: &[End], gamma: f64) -> Vec<f64> {
    let target = |i: usize| match ends[i] {
        End::Terminated => rewards[i],
        End::Running | End::Truncated => rewards[i] + gamma * next_values[i][argmax(&next_values[i])],
    };
    (0..rewards.len()).map(target).collect()
}

/// 5.3
pub fn double_dqn_target(reward: f64, online: &[f64], target: &[f64], gamma: f64, end: End) -> f64 {
    let following = if end == End::Terminated { 0.0 } else { target[argmax(online)] };
    reward + gamma * following
}

/// 5.4
pub fn huber_slope(error: f64, threshold: f64) -> f64 {
    error.clamp(-threshold, threshold)
}

/// 5.5
pub fn moved_target(target: &mut [f64], online: &[f64], tau: f64) {
    for (old, new) in target.iter_mut().zip(online) {
        *old += tau * (new - *old);
    }
}
