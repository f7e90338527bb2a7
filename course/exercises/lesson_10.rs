//! Lesson 10: comparing algorithms. `check 10` says how far you are.
//!
//! A score is the final return of a run. There is at least one in each list.

/// 10.1 The interquartile mean: the mean of the scores without the lowest and the highest quarter. A quarter is rounded down.
pub fn interquartile_mean(scores: &[f64]) -> f64 {
    todo!() // for you to write
}

/// 10.2 The interval of the mean score by the bootstrap, with the probability `level`, such as 0.95. `draws` has a list for each resample:
/// the places of the scores that it has drawn. Of the sorted means, leave out (1 - level) / 2 of their number at either end, rounded down.
pub fn bootstrap_interval(scores: &[f64], draws: &[Vec<usize>], level: f64) -> (f64, f64) {
    todo!() // for you to write
}

/// 10.3 The probability that a run of the agent with the scores `x` is better than one of the agent with the scores `y`: over all pairs. A
/// tie counts one half.
pub fn improvement_probability(x: &[f64], y: &[f64]) -> f64 {
    todo!() // for you to write
}

/// 10.4 The p-values of several tests, corrected by Holm's method, in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    todo!() // for you to write
}

/// 10.5 The number of seeds of each of two agents with which a test at the level 0.05 sees a difference of their means with the
/// probability 0.8: twice the square of 1.96 + 0.84 times the square of std / difference, rounded up. `std` is the standard deviation of a
/// run's score.
pub fn seeds_needed(std: f64, difference: f64) -> usize {
    todo!() // for you to write
}
