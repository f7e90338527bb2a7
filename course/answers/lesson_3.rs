//! Lesson 3: Monte Carlo and temporal differences, with answers.

use gradus_course::End;

/// 3.1
pub fn returns(rewards: &[f64], gamma: f64) -> Vec<f64> {
    let mut all = vec![0.0; rewards.len()];
    let mut following = 0.0;
    for t in (0..rewards.len()).rev() {
        following = rewards[t] + gamma * following;
        all[t] = following;
    }
    all
}

/// 3.2
pub fn first_visit(values: &mut [f64], counts: &mut [u32], states: &[usize], rewards: &[f64], gamma: f64) {
    for (t, g) in returns(rewards, gamma).into_iter().enumerate() {
        let state = states[t];
        if !states[..t].contains(&state) {
            counts[state] += 1;
            values[state] += (g - values[state]) / f64::from(counts[state]);
        }
    }
}

/// 3.3
pub fn td_error(value: f64, reward: f64, next_value: f64, gamma: f64, end: End) -> f64 {
    let following = if end == End::Terminated { 0.0 } else { next_value };
    reward + gamma * following - value
}

/// 3.4
pub fn n_step_return(rewards: &[f64], next_value: f64, gamma: f64) -> f64 {
    rewards.iter().rev().fold(next_value, |following, reward| reward + gamma * following)
}

/// 3.5
pub fn lambda_returns(rewards: &[f64], next_values: &[f64], gamma: f64, lambda: f64) -> Vec<f64> {
    let mut all = vec![0.0; rewards.len()];
    let mut following = next_values[next_values.len() - 1];
    for t in (0..rewards.len()).rev() {
        following = rewards[t] + gamma * ((1.0 - lambda) * next_values[t] + lambda * following);
        all[t] = following;
    }
    all
}

/// 3.6
pub fn weighted_importance(returns: &[f64], ratios: &[f64]) -> f64 {
    let weights: f64 = ratios.iter().sum();
    if weights == 0.0 {
        return 0.0;
    }
    returns.iter().zip(ratios).map(|(g, ratio)| ratio * g).sum::<f64>() / weights
}
