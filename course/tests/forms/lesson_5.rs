//! Three correct forms of each function of lesson 5.

use gradus_course::End;
use gradus_course::lesson_5::Answers;

fn continues(end: End) -> f64 {
    f64::from(u8::from(end != End::Terminated))
}

fn chosen(values: &[f64]) -> usize {
    (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap()
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            semi_gradient_td: |weights, features, reward, next, gamma, end, alpha| {
                let (mut value, mut after) = (0.0, 0.0);
                for i in (0..weights.len()).rev() {
                    value += weights[i] * features[i];
                    after += weights[i] * next[i];
                }
                let size = alpha * (reward + gamma * continues(end) * after - value);
                (0..weights.len()).for_each(|i| weights[i] += features[i] * size);
            },
            dqn_targets: |rewards, next, ends, gamma| {
                let mut all = rewards.to_vec();
                for ((y, row), end) in all.iter_mut().zip(next).zip(ends) {
                    *y += gamma * continues(*end) * row.iter().copied().reduce(f64::max).unwrap();
                }
                all
            },
            double_dqn_target: |reward, online, target, gamma, end| reward + gamma * continues(end) * target[chosen(online)],
            huber_slope: |error, threshold| if error.abs() <= threshold { error } else { threshold * error.signum() },
            moved_target: |target, online, tau| {
                for i in 0..target.len() {
                    target[i] = tau * online[i] + (1.0 - tau) * target[i];
                }
            },
        },
        // single precision
        Answers {
            semi_gradient_td: |weights, features, reward, next, gamma, end, alpha| {
                let dot = |x: &[f64]| weights.iter().zip(x).map(|(w, x)| *w as f32 * *x as f32).sum::<f32>();
                let error = reward as f32 + gamma as f32 * continues(end) as f32 * dot(next) - dot(features);
                weights.iter_mut().zip(features).for_each(|(w, x)| *w = f64::from(*w as f32 + alpha as f32 * error * *x as f32));
            },
            dqn_targets: |rewards, next, ends, gamma| {
                let best = |row: &[f64]| row.iter().fold(f32::NEG_INFINITY, |best, q| best.max(*q as f32));
                let one = |i: usize| f64::from(rewards[i] as f32 + gamma as f32 * continues(ends[i]) as f32 * best(&next[i]));
                (0..rewards.len()).map(one).collect()
            },
            double_dqn_target: |reward, online, target, gamma, end| {
                f64::from(reward as f32 + gamma as f32 * continues(end) as f32 * target[chosen(online)] as f32)
            },
            huber_slope: |error, threshold| f64::from((error as f32).min(threshold as f32).max(-threshold as f32)),
            moved_target: |target, online, tau| {
                target.iter_mut().zip(online).for_each(|(t, o)| *t = f64::from(*t as f32 + tau as f32 * (*o as f32 - *t as f32)));
            },
        },
        // in other steps
        Answers {
            semi_gradient_td: |weights, features, reward, next, gamma, end, alpha| {
                let difference: Vec<f64> = features.iter().zip(next).map(|(x, y)| gamma * continues(end) * y - x).collect();
                let error = reward + weights.iter().zip(difference).map(|(w, d)| w * d).sum::<f64>();
                let new: Vec<f64> = weights.iter().zip(features).map(|(w, x)| w + alpha * error * x).collect();
                weights.copy_from_slice(&new);
            },
            dqn_targets: |rewards, next, ends, gamma| {
                let mut all = Vec::new();
                for i in 0..rewards.len() {
                    let mut sorted = next[i].clone();
                    sorted.sort_by(|a, b| b.total_cmp(a));
                    all.push(if ends[i] == End::Terminated { rewards[i] } else { sorted[0].mul_add(gamma, rewards[i]) });
                }
                all
            },
            double_dqn_target: |reward, online, target, gamma, end| {
                let pair = online.iter().zip(target).reduce(|best, pair| if pair.0 > best.0 { pair } else { best }).unwrap();
                match end {
                    End::Terminated => reward,
                    _ => gamma.mul_add(*pair.1, reward),
                }
            },
            huber_slope: |error, threshold| error * (threshold / error.abs().max(threshold)),
            moved_target: |target, online, tau| {
                let new: Vec<f64> = target.iter().zip(online).map(|(t, o)| t - tau * (t - o)).collect();
                target.copy_from_slice(&new);
            },
        },
    ]
}
