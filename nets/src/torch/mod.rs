//! The engine `torch`: policies on libtorch, on a CPU or on a GPU.
//!
//! Policy and critic are in one flat tensor on one device, and every layer is a view of it. So the norm of the gradient and an optimiser
//! step are a few operations for any number of layers. A batch needs two copies between device and host. The first brings the policy's
//! outputs for each decision (log pi, H, V) to the host, which evaluates the objective. The second brings the derivatives back to the
//! device, where autograd differentiates `sum(output * derivative)`. The observations and actions of a rollout are copied to the device
//! once.
//!
//! # A loss in tensors
//! To write a loss with tensors instead of an [`Objective`](crate::Objective), call [`ActorCritic::said`] or [`Transformer::said`] for log
//! pi, H and V of a batch as tensors with their graph, and pass the loss to [`ActorCritic::differentiate`] or
//! [`Transformer::differentiate`].
//!
//! # Errors
//! libtorch's errors, such as a lack of memory, do not panic: the policy keeps the first one, see
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
/// The crate that defines [`Tensor`](tch::Tensor).
pub use tch;
pub use transformer::{Hand, Transformer, Written};
pub use trouble::{Surroundings, Trouble};
