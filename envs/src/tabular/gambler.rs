//! The gambler's problem (Sutton and Barto, example 4.3): stake a capital on coin flips until it is 100 or nothing.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(50)`: action a stakes a + 1; more than the capital, or more than is missing to 100, is as much as that; the book also has a stake of 0 |
//! | observations | `Discrete(101)`: the capital |
//! | reward | 1 for reaching 100, else 0 |
//! | start | a capital of 1 to 99, with equal probability |
//! | end | terminated at 0 and at 100 |

use super::{Outcome, Table};

/// The capital to reach.
const GOAL: usize = 100;

/// Builds the table for a coin that comes up heads, and wins, with probability `heads`. The textbook has 0.4.
///
/// # Panics
/// If `heads` is not between 0 and 1.
pub fn gambler(heads: f64) -> Table {
    assert!((0.0..=1.0).contains(&heads), "gambler: expected a probability from 0 to 1, got {heads}");
    let outcomes = |capital: usize, action: usize| {
        let stake = (action + 1).min(capital).min(GOAL - capital);
        let to = |next: usize, probability: f64| {
            let is_won = next == GOAL && capital < GOAL;
            Outcome { probability, next: next as u32, reward: if is_won { 1.0 } else { 0.0 }, terminated: next == 0 || next == GOAL }
        };
        vec![to(capital + stake, heads), to(capital - stake, 1.0 - heads)]
    };
    let starts = (0..=GOAL).map(|capital| if (1..GOAL).contains(&capital) { 1.0 / (GOAL - 1) as f64 } else { 0.0 }).collect();
    let pairs = (0..=GOAL).flat_map(|capital| (0..GOAL / 2).map(move |action| (capital, action)));
    Table::new(GOAL / 2, pairs.map(|(capital, action)| outcomes(capital, action)).collect(), starts)
        .expect("the rules above give distributions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_win_the_stake_and_tails_lose_it() {
        let table = gambler(0.4);
        let outcome = |probability, next, reward, terminated| Outcome { probability, next, reward, terminated };
        // a stake of 50 with 50: all or nothing
        assert_eq!(table.outcomes(50, 49), [outcome(0.4, 100, 1.0, true), outcome(1.0 - 0.4, 0, 0.0, true)]);
        assert_eq!(table.outcomes(30, 9), [outcome(0.4, 40, 0.0, false), outcome(1.0 - 0.4, 20, 0.0, false)]);
        // no more than is missing to 100
        assert_eq!(table.outcomes(95, 49), [outcome(0.4, 100, 1.0, true), outcome(1.0 - 0.4, 90, 0.0, false)]);
    }
}
