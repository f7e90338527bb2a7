//! Algorithms of reinforcement learning. One algorithm is one file, read from top to bottom; none knows which engine or which
//! world it works with.
//!
//! - [`Rollout`]: what was collected, cut into [`Segment`]s by how they ended.
//! - [`returns`]: returns and advantages, pure functions of one segment.
//! - The lineage, each from the one before it: [`reinforce`], [`a2c`], [`trpo`], [`ppo`], [`grpo`].
//! - What they share: [`groups`] of episodes that began alike, the clipped [`surrogate`], the frozen [`mod@reference`], how losses of
//!   decisions become one ([`Aggregation`]).
//! - What goes before and beside reinforcement learning on texts: [`sft`] and the [`reward_model`]; and [`estimators`] side by side.
//! - [`bandit`]: the classic rules for bandits, as they stand in the textbook.
//! - [`tabular`]: TD(0), Q-learning, Sarsa, and dynamic programming.
#![forbid(unsafe_code)]

pub mod a2c;
mod agent;
mod aggregation;
mod algorithm;
pub mod bandit;
pub mod estimators;
pub mod groups;
pub mod grpo;
mod mismatch;
pub mod optimiser;
pub mod ppo;
pub mod reference;
pub mod registry;
pub mod reinforce;
pub mod returns;
pub mod reward_model;
mod rollout;
pub mod sequence_ratio;
pub mod sft;
pub mod surrogate;
pub mod tabular;
pub mod trpo;

pub use a2c::{A2c, A2cConfig};
pub use agent::{Agent, AgentError, Collection, ConfigError, Report, UpdateContext};
pub use aggregation::{Aggregation, Minibatch, Minibatches};
pub use algorithm::{Algorithm, OnPolicy};
pub use grpo::{Grpo, GrpoConfig, GrpoObjective};
pub use optimiser::OptimiserConfig;
pub use ppo::{KlStop, Ppo, PpoConfig};
pub use reference::{Reference, ReferenceConfig};
pub use registry::{AgentConfig, AgentSettings, Built, Preset, Setup};
pub use reinforce::{Reinforce, ReinforceConfig};
pub use returns::Truncated;
pub use rollout::{End, GroupId, Rollout, Segment};
pub use trpo::{Trpo, TrpoConfig};
