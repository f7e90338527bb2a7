//! Homework 1: bandits and tables. `check h1` compares your functions with the examples of the assignment; the grade is decided by other
//! numbers. The assignment: `gradus guide homework-1`.

use gradus_course::{End, Step};
#[allow(unused_imports)]
use gradus_course::{Outcome, Table};

/// h1.1 The posterior of a mean: its mean and its standard deviation. The prior is a Gaussian with `mean` and `std`; each reward is the mean
/// plus Gaussian noise with the standard deviation `noise`. There may be no reward yet.
pub fn gaussian_posterior(mean: f64, std: f64, rewards: &[f64], noise: f64) -> (f64, f64) {
    todo!() // for you to write
}

/// h1.2 The index of KL-UCB for rewards 0 and 1: the largest q from `mean` to 1 with pulls * KL(mean, q) <= level, to five digits. KL(p, q) =
/// p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)), and 0 ln 0 = 0.
pub fn kl_ucb(mean: f64, pulls: f64, level: f64) -> f64 {
    todo!() // for you to write
}

/// h1.3 The best policy: an action for each state. `table.outcomes(s, a)` has the outcomes, each with `probability`, `next`, `reward` and
/// `terminated`.
pub fn policy_iteration(table: &Table, gamma: f64) -> Vec<usize> {
    todo!() // for you to write
}

/// h1.4 TD(lambda) along an episode, with accumulating traces: in each step all traces fade by gamma times lambda, that of the state grows
/// by 1, and all values move by alpha times the TD error times their trace. After `End::Terminated` nothing follows.
pub fn td_lambda(values: &mut [f64], steps: &[Step], alpha: f64, gamma: f64, lambda: f64) {
    todo!() // for you to write
}
