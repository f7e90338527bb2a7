//! Three correct forms of each function of homework 3.

use gradus_course::homework_3::Answers;

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            top_p: |logits, p| {
                let largest = logits.iter().copied().fold(f64::MIN, f64::max);
                let weights: Vec<f64> = logits.iter().map(|z| (z - largest).exp()).collect();
                let sum: f64 = weights.iter().sum();
                let all: Vec<f64> = weights.iter().map(|w| w / sum).collect();
                // a token is kept if those before it, which are likelier, or as likely and earlier, have less than p together
                let is_before = |other: usize, i: usize| all[other] > all[i] || all[other] == all[i] && other < i;
                let before = |i: usize| (0..all.len()).filter(|other| is_before(*other, i)).map(|other| all[other]).collect::<Vec<_>>();
                let is_kept = |i: usize| before(i).is_empty() || before(i).iter().sum::<f64>() < p;
                let kept: f64 = (0..all.len()).filter(|i| is_kept(*i)).map(|i| all[i]).sum();
                (0..all.len()).map(|i| if is_kept(i) { all[i] / kept } else { 0.0 }).collect()
            },
            ranking_loss: |scores| {
                // from the back, with the logarithm of the sum so far
                let mut log_sum = f64::NEG_INFINITY;
                let mut loss = 0.0;
                for s in scores.iter().rev() {
                    let largest = log_sum.max(*s);
                    log_sum = largest + ((log_sum - largest).exp() + (s - largest).exp()).ln();
                    loss += log_sum - s;
                }
                loss
            },
            adaptive_beta: |beta, kl, target, texts, horizon| {
                let error = ((kl - target) / target).clamp(-0.2, 0.2);
                beta + beta * error * texts as f64 / horizon
            },
            process_advantages: |rewards, ends, lengths| {
                let all: Vec<f64> = rewards.iter().flatten().copied().collect();
                let n = all.len() as f64;
                let mean = all.iter().sum::<f64>() / n;
                let std = (all.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / n).sqrt();
                let mut result = Vec::new();
                for i in 0..lengths.len() {
                    // from the back
                    let (mut sum, mut tokens) = (0.0, vec![0.0; lengths[i]]);
                    for t in (0..lengths[i]).rev() {
                        for k in (0..ends[i].len()).filter(|k| ends[i][*k] == t) {
                            sum += (rewards[i][k] - mean) / (std + 1e-4);
                        }
                        tokens[t] = sum;
                    }
                    result.push(tokens);
                }
                result
            },
        },
        // single precision
        Answers {
            top_p: |logits, p| {
                let largest = logits.iter().copied().fold(f64::MIN, f64::max);
                let weights: Vec<f32> = logits.iter().map(|z| ((z - largest) as f32).exp()).collect();
                let all: f32 = weights.iter().sum();
                let mut order: Vec<usize> = (0..weights.len()).collect();
                order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
                let (mut sum, mut kept) = (0.0_f32, vec![0.0; weights.len()]);
                for token in order {
                    kept[token] = f64::from(weights[token]);
                    sum += weights[token];
                    if sum >= p as f32 * all {
                        break;
                    }
                }
                kept.iter().map(|w| w / f64::from(sum)).collect()
            },
            ranking_loss: |scores| {
                let scores: Vec<f32> = scores.iter().map(|s| *s as f32).collect();
                let of = |i: usize| {
                    let largest = scores[i..].iter().copied().fold(f32::MIN, f32::max);
                    largest + scores[i..].iter().map(|s| (s - largest).exp()).sum::<f32>().ln() - scores[i]
                };
                f64::from((0..scores.len()).map(of).sum::<f32>())
            },
            adaptive_beta: |beta, kl, target, texts, horizon| {
                let error = (kl as f32 / target as f32 - 1.0).clamp(-0.2, 0.2);
                f64::from(beta as f32 * (1.0 + error * texts as f32 / horizon as f32))
            },
            process_advantages: |rewards, ends, lengths| {
                let all: Vec<f32> = rewards.iter().flatten().map(|r| *r as f32).collect();
                let mean = all.iter().sum::<f32>() / all.len() as f32;
                let std = (all.iter().map(|r| (r - mean).powi(2)).sum::<f32>() / all.len() as f32).sqrt();
                let of = |i: usize, t: usize| {
                    let later = rewards[i].iter().zip(&ends[i]).filter(|(_, end)| **end >= t);
                    f64::from(later.map(|(r, _)| (*r as f32 - mean) / (std + 1e-4)).sum::<f32>())
                };
                (0..lengths.len()).map(|i| (0..lengths[i]).map(|t| of(i, t)).collect()).collect()
            },
        },
        // in other steps
        Answers {
            top_p: |logits, p| {
                // takes the unlikeliest away as long as the rest has at least p
                let largest = logits.iter().copied().fold(f64::MIN, f64::max);
                let weights: Vec<f64> = logits.iter().map(|z| (z - largest).exp()).collect();
                let all: f64 = weights.iter().sum();
                let mut left: Vec<usize> = (0..weights.len()).collect();
                left.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
                let mut sum: f64 = left.iter().map(|i| weights[*i]).sum();
                while left.len() > 1 && sum - weights[left[left.len() - 1]] >= p * all {
                    sum -= weights[left.pop().unwrap()];
                }
                let sum: f64 = left.iter().map(|i| weights[*i]).sum();
                (0..weights.len()).map(|i| if left.contains(&i) { weights[i] / sum } else { 0.0 }).collect()
            },
            ranking_loss: |scores| {
                // the logarithm of a product of probabilities, each as a sum of ratios
                let of = |i: usize| {
                    let largest = scores[i..].iter().map(|s| s - scores[i]).fold(0.0, f64::max);
                    largest + scores[i..].iter().map(|s| (s - scores[i] - largest).exp()).sum::<f64>().ln()
                };
                (0..scores.len()).map(of).sum()
            },
            adaptive_beta: |beta, kl, target, texts, horizon| {
                let ratio = kl / target;
                let error = if ratio > 1.2 {
                    0.2
                } else if ratio < 0.8 {
                    -0.2
                } else {
                    ratio - 1.0
                };
                beta * (horizon + error * texts as f64) / horizon
            },
            process_advantages: |rewards, ends, lengths| {
                let n = rewards.iter().map(Vec::len).sum::<usize>() as f64;
                let (sum, squares) = rewards.iter().flatten().fold((0.0, 0.0), |(sum, squares), r| (sum + r, squares + r * r));
                let mean = sum / n;
                let variance = squares / n - mean * mean;
                let std = if variance < 1e-12 { 0.0 } else { variance.sqrt() };
                let mut advantages: Vec<Vec<f64>> = lengths.iter().map(|length| vec![0.0; *length]).collect();
                for (i, own) in rewards.iter().enumerate() {
                    for (k, r) in own.iter().enumerate() {
                        advantages[i].iter_mut().take(ends[i][k] + 1).for_each(|a| *a += (r - mean) / (std + 1e-4));
                    }
                }
                advantages
            },
        },
    ]
}
