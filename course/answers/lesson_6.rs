//! Lesson 6: REINFORCE and baselines, with answers.

/// The logarithms of the probabilities.
fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|z| (z - largest).exp()).sum();
    logits.iter().map(|z| z - largest - sum.ln()).collect()
}

/// 6.1
pub fn log_softmax_gradient(logits: &[f64], action: usize) -> Vec<f64> {
    let mut slopes: Vec<f64> = log_softmax(logits).into_iter().map(|log_p| -log_p.exp()).collect();
    slopes[action] += 1.0;
    slopes
}

/// 6.2
pub fn returns_to_go(rewards: &[f64], is_last: &[bool], gamma: f64) -> Vec<f64> {
    let mut all = vec![0.0; rewards.len()];
    let mut following = 0.0;
    for t in (0..rewards.len()).rev() {
        following = if is_last[t] { rewards[t] } else { rewards[t] + gamma * following };
        all[t] = following;
    }
    all
}

/// 6.3
pub fn policy_gradient(logits: &[Vec<f64>], actions: &[usize], weights: &[f64]) -> Vec<Vec<f64>> {
    let n = logits.len() as f64;
    let of_step = |t: usize| log_softmax_gradient(&logits[t], actions[t]).into_iter().map(|slope| weights[t] * slope / n).collect();
    (0..logits.len()).map(of_step).collect()
}

/// 6.4
pub fn leave_one_out(returns: &[f64]) -> Vec<f64> {
    let sum: f64 = returns.iter().sum();
    returns.iter().map(|g| (sum - g) / (returns.len() - 1) as f64).collect()
}

/// 6.5
pub fn whitened(numbers: &[f64]) -> Vec<f64> {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let deviation = (numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    // the mean of equal numbers may be rounded, so that the deviation is not 0
    if numbers.iter().all(|x| *x == numbers[0]) {
        return vec![0.0; numbers.len()];
    }
    numbers.iter().map(|x| (x - mean) / deviation).collect()
}

/// 6.6
pub fn entropy_gradient(logits: &[f64]) -> Vec<f64> {
    let log_p = log_softmax(logits);
    let entropy = -log_p.iter().map(|log_p| log_p.exp() * log_p).sum::<f64>();
    log_p.iter().map(|log_p| -log_p.exp() * (log_p + entropy)).collect()
}
