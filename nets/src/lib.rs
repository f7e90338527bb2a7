//! Differentiable policies and critics behind one interface, [`Policy`].
//!
//! An agent passes an [`Objective`] to a policy. An objective is the formula of the loss of one decision in the policy's outputs. Its
//! derivatives with respect to these outputs follow from the formula ([`loss`]), and the engine computes everything else. This crate
//! contains no algorithm.
//!
//! The engine [`cpu`] has hand-written forward and backward passes, fused over tiles of rows. Its results have the same bits on every
//! processor and for any number of threads. The engine `torch`, behind the cargo feature `tch`, uses libtorch on a CPU or a GPU.
//!
//! ```
//! use gradus_envs::Space;
//! use gradus_nets::{ActionRows, Batch, Evaluation, Network, NetworkConfig, Objective, Outputs, Policy, Store, cpu::ActorCritic};
//! # use gradus_nets::{OptimiserStep, Rule};
//!
//! /// Imitate the action: the loss is -log pi(a|s).
//! struct Imitation;
//! impl Objective for Imitation {
//!     fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
//!         (-pi.log_prob).into()
//!     }
//! }
//!
//! let observations = Space::Box { low: vec![-1.0; 2], high: vec![1.0; 2] };
//! let mut policy = ActorCritic::new(&NetworkConfig::default(), &observations, &Space::Discrete(3), 1)?;
//! let store = Store::new(2, vec![0.5, -0.5], ActionRows::Discrete(vec![2])); // one decision: action 2 in state (0.5, -0.5)
//! let batch = Batch::new(&[0], &[1.0]);
//! let before = policy.gradient(&store, batch, &Imitation).loss;
//! assert!((before - 3_f64.ln()).abs() < 0.05); // three nearly equally probable actions
//! # let (rule, epsilon, learning_rate, weight_decay) = (Rule::Adam, 1e-5, 0.01, 0.0);
//! # let step = OptimiserStep { rule, epsilon, learning_rate, critic_learning_rate: 0.01, weight_decay, max_grad_norm: 0.5, clip_per_group: false };
//! policy.apply(&step); // Adam with learning rate 0.01
//! assert!(policy.evaluate(&store, batch, &Imitation).loss < before);
//! # Ok::<(), gradus_nets::NetworkError>(())
//! ```
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

mod categorical;
mod choices;
mod clocks;
pub mod cpu;
mod device;
mod engine;
mod gaussian;
mod init;
pub mod loss;
mod network;
mod noise;
mod objective;
mod optimiser;
mod policy;
mod q_actor_critic;
mod q_network;
mod sampling;
mod sequences;
mod squashed;
mod store;
mod texts;
#[cfg(feature = "tch")]
pub mod torch;
mod transformer;
mod trunk;
mod wrapped;

pub use gradus_base::{Settings, Visit, math, range, settings, tensors, threads};

pub use cpu::Footprint;
pub use device::{Device, Precision, TorchConfig, UnknownDevice, Worlds};
pub use engine::{Engine, Spaces, engine};
pub use loss::{Evaluation, Loss, Of, Outputs, QValues};
pub use network::{Activation, Cell, NetworkConfig, NetworkError};
pub use objective::{DIAGNOSTICS, Known, Objective, Pointwise, PolicyOutput, Sums, UpdatedGroups, diagnostics};
pub use optimiser::{OptimiserStep, Rule, Schedule};
pub use policy::{Actor, ActorState, Batch, Behaviour, Choice, FeatureMaps, Group, Inspection, Network, Policy};
pub use q_actor_critic::{ActionScale, ActorObjective, QActor, QActorCritic, QActorHead};
pub use q_network::{Evaluated, QHead, QNetwork, ValueObjective, greedy};
pub use sampling::{Sampling, SamplingError};
pub use sequences::{Sequence, Sequences};
pub use squashed::LogStdBounds;
pub use store::{ActionRows, Observations, Store};
pub use texts::{Prefix, Texts};
pub use transformer::{Biases, Critic, FeedForward, LoraTargets, Norm, Positions, TransformerConfig};
pub use trunk::Trunk;
pub use wrapped::{Listener, Wrapped};

/// Whether this crate, which has the hot loops of training, is built without debug assertions. Cargo ignores our profiles in another workspace, where
/// a debug build trains up to a hundred times more slowly.
pub fn is_optimised() -> bool {
    !cfg!(debug_assertions)
}

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
