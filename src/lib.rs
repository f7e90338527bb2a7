//! Gradus: a reinforcement-learning toolkit for teaching and research.
//!
//! ```
//! use gradus::{Config, Run, Show};
//!
//! let config = Config::preset("ppo", "cartpole", None)?;
//! let folder = "runs/first";
//! # let temporary = std::env::temp_dir().join(format!("gradus-doc-{}", std::process::id()));
//! # let folder = temporary.join(folder);
//! let mut run = Run::create(config, folder)?;
//! run.train(Show::Nothing)?;
//! assert!(run.evaluate(100)?.mean > 475.0);
//! # std::fs::remove_dir_all(temporary).expect("the temporary folder can be removed");
//! # Ok::<(), gradus::Error>(())
//! ```
//!
//! Environments are in [`envs`], networks in [`nets`] and algorithms in [`agents`]. This crate trains, evaluates, records and draws.
//!
//! [`Policy`] predicts actions, from a run folder or from a training without one; [`make`] makes an environment for it.
//!
//! [`guide`] has the pages of the folder `docs/`, such as the architecture, custom environments, custom agents, and determinism.
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

#[cfg(feature = "app")]
mod app;
pub mod bench;
#[cfg(feature = "app")]
mod commands;
pub mod compare;
pub mod config;
pub mod draw;
mod error;
pub mod evaluate;
pub mod figure;
mod files;
#[cfg(doc)]
pub mod guide;
mod memory;
pub mod numbers;
pub mod pages;
mod policy;
mod program;
pub mod run;
pub mod saved;
#[cfg(test)]
mod temporary;
pub mod textbook;
pub mod train;
pub mod verify;

#[cfg(feature = "app")]
pub use app::{App, app};
pub use config::Config;
pub use error::Error;
pub use evaluate::{Evaluation, Mode};
pub use gradus_agents as agents;
pub use gradus_envs as envs;
pub use gradus_envs::make;
pub use gradus_nets as nets;
pub use gradus_rollouts as rollouts;
pub use gradus_statistics as statistics;
pub use policy::Policy;
pub use program::{program, program_name};
pub use run::{Run, Show, Update};
pub use train::{Iteration, LearnedReward, Trainer};

/// Tests the code blocks of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
