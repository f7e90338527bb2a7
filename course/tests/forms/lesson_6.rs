//! Three correct forms of each function of lesson 6.

use gradus_course::lesson_6::Answers;

/// The probabilities, with the mean of the logits subtracted from those that are not far from the largest.
fn probabilities(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().reduce(f64::max).unwrap();
    let weights: Vec<f64> = logits.iter().map(|z| 2_f64.powf((z - largest) / std::f64::consts::LN_2)).collect();
    let sum: f64 = weights.iter().rev().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

fn single(logits: &[f64]) -> Vec<f32> {
    let largest = logits.iter().fold(f32::NEG_INFINITY, |best, z| best.max(*z as f32));
    let weights: Vec<f32> = logits.iter().map(|z| (*z as f32 - largest).exp()).collect();
    let sum: f32 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// The logarithms of the ratios of all probabilities to that of `b`: p_b = 1 / sum_a e^(z_a - z_b).
fn by_ratios(logits: &[f64], b: usize) -> f64 {
    1.0 / logits.iter().map(|z| (z - logits[b]).exp()).sum::<f64>()
}

fn sorted_sum(numbers: &[f64]) -> f64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_by(f64::total_cmp);
    numbers.iter().sum()
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            log_softmax_gradient: |logits, action| {
                let p = probabilities(logits);
                (0..p.len()).map(|b| if b == action { 1.0 - p[b] } else { -p[b] }).collect()
            },
            returns_to_go: |rewards, is_last, gamma| {
                let one = |t: usize| {
                    let end = (t..rewards.len()).find(|end| is_last[*end]).unwrap();
                    rewards[t..=end].iter().rev().fold(0.0, |following, reward| reward + gamma * following)
                };
                (0..rewards.len()).map(one).collect()
            },
            policy_gradient: |logits, actions, weights| {
                let mut all = logits.to_vec();
                for ((row, action), weight) in all.iter_mut().zip(actions).zip(weights) {
                    *row = probabilities(row).iter().map(|p| -p * weight / weights.len() as f64).collect();
                    row[*action] += weight / weights.len() as f64;
                }
                all
            },
            leave_one_out: |returns| {
                let others = |i: usize| [&returns[..i], &returns[i + 1..]].concat();
                (0..returns.len()).map(|i| others(i).iter().sum::<f64>() / others(i).len() as f64).collect()
            },
            whitened: |numbers| {
                let n = numbers.len() as f64;
                let (mean, square) = (numbers.iter().sum::<f64>() / n, numbers.iter().map(|x| x * x).sum::<f64>() / n);
                let deviation = (square - mean * mean).max(0.0).sqrt();
                numbers.iter().map(|x| if deviation < 1e-7 { 0.0 } else { (x - mean) / deviation }).collect()
            },
            entropy_gradient: |logits| {
                // p (sum of p z - z): the logarithm of the sum cancels
                let p = probabilities(logits);
                let mean: f64 = p.iter().zip(logits).map(|(p, z)| p * z).sum();
                p.iter().zip(logits).map(|(p, z)| p * (mean - z)).collect()
            },
        },
        // single precision
        Answers {
            log_softmax_gradient: |logits, action| {
                let mut p = single(logits);
                p.iter_mut().for_each(|p| *p = -*p);
                p[action] += 1.0;
                p.into_iter().map(f64::from).collect()
            },
            returns_to_go: |rewards, is_last, gamma| {
                let mut all = vec![0.0; rewards.len()];
                let mut following = 0_f32;
                for (t, reward) in rewards.iter().enumerate().rev() {
                    if is_last[t] {
                        following = 0.0;
                    }
                    following = *reward as f32 + gamma as f32 * following;
                    all[t] = f64::from(following);
                }
                all
            },
            policy_gradient: |logits, actions, weights| {
                let of_step = |((row, action), weight): ((&Vec<f64>, &usize), &f64)| -> Vec<f64> {
                    let scale = *weight as f32 / weights.len() as f32;
                    let entry = |(b, p): (usize, f32)| f64::from(scale * (f32::from(u8::from(b == *action)) - p));
                    single(row).into_iter().enumerate().map(entry).collect()
                };
                logits.iter().zip(actions).zip(weights).map(of_step).collect()
            },
            leave_one_out: |returns| {
                let sum: f32 = returns.iter().map(|g| *g as f32).sum();
                returns.iter().map(|g| f64::from((sum - *g as f32) / (returns.len() as f32 - 1.0))).collect()
            },
            whitened: |numbers| {
                let n = numbers.len() as f32;
                let mean = numbers.iter().map(|x| *x as f32).sum::<f32>() / n;
                let deviation = (numbers.iter().map(|x| (*x as f32 - mean).powi(2)).sum::<f32>() / n).sqrt();
                numbers.iter().map(|x| if deviation < 1e-7 { 0.0 } else { f64::from((*x as f32 - mean) / deviation) }).collect()
            },
            entropy_gradient: |logits| {
                let p = single(logits);
                let log_p = |p: f32| if p > 0.0 { p.ln() } else { 0.0 };
                let h: f32 = p.iter().map(|p| -p * log_p(*p)).sum();
                p.iter().map(|p| f64::from(-p * (log_p(*p) + h))).collect()
            },
        },
        // in other steps
        Answers {
            log_softmax_gradient: |logits, action| {
                let mut slopes: Vec<f64> = (0..logits.len()).map(|b| -by_ratios(logits, b)).collect();
                // all of them sum to 0
                slopes[action] = 0.0;
                slopes[action] = -slopes.iter().sum::<f64>();
                slopes
            },
            returns_to_go: |rewards, is_last, gamma| {
                let mut all: Vec<f64> = Vec::new();
                let mut episode = Vec::new();
                for (reward, last) in rewards.iter().zip(is_last) {
                    episode.push(*reward);
                    if *last {
                        let n = episode.len();
                        let one = |t: usize| (t..n).map(|k| gamma.powi((k - t) as i32) * episode[k]).sum::<f64>();
                        all.extend((0..n).map(one));
                        episode.clear();
                    }
                }
                all
            },
            policy_gradient: |logits, actions, weights| {
                let step = |t: usize| -> Vec<f64> {
                    let row = &logits[t];
                    let entry = |b: usize| weights[t] * (if b == actions[t] { 1.0 } else { 0.0 } - by_ratios(row, b));
                    (0..row.len()).map(|b| entry(b) / logits.len() as f64).collect()
                };
                (0..logits.len()).map(step).collect()
            },
            leave_one_out: |returns| {
                let n = returns.len() as f64;
                let mean = sorted_sum(returns) / n;
                returns.iter().map(|g| mean + (mean - g) / (n - 1.0)).collect()
            },
            whitened: |numbers| {
                let mean = sorted_sum(numbers) / numbers.len() as f64;
                let distances: Vec<f64> = numbers.iter().map(|x| x - mean).collect();
                let length = distances.iter().map(|d| d * d).sum::<f64>().sqrt();
                if numbers.iter().all(|x| *x == numbers[0]) {
                    return vec![0.0; numbers.len()];
                }
                let scale = (numbers.len() as f64).sqrt() / length;
                distances.into_iter().map(|d| d * scale).collect()
            },
            entropy_gradient: |logits| {
                // the sum over a of p_b p_a (z_a - z_b)
                let p: Vec<f64> = (0..logits.len()).map(|b| by_ratios(logits, b)).collect();
                let one = |b: usize| (0..p.len()).map(|a| p[b] * p[a] * (logits[a] - logits[b])).sum();
                (0..p.len()).map(one).collect()
            },
        },
    ]
}
