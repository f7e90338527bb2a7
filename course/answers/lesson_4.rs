//! Lesson 4: Q-learning, Sarsa and the cliff, with answers.

use gradus_course::{End, Step};

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// 4.1
pub fn sarsa_target(reward: f64, next_values: &[f64], next_action: usize, gamma: f64, end: End) -> f64 {
    let following = if end == End::Terminated { 0.0 } else { next_values[next_action] };
    reward + gamma * following
}

/// 4.2
pub fn expected_sarsa_target(reward: f64, next_values: &[f64], epsilon: f64, gamma: f64, end: End) -> f64 {
    if end == End::Terminated {
        return reward;
    }
    let mean = next_values.iter().sum::<f64>() / next_values.len() as f64;
    reward + gamma * ((1.0 - epsilon) * largest(next_values) + epsilon * mean)
}

/// 4.3
pub fn q_learning(values: &mut [Vec<f64>], step: Step, alpha: f64, gamma: f64) {
    let following = if step.end == End::Terminated { 0.0 } else { largest(&values[step.next]) };
    let value = &mut values[step.state][step.action];
    *value += alpha * (step.reward + gamma * following - *value);
}

/// 4.4
pub fn double_q_learning(learning: &mut [Vec<f64>], other: &[Vec<f64>], step: Step, alpha: f64, gamma: f64) {
    let row = &learning[step.next];
    let best = (0..row.len()).fold(0, |best, a| if row[a] > row[best] { a } else { best });
    let following = if step.end == End::Terminated { 0.0 } else { other[step.next][best] };
    let value = &mut learning[step.state][step.action];
    *value += alpha * (step.reward + gamma * following - *value);
}
