//! Lesson 11: a text is a Markov decision process, with answers.

/// 11.1
pub fn token_log_prob(logits: &[f64], token: usize, temperature: f64) -> f64 {
    let scaled: Vec<f64> = logits.iter().map(|z| z / temperature).collect();
    let largest = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = scaled.iter().map(|z| (z - largest).exp()).sum();
    scaled[token] - largest - sum.ln()
}

/// 11.2
pub fn completion_log_prob(log_probs: &[f64], is_completion: &[bool]) -> f64 {
    log_probs.iter().zip(is_completion).filter(|(_, is)| **is).map(|(l, _)| l).sum()
}

/// 11.3
pub fn group_advantages(rewards: &[f64]) -> Vec<f64> {
    let n = rewards.len() as f64;
    let mean = rewards.iter().sum::<f64>() / n;
    let std = (rewards.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n).sqrt();
    rewards.iter().map(|r| (r - mean) / (std + 1e-4)).collect()
}

/// 11.4
pub fn grpo_objective(log_ratios: &[Vec<f64>], advantages: &[f64], clip: f64) -> f64 {
    let mut sum = 0.0;
    for (ratios, a) in log_ratios.iter().zip(advantages) {
        let term = |d: &f64| (d.exp() * a).min(d.exp().clamp(1.0 - clip, 1.0 + clip) * a);
        sum += ratios.iter().map(term).sum::<f64>() / ratios.len() as f64;
    }
    sum / log_ratios.len() as f64
}

/// 11.5
pub fn token_advantages(values: &[f64], reward: f64, lambda: f64) -> Vec<f64> {
    let mut advantages = vec![0.0; values.len()];
    let mut next = reward; // what follows the last token
    let mut later = 0.0;
    for t in (0..values.len()).rev() {
        later = next - values[t] + lambda * later;
        advantages[t] = later;
        next = values[t];
    }
    advantages
}
