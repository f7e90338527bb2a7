//! The textbook's experiments: tabular agents at work, and the bandit testbed.

pub mod tabular;
pub mod testbed;
