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
    assert!(n > 0, "random walk: expected at least 1 state, got 0");
    let outcomes = |state: usize| {
        let left = Outcome { probability: 0.5, next: state.saturating_sub(1) as u32, reward: 0.0, terminated: state == 0 };
        let last = state + 1 == n;
        let next = if last { state } else { state + 1 } as u32;
        vec![left, Outcome { probability: 0.5, next, reward: f64::from(u8::from(last)), terminated: last }]
    };
    let starts = (0..n).map(|state| f64::from(u8::from(state == n / 2))).collect();
    Table::new(1, (0..n).map(outcomes).collect(), starts).expect("the rules above give distributions")
}
