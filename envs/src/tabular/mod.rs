//! Tabular environments. A [`Table`] is a finite Markov decision process, and a [`TableEnv`] is an environment that follows a table.
//!
//! - [`FrozenLake`], [`CliffWalking`], [`Taxi`]: tables equal to Gymnasium's `env.unwrapped.P`.
//! - [`Blackjack`]: Gymnasium's, as a table.
//! - [`GridWorld`]: worlds from text maps, such as the mazes of Dyna and the windy grid world.
//! - [`car_rental`], [`gambler`]: the textbook's examples of dynamic programming. [`CarRental`] draws the cars instead of following the table.
//! - [`ShortCorridor`]: states that look the same.
//! - [`FickleTaxi`]: an environment that follows the taxi's table, with passengers who may change their destination.
//! - [`random_walk`]: the random walk of Sutton and Barto's textbook, a prediction problem.
//!
//! Planning methods read the table; model-free methods step the environment.

mod blackjack;
mod car_rental;
mod cliff_walking;
mod frozen_lake;
mod gambler;
mod grid;
mod grid_world;
mod random_walk;
mod short_corridor;
mod table;
mod table_env;
mod taxi;

pub use blackjack::Blackjack;
pub use car_rental::{CarRental, car_rental};
pub use cliff_walking::CliffWalking;
pub use frozen_lake::FrozenLake;
pub use gambler::gambler;
pub use grid_world::GridWorld;
pub use random_walk::{random_walk, random_walk_between};
pub use short_corridor::ShortCorridor;
pub use table::{Outcome, Table};
pub use table_env::{StateMap, TableEnv, Tabular};
pub use taxi::{FickleTaxi, Taxi};
