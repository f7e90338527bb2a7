//! The random walk (Sutton and Barto, example 6.2): something to predict, with nothing to decide.

use super::{Outcome, Table};

/// `n` states in a row. An episode begins in the middle one and goes left or right with equal probability until it leaves the row: to the
/// right with reward 1, to the left with 0. There is one action. The true value of the i-th state is i/(n + 1).
///
/// Off the row's ends the episode terminates; the state that is observed then is the one that was left, and does not count.
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
