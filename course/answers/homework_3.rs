//! Homework 3: language, with answers.

/// h3.1
pub fn top_p(logits: &[f64], p: f64) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logits.iter().map(|z| (z - largest).exp()).collect();
    let all: f64 = weights.iter().sum();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
    let (mut sum, mut kept) = (0.0, vec![0.0; weights.len()]);
    for token in order {
        if sum > 0.0 && sum >= p * all {
            break;
        }
        kept[token] = weights[token];
        sum += weights[token];
    }
    kept.iter().map(|weight| weight / sum).collect()
}

/// h3.2
pub fn ranking_loss(scores: &[f64]) -> f64 {
    let mut loss = 0.0;
    for i in 0..scores.len() {
        // the logarithm of the sum over those that are left, less the score that was chosen
        let left = &scores[i..];
        let largest = left.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        loss += largest + left.iter().map(|s| (s - largest).exp()).sum::<f64>().ln() - scores[i];
    }
    loss
}

/// h3.3
pub fn adaptive_beta(beta: f64, kl: f64, target: f64, texts: usize, horizon: f64) -> f64 {
    beta * (1.0 + (kl / target - 1.0).clamp(-0.2, 0.2) * texts as f64 / horizon)
}

/// h3.4
pub fn process_advantages(rewards: &[Vec<f64>], ends: &[Vec<usize>], lengths: &[usize]) -> Vec<Vec<f64>> {
    let all = rewards.concat();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let std = (all.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / all.len() as f64).sqrt();
    let mut advantages: Vec<Vec<f64>> = lengths.iter().map(|length| vec![0.0; *length]).collect();
    for i in 0..lengths.len() {
        for (reward, end) in rewards[i].iter().zip(&ends[i]) {
            // all tokens up to the end of the step
            advantages[i][..=*end].iter_mut().for_each(|a| *a += (reward - mean) / (std + 1e-4));
        }
    }
    advantages
}
