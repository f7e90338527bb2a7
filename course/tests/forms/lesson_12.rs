//! Three correct forms of each function of lesson 12.

use gradus_course::lesson_12::Answers;

fn softplus(x: f64) -> f64 {
    if x > 30.0 { x } else { x.exp().ln_1p() }
}

/// The best completion of each choice of n, one choice after the other.
fn choices(scores: &[f64], n: usize) -> Vec<usize> {
    let all = 1_u32..1 << scores.len();
    let of = |choice: u32| {
        let chosen = (0..scores.len()).filter(|i| choice >> i & 1 == 1);
        chosen.max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap()
    };
    all.filter(|choice| choice.count_ones() as usize == n).map(of).collect()
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            preference_loss: |chosen, rejected| softplus(rejected - chosen),
            penalised_rewards: |log_probs, reference, score, beta| {
                let last = log_probs.len() - 1;
                (0..=last).map(|t| if t == last { score } else { 0.0 } - beta * log_probs[t] + beta * reference[t]).collect()
            },
            best_policy: |reference, rewards, beta| {
                // the inverse of a sum of ratios to each other completion
                let of = |i: usize| {
                    let ratios = (0..reference.len()).map(|j| reference[j] / reference[i] * ((rewards[j] - rewards[i]) / beta).exp());
                    if reference[i] == 0.0 { 0.0 } else { 1.0 / ratios.filter(|ratio| !ratio.is_nan()).sum::<f64>() }
                };
                (0..reference.len()).map(of).collect()
            },
            dpo_loss: |[chosen, chosen_reference], [rejected, rejected_reference], beta| {
                let (policy, reference) = (chosen - rejected, chosen_reference - rejected_reference);
                softplus(-beta * (policy - reference))
            },
            best_of_n: |scores, rewards, n| {
                let choices = choices(scores, n);
                choices.iter().map(|i| rewards[*i]).sum::<f64>() / choices.len() as f64
            },
        },
        // single precision
        Answers {
            preference_loss: |chosen, rejected| {
                let x = chosen as f32 - rejected as f32;
                f64::from((-x).max(0.0) + (-x.abs()).exp().ln_1p())
            },
            penalised_rewards: |log_probs, reference, score, beta| {
                let mut rewards: Vec<f64> = Vec::new();
                for (l, r) in log_probs.iter().zip(reference) {
                    rewards.push(f64::from(-(beta as f32) * (*l as f32 - *r as f32)));
                }
                let last = rewards.len() - 1;
                rewards[last] = f64::from(rewards[last] as f32 + score as f32);
                rewards
            },
            best_policy: |reference, rewards, beta| {
                let logits: Vec<f32> = reference.iter().zip(rewards).map(|(p, r)| (*p as f32).ln() + (*r / beta) as f32).collect();
                let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f32 = logits.iter().map(|z| (z - largest).exp()).sum();
                logits.iter().map(|z| f64::from((z - largest).exp() / sum)).collect()
            },
            dpo_loss: |chosen, rejected, beta| {
                let margin = (chosen[0] as f32 - chosen[1] as f32) - (rejected[0] as f32 - rejected[1] as f32);
                f64::from((-(beta as f32) * margin).exp().ln_1p())
            },
            best_of_n: |scores, rewards, n| {
                let choices = choices(scores, n);
                f64::from(choices.iter().map(|i| rewards[*i] as f32).sum::<f32>() / choices.len() as f32)
            },
        },
        // in other steps
        Answers {
            preference_loss: |chosen, rejected| {
                // the logarithm of the sum of two exponentials, less the score of the chosen one
                let largest = chosen.max(rejected);
                largest + ((chosen - largest).exp() + (rejected - largest).exp()).ln() - chosen
            },
            penalised_rewards: |log_probs, reference, score, beta| {
                let price = |t: usize| beta * (log_probs[t] - reference[t]);
                let mut rewards: Vec<f64> = (0..log_probs.len() - 1).map(|t| -price(t)).collect();
                rewards.push(score - price(log_probs.len() - 1));
                rewards
            },
            best_policy: |reference, rewards, beta| {
                // mixes completions in one by one
                let (mut largest, mut sum) = (f64::NEG_INFINITY, 0.0);
                for (p, r) in reference.iter().zip(rewards).filter(|(p, _)| **p > 0.0) {
                    if *r > largest {
                        sum *= ((largest - r) / beta).exp();
                        largest = *r;
                    }
                    sum += p * ((r - largest) / beta).exp();
                }
                let of = |(p, r): (&f64, &f64)| if *p > 0.0 { p * ((r - largest) / beta).exp() / sum } else { 0.0 };
                reference.iter().zip(rewards).map(of).collect()
            },
            dpo_loss: |chosen, rejected, beta| {
                let score = |of: [f64; 2]| beta * (of[0] - of[1]);
                let (a, b) = (score(chosen), score(rejected));
                a.max(b) + ((a - a.max(b)).exp() + (b - a.max(b)).exp()).ln() - a
            },
            best_of_n: |scores, rewards, n| {
                // the probability that a completion is chosen and none above it: goes through the completions from the top
                let mut order: Vec<usize> = (0..scores.len()).collect();
                order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
                let all = scores.len();
                let (mut mean, mut none_above) = (0.0, 1.0);
                for (above, i) in order.into_iter().enumerate() {
                    // given that none of those above is chosen, the n are among the rest
                    let share = (n as f64 / (all - above) as f64).min(1.0);
                    mean += none_above * share * rewards[i];
                    none_above *= 1.0 - share;
                }
                mean
            },
        },
    ]
}
