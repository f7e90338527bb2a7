//! Algorithms of reinforcement learning. One algorithm is one file, read from top to bottom; none knows which engine or which
//! world it works with.
//!
//! - [`Rollout`]: what was collected, cut into [`Segment`]s by how they ended.
//! - [`returns`]: returns and advantages, pure functions of one segment.
//! - [`bandit`]: the classic rules for bandits, as they stand in the textbook.
//! - [`tabular`]: TD(0), Q-learning, Sarsa, and dynamic programming.
//! - [`ppo`]: proximal policy optimisation.
#![forbid(unsafe_code)]

mod agent;
pub mod bandit;
pub mod ppo;
pub mod returns;
mod rollout;
pub mod tabular;

pub use agent::{Agent, AgentError, Collection, ConfigError, Moment, Report};
pub use ppo::{KlStop, Ppo, PpoConfig};
pub use returns::Truncated;
pub use rollout::{End, Rollout, Segment};
