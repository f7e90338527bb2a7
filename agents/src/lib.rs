//! Reinforcement-learning algorithms. Each algorithm is one file that can be read from top to bottom. An algorithm does not depend on the
//! engine or on the environment.
//!
//! - [`Rollout`]: the collected data, divided into [`Segment`]s. Each segment records how it ended.
//! - The agents, by family: [`policy_gradient`], [`q_learning`], [`actor_critic`], [`preferences`], [`tabular`]; and the rules of [`bandit`]s.
//! - [`parts`]: what several of them share. [`replay`]: the buffer, and the one loop of the agents that have one.
//! - [`registry`]: agents and presets by name.
//!
//! ```
//! use gradus_agents::{End, Gae, Truncated, GroupId, Rollout, Segment};
//! use gradus_nets::{ActionRows, Store};
//!
//! // two decisions with reward 1 each, then a time limit; row 2 of the store is the final observation
//! let store = Store::new(1, vec![0.0, 0.1, 0.2], ActionRows::Discrete(vec![0, 1]));
//! let segment = Segment { range: 0..2, end: End::Truncated { successor: 2 }, group: GroupId(0) };
//! let mut rollout = Rollout::new(store, vec![1.0, 1.0], vec![-0.7, -0.7], vec![segment]);
//! let (values, mut advantages, mut targets) = ([0.5, 1.0, 2.0], Vec::new(), Vec::new());
//! let gae = Gae { gamma: 0.5, lambda: 0.5, truncated: Truncated::Bootstraps };
//!
//! // delta_1 = 1 + 0.5 x 2 - 1 = 1,  delta_0 = 1 + 0.5 x 1 - 0.5 = 1,  A_0 = delta_0 + 0.25 A_1
//! gae.of_rollout(&rollout, &values, &mut advantages, &mut targets);
//! assert_eq!((&advantages[..], &targets[..]), (&[1.25, 1.0][..], &[1.75, 2.0][..]));
//!
//! // if the episode terminates instead, the value after it is 0: delta_1 = 1 - 1 = 0
//! rollout.segments[0].end = End::Terminated;
//! gae.of_rollout(&rollout, &values, &mut advantages, &mut targets);
//! assert_eq!(advantages, [1.0, 0.0]);
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

pub mod actor_critic;
mod agent;
mod algorithm;
pub mod bandit;
pub mod config;
mod error;
mod exploration;
pub mod parts;
pub mod policy_gradient;
pub mod preferences;
pub mod q_learning;
mod reached;
pub mod registry;
pub mod replay;
mod rollout;
mod settings;
pub mod tabular;

pub use actor_critic::*;
pub use agent::{Agent, Collection, Report, UpdateContext};
pub use algorithm::{Algorithm, OnPolicy};
pub use config::{Advantages, AgentConfig, AgentKind, Pair, Preset, Setup, Work};
pub use error::{AgentError, ConfigError};
pub use exploration::{ActionNoise, EpsilonGreedy, Exploration, Noisy};
pub use parts::aggregation::Aggregation;
pub use parts::gae::Gae;
pub use parts::learner::Learner;
pub use parts::minibatches::{Minibatch, Minibatches};
pub use parts::optimiser::OptimiserConfig;
pub use parts::reference::{Reference, ReferenceConfig};
pub use parts::returns::Truncated;
pub use parts::*;
pub use policy_gradient::*;
pub use preferences::*;
pub use q_learning::*;
pub use reached::{Reached, best_known, reached, reached_by};
pub use replay::off_policy::{self, OffPolicy, OffPolicyAgent, OffPolicyConfig, OffPolicyLearner, TargetUpdate};
pub use replay::{Kept, Replay, Sample};
pub use rollout::{Completion, End, GroupId, Rollout, Scaling, Segment};
pub use settings::AgentSettings;

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
