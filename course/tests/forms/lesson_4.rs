//! Three correct forms of each function of lesson 4.

use gradus_course::lesson_4::Answers;
use gradus_course::{End, Step};

/// The probabilities of an epsilon-greedy policy, the best action of which is the last of equals.
fn policy(values: &[f64], epsilon: f64) -> Vec<f64> {
    let best = (0..values.len()).max_by(|a, b| values[*a].total_cmp(&values[*b])).unwrap();
    (0..values.len()).map(|a| epsilon / values.len() as f64 + if a == best { 1.0 - epsilon } else { 0.0 }).collect()
}

fn continues(end: End) -> f64 {
    f64::from(u8::from(end != End::Terminated))
}

fn sorted_last(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    *values.last().unwrap()
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            sarsa_target: |reward, next, action, gamma, end| match end {
                End::Terminated => reward,
                _ => gamma * next[action] + reward,
            },
            expected_sarsa_target: |reward, next, epsilon, gamma, end| {
                let mean: f64 = policy(next, epsilon).iter().zip(next).map(|(p, value)| p * value).sum();
                reward + gamma * mean * continues(end)
            },
            q_learning: |values, step, alpha, gamma| {
                let target = step.reward + gamma * continues(step.end) * sorted_last(&values[step.next]);
                let old = values[step.state][step.action];
                values[step.state][step.action] = (1.0 - alpha) * old + alpha * target;
            },
            double_q_learning: |learning, other, Step { state, action, reward, next, end }, alpha, gamma| {
                let pairs = learning[next].iter().zip(&other[next]);
                let (_, value) = pairs.max_by(|a, b| a.0.total_cmp(b.0)).unwrap();
                let target = reward + gamma * continues(end) * value;
                learning[state][action] = (1.0 - alpha) * learning[state][action] + alpha * target;
            },
        },
        // single precision
        Answers {
            sarsa_target: |reward, next, action, gamma, end| {
                f64::from(reward as f32 + continues(end) as f32 * gamma as f32 * next[action] as f32)
            },
            expected_sarsa_target: |reward, next, epsilon, gamma, end| {
                let (epsilon, best) = (epsilon as f32, next.iter().fold(f32::MIN, |best, value| best.max(*value as f32)));
                let sum: f32 = next.iter().map(|value| *value as f32).sum();
                let mean = (1.0 - epsilon) * best + epsilon * sum / next.len() as f32;
                f64::from(reward as f32 + continues(end) as f32 * gamma as f32 * mean)
            },
            q_learning: |values, step, alpha, gamma| {
                let best = values[step.next].iter().fold(f32::MIN, |best, value| best.max(*value as f32));
                let old = values[step.state][step.action] as f32;
                let error = step.reward as f32 + gamma as f32 * continues(step.end) as f32 * best - old;
                values[step.state][step.action] = f64::from(old + alpha as f32 * error);
            },
            double_q_learning: |learning, other, step, alpha, gamma| {
                let mut best = 0;
                for a in 1..learning[step.next].len() {
                    if learning[step.next][a] as f32 > learning[step.next][best] as f32 {
                        best = a;
                    }
                }
                let old = learning[step.state][step.action] as f32;
                let after = if step.end == End::Terminated { 0.0 } else { other[step.next][best] as f32 };
                learning[step.state][step.action] = f64::from(old + alpha as f32 * (step.reward as f32 + gamma as f32 * after - old));
            },
        },
        // with the end first
        Answers {
            sarsa_target: |reward, next, action, gamma, end| {
                if end == End::Terminated {
                    return reward;
                }
                reward + gamma * next.get(action).copied().unwrap_or(f64::NAN)
            },
            expected_sarsa_target: |reward, next, epsilon, gamma, end| {
                let mut mean = 0.0;
                let probabilities = policy(next, epsilon);
                for a in (0..next.len()).rev() {
                    mean += probabilities[a] * next[a];
                }
                if end == End::Terminated { reward } else { mean.mul_add(gamma, reward) }
            },
            q_learning: |values, step, alpha, gamma| {
                let mut error = step.reward - values[step.state][step.action];
                if step.end != End::Terminated {
                    error += gamma * values[step.next].iter().copied().reduce(f64::max).unwrap();
                }
                values[step.state][step.action] += error * alpha;
            },
            double_q_learning: |learning, other, step, alpha, gamma| {
                let mut error = step.reward - learning[step.state][step.action];
                if step.end != End::Terminated {
                    let best = (0..other[step.next].len()).rev().max_by(|a, b| learning[step.next][*a].total_cmp(&learning[step.next][*b]));
                    error += gamma * other[step.next][best.unwrap()];
                }
                learning[step.state][step.action] += error * alpha;
            },
        },
    ]
}
