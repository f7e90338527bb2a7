//! Homework 2: policy gradients. `check h2` compares your functions with the examples of the assignment; the grade is decided by other
//! numbers. The assignment: `gradus guide homework-2`.

/// h2.1 The log-density of the action tanh u, where u is drawn from a Gaussian with `mean` and `std`. |u| may be 20.
pub fn squashed_log_prob(u: f64, mean: f64, std: f64) -> f64 {
    todo!() // for you to write
}

/// h2.2 The targets of V-trace. `ratios` are the probabilities of the actions, now divided by then; `limits` are rho-bar and c-bar. No episode
/// ends within the rollout; `next_value` is the value of what follows it.
pub fn v_trace(rewards: &[f64], values: &[f64], next_value: f64, ratios: &[f64], gamma: f64, limits: [f64; 2]) -> Vec<f64> {
    todo!() // for you to write
}

/// h2.3 What the conjugate gradient method has after some rounds, beginning with zeros. If the square of what is left is below 1e-16, it ends.
pub fn conjugate_gradient(matrix: &[Vec<f64>], b: &[f64], rounds: usize) -> Vec<f64> {
    todo!() // for you to write
}

/// h2.4 The numbers less their mean, divided by their standard deviation (of the population) plus 1e-8: over those that are valid. The others
/// become 0, whatever they are.
pub fn masked_whitened(numbers: &[f64], is_valid: &[bool]) -> Vec<f64> {
    todo!() // for you to write
}
