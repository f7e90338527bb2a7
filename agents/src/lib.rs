//! Algorithms of reinforcement learning. One algorithm is one file, read from top to bottom; none knows which engine or which
//! world it works with.
//!
//! - [`Rollout`]: what was collected, cut into [`Segment`]s by how they ended.
//! - [`rewards`]: a reward's way to the objective. [`returns`]: returns and advantages, pure functions; [`gae`]: of a whole rollout in one call.
//! - The lineage, each from the one before it: [`reinforce`], [`a2c`], [`trpo`], [`ppo`], [`grpo`].
//! - [`learner`]: what their updates share: minibatches ([`minibatches`], weighted by [`aggregation`]), gradients, steps and the report.
//! - Parts of objectives: [`groups`] of episodes that began alike, the clipped [`surrogate`] and its [`sequence_ratio`], the [`value_loss`], the
//!   frozen [`mod@reference`] and the estimators of the divergence from it ([`kl`]), the divergence from the [`old_policy`].
//! - What goes before and beside reinforcement learning on texts: [`sft`] and the [`reward_model`]; and [`estimators`] side by side.
//! - [`bandit`]: the classic rules for bandits, as they stand in the textbook.
//! - [`tabular`]: TD(0), Q-learning, Sarsa, and dynamic programming.
#![forbid(unsafe_code)]

pub mod a2c;
mod agent;
pub mod aggregation;
mod algorithm;
pub mod bandit;
mod error;
pub mod estimators;
pub mod gae;
pub mod groups;
pub mod grpo;
pub mod kl;
pub mod learner;
pub mod minibatches;
mod mismatch;
pub mod old_policy;
pub mod optimiser;
pub mod ppo;
pub mod reference;
pub mod registry;
pub mod reinforce;
pub mod returns;
pub mod reward_model;
pub mod rewards;
mod rollout;
pub mod sequence_ratio;
pub mod sft;
pub mod surrogate;
pub mod tabular;
pub mod trpo;
pub mod value_loss;

pub use a2c::{A2c, A2cConfig};
pub use agent::{Agent, Collection, Report, UpdateContext};
pub use aggregation::Aggregation;
pub use algorithm::{Algorithm, OnPolicy};
pub use error::{AgentError, ConfigError};
pub use gae::Gae;
pub use grpo::{Grpo, GrpoConfig, GrpoObjective};
pub use learner::Learner;
pub use minibatches::{Minibatch, Minibatches};
pub use optimiser::OptimiserConfig;
pub use ppo::{KlStop, Ppo, PpoConfig};
pub use reference::{Reference, ReferenceConfig};
pub use registry::{AgentConfig, AgentSettings, Built, Preset, Setup};
pub use reinforce::{Reinforce, ReinforceConfig};
pub use returns::Truncated;
pub use rollout::{End, GroupId, Rollout, Segment};
pub use trpo::{Trpo, TrpoConfig};
