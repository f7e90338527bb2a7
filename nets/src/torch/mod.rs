//! The engine `torch`: policies on libtorch, on a CPU or on a GPU.
//!
//! Policy and critic live on one device, in one flat tensor that every layer is a view of, so that the norm of the gradient and a step of
//! the optimiser are a handful of operations however many layers there are. What agents need of a batch (log pi, H, V: a few numbers
//! a decision) comes down in one copy, the objective is judged on the processor as ever, and its derivatives go back up in another:
//! `sum(output * derivative)` is what autograd differentiates. A rollout's observations and actions are copied up once.
//!
//! # A loss in tensors
//! Who would rather write a loss with tensors than as an [`Objective`](crate::Objective) asks [`ActorCritic::said`] or [`Transformer::said`]
//! for log pi, H and V of a batch as tensors with their graph, and hands what was made of them to [`ActorCritic::differentiate`].
//!
//! # Errors
//! libtorch's errors, such as a lack of memory, do not panic: the policy remembers the first one, see
//! [`Behaviour::fault`](crate::Behaviour::fault).

mod act;
mod actor_critic;
mod common;
mod cuda;
mod distribution;
mod fault;
mod forward_backward;
mod library;
mod parameters;
mod raw;
mod transformer;
mod trouble;
pub mod worlds;

pub use actor_critic::ActorCritic;
pub use cuda::{Driver, Gpu, driver, gpus, surroundings};
pub use forward_backward::Said;
pub use library::{EXPECTED, Finding, allow_tf32, find, libraries, multiply_rate, open, prove};
/// The crate that says what a [`Tensor`](tch::Tensor) is.
pub use tch;
pub use transformer::{Hand, Transformer, Written};
pub use trouble::{Surroundings, Trouble};
