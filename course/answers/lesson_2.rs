//! Lesson 2: Markov decision processes and dynamic programming, with answers.

use gradus_course::{Outcome, Table};

/// 2.1
pub fn discounted_return(rewards: &[f64], gamma: f64) -> f64 {
    rewards.iter().rev().fold(0.0, |following, reward| reward + gamma * following)
}

/// 2.2
pub fn action_value(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f64 {
    let following = |outcome: &Outcome| if outcome.terminated { 0.0 } else { values[outcome.next as usize] };
    table.outcomes(state, action).iter().map(|outcome| outcome.probability * (outcome.reward + gamma * following(outcome))).sum()
}

/// 2.3
pub fn evaluation_sweep(table: &Table, policy: &[Vec<f64>], values: &[f64], gamma: f64) -> Vec<f64> {
    let value =
        |state: usize| (0..table.actions()).map(|action| policy[state][action] * action_value(table, values, state, action, gamma)).sum();
    (0..table.states()).map(value).collect()
}

/// 2.4
pub fn greedy_action(table: &Table, values: &[f64], state: usize, gamma: f64) -> usize {
    let mut best = 0;
    for action in 1..table.actions() {
        if action_value(table, values, state, action, gamma) > action_value(table, values, state, best, gamma) {
            best = action;
        }
    }
    best
}

/// 2.5
pub fn value_iteration(table: &Table, gamma: f64, theta: f64) -> Vec<f64> {
    let mut values = vec![0.0; table.states()];
    loop {
        let new: Vec<f64> = (0..table.states())
            .map(|state| action_value(table, &values, state, greedy_action(table, &values, state, gamma), gamma))
            .collect();
        let change = values.iter().zip(&new).map(|(old, new): (&f64, &f64)| (new - old).abs()).fold(0.0, f64::max);
        values = new;
        if change < theta {
            return values;
        }
    }
}
