//! Three correct forms of each function of lesson 7.

use gradus_course::Table;
use gradus_course::lesson_7::Answers;

/// The probability of going from each state to each other without the end of the episode.
fn transitions(table: &Table, policy: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut all = vec![vec![0.0; table.states()]; table.states()];
    for s in 0..table.states() {
        for (a, probability) in policy[s].iter().enumerate() {
            for outcome in table.outcomes(s, a).iter().filter(|outcome| !outcome.terminated) {
                all[s][outcome.next as usize] += probability * outcome.probability;
            }
        }
    }
    all
}

/// Solves d = start + gamma P^T d by elimination.
fn solved(transitions: &[Vec<f64>], starts: &[f64], gamma: f64) -> Vec<f64> {
    let n = starts.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let row = (0..n).map(|j| f64::from(u8::from(i == j)) - gamma * transitions[j][i]);
            row.chain([starts[i]]).collect()
        })
        .collect();
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs())).unwrap();
        rows.swap(i, pivot);
        for k in (0..n).filter(|k| *k != i) {
            let factor = rows[k][i] / rows[i][i];
            (i..=n).for_each(|j| rows[k][j] -= factor * rows[i][j]);
        }
    }
    (0..n).map(|i| rows[i][n] / rows[i][i]).collect()
}

fn action_value(table: &Table, values: &[f64], s: usize, a: usize, gamma: f64) -> f64 {
    let mut value = 0.0;
    for outcome in table.outcomes(s, a).iter().rev() {
        let after = gamma * values[outcome.next as usize] * f64::from(u8::from(!outcome.terminated));
        value += (after + outcome.reward) * outcome.probability;
    }
    value
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            visits: |table, policy, gamma| solved(&transitions(table, policy), table.starts(), gamma),
            advantages: |table, values, gamma| {
                let row = |s: usize| (0..table.actions()).map(|a| action_value(table, values, s, a, gamma) - values[s]).collect();
                (0..table.states()).map(row).collect()
            },
            exact_gradient: |visits, policy, advantages| {
                let mut all = advantages.to_vec();
                for s in 0..visits.len() {
                    all[s].iter_mut().zip(&policy[s]).for_each(|(a, p)| *a *= p * visits[s]);
                }
                all
            },
            bias_and_variance: |estimates, exact| {
                let n = estimates.len() as f64;
                let (mut bias, mut variance) = (0.0, 0.0);
                for i in 0..exact.len() {
                    let mean = estimates.iter().map(|estimate| estimate[i]).sum::<f64>() / n;
                    bias += (mean - exact[i]).powi(2);
                    variance += estimates.iter().map(|estimate| (estimate[i] - mean).powi(2)).sum::<f64>() / (n - 1.0);
                }
                (bias, variance)
            },
        },
        // single precision
        Answers {
            visits: |table, policy, gamma| {
                let transitions = transitions(table, policy);
                let mut visits = vec![0_f32; table.states()];
                for _ in 0..2000 {
                    let into = |s: usize| -> f32 { (0..visits.len()).map(|from| visits[from] * transitions[from][s] as f32).sum() };
                    visits = (0..visits.len()).map(|s| table.starts()[s] as f32 + gamma as f32 * into(s)).collect();
                }
                visits.into_iter().map(f64::from).collect()
            },
            advantages: |table, values, gamma| {
                let one = |s: usize, a: usize| {
                    let outcomes = table.outcomes(s, a).iter();
                    let sum: f32 = outcomes
                        .map(|o| {
                            let after = if o.terminated { 0.0 } else { gamma as f32 * values[o.next as usize] as f32 };
                            o.probability as f32 * (o.reward as f32 + after)
                        })
                        .sum();
                    f64::from(sum - values[s] as f32)
                };
                (0..table.states()).map(|s| (0..table.actions()).map(|a| one(s, a)).collect()).collect()
            },
            exact_gradient: |visits, policy, advantages| {
                let entry = |s: usize, a: usize| f64::from(visits[s] as f32 * policy[s][a] as f32 * advantages[s][a] as f32);
                (0..policy.len()).map(|s| (0..policy[s].len()).map(|a| entry(s, a)).collect()).collect()
            },
            bias_and_variance: |estimates, exact| {
                let n = estimates.len() as f32;
                let mean: Vec<f32> = (0..exact.len()).map(|i| estimates.iter().map(|e| e[i] as f32).sum::<f32>() / n).collect();
                let bias: f32 = mean.iter().zip(exact).map(|(m, g)| (m - *g as f32).powi(2)).sum();
                let squares: f32 = estimates.iter().flat_map(|e| e.iter().zip(&mean)).map(|(x, m)| (*x as f32 - m).powi(2)).sum();
                (f64::from(bias), f64::from(squares / (n - 1.0)))
            },
        },
        // in other steps
        Answers {
            visits: |table, policy, gamma| {
                // the episodes' steps one by one, with the discount at the end
                let transitions = transitions(table, policy);
                let (mut now, mut discount) = (table.starts().to_vec(), 1.0);
                let mut all = vec![0.0; now.len()];
                for _ in 0..3000 {
                    all.iter_mut().zip(&now).for_each(|(all, p)| *all += discount * p);
                    now = (0..now.len()).map(|s| (0..now.len()).map(|from| now[from] * transitions[from][s]).sum()).collect();
                    discount *= gamma;
                }
                all
            },
            advantages: |table, values, gamma| {
                // the mean of the TD errors
                let mut all = vec![vec![0.0; table.actions()]; table.states()];
                for (s, row) in all.iter_mut().enumerate() {
                    for (a, advantage) in row.iter_mut().enumerate() {
                        for o in table.outcomes(s, a) {
                            let error =
                                if o.terminated { o.reward - values[s] } else { o.reward + gamma * values[o.next as usize] - values[s] };
                            *advantage += o.probability * error;
                        }
                    }
                }
                all
            },
            exact_gradient: |visits, policy, advantages| {
                // through the derivative of each probability, with the advantages as values
                let entry = |s: usize, b: usize| {
                    let one = |a: usize| advantages[s][a] * policy[s][a] * (f64::from(u8::from(a == b)) - policy[s][b]);
                    let mean: f64 = (0..policy[s].len()).map(|a| policy[s][a] * advantages[s][a]).sum();
                    visits[s] * ((0..policy[s].len()).map(one).sum::<f64>() + policy[s][b] * mean)
                };
                (0..policy.len()).map(|s| (0..policy[s].len()).map(|b| entry(s, b)).collect()).collect()
            },
            bias_and_variance: |estimates, exact| {
                // half the mean squared distance of pairs
                let n = estimates.len();
                let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
                let pairs: f64 = estimates.iter().flat_map(|a| estimates.iter().map(move |b| distance(a, b))).sum();
                let mut mean = vec![0.0; exact.len()];
                estimates.iter().for_each(|e| mean.iter_mut().zip(e).for_each(|(mean, x)| *mean += x / n as f64));
                (distance(exact, &mean), pairs / (2 * n * (n - 1)) as f64)
            },
        },
    ]
}
