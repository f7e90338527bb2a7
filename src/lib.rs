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
//! [`Policy`] predicts actions, from a run folder or from a training without one; [`make`] makes an environment for it. [`Agent`] learns in a
//! loop that is written by hand, in any environment.
//!
//! | feature | adds | default |
//! | --- | --- | --- |
//! | `figures` | figures as SVG, PNG and PDF | yes |
//! | `gif` | episodes as animated GIFs | yes |
//! | `tensorboard` | the metrics of a run for TensorBoard | yes |
//! | `terminal` | progress bars, pictures in the terminal | yes |
//! | `ndarray` | observations as matrices | yes |
//! | `tch`, `download-libtorch` | the engine `torch`, on a CPU or a GPU; downloads libtorch for the CPU | |
//! | `language` | pretrained language models, `chat:PATH?model=MODEL` | |
//! | `gym-rs` | the environments of the crate gym-rs | |
//!
//! Cargo ignores the profiles of a dependency. In a crate of your own, add these lines to Cargo.toml, without which a debug build trains many times more
//! slowly (`gradus new` writes a crate that has them):
//!
//! ```toml
//! [profile.dev.package]
//! gradus-agents = { opt-level = 3, debug-assertions = false, overflow-checks = false }
//! gradus-base = { opt-level = 3, debug-assertions = false, overflow-checks = false }
//! gradus-envs = { opt-level = 3, debug-assertions = false, overflow-checks = false }
//! gradus-nets = { opt-level = 3, debug-assertions = false, overflow-checks = false }
//! gradus-rollouts = { opt-level = 3, debug-assertions = false, overflow-checks = false }
//! ```
//!
//! [`guide`] has the pages of the folder `docs/`, such as the architecture, custom environments, custom agents, and determinism.
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

mod agent;
pub mod config;
pub mod draw;
mod error;
pub mod evaluate;
#[cfg(feature = "figures")]
pub mod figure;
#[doc(hidden)] // for the commands
pub mod files;
pub mod guide;
#[doc(hidden)] // for the commands
pub mod memory;
pub mod numbers;
mod policy;
mod program;
pub mod run;
pub mod saved;
pub mod textbook;
pub mod train;

pub use agent::Agent;
pub use config::Config;
pub use error::Error;
pub use evaluate::{Evaluation, Mode};
pub use gradus_agents as agents;
pub use gradus_base as base;
pub use gradus_envs::make;
pub use gradus_nets as nets;
pub use gradus_rollouts as rollouts;
#[cfg(feature = "ndarray")]
pub use ndarray;
pub use policy::Policy;
pub use program::{one_line, plain, program, program_name, reported, take_program_name};
pub use run::{Run, Show, Update};
pub use train::{Iteration, LearnedReward, Trainer};

/// A hash of the code that determines a run's numbers.
#[doc(hidden)] // for comparisons
pub const CODE: &str = env!("GRADUS_CODE");

/// Environments, and the [`checker`](envs::checker) of their interface.
pub mod envs {
    pub use gradus_checker as checker;
    pub use gradus_envs::*;
}

/// Tests the code blocks of the README as doctests.
#[cfg(all(doctest, feature = "terminal"))]
#[doc = include_str!("../README.md")]
struct Readme;
