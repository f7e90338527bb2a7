//! Off-policy actor-critic methods for continuous actions: [`ddpg`], [`td3`], [`sac`].

pub mod actor_learner;
pub mod ddpg;
pub mod sac;
pub mod td3;

pub use actor_learner::{ActorLearner, ActorLearnerConfig};
pub use ddpg::{Ddpg, DdpgConfig};
pub use sac::{Sac, SacConfig};
pub use td3::{Td3, Td3Config};
