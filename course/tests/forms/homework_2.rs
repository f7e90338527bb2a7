//! Three correct forms of each function of homework 2.

use gradus_course::homework_2::Answers;

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            squashed_log_prob: |u, mean, std| {
                let density = -((u - mean) * (u - mean)) / (2.0 * std * std) - (std * (2.0 * std::f64::consts::PI).sqrt()).ln();
                // 1 - tanh^2 u = 1 / cosh^2 u
                density + 2.0 * u.cosh().ln()
            },
            v_trace: |rewards, values, last, ratios, gamma, [rho, c]| {
                // the sum as it is written
                let n = values.len();
                let next = |t: usize| if t + 1 < n { values[t + 1] } else { last };
                let of = |s: usize| {
                    let term = |t: usize| {
                        let product: f64 = (s..t).map(|i| ratios[i].min(c)).product();
                        gamma.powi((t - s) as i32) * product * ratios[t].min(rho) * (rewards[t] + gamma * next(t) - values[t])
                    };
                    values[s] + (s..n).map(term).sum::<f64>()
                };
                (0..n).map(of).collect()
            },
            conjugate_gradient: |matrix, b, rounds| {
                // the rest is computed anew in each round
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let times = |x: &[f64]| matrix.iter().map(|row| dot(row, x)).collect::<Vec<_>>();
                let mut x = vec![0.0; b.len()];
                let mut direction = b.to_vec();
                for _ in 0..rounds {
                    let rest: Vec<f64> = b.iter().zip(times(&x)).map(|(b, y)| b - y).collect();
                    if dot(&rest, &rest) < 1e-16 {
                        break;
                    }
                    let product = times(&direction);
                    let length = dot(&direction, &rest) / dot(&direction, &product);
                    x.iter_mut().zip(&direction).for_each(|(x, d)| *x += length * d);
                    let new: Vec<f64> = b.iter().zip(times(&x)).map(|(b, y)| b - y).collect();
                    let share = -dot(&new, &product) / dot(&direction, &product);
                    direction = new.iter().zip(&direction).map(|(r, d)| r + share * d).collect();
                }
                x
            },
            masked_whitened: |numbers, is_valid| {
                let places: Vec<usize> = (0..numbers.len()).filter(|i| is_valid[*i]).collect();
                let n = places.len() as f64;
                let mean = places.iter().map(|i| numbers[*i]).sum::<f64>() / n;
                let variance = places.iter().map(|i| (numbers[*i] - mean) * (numbers[*i] - mean)).sum::<f64>() / n;
                let mut result = vec![0.0; numbers.len()];
                places.iter().for_each(|i| result[*i] = (numbers[*i] - mean) / (variance.sqrt() + 1e-8));
                result
            },
        },
        // single precision
        Answers {
            squashed_log_prob: |u, mean, std| {
                let (u, mean, std) = (u as f32, mean as f32, std as f32);
                let z = (u - mean) / std;
                let correction = 2.0 * (std::f32::consts::LN_2 - u.abs() - (-2.0 * u.abs()).exp().ln_1p());
                f64::from(-0.5 * z * z - std.ln() - 0.918_938_5 - correction)
            },
            v_trace: |rewards, values, last, ratios, gamma, [rho, c]| {
                let (mut next, mut later, gamma) = (last as f32, 0.0_f32, gamma as f32);
                let mut all: Vec<f64> = Vec::new();
                for t in (0..values.len()).rev() {
                    let value = values[t] as f32;
                    later =
                        ratios[t].min(rho) as f32 * (rewards[t] as f32 + gamma * next - value) + gamma * ratios[t].min(c) as f32 * later;
                    all.push(f64::from(value + later));
                    next = value;
                }
                all.reverse();
                all
            },
            conjugate_gradient: |matrix, b, rounds| {
                let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
                let matrix: Vec<Vec<f32>> = matrix.iter().map(|row| row.iter().map(|x| *x as f32).collect()).collect();
                let (mut x, mut rest) = (vec![0.0_f32; b.len()], b.iter().map(|b| *b as f32).collect::<Vec<_>>());
                let mut direction = rest.clone();
                for _ in 0..rounds {
                    let square = dot(&rest, &rest);
                    if square < 1e-12 {
                        break;
                    }
                    let product: Vec<f32> = matrix.iter().map(|row| dot(row, &direction)).collect();
                    let length = square / dot(&direction, &product);
                    for i in 0..x.len() {
                        x[i] += length * direction[i];
                        rest[i] -= length * product[i];
                    }
                    let share = dot(&rest, &rest) / square;
                    direction = rest.iter().zip(&direction).map(|(r, d)| r + share * d).collect();
                }
                x.into_iter().map(f64::from).collect()
            },
            masked_whitened: |numbers, is_valid| {
                let valid: Vec<f32> = numbers.iter().zip(is_valid).filter(|(_, is)| **is).map(|(x, _)| *x as f32).collect();
                let n = valid.len() as f32;
                let mean = valid.iter().sum::<f32>() / n;
                let std = (valid.iter().map(|x| (x - mean).powi(2)).sum::<f32>() / n).sqrt();
                numbers.iter().zip(is_valid).map(|(x, is)| if *is { f64::from((*x as f32 - mean) / (std + 1e-8)) } else { 0.0 }).collect()
            },
        },
        // in other steps
        Answers {
            squashed_log_prob: |u, mean, std| {
                let z = (u - mean) / std;
                // ln(4 e^2u / (e^2u + 1)^2), with the larger exponential taken out
                let a = 2.0 * u.abs();
                let slope = 4.0_f64.ln() - a - 2.0 * (1.0 + (-a).exp()).ln();
                -(z * z + std::f64::consts::TAU.ln()) / 2.0 - std.ln() - slope
            },
            v_trace: |rewards, values, last, ratios, gamma, [rho, c]| {
                // v_s - V_s from v_(s+1) - V_(s+1)
                let mut targets = values.to_vec();
                targets.push(last);
                let values = [values, &[last]].concat();
                for s in (0..rewards.len()).rev() {
                    let error = ratios[s].min(rho) * (rewards[s] + gamma * values[s + 1] - values[s]);
                    targets[s] = values[s] + error + gamma * ratios[s].min(c) * (targets[s + 1] - values[s + 1]);
                }
                targets.pop();
                targets
            },
            conjugate_gradient: |matrix, b, rounds| {
                // the best point of the space that is spanned by b, A b, A A b ...: by Gram and Schmidt in the norm of A
                let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
                let times = |x: &[f64]| matrix.iter().map(|row| dot(row, x)).collect::<Vec<_>>();
                let (mut x, mut next) = (vec![0.0; b.len()], b.to_vec());
                let mut basis: Vec<Vec<f64>> = Vec::new();
                for _ in 0..rounds {
                    let size = dot(&next, &next).sqrt();
                    let mut d: Vec<f64> = next.iter().map(|x| x / size).collect();
                    for e in &basis {
                        let part = dot(&d, &times(e));
                        d.iter_mut().zip(e).for_each(|(d, e)| *d -= part * e);
                    }
                    let norm = dot(&d, &times(&d));
                    if norm < 1e-12 {
                        break;
                    }
                    d.iter_mut().for_each(|d| *d /= norm.sqrt());
                    let part = dot(&d, b);
                    x.iter_mut().zip(&d).for_each(|(x, d)| *x += part * d);
                    next = times(&d);
                    basis.push(d);
                }
                x
            },
            masked_whitened: |numbers, is_valid| {
                let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
                for (x, _) in numbers.iter().zip(is_valid).filter(|(_, is)| **is) {
                    n += 1.0;
                    let before = x - mean;
                    mean += before / n;
                    squares += before * (x - mean);
                }
                let std = f64::sqrt(squares / f64::max(n, 1.0));
                let of = |(x, is): (&f64, &bool)| if *is { (x - mean) / (std + 1e-8) } else { 0.0 };
                numbers.iter().zip(is_valid).map(of).collect()
            },
        },
    ]
}
