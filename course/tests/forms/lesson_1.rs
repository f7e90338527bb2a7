//! Three correct forms of each function of lesson 1: in another order, in other types, by other means.

use gradus_course::lesson_1::Answers;

pub fn forms() -> [Answers; 3] {
    [
        // sums over products, from the back, in another order
        Answers {
            sample_average: |q, n, reward| ((f64::from(n) - 1.0) * q + reward) / f64::from(n),
            epsilon_greedy: |values, epsilon| {
                let is_best = |arm: usize| values.iter().all(|other| *other <= values[arm]);
                let ties = (0..values.len()).rev().filter(|arm| is_best(*arm)).count();
                let greedy = |arm: usize| if is_best(arm) { 1.0 / ties as f64 } else { 0.0 };
                (0..values.len()).map(|arm| epsilon * (1.0 / values.len() as f64 - greedy(arm)) + greedy(arm)).collect()
            },
            upper_confidence_bound: |values, counts, t, c| {
                if let Some(arm) = counts.iter().position(|n| *n == 0) {
                    return arm;
                }
                let bound = |arm: usize| c * f64::from(t).ln().sqrt() / f64::from(counts[arm]).sqrt() + values[arm];
                // from the back, and an equal bound replaces the one before
                (0..values.len()).rev().fold(values.len() - 1, |best, arm| if bound(arm) >= bound(best) { arm } else { best })
            },
            softmax: |preferences| {
                (0..preferences.len())
                    .map(|arm| 1.0 / preferences.iter().rev().map(|other| (other - preferences[arm]).exp()).sum::<f64>())
                    .collect()
            },
            gradient_bandit: |preferences, arm, reward, baseline, alpha| {
                let probabilities: Vec<f64> = {
                    let sum: f64 = preferences.iter().rev().map(|p| p.exp()).sum();
                    preferences.iter().map(|p| p.exp() / sum).collect()
                };
                preferences.iter_mut().zip(probabilities).for_each(|(p, probability)| *p -= alpha * (reward - baseline) * probability);
                preferences[arm] += alpha * (reward - baseline);
            },
            regret: |values, arms| {
                let best = values.iter().copied().fold(f64::MIN, f64::max);
                (1..=arms.len()).map(|t| t as f64 * best - arms[..t].iter().rev().map(|arm| values[*arm]).sum::<f64>()).collect()
            },
        },
        // single precision
        Answers {
            sample_average: |q, n, reward| f64::from(q as f32 + (reward as f32 - q as f32) / n as f32),
            epsilon_greedy: |values, epsilon| {
                let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
                let best = values.iter().copied().fold(f32::MIN, f32::max);
                let ties = values.iter().filter(|value| **value == best).count() as f32;
                let (epsilon, arms) = (epsilon as f32, values.len() as f32);
                values.iter().map(|value| f64::from(epsilon / arms + if *value == best { (1.0 - epsilon) / ties } else { 0.0 })).collect()
            },
            upper_confidence_bound: |values, counts, t, c| {
                let bound = |arm: usize| match counts[arm] {
                    0 => f64::MAX,
                    n => values[arm] + (c * c * f64::from(t).ln() / f64::from(n)).sqrt(),
                };
                let bounds: Vec<f64> = (0..values.len()).map(bound).collect();
                let highest = bounds.iter().copied().fold(f64::MIN, f64::max);
                bounds.iter().position(|bound| *bound == highest).unwrap()
            },
            softmax: |preferences| {
                let highest = preferences.iter().map(|p| *p as f32).fold(f32::MIN, f32::max);
                let weights: Vec<f32> = preferences.iter().map(|p| (*p as f32 - highest).exp()).collect();
                weights.iter().map(|weight| f64::from(weight / weights.iter().sum::<f32>())).collect()
            },
            gradient_bandit: |preferences, arm, reward, baseline, alpha| {
                let highest = preferences.iter().copied().fold(f64::MIN, f64::max) as f32;
                let weights: Vec<f32> = preferences.iter().map(|p| (*p as f32 - highest).exp()).collect();
                let step = (alpha * (reward - baseline)) as f32;
                let sum = weights.iter().sum::<f32>();
                for (other, p) in preferences.iter_mut().enumerate() {
                    *p += f64::from(step * (f32::from(u8::from(other == arm)) - weights[other] / sum));
                }
            },
            regret: |values, arms| {
                let best = values.iter().map(|value| *value as f32).fold(f32::MIN, f32::max);
                let mut all: Vec<f64> = Vec::new();
                for arm in arms {
                    all.push(all.last().copied().unwrap_or(0.0) + f64::from(best - values[*arm] as f32));
                }
                all
            },
        },
        // by sorting, by logarithms, by recursion
        Answers {
            sample_average: |q, n, reward| {
                let step = f64::from(n).recip();
                (1.0 - step).mul_add(q, step * reward)
            },
            epsilon_greedy: |values, epsilon| {
                let mut sorted = values.to_vec();
                sorted.sort_by(f64::total_cmp);
                let best = sorted[sorted.len() - 1];
                let ties = sorted.iter().rev().take_while(|value| **value == best).count() as f64;
                let mut all = vec![epsilon / values.len() as f64; values.len()];
                all.iter_mut().zip(values).filter(|(_, value)| **value == best).for_each(|(p, _)| *p += (1.0 - epsilon) / ties);
                all
            },
            upper_confidence_bound: |values, counts, t, c| {
                let mut arms: Vec<usize> = (0..values.len()).collect();
                let width = f64::from(t).ln().max(0.0).sqrt() * c;
                let bound =
                    |arm: &usize| if counts[*arm] == 0 { f64::INFINITY } else { values[*arm] + width / f64::from(counts[*arm]).sqrt() };
                arms.sort_by(|a, b| bound(b).partial_cmp(&bound(a)).unwrap()); // a stable sort keeps the first of equal arms first
                arms[0]
            },
            softmax: |preferences| {
                let highest = preferences.iter().copied().fold(f64::MIN, f64::max);
                let ln_sum = highest + preferences.iter().map(|p| (p - highest).exp()).sum::<f64>().ln();
                preferences.iter().map(|p| (p - ln_sum).exp()).collect()
            },
            gradient_bandit: |preferences, arm, reward, baseline, alpha| {
                let highest = preferences.iter().copied().fold(f64::MIN, f64::max);
                let ln_sum = highest + preferences.iter().map(|p| (p - highest).exp()).sum::<f64>().ln();
                let before = preferences.to_vec();
                for (other, p) in before.iter().enumerate() {
                    let indicator = if other == arm { 1.0 } else { 0.0 };
                    preferences[other] =
                        p + alpha * reward * (indicator - (p - ln_sum).exp()) - alpha * baseline * (indicator - (p - ln_sum).exp());
                }
            },
            regret: |values, arms| match arms {
                [] => Vec::new(),
                [before @ .., last] => {
                    let form = forms()[2].regret;
                    let mut all = form(values, before);
                    let best = values.iter().copied().max_by(f64::total_cmp).unwrap();
                    all.push(all.last().unwrap_or(&0.0) + best - values[*last]);
                    all
                }
            },
        },
    ]
}
