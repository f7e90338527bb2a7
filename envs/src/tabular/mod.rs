//! Tabular environments. A [`Table`] is a finite Markov decision process, and a [`TableEnv`] is an environment that follows a table.
//!
//! - [`FrozenLake`], [`CliffWalking`], [`Taxi`]: tables equal to Gymnasium's `env.unwrapped.P`.
//! - [`Blackjack`]: Gymnasium's, as a table.
//! - [`GridWorld`]: worlds from text maps, such as the maze of Dyna.
//! - [`FickleTaxi`]: an environment that follows the taxi's table, with passengers who may change their destination.
//! - [`random_walk`]: the random walk of Sutton and Barto's textbook, a prediction problem.
//!
//! Planning methods read the table; model-free methods step the environment.

mod blackjack;
mod cliff_walking;
mod frozen_lake;
mod grid;
mod grid_world;
mod random_walk;
mod table;
mod table_env;
mod taxi;

pub use blackjack::Blackjack;
pub use cliff_walking::CliffWalking;
pub use frozen_lake::FrozenLake;
pub use grid_world::GridWorld;
pub use random_walk::{random_walk, random_walk_between};
pub use table::{Outcome, Table};
pub use table_env::{TableEnv, Tabular};
pub use taxi::{FickleTaxi, Taxi};
