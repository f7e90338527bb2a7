//! The engine `cpu`: hand-written forward and backward passes, fused over tiles of rows, in parallel over lanes. A lane is a group of
//! tiles.
//!
//! # Same numbers everywhere
//! - Layers with 16 outputs or more: each output starts at its bias and adds the products of inputs and weights in order, by fused
//!   multiply-add.
//! - Narrower layers: each output has sixteen strided partial sums by fused multiply-add, added as a tree ([`sum16`](gradus_base::simd)). The
//!   bias is added last.
//! - Gradients: the rows of a lane are added in order. How rows are split into lanes depends only on the batch, and lanes are added in
//!   order. If actor and critic share no layers, a small batch is one lane, and the two networks are computed in parallel.
//!
//! Results therefore depend neither on the width of the vectors nor on the number of threads.

mod act;
mod actor_critic;
mod aligned;
mod dots;
mod engine;
mod footprint;
mod forward_backward;
mod head;
mod layer;
mod layout;
mod peak;
mod perceptron;
mod product;
mod q_actor_critic;
mod q_network;
mod recurrent;
mod transformer;
mod update;
mod weights;
mod workspace;

pub use actor_critic::ActorCritic;
pub use engine::Engine;
pub use footprint::Footprint;
pub use peak::{Measured, Shape, multiply_rate};
pub use q_actor_critic::QActorCritic;
pub use q_network::QNetwork;
pub use transformer::Transformer;
