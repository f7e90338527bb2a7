//! Bandits: decisions without consequences (Sutton and Barto, chapter 2).
//!
//! - [`Testbed`]: thousands of Gaussian problems side by side, for experiments in the manner of the textbook.
//! - [`Bandit`]: one problem, Gaussian or Bernoulli, as an environment.
//! - [`ContextualBandit`]: one problem whose arms are worth more or less depending on what is observed.
//!
//! In the environments an episode is one pull. What the arms are worth belongs to the world and is drawn from the *problem's* seed; the
//! *episode's* seed gives the context and the noise, and [`Env::reseed`](crate::Env::reseed) gives other noise in the same context.

mod bandit;
mod contextual;
mod testbed;

pub use bandit::{Bandit, Payout};
pub use contextual::ContextualBandit;
pub use testbed::Testbed;

use rand_distr::{Distribution, StandardNormal};

use crate::random::Stream;

/// A draw from N(0, 1).
fn normal(stream: &mut Stream) -> f64 {
    StandardNormal.sample(stream)
}

/// The largest number and where it stands; the first one where several are equal.
fn largest(numbers: &[f64]) -> (usize, f64) {
    let better = |best: (usize, f64), next: (usize, &f64)| if *next.1 > best.1 { (next.0, *next.1) } else { best };
    numbers.iter().enumerate().fold((0, f64::NEG_INFINITY), better)
}
