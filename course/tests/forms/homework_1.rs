//! Three correct forms of each function of homework 1.

use gradus_course::homework_1::Answers;
use gradus_course::{End, Step, Table};

fn value(table: &Table, values: &[f64], s: usize, a: usize, gamma: f64) -> f64 {
    table.outcomes(s, a).iter().map(|o| o.probability * (o.reward + if o.terminated { 0.0 } else { gamma * values[o.next as usize] })).sum()
}

fn greedy(table: &Table, values: &[f64], gamma: f64) -> Vec<usize> {
    let best = |s: usize| {
        let of = |a: usize| value(table, values, s, a, gamma);
        (1..table.actions()).fold(0, |best, a| if of(a) > of(best) + 1e-9 { a } else { best })
    };
    (0..table.states()).map(best).collect()
}

/// The values of a policy solve as many equations as there are states; the best policy is greedy for its own values.
fn by_equations(table: &Table, gamma: f64) -> Vec<usize> {
    let states = table.states();
    let mut policy = vec![0; states];
    loop {
        // the rows of (1 - gamma P) v = r, each with its right side
        let mut rows: Vec<Vec<f64>> = (0..states).map(|s| (0..=states).map(|n| f64::from(u8::from(n == s))).collect()).collect();
        for (s, row) in rows.iter_mut().enumerate() {
            for o in table.outcomes(s, policy[s]) {
                row[states] += o.probability * o.reward;
                row[o.next as usize] -= if o.terminated { 0.0 } else { gamma * o.probability };
            }
        }
        for s in 0..states {
            let divided: Vec<f64> = rows[s].iter().map(|x| x / rows[s][s]).collect();
            rows[s] = divided.clone();
            for other in (0..states).filter(|other| *other != s) {
                let share = rows[other][s];
                rows[other].iter_mut().zip(&divided).for_each(|(x, y)| *x -= share * y);
            }
        }
        let values: Vec<f64> = rows.iter().map(|row| row[states]).collect();
        let better = |s: usize, best: usize| {
            let of = |a: usize| value(table, &values, s, a, gamma);
            (0..table.actions()).fold(best, |best, a| if of(a) > of(best) + 1e-9 { a } else { best })
        };
        let next: Vec<usize> = (0..states).map(|s| better(s, policy[s])).collect();
        if next == policy {
            return policy;
        }
        policy = next;
    }
}

/// The forward view: after each episode, though, the online one differs; so this is the backward view with a list of visits.
fn by_visits(values: &mut [f64], steps: &[Step], alpha: f64, gamma: f64, lambda: f64) {
    for (now, step) in steps.iter().enumerate() {
        let after = if step.end == End::Terminated { 0.0 } else { values[step.next] };
        let error = step.reward + gamma * after - values[step.state];
        for (then, visited) in steps[..=now].iter().enumerate() {
            values[visited.state] += alpha * error * (gamma * lambda).powi((now - then) as i32);
        }
    }
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            gaussian_posterior: |mean, std, rewards, noise| {
                // one reward after the other
                rewards.iter().fold((mean, std), |(mean, std), reward| {
                    let (variance, noise) = (std * std, noise * noise);
                    let gain = variance / (variance + noise);
                    (mean + gain * (reward - mean), (variance * (1.0 - gain)).sqrt())
                })
            },
            kl_ucb: |mean, pulls, level| {
                // in steps that become smaller
                let kl = |q: f64| {
                    let a = if mean > 0.0 { mean * (mean.ln() - q.ln()) } else { 0.0 };
                    let b = if mean < 1.0 { (1.0 - mean) * ((1.0 - mean).ln() - (1.0 - q).ln()) } else { 0.0 };
                    a + b
                };
                let (mut q, mut step) = (mean, 0.25);
                while step > 1e-9 {
                    if q + step < 1.0 && kl(q + step) <= level / pulls { q += step } else { step /= 2.0 }
                }
                q
            },
            policy_iteration: |table, gamma| {
                // value iteration finds the same policy
                let mut values = vec![0.0; table.states()];
                for _ in 0..3000 {
                    let of = |s: usize| (0..table.actions()).map(|a| value(table, &values, s, a, gamma)).fold(f64::MIN, f64::max);
                    values = (0..table.states()).map(of).collect();
                }
                greedy(table, &values, gamma)
            },
            td_lambda: by_visits,
        },
        // single precision
        Answers {
            gaussian_posterior: |mean, std, rewards, noise| {
                let (prior, each) = (1.0 / (std as f32 * std as f32), 1.0 / (noise as f32 * noise as f32));
                let sum: f32 = rewards.iter().map(|r| *r as f32).sum();
                let precision = prior + each * rewards.len() as f32;
                (f64::from((prior * mean as f32 + each * sum) / precision), f64::from(precision.sqrt().recip()))
            },
            kl_ucb: |mean, pulls, level| {
                let (p, bound) = (mean as f32, (level / pulls) as f32);
                let part = |p: f32, q: f32| if p > 0.0 { p * (p / q).ln() } else { 0.0 };
                let (mut low, mut high) = (p, 1.0_f32);
                for _ in 0..40 {
                    let q = low + (high - low) / 2.0;
                    if part(p, q) + part(1.0 - p, 1.0 - q) > bound { high = q } else { low = q }
                }
                f64::from(low)
            },
            policy_iteration: by_equations,
            td_lambda: |values, steps, alpha, gamma, lambda| {
                let mut traces = vec![0.0_f32; values.len()];
                for step in steps {
                    let after = if step.end == End::Terminated { 0.0 } else { values[step.next] as f32 };
                    let error = step.reward as f32 + gamma as f32 * after - values[step.state] as f32;
                    for (state, e) in traces.iter_mut().enumerate() {
                        *e = (gamma * lambda) as f32 * *e + f32::from(u8::from(state == step.state));
                        values[state] = f64::from(values[state] as f32 + alpha as f32 * error * *e);
                    }
                }
            },
        },
        // in other steps
        Answers {
            gaussian_posterior: |mean, std, rewards, noise| {
                // a weighted mean of prior and sample
                let n = rewards.len() as f64;
                if rewards.is_empty() {
                    return (mean, std);
                }
                let (prior, sample) = (std.powi(2), noise.powi(2) / n);
                let weight = prior / (prior + sample);
                ((1.0 - weight) * mean + weight * rewards.iter().sum::<f64>() / n, (prior * sample / (prior + sample)).sqrt())
            },
            kl_ucb: |mean, pulls, level| {
                // Newton's method from the right, on the logarithm of the odds, held by bisection
                let kl = |q: f64| {
                    let part = |p: f64, q: f64| if p == 0.0 { 0.0 } else { p * (p / q).ln() };
                    part(mean, q) + part(1.0 - mean, 1.0 - q)
                };
                let (mut low, mut high) = (mean, 1.0 - 1e-12);
                if kl(high) <= level / pulls {
                    return 1.0;
                }
                while high - low > 1e-10 {
                    let q = (low + high) / 2.0;
                    if kl(q) > level / pulls { high = q } else { low = q }
                }
                low
            },
            policy_iteration: |table, gamma| {
                let mut policy = vec![table.actions() - 1; table.states()];
                for _ in 0..50 {
                    let mut values = vec![0.0; table.states()];
                    for _ in 0..1000 {
                        for s in 0..table.states() {
                            values[s] = value(table, &values, s, policy[s], gamma); // in place
                        }
                    }
                    policy = greedy(table, &values, gamma);
                }
                policy
            },
            td_lambda: |values, steps, alpha, gamma, lambda| {
                let mut traces: std::collections::HashMap<usize, f64> = std::collections::HashMap::new();
                for Step { state, reward, next, end, .. } in steps {
                    let target = reward + if *end == End::Terminated { 0.0 } else { gamma * values[*next] };
                    let error = target - values[*state];
                    traces.values_mut().for_each(|e| *e *= gamma * lambda);
                    *traces.entry(*state).or_insert(0.0) += 1.0;
                    traces.iter().for_each(|(s, e)| values[*s] += alpha * error * e);
                }
            },
        },
    ]
}
