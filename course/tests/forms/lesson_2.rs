//! Three correct forms of each function of lesson 2.

use gradus_course::Table;
use gradus_course::lesson_2::Answers;

/// One backup in single precision.
fn single(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f32 {
    let mut sum = 0.0_f32;
    for outcome in table.outcomes(state, action).iter().rev() {
        let bootstrap = if outcome.terminated { 0.0 } else { gamma as f32 * values[outcome.next as usize] as f32 };
        sum += outcome.probability as f32 * (outcome.reward as f32 + bootstrap);
    }
    sum
}

/// The mean reward, and then the mean of what follows, each from the front.
fn apart(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f64 {
    let all = table.outcomes(state, action);
    let reward: f64 = all.iter().map(|o| o.probability * o.reward).sum();
    let following: f64 = all.iter().filter(|o| !o.terminated).map(|o| o.probability * values[o.next as usize]).sum();
    gamma.mul_add(following, reward)
}

/// With 0 in place of the value where an outcome terminates.
fn masked(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f64 {
    let discounts = table.outcomes(state, action).iter().map(|o| gamma * f64::from(u8::from(!o.terminated)));
    table
        .outcomes(state, action)
        .iter()
        .zip(discounts)
        .map(|(o, discount)| (o.reward + discount * values[o.next as usize]) * o.probability)
        .sum()
}

fn in_place(table: &Table, gamma: f64, theta: f64, backup: fn(&Table, &[f64], usize, usize, f64) -> f64) -> Vec<f64> {
    let mut values = vec![0.0; table.states()];
    let mut change = f64::INFINITY;
    while change >= theta {
        change = 0.0;
        for state in (0..table.states()).rev() {
            let best = (0..table.actions()).map(|a| backup(table, &values, state, a, gamma)).fold(f64::MIN, f64::max);
            change = change.max((best - values[state]).abs());
            values[state] = best;
        }
    }
    values
}

pub fn forms() -> [Answers; 3] {
    [
        Answers {
            discounted_return: |rewards, gamma| (0_i32..).zip(rewards).map(|(t, reward)| gamma.powi(t) * reward).sum(),
            action_value: apart,
            evaluation_sweep: |table, policy, values, gamma| {
                let mut new = vec![0.0; table.states()];
                for action in (0..table.actions()).rev() {
                    for (state, new) in new.iter_mut().enumerate() {
                        *new += policy[state][action] * apart(table, values, state, action, gamma);
                    }
                }
                new
            },
            greedy_action: |table, values, state, gamma| {
                let all: Vec<f64> = (0..table.actions()).map(|a| apart(table, values, state, a, gamma)).collect();
                // apart from rounding: two actions may have the same value, computed in another order
                let best = all.iter().copied().fold(f64::MIN, f64::max);
                all.iter().position(|value| *value >= best - 1e-12).unwrap()
            },
            value_iteration: |table, gamma, theta| in_place(table, gamma, theta, apart),
        },
        Answers {
            discounted_return: |rewards, gamma| {
                let (mut sum, mut weight) = (0.0_f32, 1.0_f32);
                for reward in rewards {
                    sum += weight * *reward as f32;
                    weight *= gamma as f32;
                }
                f64::from(sum)
            },
            action_value: |table, values, state, action, gamma| f64::from(single(table, values, state, action, gamma)),
            evaluation_sweep: |table, policy, values, gamma| {
                let mean = |s: usize| (0..table.actions()).map(|a| policy[s][a] as f32 * single(table, values, s, a, gamma)).sum::<f32>();
                (0..table.states()).map(|state| f64::from(mean(state))).collect()
            },
            greedy_action: |table, values, state, gamma| {
                let all: Vec<f32> = (0..table.actions()).map(|a| single(table, values, state, a, gamma)).collect();
                let best = all.iter().copied().fold(f32::MIN, f32::max);
                all.iter().position(|value| *value >= best - 1e-6).unwrap()
            },
            value_iteration: |table, gamma, theta| in_place(table, gamma, theta, masked),
        },
        Answers {
            discounted_return: |rewards, gamma| match rewards {
                [] => 0.0,
                [first, rest @ ..] => first + gamma * (forms()[2].discounted_return)(rest, gamma),
            },
            action_value: masked,
            evaluation_sweep: |table, policy, values, gamma| {
                let row = |s: usize| -> Vec<f64> { (0..table.actions()).map(|a| masked(table, values, s, a, gamma)).collect() };
                (0..table.states()).map(|s| row(s).iter().zip(&policy[s]).map(|(q, p)| q * p).sum()).collect()
            },
            greedy_action: |table, values, state, gamma| {
                let value = |a: &usize| masked(table, values, state, *a, gamma);
                // the last of equal ones is the maximum: from the back, the first
                (0..table.actions()).rev().max_by(|a, b| value(a).total_cmp(&value(b))).unwrap()
            },
            // policy iteration's way: each policy is evaluated for some sweeps
            value_iteration: |table, gamma, theta| {
                let best = |v: &[f64], s: usize| {
                    (0..table.actions())
                        .rev()
                        .max_by(|a, b| masked(table, v, s, *a, gamma).total_cmp(&masked(table, v, s, *b, gamma)))
                        .unwrap()
                };
                let mut values = vec![0.0; table.states()];
                loop {
                    let actions: Vec<usize> = (0..table.states()).map(|s| best(&values, s)).collect();
                    let before = values.clone();
                    for _ in 0..3 {
                        values = (0..table.states()).map(|s| masked(table, &values, s, actions[s], gamma)).collect();
                    }
                    if before.iter().zip(&values).all(|(a, b): (&f64, &f64)| (a - b).abs() < theta) {
                        return values;
                    }
                }
            },
        },
    ]
}
