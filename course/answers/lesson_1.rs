//! Lesson 1: bandits, with answers.

/// 1.1
pub fn sample_average(q: f64, n: u32, reward: f64) -> f64 {
    q + (reward - q) / f64::from(n)
}

/// 1.2
pub fn epsilon_greedy(values: &[f64], epsilon: f64) -> Vec<f64> {
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ties = values.iter().filter(|value| **value == best).count() as f64;
    let explored = epsilon / values.len() as f64;
    values.iter().map(|value| if *value == best { (1.0 - epsilon) / ties + explored } else { explored }).collect()
}

/// 1.3
pub fn upper_confidence_bound(values: &[f64], counts: &[u32], t: u32, c: f64) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for arm in 0..values.len() {
        let bound = match counts[arm] {
            0 => f64::INFINITY,
            n => values[arm] + c * (f64::from(t).ln() / f64::from(n)).sqrt(),
        };
        if bound > best.1 {
            best = (arm, bound);
        }
    }
    best.0
}

/// 1.4
pub fn softmax(preferences: &[f64]) -> Vec<f64> {
    let highest = preferences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = preferences.iter().map(|preference| (preference - highest).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// 1.5
pub fn gradient_bandit(preferences: &mut [f64], arm: usize, reward: f64, baseline: f64, alpha: f64) {
    let probabilities = softmax(preferences);
    for (other, preference) in preferences.iter_mut().enumerate() {
        let chosen = if other == arm { 1.0 } else { 0.0 };
        *preference += alpha * (reward - baseline) * (chosen - probabilities[other]);
    }
}

/// 1.6
pub fn regret(values: &[f64], arms: &[usize]) -> Vec<f64> {
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    arms.iter()
        .map(|arm| {
            sum += best - values[*arm];
            sum
        })
        .collect()
}
