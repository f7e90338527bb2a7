//! Three correct forms of each function of lesson 9.

use gradus_course::lesson_9::Answers;

fn probabilities(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().reduce(f64::max).unwrap();
    let weights: Vec<f64> = logits.iter().map(|z| (z - largest).exp()).collect();
    let sum: f64 = weights.iter().rev().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn single(logits: &[f64]) -> Vec<f32> {
    let largest = logits.iter().fold(f32::NEG_INFINITY, |best, z| best.max(*z as f32));
    let sum: f32 = logits.iter().map(|z| (*z as f32 - largest).exp()).sum();
    logits.iter().map(|z| *z as f32 - largest - sum.ln()).collect()
}

/// The inverse of a small matrix, column by column, by elimination without exchanges: the matrices are positive definite.
fn inverse(matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = matrix.len();
    let unit = |i: usize| (0..n).map(move |j| f64::from(u8::from(i == j)));
    let mut rows: Vec<Vec<f64>> = (0..n).map(|i| matrix[i].iter().copied().chain(unit(i)).collect()).collect();
    for i in 0..n {
        let pivot = rows[i][i];
        rows[i].iter_mut().for_each(|x| *x /= pivot);
        for k in (0..n).filter(|k| *k != i) {
            let factor = rows[k][i];
            (0..2 * n).for_each(|j| rows[k][j] -= factor * rows[i][j]);
        }
    }
    rows.into_iter().map(|row| row[n..].to_vec()).collect()
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            surrogate: |log_prob, old, advantage, clip| {
                let ratio = log_prob.exp() / old.exp();
                if advantage >= 0.0 { advantage * ratio.min(1.0 + clip) } else { advantage * ratio.max(1.0 - clip) }
            },
            surrogate_slope: |log_prob, old, advantage, clip| {
                let ratio = log_prob.exp() / old.exp();
                match advantage > 0.0 {
                    true if ratio > 1.0 + clip => 0.0,
                    false if ratio < 1.0 - clip => 0.0,
                    _ => advantage * ratio,
                }
            },
            kl_divergence: |old, new| {
                let (p, q) = (probabilities(old), probabilities(new));
                p.iter().zip(&q).map(|(p, q)| if *p > 0.0 { p * (p / q).ln() } else { 0.0 }).sum()
            },
            approx_kl: |log_probs, old| {
                let ratios: Vec<f64> = log_probs.iter().zip(old).map(|(now, old)| (now - old).exp()).collect();
                let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
                mean - 1.0 - ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64
            },
            natural_step: |gradient, fisher, delta| {
                let x: Vec<f64> = inverse(fisher).iter().map(|row| row.iter().zip(gradient).map(|(f, g)| f * g).sum()).collect();
                let product: f64 = x.iter().zip(gradient).map(|(x, g)| x * g).sum();
                x.iter().map(|x| x * (2.0 * delta / product).sqrt()).collect()
            },
        },
        // single precision
        Answers {
            surrogate: |log_prob, old, advantage, clip| {
                let (ratio, a, clip) = ((log_prob as f32 - old as f32).exp(), advantage as f32, clip as f32);
                f64::from((ratio * a).min(ratio.max(1.0 - clip).min(1.0 + clip) * a))
            },
            surrogate_slope: |log_prob, old, advantage, clip| {
                let (ratio, a, clip) = ((log_prob as f32 - old as f32).exp(), advantage as f32, clip as f32);
                let is_cut = (ratio * a) > ratio.clamp(1.0 - clip, 1.0 + clip) * a;
                if is_cut { 0.0 } else { f64::from(ratio * a) }
            },
            kl_divergence: |old, new| f64::from(single(old).iter().zip(single(new)).map(|(p, q)| p.exp() * (p - q)).sum::<f32>()),
            approx_kl: |log_probs, old| {
                let one = |(now, old): (&f64, &f64)| {
                    let d = *now as f32 - *old as f32;
                    d.exp_m1() - d
                };
                f64::from(log_probs.iter().zip(old).map(one).sum::<f32>() / old.len() as f32)
            },
            natural_step: |gradient, fisher, delta| {
                let inverse = inverse(fisher);
                let x: Vec<f32> = inverse.iter().map(|row| row.iter().zip(gradient).map(|(f, g)| (f * g) as f32).sum()).collect();
                let product: f32 = x.iter().zip(gradient).map(|(x, g)| x * *g as f32).sum();
                x.iter().map(|x| f64::from(x * (2.0 * delta as f32 / product).sqrt())).collect()
            },
        },
        // in other steps
        Answers {
            surrogate: |log_prob, old, advantage, clip| {
                // Spinning Up's form: the smaller of ratio times advantage and g(clip, advantage)
                let bound = if advantage > 0.0 { (1.0 + clip) * advantage } else { (1.0 - clip) * advantage };
                ((log_prob - old).exp() * advantage).min(bound)
            },
            surrogate_slope: |log_prob, old, advantage, clip| {
                let ratio = (log_prob - old).exp();
                let room = if advantage > 0.0 { 1.0 + clip - ratio } else { ratio - (1.0 - clip) };
                advantage * ratio * f64::from(u8::from(room >= 0.0))
            },
            kl_divergence: |old, new| {
                // cross-entropy less entropy
                let (p, q) = (probabilities(old), probabilities(new));
                let sum = |q: &[f64]| p.iter().zip(q).filter(|(p, _)| **p > 0.0).map(|(p, q)| -p * q.ln()).sum::<f64>();
                sum(&q) - sum(&p)
            },
            approx_kl: |log_probs, old| {
                let mut mean = 0.0;
                for (n, (now, old)) in (1..).zip(log_probs.iter().zip(old)) {
                    let d = old - now;
                    mean += (1.0 / d.exp() - 1.0 + d - mean) / f64::from(n);
                }
                mean
            },
            natural_step: |gradient, fisher, delta| {
                // Gauss-Seidel sweeps converge for positive definite matrices
                let mut x = vec![0.0; gradient.len()];
                for _ in 0..20_000 {
                    for i in 0..x.len() {
                        let others: f64 = (0..x.len()).filter(|j| *j != i).map(|j| fisher[i][j] * x[j]).sum();
                        x[i] = (gradient[i] - others) / fisher[i][i];
                    }
                }
                let square: f64 = (0..x.len()).map(|i| (0..x.len()).map(|j| x[i] * fisher[i][j] * x[j]).sum::<f64>()).sum();
                let scale = (2.0 * delta / square).sqrt();
                x.into_iter().map(|x| x * scale).collect()
            },
        },
    ]
}
