//! Homework 2: policy gradients, with answers.

/// h2.1
pub fn squashed_log_prob(u: f64, mean: f64, std: f64) -> f64 {
    let z = (u - mean) / std;
    let gaussian = -0.5 * z * z - std.ln() - 0.5 * std::f64::consts::TAU.ln();
    // ln(1 - tanh^2 u) = 2 (ln 2 - u - ln(1 + e^-2u)), here for |u|
    let correction = 2.0 * (std::f64::consts::LN_2 - u.abs() - (-2.0 * u.abs()).exp().ln_1p());
    gaussian - correction
}

/// h2.2
pub fn v_trace(rewards: &[f64], values: &[f64], next_value: f64, ratios: &[f64], gamma: f64, limits: [f64; 2]) -> Vec<f64> {
    let [rho_bar, c_bar] = limits;
    let mut targets = vec![0.0; values.len()];
    let (mut next, mut later) = (next_value, 0.0);
    for t in (0..values.len()).rev() {
        let error = ratios[t].min(rho_bar) * (rewards[t] + gamma * next - values[t]);
        later = error + gamma * ratios[t].min(c_bar) * later;
        targets[t] = values[t] + later;
        next = values[t];
    }
    targets
}

/// h2.3
pub fn conjugate_gradient(matrix: &[Vec<f64>], b: &[f64], rounds: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let mut x = vec![0.0; b.len()];
    let (mut rest, mut direction) = (b.to_vec(), b.to_vec());
    for _ in 0..rounds {
        let square = dot(&rest, &rest);
        if square < 1e-16 {
            break;
        }
        let product: Vec<f64> = matrix.iter().map(|row| dot(row, &direction)).collect();
        let length = square / dot(&direction, &product);
        for i in 0..b.len() {
            x[i] += length * direction[i];
            rest[i] -= length * product[i];
        }
        let share = dot(&rest, &rest) / square;
        for i in 0..b.len() {
            direction[i] = rest[i] + share * direction[i];
        }
    }
    x
}

/// h2.4
pub fn masked_whitened(numbers: &[f64], is_valid: &[bool]) -> Vec<f64> {
    let valid: Vec<f64> = numbers.iter().zip(is_valid).filter(|(_, is)| **is).map(|(x, _)| *x).collect();
    let n = valid.len() as f64;
    let mean = valid.iter().sum::<f64>() / n;
    let std = (valid.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    numbers.iter().zip(is_valid).map(|(x, is)| if *is { (x - mean) / (std + 1e-8) } else { 0.0 }).collect()
}
