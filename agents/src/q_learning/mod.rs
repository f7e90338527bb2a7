//! Q-learning with a network: [`dqn`] and [`qr_dqn`] with a replay buffer, [`pqn`] without.

pub mod dqn;
pub mod pqn;
pub mod q_learner;
pub mod qr_dqn;

pub use dqn::{Dqn, DqnConfig, DqnObjective};
pub use pqn::{Pqn, PqnConfig};
pub use q_learner::{QLearner, QLearnerConfig};
pub use qr_dqn::{QrDqn, QrDqnConfig, QrDqnObjective};
