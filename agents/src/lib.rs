//! Reinforcement-learning algorithms. Each algorithm is one file that can be read from top to bottom. An algorithm does not depend on the
//! engine or on the environment.
//!
//! - [`Rollout`]: the collected data, divided into [`Segment`]s. Each segment records how it ended.
//! - [`rewards`]: the path of a reward to the objective. [`returns`]: returns and advantages as pure functions. [`gae`]: advantages and
//!   value targets of a whole rollout.
//! - The algorithms, in the order in which they build on each other: [`reinforce`], [`a2c`], [`trpo`], [`ppo`], [`grpo`].
//! - [`learner`]: the parts that most updates share. These are minibatches ([`minibatches`], weighted by [`aggregation`]), gradients,
//!   optimiser steps and the report.
//! - Parts of objectives: the advantages of [`groups`] of episodes with the same start, the clipped [ratio](surrogate), the [`sequence_ratio`],
//!   the frozen [`mod@reference`] policy, the estimators of the KL divergence from the reference ([`kl`]), and the
//!   divergence from the [`old_policy`].
//! - For texts: supervised fine-tuning ([`sft`]), the [`reward_model`] of whole texts, the [`process_reward`] model of steps, and learning
//!   from preferences without a reward model ([`dpo`]).
//! - [`estimators`]: the advantages and gradients of all estimators on one rollout.
//! - [`bandit`]: the bandit rules of Sutton and Barto's textbook.
//! - [`tabular`]: TD(0), Q-learning, Sarsa and dynamic programming.
//! - [`registry`]: agents and presets by name. [`optimiser`]: the settings of the optimiser.
//!
//! ```
//! use gradus_agents::returns::{Truncated, gae_of_rollout};
//! use gradus_agents::{End, GroupId, Rollout, Segment};
//! use gradus_nets::{ActionRows, Store};
//!
//! // two decisions with reward 1 each, then a time limit; row 2 of the store is the final observation
//! let store = Store::new(1, vec![0.0, 0.1, 0.2], ActionRows::Discrete(vec![0, 1]));
//! let segment = Segment { range: 0..2, end: End::Truncated { successor: 2 }, group: GroupId(0) };
//! let mut rollout = Rollout::new(store, vec![1.0, 1.0], vec![-0.7, -0.7], vec![segment]);
//! let (values, mut advantages, mut targets) = ([0.5, 1.0, 2.0], Vec::new(), Vec::new());
//! let gamma_lambda = (0.5, 0.5, Truncated::Bootstraps);
//!
//! // delta_1 = 1 + 0.5 x 2 - 1 = 1,  delta_0 = 1 + 0.5 x 1 - 0.5 = 1,  A_0 = delta_0 + 0.25 A_1
//! gae_of_rollout(&rollout, &values, gamma_lambda, &mut advantages, &mut targets);
//! assert_eq!((&advantages[..], &targets[..]), (&[1.25, 1.0][..], &[1.75, 2.0][..]));
//!
//! // if the episode terminates instead, the value after it is 0: delta_1 = 1 - 1 = 0
//! rollout.segments[0].end = End::Terminated;
//! gae_of_rollout(&rollout, &values, gamma_lambda, &mut advantages, &mut targets);
//! assert_eq!(advantages, [1.0, 0.0]);
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

pub mod a2c;
pub mod a3c;
pub mod actor_learner;
mod agent;
pub mod aggregation;
mod algorithm;
pub mod bandit;
pub mod ddpg;
pub mod dpo;
pub mod dqn;
mod error;
pub mod estimators;
mod exploration;
pub mod gae;
pub mod groups;
pub mod grpo;
pub mod kl;
pub mod learner;
pub mod minibatches;
mod mismatch;
pub mod off_policy;
pub mod old_policy;
pub mod optimiser;
pub mod ppo;
pub mod pqn;
pub mod process_reward;
pub mod q_learner;
pub mod qr_dqn;
mod reached;
pub mod reference;
pub mod registry;
pub mod reinforce;
pub mod replay;
pub mod returns;
pub mod reward_model;
pub mod rewards;
mod rollout;
pub mod sac;
pub mod sequence_ratio;
pub mod sft;
mod slopes;
mod sum_tree;
pub mod surrogate;
pub mod tabular;
pub mod td3;
pub mod trpo;

pub use a2c::{A2c, A2cConfig};
pub use a3c::{A3c, A3cConfig};
pub use actor_learner::{ActorLearner, ActorLearnerConfig};
pub use agent::{Agent, Collection, Report, UpdateContext};
pub use aggregation::Aggregation;
pub use algorithm::{Algorithm, OnPolicy};
pub use ddpg::{Ddpg, DdpgConfig};
pub use dpo::{Dpo, DpoConfig};
pub use dqn::{Dqn, DqnConfig, DqnObjective};
pub use error::{AgentError, ConfigError};
pub use exploration::{ActionNoise, EpsilonGreedy, Exploration, Noisy};
pub use gae::Gae;
pub use grpo::{Grpo, GrpoConfig, GrpoObjective};
pub use learner::Learner;
pub use minibatches::{Minibatch, Minibatches};
pub use off_policy::{OffPolicy, OffPolicyAgent, OffPolicyConfig, OffPolicyLearner, TargetUpdate};
pub use optimiser::OptimiserConfig;
pub use ppo::{KlStop, Ppo, PpoConfig};
pub use pqn::{Pqn, PqnConfig};
pub use q_learner::{QLearner, QLearnerConfig};
pub use qr_dqn::{QrDqn, QrDqnConfig, QrDqnObjective};
pub use reached::{Reached, best_known, reached, reached_by};
pub use reference::{Reference, ReferenceConfig};
pub use registry::{AgentConfig, AgentSettings, Built, Preset, Setup};
pub use reinforce::{Reinforce, ReinforceConfig};
pub use replay::{Replay, Sample};
pub use returns::Truncated;
pub use rollout::{Completion, End, GroupId, Rollout, Scaling, Segment};
pub use sac::{Sac, SacConfig};
pub use td3::{Td3, Td3Config};
pub use trpo::{Trpo, TrpoConfig};

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
