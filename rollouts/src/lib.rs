//! Rollouts: a policy acts in many environments at once.
//!
//! | task | function |
//! | --- | --- |
//! | collect a rollout for an update | [`Collector`] |
//! | the same in environments that the caller steps | [`Observer`] |
//! | play whole episodes, for an evaluation or a baseline | [`play_episodes`], [`play_greedily`], [`play_first_episodes`] |
//! | complete prompts | [`generate`] |
//! | choose actions for observations that the caller has | [`Predictor`] |
//! | check observations and masks that come from outside | [`Inputs`] |
//!
//! All but the second and the last two share one loop, [`act`]; the observer and the predictor take its steps one at a time. This crate has
//! code that runs once per step and environment, so it is optimised in every profile except `teach`.
//!
//! ```
//! use gradus_agents::Collection;
//! use gradus_envs::registry;
//! use gradus_nets::{Behaviour, NetworkConfig, cpu::ActorCritic};
//! use gradus_rollouts::Collector;
//!
//! let world = registry::find("cartpole")?;
//! let env = world.env();
//! let policy = ActorCritic::new(&NetworkConfig::default(), &env.observation_space(), &env.action_space(), 1)?;
//! let mut collector = Collector::new(&world, 4, 1, Collection::Steps(32))?;
//! let (rollout, episodes) = collector.collect(&policy)?;
//! assert_eq!(rollout.len(), 4 * 32);
//! assert!(episodes.iter().all(|episode| episode.episode_return == f64::from(episode.length)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

mod acting;
mod active;
mod clipped;
mod collect;
mod episodes;
mod generate;
mod inputs;
mod normaliser;
mod predict;
mod turns;
mod wrappers;

use std::ops::Range;

use gradus_base::threads;
use gradus_nets::Behaviour;

pub use acting::{Decisions, Environments, Explores, act};
pub use active::ActiveRows;
use clipped::Clipped;
pub use collect::{Collector, Episode, NotThere, Observer, RolloutBytes};
pub use episodes::{PlayedEpisode, play_episodes, play_first_episodes, play_greedily};
pub use generate::{MAX_CONCURRENT, Start, continue_from, generate, generate_aloud};
pub use inputs::{InputError, Inputs};
pub use normaliser::Normaliser;
pub use predict::Predictor;
pub use wrappers::{Atari, WrapperConfig};

/// Returns the number of actors that suits `policy` best: one, or one per thread.
fn actors(policy: &dyn Behaviour) -> usize {
    if policy.wants_one_actor() { 1 } else { threads::count() }
}

/// Splits 0..n into at most `parts` ranges of nearly equal length.
fn split(n: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(move |i| i * n / parts..(i + 1) * n / parts)
}

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
