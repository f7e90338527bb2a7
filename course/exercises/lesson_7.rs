//! Lesson 7: the exact gradient. `check 7` says how far you are.
//!
//! `policy[s][a]` is the probability of action a in state s. `Table` is that of lesson 2: `table.states()`, `table.actions()`,
//! `table.outcomes(s, a)` with `probability`, `next`, `reward` and `terminated` for each, and `table.starts()`, the distribution of the first state.

use gradus_course::Table;

/// 7.1 The expected number of visits to each state in an episode, where a visit after t steps counts gamma to the t.
///
/// The numbers need not be exact: a relative error of a ten-thousandth is no error here.
pub fn visits(table: &Table, policy: &[Vec<f64>], gamma: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 7.2 The advantage of each action in each state, from the values of the states under the policy.
pub fn advantages(table: &Table, values: &[f64], gamma: f64) -> Vec<Vec<f64>> {
    todo!() // for you to write
}

/// 7.3 The derivative of the expected return with respect to the logit of each action in each state.
pub fn exact_gradient(visits: &[f64], policy: &[Vec<f64>], advantages: &[Vec<f64>]) -> Vec<Vec<f64>> {
    todo!() // for you to write
}

/// 7.4 The squared length of the bias of estimates of a gradient, and their variance, which is the mean squared distance from their own
/// mean, with n - 1.
pub fn bias_and_variance(estimates: &[Vec<f64>], exact: &[f64]) -> (f64, f64) {
    todo!() // for you to write
}
