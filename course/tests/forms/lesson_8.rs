//! Three correct forms of each function of lesson 8.

use gradus_course::End;
use gradus_course::lesson_8::Answers;

fn bootstraps(end: End) -> f64 {
    f64::from(u8::from(end != End::Terminated))
}

fn log_probabilities(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().reduce(f64::max).unwrap();
    let sum: f64 = logits.iter().rev().map(|z| (z - largest).exp()).sum();
    logits.iter().map(|z| z - (largest + sum.ln())).collect()
}

fn single(logits: &[f64]) -> Vec<f32> {
    let largest = logits.iter().fold(f32::NEG_INFINITY, |best, z| best.max(*z as f32));
    let sum: f32 = logits.iter().map(|z| (*z as f32 - largest).exp()).sum();
    logits.iter().map(|z| *z as f32 - largest - sum.ln()).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            // forwards, from each step to the end of its episode
            gae: |rewards, values, next, ends, gamma, lambda| {
                let error = |t: usize| rewards[t] + gamma * bootstraps(ends[t]) * next[t] - values[t];
                let one = |t: usize| {
                    let (mut sum, mut weight) = (0.0, 1.0);
                    for (k, end) in ends.iter().enumerate().skip(t) {
                        sum += weight * error(k);
                        weight *= gamma * lambda;
                        if *end != End::Running {
                            break;
                        }
                    }
                    sum
                };
                (0..rewards.len()).map(one).collect()
            },
            explained_variance: |values, targets| {
                let errors: Vec<f64> = values.iter().zip(targets).map(|(v, u)| v - u).collect();
                let squares = |numbers: &[f64]| numbers.iter().map(|x| (x - mean(numbers)).powi(2)).sum::<f64>();
                (squares(targets) - squares(&errors)) / squares(targets)
            },
            loss: |logits, action, advantage, value, target, c_v, c_e| {
                let log_p = log_probabilities(logits);
                let negative_entropy: f64 = log_p.iter().map(|l| l * l.exp()).sum();
                c_e * negative_entropy - log_p[action] * advantage + 0.5 * c_v * (target - value) * (target - value)
            },
            loss_slopes: |logits, action, advantage, value, target, c_v, c_e| {
                let log_p = log_probabilities(logits);
                let h: f64 = -log_p.iter().map(|l| l * l.exp()).sum::<f64>();
                let mut slopes: Vec<f64> = log_p.iter().map(|l| l.exp() * (advantage + c_e * (l + h))).collect();
                slopes[action] -= advantage;
                (slopes, -c_v * (target - value))
            },
            gaussian_log_prob: |mean, log_std, action| {
                let density: f64 = (0..mean.len())
                    .map(|j| {
                        let std = log_std[j].exp();
                        (-0.5 * ((action[j] - mean[j]) / std).powi(2)).exp() / (std * (2.0 * std::f64::consts::PI).sqrt())
                    })
                    .product();
                if density > 1e-280 {
                    return density.ln();
                }
                (0..mean.len()).map(|j| -0.5 * ((action[j] - mean[j]) / log_std[j].exp()).powi(2) - log_std[j] - 0.918_938_533_2).sum()
            },
        },
        // single precision
        Answers {
            gae: |rewards, values, next, ends, gamma, lambda| {
                let mut all = vec![0.0; rewards.len()];
                let mut following = 0_f32;
                for t in (0..rewards.len()).rev() {
                    if ends[t] != End::Running {
                        following = 0.0;
                    }
                    let error = rewards[t] as f32 + gamma as f32 * bootstraps(ends[t]) as f32 * next[t] as f32 - values[t] as f32;
                    following = error + gamma as f32 * lambda as f32 * following;
                    all[t] = f64::from(following);
                }
                all
            },
            explained_variance: |values, targets| {
                let variance = |numbers: &[f32]| {
                    let mean = numbers.iter().sum::<f32>() / numbers.len() as f32;
                    numbers.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / numbers.len() as f32
                };
                let errors: Vec<f32> = values.iter().zip(targets).map(|(v, u)| (u - v) as f32).collect();
                let targets: Vec<f32> = targets.iter().map(|u| *u as f32).collect();
                f64::from(1.0 - variance(&errors) / variance(&targets))
            },
            loss: |logits, action, advantage, value, target, c_v, c_e| {
                let log_p = single(logits);
                let h: f32 = -log_p.iter().map(|l| l * l.exp()).sum::<f32>();
                let critic = c_v as f32 * 0.5 * (value as f32 - target as f32).powi(2);
                f64::from(-(advantage as f32) * log_p[action] + critic - c_e as f32 * h)
            },
            loss_slopes: |logits, action, advantage, value, target, c_v, c_e| {
                let log_p = single(logits);
                let h: f32 = -log_p.iter().map(|l| l * l.exp()).sum::<f32>();
                let slope = |(b, l): (usize, &f32)| {
                    let p = l.exp();
                    let taken = if b == action { 1.0 } else { 0.0 };
                    f64::from(advantage as f32 * (p - taken) + c_e as f32 * p * (l + h))
                };
                (log_p.iter().enumerate().map(slope).collect(), f64::from(c_v as f32 * (value as f32 - target as f32)))
            },
            gaussian_log_prob: |mean, log_std, action| {
                let one = |j: usize| {
                    let z = (action[j] as f32 - mean[j] as f32) * (-log_std[j] as f32).exp();
                    -0.5 * z * z - log_std[j] as f32 - 0.918_938_5
                };
                f64::from((0..mean.len()).map(one).sum::<f32>())
            },
        },
        // in other steps
        Answers {
            // the lambda-return less the value
            gae: |rewards, values, next, ends, gamma, lambda| {
                let mut all = values.to_vec();
                let mut following = 0.0;
                for t in (0..rewards.len()).rev() {
                    let after = match ends[t] {
                        End::Terminated => 0.0,
                        End::Truncated => next[t],
                        // behind the last step of the list nothing is known
                        End::Running if t + 1 == rewards.len() => next[t],
                        End::Running => next[t] + lambda * (following - values[t + 1]),
                    };
                    following = rewards[t] + gamma * after;
                    all[t] = following - values[t];
                }
                all
            },
            explained_variance: |values, targets| {
                // Var(U - V) = E[(U - V)^2] - E[U - V]^2
                let n = targets.len() as f64;
                let errors = || values.iter().zip(targets).map(|(v, u)| u - v);
                let of_errors = errors().map(|e| e * e).sum::<f64>() / n - (errors().sum::<f64>() / n).powi(2);
                let of_targets = targets.iter().map(|u| (u - targets[0]).powi(2)).sum::<f64>() / n - (mean(targets) - targets[0]).powi(2);
                1.0 - of_errors / of_targets
            },
            loss: |logits, action, advantage, value, target, c_v, c_e| {
                let p: Vec<f64> = log_probabilities(logits).into_iter().map(f64::exp).collect();
                let entropy: f64 = p.iter().map(|p| p * (1.0 / p).ln()).sum();
                let error = value - target;
                [advantage * (1.0 / p[action]).ln(), c_v * error * error / 2.0, -c_e * entropy].iter().sum()
            },
            loss_slopes: |logits, action, advantage, value, target, c_v, c_e| {
                let p: Vec<f64> = log_probabilities(logits).into_iter().map(f64::exp).collect();
                let mean_logit: f64 = p.iter().zip(logits).map(|(p, z)| p * z).sum();
                let slope = |b: usize| {
                    let of_log_p = if b == action { 1.0 - p[b] } else { -p[b] };
                    -advantage * of_log_p - c_e * p[b] * (mean_logit - logits[b])
                };
                ((0..p.len()).map(slope).collect(), c_v * value - c_v * target)
            },
            gaussian_log_prob: |mean, log_std, action| {
                let squares: f64 = (0..mean.len()).map(|j| ((action[j] - mean[j]) / log_std[j].exp()).powi(2)).sum();
                -(squares + mean.len() as f64 * (2.0 * std::f64::consts::PI).ln()) / 2.0 - log_std.iter().sum::<f64>()
            },
        },
    ]
}
