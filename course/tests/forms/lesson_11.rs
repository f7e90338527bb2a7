//! Three correct forms of each function of lesson 11.

use gradus_course::lesson_11::Answers;

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            token_log_prob: |logits, token, temperature| {
                // minus the logarithm of the sum of the exponentials of the differences, each of which may be large
                let sum = logits.iter().map(|z| (z - logits[token]) / temperature);
                let largest = sum.clone().fold(f64::NEG_INFINITY, f64::max);
                -(largest + sum.map(|d| (d - largest).exp()).sum::<f64>().ln())
            },
            completion_log_prob: |log_probs, is_completion| {
                log_probs.iter().zip(is_completion).map(|(l, is)| if *is { *l } else { 0.0 }).rev().sum()
            },
            group_advantages: |rewards| {
                // the mean of the squares less the square of the mean
                let n = rewards.len() as f64;
                let mean = rewards.iter().sum::<f64>() / n;
                let variance = (rewards.iter().map(|r| r * r).sum::<f64>() / n - mean * mean).max(0.0);
                // rounding leaves a little where there is no spread
                let std = if variance < 1e-12 { 0.0 } else { variance.sqrt() };
                rewards.iter().map(|r| (r - mean) / (std + 1e-4)).collect()
            },
            grpo_objective: |log_ratios, advantages, clip| {
                let n = log_ratios.len() as f64;
                let mut objective = 0.0;
                for i in 0..log_ratios.len() {
                    let (a, length) = (advantages[i], log_ratios[i].len() as f64);
                    for d in &log_ratios[i] {
                        let ratio = if a >= 0.0 { d.exp().min(1.0 + clip) } else { d.exp().max(1.0 - clip) };
                        objective += ratio * a / (n * length);
                    }
                }
                objective
            },
            token_advantages: |values, reward, lambda| {
                // the sum of the later TD errors, each with its power of lambda
                let n = values.len();
                let after = |t: usize| if t + 1 < n { values[t + 1] } else { reward };
                let of = |t: usize| (t..n).map(|k| lambda.powi((k - t) as i32) * (after(k) - values[k])).sum();
                (0..n).map(of).collect()
            },
        },
        // single precision
        Answers {
            token_log_prob: |logits, token, temperature| {
                let scaled: Vec<f32> = logits.iter().map(|z| *z as f32 / temperature as f32).collect();
                let largest = scaled.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                f64::from(scaled[token] - largest - scaled.iter().map(|z| (z - largest).exp()).sum::<f32>().ln())
            },
            completion_log_prob: |log_probs, is_completion| {
                f64::from(log_probs.iter().zip(is_completion).filter(|(_, is)| **is).map(|(l, _)| *l as f32).sum::<f32>())
            },
            group_advantages: |rewards| {
                let rewards: Vec<f32> = rewards.iter().map(|r| *r as f32).collect();
                let n = rewards.len() as f32;
                let mean = rewards.iter().sum::<f32>() / n;
                if rewards.iter().all(|r| *r == rewards[0]) {
                    return vec![0.0; rewards.len()];
                }
                let std = (rewards.iter().map(|r| (r - mean).powi(2)).sum::<f32>() / n).sqrt();
                rewards.iter().map(|r| f64::from((r - mean) / (std + 1e-4))).collect()
            },
            grpo_objective: |log_ratios, advantages, clip| {
                let (mut sum, clip) = (0.0_f32, clip as f32);
                for (ratios, a) in log_ratios.iter().zip(advantages) {
                    let a = *a as f32;
                    let terms = ratios.iter().map(|d| {
                        let ratio = (*d as f32).exp();
                        (ratio * a).min(ratio.max(1.0 - clip).min(1.0 + clip) * a)
                    });
                    sum += terms.sum::<f32>() / ratios.len() as f32;
                }
                f64::from(sum / log_ratios.len() as f32)
            },
            token_advantages: |values, reward, lambda| {
                let (mut next, mut later) = (reward as f32, 0.0_f32);
                let mut all: Vec<f64> = Vec::new();
                for value in values.iter().rev() {
                    later = next - *value as f32 + lambda as f32 * later;
                    next = *value as f32;
                    all.push(f64::from(later));
                }
                all.reverse();
                all
            },
        },
        // in other steps
        Answers {
            token_log_prob: |logits, token, temperature| {
                // adds up the exponentials one by one, with the largest so far in front
                let (mut largest, mut sum) = (f64::NEG_INFINITY, 0.0);
                for z in logits.iter().map(|z| z / temperature) {
                    if z > largest {
                        sum = sum * f64::exp(largest - z) + 1.0;
                        largest = z;
                    } else {
                        sum += f64::exp(z - largest);
                    }
                }
                logits[token] / temperature - largest - sum.ln()
            },
            completion_log_prob: |log_probs, is_completion| {
                let Some(start) = is_completion.iter().position(|is| *is) else { return 0.0 };
                let end = is_completion.iter().rposition(|is| *is).unwrap();
                log_probs[start..=end].iter().sum()
            },
            group_advantages: |rewards| {
                // the sum of squares from all pairs
                let n = rewards.len() as f64;
                let pairs: f64 = rewards.iter().flat_map(|a| rewards.iter().map(move |b| (a - b).powi(2))).sum();
                let std = (pairs / 2.0).sqrt() / n;
                rewards.iter().map(|r| rewards.iter().map(|other| r - other).sum::<f64>() / n / (std + 1e-4)).collect()
            },
            grpo_objective: |log_ratios, advantages, clip| {
                let means = log_ratios.iter().zip(advantages).map(|(ratios, a)| {
                    let bound = if *a > 0.0 { (1.0 + clip) * a } else { (1.0 - clip) * a };
                    ratios.iter().map(|d| (d.exp() * a).min(bound)).sum::<f64>() / ratios.len() as f64
                });
                means.sum::<f64>() / advantages.len() as f64
            },
            token_advantages: |values, reward, lambda| {
                // the lambda-return less the value: a mixture of the values to come and the reward
                let n = values.len();
                let mut result = vec![0.0; n];
                let mut target = reward;
                for t in (0..n).rev() {
                    result[t] = target - values[t];
                    target = (1.0 - lambda) * values[t] + lambda * target;
                }
                result
            },
        },
    ]
}
