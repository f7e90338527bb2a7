//! Lesson 3: Monte Carlo and temporal differences. `check 3` says how far you are.
//!
//! An episode is a list of states, and a list of rewards of the same length: `rewards[t]` is what the step from `states[t]` gave.

use gradus_course::End;

/// 3.1 The return from each step on: its reward, plus gamma times the return from the next step on. An empty list for no rewards.
pub fn returns(rewards: &[f64], gamma: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 3.2 First-visit Monte Carlo: changes the values and counts after an episode.
///
/// For the first visit to each state in the episode, adds 1 to the state's count, and makes its value the mean of all returns that were
/// counted: those before, and the one that follows this visit.
pub fn first_visit(values: &mut [f64], counts: &mut [u32], states: &[usize], rewards: &[f64], gamma: f64) {
    todo!() // for you to write
}

/// 3.3 The TD error of a step: reward plus gamma times the value of the next state, minus the value of the state.
///
/// `end` is `End::Running`, `End::Terminated` (the episode ended in the world) or `End::Truncated` (a limit of time cut it off).
pub fn td_error(value: f64, reward: f64, next_value: f64, gamma: f64, end: End) -> f64 {
    todo!() // for you to write
}

/// 3.4 The n-step return: the discounted rewards, then the discounted value of the state after them.
pub fn n_step_return(rewards: &[f64], next_value: f64, gamma: f64) -> f64 {
    todo!() // for you to write
}

/// 3.5 The lambda-return after each step of an episode that has not ended yet, and has at least one step.
///
/// `next_values[t]` is the value of the state after step t. The lambda-return is r + gamma ((1 - lambda) V + lambda G'), with the value V of
/// the next state and the lambda-return G' of the next step; after the last step V takes the place of G'.
pub fn lambda_returns(rewards: &[f64], next_values: &[f64], gamma: f64, lambda: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 3.6 The estimate of weighted importance sampling: the mean of the returns with the ratios as weights; 0 if all ratios are 0.
pub fn weighted_importance(returns: &[f64], ratios: &[f64]) -> f64 {
    todo!() // for you to write
}
