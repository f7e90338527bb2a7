//! Homework 1: bandits and tables, with answers.

use gradus_course::{End, Step, Table};

/// h1.1
pub fn gaussian_posterior(mean: f64, std: f64, rewards: &[f64], noise: f64) -> (f64, f64) {
    // precisions add up
    let (prior, each) = (1.0 / (std * std), 1.0 / (noise * noise));
    let precision = prior + each * rewards.len() as f64;
    ((prior * mean + each * rewards.iter().sum::<f64>()) / precision, 1.0 / precision.sqrt())
}

/// h1.2
pub fn kl_ucb(mean: f64, pulls: f64, level: f64) -> f64 {
    let part = |p: f64, q: f64| if p == 0.0 { 0.0 } else { p * (p / q).ln() };
    let (mut low, mut high) = (mean, 1.0);
    for _ in 0..60 {
        let q = (low + high) / 2.0;
        if pulls * (part(mean, q) + part(1.0 - mean, 1.0 - q)) <= level { low = q } else { high = q }
    }
    low
}

/// h1.3
pub fn policy_iteration(table: &Table, gamma: f64) -> Vec<usize> {
    let value = |values: &[f64], s: usize, a: usize| -> f64 {
        let after = |next: u32, is_end: bool| if is_end { 0.0 } else { values[next as usize] };
        table.outcomes(s, a).iter().map(|o| o.probability * (o.reward + gamma * after(o.next, o.terminated))).sum()
    };
    let mut policy = vec![0; table.states()];
    loop {
        let mut values = vec![0.0; table.states()];
        for _ in 0..2000 {
            values = (0..table.states()).map(|s| value(&values, s, policy[s])).collect();
        }
        let mut is_stable = true;
        for (s, action) in policy.iter_mut().enumerate() {
            for a in 0..table.actions() {
                if value(&values, s, a) > value(&values, s, *action) + 1e-9 {
                    *action = a;
                    is_stable = false;
                }
            }
        }
        if is_stable {
            return policy;
        }
    }
}

/// h1.4
pub fn td_lambda(values: &mut [f64], steps: &[Step], alpha: f64, gamma: f64, lambda: f64) {
    let mut traces = vec![0.0; values.len()];
    for step in steps {
        let after = if step.end == End::Terminated { 0.0 } else { values[step.next] };
        let error = step.reward + gamma * after - values[step.state];
        traces.iter_mut().for_each(|e| *e *= gamma * lambda);
        traces[step.state] += 1.0;
        for (value, e) in values.iter_mut().zip(&traces) {
            *value += alpha * error * e;
        }
    }
}
