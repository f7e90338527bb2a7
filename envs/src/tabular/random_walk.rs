//! The random walk (Sutton and Barto, example 6.2), a prediction problem.

use super::{Outcome, Table};

/// Builds a random walk over `n` states in a row, with a single action. An episode begins in the middle state (the right one of two if
/// `n` is even) and moves left or right with equal probability until it leaves the row. The reward is 1 for leaving the row on the right,
/// else 0. The true value of the i-th state, counted from 1, is i/(n + 1) without discounting.
///
/// The step that ends an episode does not change the state.
///
/// # Panics
/// If `n` is 0.
pub fn random_walk(n: usize) -> Table {
    random_walk_between(n, [0.0, 1.0])
}

/// As [`random_walk`], with these rewards for leaving the row on the left and on the right. The textbook's walk over 19 states (example 7.1) has -1 and 1; the true
/// value of its i-th state is i/10 - 1.
///
/// # Panics
/// If `n` is 0, or a reward is not finite.
pub fn random_walk_between(n: usize, [first, last]: [f64; 2]) -> Table {
    assert!(n > 0, "random walk: expected at least 1 state, got 0");
    let outcomes = |state: usize| {
        let reward = |is_end: bool, reward: f64| if is_end { reward } else { 0.0 };
        let (is_first, is_last) = (state == 0, state + 1 == n);
        let left =
            Outcome { probability: 0.5, next: state.saturating_sub(1) as u32, reward: reward(is_first, first), terminated: is_first };
        let next = if is_last { state } else { state + 1 } as u32;
        vec![left, Outcome { probability: 0.5, next, reward: reward(is_last, last), terminated: is_last }]
    };
    let starts = (0..n).map(|state| f64::from(u8::from(state == n / 2))).collect();
    Table::new(1, (0..n).map(outcomes).collect(), starts).expect("the rules above give distributions")
}
