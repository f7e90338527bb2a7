//! Lesson 2: Markov decision processes and dynamic programming. `check 2` says how far you are.
//!
//! A `Table` is a world that is known: `table.states()` and `table.actions()` are numbers, and `table.outcomes(state, action)` lists what may
//! happen. An `Outcome` has a `probability`, the `next` state (a u32), a `reward`, and `terminated`: whether the episode ends with it.

use gradus_course::{Outcome, Table};

/// 2.1 The discounted return of an episode: r_1 + gamma r_2 + gamma^2 r_3 + ...; 0 if there are no rewards.
pub fn discounted_return(rewards: &[f64], gamma: f64) -> f64 {
    todo!() // for you to write
}

/// 2.2 The value of an action: the mean, over its outcomes, of the reward plus gamma times the value of the next state.
///
/// `values` has the value of each state. Nothing follows an outcome that terminates.
pub fn action_value(table: &Table, values: &[f64], state: usize, action: usize, gamma: f64) -> f64 {
    todo!() // for you to write
}

/// 2.3 One sweep of policy evaluation: the new value of every state, computed from the old ones.
///
/// `policy[state][action]` is the probability of an action in a state.
pub fn evaluation_sweep(table: &Table, policy: &[Vec<f64>], values: &[f64], gamma: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 2.4 The action with the highest value in a state; of several such actions, the first.
pub fn greedy_action(table: &Table, values: &[f64], state: usize, gamma: f64) -> usize {
    todo!() // for you to write
}

/// 2.5 The optimal value of every state, by value iteration from values of 0.
///
/// Sweeps until the largest change of a sweep, over all states, is below `theta`.
pub fn value_iteration(table: &Table, gamma: f64, theta: f64) -> Vec<f64> {
    todo!() // for you to write
}
