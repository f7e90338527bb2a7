//! Policy gradients, in the order in which they build on each other: [`reinforce`], [`a2c`], [`a3c`], [`trpo`], [`ppo`], [`grpo`]. [`estimators`] has the
//! advantages and gradients of all of them on one rollout.

pub mod a2c;
pub mod a3c;
pub mod estimators;
pub mod grpo;
pub mod ppo;
pub mod reinforce;
pub mod trpo;

pub use a2c::{A2c, A2cConfig};
pub use a3c::{A3c, A3cConfig};
pub use grpo::{Grpo, GrpoConfig, GrpoObjective};
pub use ppo::{KlStop, Ppo, PpoConfig};
pub use reinforce::{Reinforce, ReinforceConfig};
pub use trpo::{Trpo, TrpoConfig};
