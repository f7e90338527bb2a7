//! The engine `torch`: policies on libtorch, on a CPU or on a GPU.
//!
//! The parameters of policy and critic are in one flat tensor on one device, and the parameters of a layer are views of it. So the norm
//! of the gradient and an optimiser step take a few tensor operations for any number of layers. Apart from its indices, a batch (or
//! each of its micro-batches) needs two copies between device and host. The first copies the policy's outputs for each decision (log pi, H,
//! V) to the host, which evaluates the objective. The second copies the objective's derivatives with respect to these outputs to the
//! device. There autograd differentiates `sum(output * derivative)`. The observations and actions of a rollout are copied to the device
//! once.
//!
//! # A loss in tensors
//! A loss can be computed with tensors instead of an [`Objective`](crate::Objective). [`ActorCritic::said`] and [`Transformer::said`]
//! return log pi, H and V of a batch as tensors with their autograd graph. Pass the loss to [`ActorCritic::differentiate`] or
//! [`Transformer::differentiate`].
//!
//! # Errors
//! An error of libtorch, such as a lack of memory, causes no panic. The policy records the first error, which
//! [`Behaviour::fault`](crate::Behaviour::fault) returns.

mod act;
mod actor_critic;
mod cell;
mod common;
mod cuda;
mod distribution;
mod engine;
mod fault;
mod forward_backward;
mod found;
mod images;
mod library;
mod parameters;
mod perceptron;
mod q_actor_critic;
mod q_network;
mod raw;
mod transformer;
mod trouble;
pub mod worlds;

pub use actor_critic::ActorCritic;
pub use cuda::{driver, gpus, surroundings};
pub use engine::Engine;
pub use forward_backward::Said;
pub use found::{EXPECTED, Finding, find, libraries};
pub use library::{allow_tf32, multiply_rate, open, prove};
pub use q_actor_critic::QActorCritic;
pub use q_network::QNetwork;
pub use raw::{Driver, Gpu};
/// The crate that defines [`Tensor`](tch::Tensor).
pub use tch;
pub use transformer::{StreamPosition, Transformer, Written};
pub use trouble::{Surroundings, Trouble};
