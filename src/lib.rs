//! Gradus: reinforcement learning to teach with and to publish from.
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
//! The worlds are in [`envs`], the networks in [`nets`], the algorithms in [`agents`]; this crate trains, evaluates, records and draws.
#![forbid(unsafe_code)]

pub mod animation;
pub mod bench;
pub mod collect;
pub mod compare;
pub mod config;
mod csv;
mod episodes;
mod error;
pub mod evaluate;
pub mod figure;
mod files;
mod fonts;
mod generate;
pub mod inspect;
mod learned_reward;
mod logs;
pub mod metrics;
pub mod normaliser;
pub mod numbers;
pub mod pages;
pub mod play;
mod preferences;
pub mod presets;
mod progress;
mod raster;
pub mod record;
pub mod reward_model;
pub mod run;
pub mod sample;
pub mod settings;
pub mod sft;
pub mod statistics;
pub mod tabular;
pub mod tensorboard;
pub mod terminal;
pub mod testbed;
pub mod trace;
pub mod train;

pub use config::Config;
pub use error::Error;
pub use evaluate::{Evaluation, Mode};
pub use gradus_agents as agents;
pub use gradus_envs as envs;
pub use gradus_nets as nets;
pub use learned_reward::LearnedReward;
pub use progress::Show;
pub use run::Run;
pub use train::Trainer;

/// The code of the README, so that it is tested with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The code of the guide, likewise.
#[cfg(doctest)]
#[doc = include_str!("../docs/your-own-agent.md")]
struct YourOwnAgent;
