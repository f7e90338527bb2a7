//! Q-learning with a network: [`dqn`], [`munchausen_dqn`] and [`qr_dqn`] with a replay buffer, [`pqn`] without.

pub mod dqn;
pub mod munchausen_dqn;
pub mod pqn;
pub mod q_learner;
pub mod qr_dqn;

pub use dqn::{Dqn, DqnConfig, DqnObjective, TdLoss};
pub use munchausen_dqn::{MunchausenDqn, MunchausenDqnConfig};
pub use pqn::{Pqn, PqnConfig};
pub use q_learner::{QLearner, QLearnerConfig};
pub use qr_dqn::{QrDqn, QrDqnConfig, QrDqnObjective};
