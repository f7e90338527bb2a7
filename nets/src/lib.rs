//! Differentiable policies and critics behind one interface, [`Policy`].
//!
//! An agent passes an [`Objective`] to a policy: a pure function that maps the policy's outputs for one decision to the loss and its
//! derivatives with respect to these outputs. The engine computes everything else. This crate contains no algorithm.
//!
//! The engine [`cpu`] is hand-written: forward and backward passes are fused over tiles of rows. Its results have the same bits on every
//! processor and for any number of threads. The engine `torch`, behind the cargo feature `tch`, uses libtorch on a CPU or a GPU.

mod categorical;
mod clocks;
pub mod cpu;
mod device;
mod gaussian;
mod init;
pub mod math;
mod network;
mod objective;
mod optimiser;
mod policy;
mod sampling;
mod settings;
mod store;
pub mod tensors;
mod texts;
pub mod threads;
#[cfg(feature = "tch")]
pub mod torch;
mod transformer;

pub use device::{Device, Precision, TorchConfig, UnknownDevice, Worlds};
pub use network::{Activation, NetworkConfig, NetworkError};
pub use objective::{DIAGNOSTICS, Known, LossGrad, Moves, Objective, Pointwise, PolicyOutput, Sums, diagnostics};
pub use optimiser::{OptimiserStep, Rule, Schedule};
pub use policy::{Actor, Batch, Behaviour, Choice, Group, Network, Policy};
pub use sampling::{Sampling, SamplingError};
pub use settings::Settings;
pub use store::{ActionRows, Observations, Store};
pub use texts::{Prefix, Texts};
pub use transformer::{Critic, FeedForward, Positions, TransformerConfig};

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
