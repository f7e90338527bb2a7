//! Lesson 1: bandits. Write the functions; `check 1` says how far you are, `hint 1.2` helps.
//!
//! An arm of a bandit is a number from 0 to k - 1. Lists have one entry for each arm.

/// 1.1 The mean of the rewards of an arm, step by step.
///
/// `q` is the mean of the first n - 1 rewards, `n` the number of rewards including the new one, and `reward` the new one. Returns the mean
/// of all n rewards.
pub fn sample_average(q: f64, n: u32, reward: f64) -> f64 {
    todo!() // for you to write
}

/// 1.2 The probability of each arm when one explores with probability epsilon.
///
/// With probability `epsilon` every arm is equally likely, the best one included. Otherwise the arm with the highest of `values` is pulled;
/// if several arms share the highest value, each of these is equally likely.
pub fn epsilon_greedy(values: &[f64], epsilon: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 1.3 The arm with the highest upper confidence bound.
///
/// The bound of arm a is `values[a]` + c sqrt(ln t / `counts[a]`), and infinite if the arm was never pulled. Among equal bounds, returns the
/// first arm, so that the check can compare; a rule that plays draws one of them.
pub fn upper_confidence_bound(values: &[f64], counts: &[u32], t: u32, c: f64) -> usize {
    todo!() // for you to write
}

/// 1.4 The probability of each arm from its preference: e to the preference, divided by the sum over all arms.
///
/// Must be right for preferences of 1000 and -1000, too.
pub fn softmax(preferences: &[f64]) -> Vec<f64> {
    todo!() // for you to write
}

/// 1.5 One step of the gradient bandit.
///
/// `arm` was pulled with the probability `softmax(preferences)[arm]` and gave `reward`; `baseline` is the mean of the rewards before this one and
/// `alpha` the step size. Changes the preferences.
pub fn gradient_bandit(preferences: &mut [f64], arm: usize, reward: f64, baseline: f64, alpha: f64) {
    todo!() // for you to write
}

/// 1.6 The regret after each step.
///
/// `values` has the true value of each arm and `arms` the arm that was pulled at each step. The regret after step t is the sum, over the
/// steps so far, of the difference between the highest value and the value of the arm that was pulled.
pub fn regret(values: &[f64], arms: &[usize]) -> Vec<f64> {
    todo!() // for you to write
}
