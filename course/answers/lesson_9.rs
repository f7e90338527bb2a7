//! Lesson 9: trust regions and PPO, with answers.

/// 9.1
pub fn surrogate(log_prob: f64, old_log_prob: f64, advantage: f64, clip: f64) -> f64 {
    let ratio = (log_prob - old_log_prob).exp();
    (ratio * advantage).min(ratio.clamp(1.0 - clip, 1.0 + clip) * advantage)
}

/// 9.2
pub fn surrogate_slope(log_prob: f64, old_log_prob: f64, advantage: f64, clip: f64) -> f64 {
    let ratio = (log_prob - old_log_prob).exp();
    let went_too_far = if advantage > 0.0 { ratio > 1.0 + clip } else { ratio < 1.0 - clip };
    if went_too_far { 0.0 } else { ratio * advantage }
}

fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|z| (z - largest).exp()).sum();
    logits.iter().map(|z| z - largest - sum.ln()).collect()
}

/// 9.3
pub fn kl_divergence(old_logits: &[f64], new_logits: &[f64]) -> f64 {
    let pairs = log_softmax(old_logits).into_iter().zip(log_softmax(new_logits));
    pairs.map(|(old, new)| old.exp() * (old - new)).sum()
}

/// 9.4
pub fn approx_kl(log_probs: &[f64], old_log_probs: &[f64]) -> f64 {
    let one = |(now, old): (&f64, &f64)| (now - old).exp() - 1.0 - (now - old);
    log_probs.iter().zip(old_log_probs).map(one).sum::<f64>() / log_probs.len() as f64
}

/// 9.5
pub fn natural_step(gradient: &[f64], fisher: &[Vec<f64>], delta: f64) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    // the conjugate gradient method solves F x = g with as many steps as there are parameters
    let mut x = vec![0.0; gradient.len()];
    let (mut rest, mut direction) = (gradient.to_vec(), gradient.to_vec());
    for _ in 0..gradient.len() {
        let square = dot(&rest, &rest);
        if square < 1e-20 {
            break;
        }
        let product: Vec<f64> = fisher.iter().map(|row| dot(row, &direction)).collect();
        let length = square / dot(&direction, &product);
        for i in 0..x.len() {
            x[i] += length * direction[i];
            rest[i] -= length * product[i];
        }
        let share = dot(&rest, &rest) / square;
        for i in 0..x.len() {
            direction[i] = rest[i] + share * direction[i];
        }
    }
    let factor = (2.0 * delta / dot(gradient, &x)).sqrt();
    x.iter().map(|x| factor * x).collect()
}
