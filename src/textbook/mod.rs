//! Experiments of Sutton and Barto's textbook: the bandit testbed, and contextual bandits.

pub mod contextual;
pub mod testbed;
