//! Experiments of Sutton and Barto's textbook: training of tabular agents, and the bandit testbed.

pub mod tabular;
pub mod testbed;
