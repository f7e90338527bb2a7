//! Lesson 5: function approximation and DQN. `check 5` says how far you are.
//!
//! `end` is `End::Running`, `End::Terminated` (the episode ended in the world: the next state has no value) or `End::Truncated` (a limit of time
//! cut it off: the world would go on).

use gradus_course::End;

/// 5.1 A step of semi-gradient TD(0) on the weights of a linear estimate, whose value of a state is the sum of weight times feature.
pub fn semi_gradient_td(weights: &mut [f64], features: &[f64], reward: f64, next_features: &[f64], gamma: f64, end: End, alpha: f64) {
    todo!() // for you to write
}

/// 5.2 DQN's targets of a minibatch, one for each step.
///
/// `next_values[i][a]` is the value of action a in the next state of step i, from the target network.
pub fn dqn_targets(rewards: &[f64], next_values: &[Vec<f64>], ends: &[End], gamma: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 5.3 The target of double DQN, for one step.
///
/// `online[a]` and `target[a]` are the values of action a in the next state, from the network that learns and from the target network.
pub fn double_dqn_target(reward: f64, online: &[f64], target: &[f64], gamma: f64, end: End) -> f64 {
    todo!() // for you to write
}

/// 5.4 The derivative of the Huber loss with respect to the error.
///
/// The loss is half the square of the error up to the threshold, and straight beyond it.
pub fn huber_slope(error: f64, threshold: f64) -> f64 {
    todo!() // for you to write
}

/// 5.5 Moves the weights of a target network towards those of the network that learns: tau of these, 1 - tau of its own.
pub fn moved_target(target: &mut [f64], online: &[f64], tau: f64) {
    todo!() // for you to write
}
