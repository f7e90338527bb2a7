//! Lesson 4: Q-learning, Sarsa and the cliff. `check 4` says how far you are.
//!
//! `next_values[a]` is the value of action a in the next state. `end` is `End::Running`, `End::Terminated` (the episode ended in the world: the
//! next state has no value) or `End::Truncated` (a limit of time cut it off: the world would go on).

use gradus_course::{End, Step};

/// 4.1 The target of Sarsa: the reward, and what the action is worth that was chosen in the next state, discounted by gamma.
pub fn sarsa_target(reward: f64, next_values: &[f64], next_action: usize, gamma: f64, end: End) -> f64 {
    todo!() // for you to write
}

/// 4.2 The target of Expected Sarsa: the reward, and the mean of the next state's values under the epsilon-greedy policy, discounted.
///
/// The policy takes the best action with probability 1 - epsilon, and otherwise any action, the best one included.
pub fn expected_sarsa_target(reward: f64, next_values: &[f64], epsilon: f64, gamma: f64, end: End) -> f64 {
    todo!() // for you to write
}

/// 4.3 An update of Q-learning: changes the value of one pair of state and action.
///
/// `values[s][a]` is the value of action a in state s. A `Step` has the fields `state`, `action`, `reward`, `next` (the next state) and
/// `end`.
pub fn q_learning(values: &mut [Vec<f64>], step: Step, alpha: f64, gamma: f64) {
    todo!() // for you to write
}

/// 4.4 An update of double Q-learning, in the table that learns. A coin has decided which of the two tables that is.
///
/// The table that learns chooses the best action of the next state; the other one says what it is worth.
pub fn double_q_learning(learning: &mut [Vec<f64>], other: &[Vec<f64>], step: Step, alpha: f64, gamma: f64) {
    todo!() // for you to write
}
