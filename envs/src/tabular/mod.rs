//! Worlds that a table describes in full: [`Table`] is the Markov decision process, [`TableEnv`] plays it.
//!
//! - [`FrozenLake`], [`CliffWalking`], [`Taxi`] (and [`FickleTaxi`]): tables equal to Gymnasium's `env.unwrapped.P`.
//! - [`random_walk`]: the textbook's five states in a row, for prediction.
//!
//! A planner reads the table; a learner that is to find out for itself plays the environment.

mod cliff_walking;
mod frozen_lake;
mod grid;
mod random_walk;
mod table;
mod table_env;
mod taxi;

pub use cliff_walking::CliffWalking;
pub use frozen_lake::FrozenLake;
pub use random_walk::random_walk;
pub use table::{Outcome, Table};
pub use table_env::{TableEnv, Tabular};
pub use taxi::{FickleTaxi, Taxi};
