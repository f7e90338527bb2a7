//! Bandits, in which an action affects only the immediate reward (Sutton and Barto, chapter 2).
//!
//! - [`Testbed`]: many Gaussian problems, for experiments as in the textbook.
//! - [`Bandit`]: one problem, Gaussian or Bernoulli, as an environment.
//! - [`ContextualBandit`]: one problem with arm values that depend on the observation.
//!
//! An episode of [`Bandit`] and of [`ContextualBandit`] is one pull. The *problem's* seed determines the arm values, or the weights from
//! which they are computed. The *episode's* seed determines the context and the noise. [`Env::reseed`](crate::Env::reseed) changes the
//! noise and keeps the context.

mod bandit;
mod contextual;
mod testbed;

pub use bandit::{Bandit, Payout};
pub use contextual::ContextualBandit;
pub use testbed::Testbed;

use rand_distr::{Distribution, StandardNormal};

use gradus_base::random::Stream;

/// Draws from N(0, 1).
fn normal(stream: &mut Stream) -> f64 {
    StandardNormal.sample(stream)
}

/// Returns the index and value of the largest number. Among equal numbers, the first is returned.
fn largest(numbers: &[f64]) -> (usize, f64) {
    let better = |best: (usize, f64), next: (usize, &f64)| if *next.1 > best.1 { (next.0, *next.1) } else { best };
    numbers.iter().enumerate().fold((0, f64::NEG_INFINITY), better)
}
