//! Gradus: a reinforcement-learning toolkit for teaching and research.
//!
//! ```no_run
//! use gradus::{Config, Run, Show};
//!
//! let config = Config::preset("ppo", "cartpole", None)?;
//! let mut run = Run::create(config, "runs/first")?;
//! run.train(Show::Progress)?;
//! println!("mean return {:.1}", run.evaluate(100)?.mean);
//! # Ok::<(), gradus::Error>(())
//! ```
//!
//! Environments are in [`envs`], networks in [`nets`] and algorithms in [`agents`]. This crate trains, evaluates, records and draws.
#![forbid(unsafe_code)]

mod act;
pub mod bench;
pub mod compare;
pub mod config;
pub mod draw;
mod error;
pub mod evaluate;
pub mod figure;
mod files;
pub mod numbers;
pub mod pages;
pub mod run;
pub mod saved;
pub mod textbook;
pub mod train;

pub use config::Config;
pub use error::Error;
pub use evaluate::{Evaluation, Mode};
pub use gradus_agents as agents;
pub use gradus_envs as envs;
pub use gradus_nets as nets;
pub use gradus_statistics as statistics;
pub use run::{Run, Show};
pub use train::{LearnedReward, Trainer};

/// Tests the code blocks of the README as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// Tests the code blocks of the guide as doctests.
#[cfg(doctest)]
#[doc = include_str!("../docs/your-own-agent.md")]
struct YourOwnAgent;
