//! Experiments of Sutton and Barto's textbook: training of tabular agents, the bandit testbed, and contextual bandits.

pub mod contextual;
pub mod tabular;
pub mod testbed;
