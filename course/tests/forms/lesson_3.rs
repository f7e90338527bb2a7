//! Three correct forms of each function of lesson 3.

use std::collections::BTreeSet;

use gradus_course::End;
use gradus_course::lesson_3::Answers;

/// The return after a step, from the front.
fn from_the_front(rewards: &[f64], gamma: f64) -> f64 {
    (0_i32..).zip(rewards).map(|(t, reward)| gamma.powi(t) * reward).sum()
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            returns: |rewards, gamma| (0..rewards.len()).map(|t| from_the_front(&rewards[t..], gamma)).collect(),
            first_visit: |values, counts, states, rewards, gamma| {
                let mut seen = BTreeSet::new();
                for t in 0..states.len() {
                    if seen.insert(states[t]) {
                        let n = f64::from(counts[states[t]]);
                        values[states[t]] = (n * values[states[t]] + from_the_front(&rewards[t..], gamma)) / (n + 1.0);
                        counts[states[t]] += 1;
                    }
                }
            },
            td_error: |value, reward, next, gamma, end| match end {
                End::Terminated => reward - value,
                End::Running | End::Truncated => gamma * next - value + reward,
            },
            n_step_return: |rewards, next, gamma| from_the_front(&[rewards, &[next]].concat(), gamma),
            // the mean of the n-step returns with the weights (1 - lambda) lambda^(n - 1), the rest for the longest
            lambda_returns: |rewards, next_values, gamma, lambda| {
                let n_step = |t: usize, n: usize| from_the_front(&[&rewards[t..t + n], &next_values[t + n - 1..t + n]].concat(), gamma);
                let one = |t: usize| {
                    let longest = rewards.len() - t;
                    let shorter: f64 = (1..longest).map(|n| (1.0 - lambda) * lambda.powi(n as i32 - 1) * n_step(t, n)).sum();
                    shorter + lambda.powi(longest as i32 - 1) * n_step(t, longest)
                };
                (0..rewards.len()).map(one).collect()
            },
            weighted_importance: |returns, ratios| {
                // as a running mean
                let (mut value, mut weights) = (0.0, 0.0);
                for (g, ratio) in returns.iter().zip(ratios).rev().filter(|(_, ratio)| **ratio > 0.0) {
                    weights += ratio;
                    value += ratio / weights * (g - value);
                }
                value
            },
        },
        // single precision
        Answers {
            returns: |rewards, gamma| {
                let mut all: Vec<f64> = Vec::new();
                for reward in rewards.iter().rev() {
                    let following = all.last().copied().unwrap_or(0.0) as f32;
                    all.push(f64::from(*reward as f32 + gamma as f32 * following));
                }
                all.into_iter().rev().collect()
            },
            first_visit: |values, counts, states, rewards, gamma| {
                let returns = (forms()[1].returns)(rewards, gamma);
                let firsts: Vec<usize> = (0..states.len()).filter(|t| states.iter().position(|s| *s == states[*t]) == Some(*t)).collect();
                // from the back: the order of the states does not matter
                for t in firsts.into_iter().rev() {
                    counts[states[t]] += 1;
                    let old = values[states[t]] as f32;
                    values[states[t]] = f64::from(old + (returns[t] as f32 - old) / counts[states[t]] as f32);
                }
            },
            td_error: |value, reward, next, gamma, end| {
                let going_on = f32::from(u8::from(end != End::Terminated));
                f64::from(reward as f32 + gamma as f32 * next as f32 * going_on - value as f32)
            },
            n_step_return: |rewards, next, gamma| {
                let mut sum = next as f32;
                for reward in rewards.iter().rev() {
                    sum = gamma as f32 * sum + *reward as f32;
                }
                f64::from(sum)
            },
            lambda_returns: |rewards, next_values, gamma, lambda| {
                let (gamma, lambda) = (gamma as f32, lambda as f32);
                let n = rewards.len();
                let mut all = vec![0.0_f32; n + 1];
                all[n] = next_values[n - 1] as f32;
                for t in (0..n).rev() {
                    let next = next_values[t] as f32;
                    all[t] = rewards[t] as f32 + gamma * (next + lambda * (all[t + 1] - next));
                }
                all[..n].iter().map(|g| f64::from(*g)).collect()
            },
            weighted_importance: |returns, ratios| {
                let weights: f32 = ratios.iter().map(|ratio| *ratio as f32).sum();
                let sum: f32 = returns.iter().zip(ratios).map(|(g, ratio)| *g as f32 * *ratio as f32).sum();
                if weights > 0.0 { f64::from(sum / weights) } else { 0.0 }
            },
        },
        // by differences and by recursion
        Answers {
            returns: |rewards, gamma| match rewards {
                [] => Vec::new(),
                [first, rest @ ..] => {
                    let mut all = (forms()[2].returns)(rest, gamma);
                    all.insert(0, first + gamma * all.first().copied().unwrap_or(0.0));
                    all
                }
            },
            first_visit: |values, counts, states, rewards, gamma| {
                for state in 0..values.len() {
                    let Some(t) = states.iter().position(|other| *other == state) else { continue };
                    counts[state] += 1;
                    let weight = f64::from(counts[state]).recip();
                    values[state] = (1.0 - weight) * values[state] + weight * from_the_front(&rewards[t..], gamma);
                }
            },
            td_error: |value, reward, next, gamma, end| {
                let discount = if matches!(end, End::Terminated) { 0.0 } else { gamma };
                discount.mul_add(next, reward - value)
            },
            n_step_return: |rewards, next, gamma| match rewards {
                [] => next,
                [first, rest @ ..] => gamma.mul_add((forms()[2].n_step_return)(rest, next, gamma), *first),
            },
            // the values plus the sum of the discounted TD errors (GAE's form), for a value of 0 before the first step
            lambda_returns: |rewards, next_values, gamma, lambda| {
                let values: Vec<f64> = std::iter::once(0.0).chain(next_values.iter().copied()).collect();
                let errors: Vec<f64> = (0..rewards.len()).map(|t| rewards[t] + gamma * next_values[t] - values[t]).collect();
                let advantage = |t: usize| -> f64 { from_the_front(&errors[t..], gamma * lambda) };
                (0..rewards.len()).map(|t| advantage(t) + values[t]).collect()
            },
            weighted_importance: |returns, ratios| {
                let weights = ratios.iter().fold(0.0, |sum, ratio| sum + ratio);
                let shares = ratios.iter().map(|ratio| if weights == 0.0 { 0.0 } else { ratio / weights });
                shares.zip(returns).map(|(share, g)| share * g).sum()
            },
        },
    ]
}
