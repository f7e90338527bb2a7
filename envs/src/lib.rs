//! Environments for reinforcement learning: one environment ([`Env`]), and many in lockstep ([`VecEnv`]).
//!
//! The semantics are Gymnasium's: an episode is *terminated* when the Markov decision process ends, and *truncated* when an external
//! limit cuts it off. Randomness is keyed: an episode is a pure function of its seed and the actions. So any episode of a run can be
//! replayed without the episodes before it.
//!
//! ```
//! use gradus_envs::{Action, Actions, Ending, registry};
//!
//! let mut env = registry::find("CartPole-v1")?.env();
//! let mut observation = vec![0.0; env.observation_space().width()];
//! env.reset(7, &mut observation);
//! let step = env.step(Action::Discrete(1), &mut observation);
//! assert_eq!((step.reward, step.terminated, step.truncated), (1.0, false, false));
//!
//! // two environments in lockstep, always pushed to the right, until the first pole falls
//! let mut envs = registry::find("CartPole-v1")?.vec_env(0..2, 7)?;
//! let fallen = loop {
//!     if let Some(finished) = envs.step(Actions::Discrete(&[1, 1]))?.finished.first() {
//!         break finished.clone();
//!     }
//! };
//! assert_eq!(fallen.ending, Ending::Terminated); // after 500 steps it would be `Truncated`
//! assert_eq!(fallen.episode_return, f64::from(fallen.length));
//! # Ok::<(), gradus_envs::EnvError>(())
//! ```
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

pub mod arcade;
pub mod bandits;
mod batch;
pub mod bsuite;
mod classic;
mod column_batch;
mod columns;
mod env;
mod env_spec;
mod episode;
mod episode_rng;
mod error;
pub mod gym;
#[cfg(feature = "gym-rs")]
pub mod gym_rs;
mod lockstep;
mod python;
pub mod registry;
mod scene;
mod single;
pub mod space;
mod state;
pub mod tabular;
pub mod text;
mod vector;
pub mod wrappers;

pub use gradus_base::{files, names, panics, random, simd, trig};

pub use batch::{Batch, ScalarBatch};
pub use classic::{Acrobot, CartPole, CartPoleBatch, MountainCar, MountainCarContinuous, Pendulum};
pub use column_batch::ColumnBatch;
pub use columns::{Columnar, Number, Shown};
pub use env::{Action, Actions, Env, Step};
#[allow(deprecated)]
pub use env_spec::World;
pub use env_spec::{EnvSpec, MAX_EPISODE_STEPS, TensorEnvSpec};
pub use episode::{Autoreset, Ending, Finished, Outcome, Starts, Transition};
pub use error::EnvError;
pub use python::end_all as end_processes;
pub use scene::{Ink, Picture, Scene, Shape};
pub use single::{SingleEnv, make};
pub use space::{Image, Space, choices};
pub use vector::{UNWRITTEN, VecEnv, unwritten};
pub use wrappers::TimeLimit;

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
