//! The engine `cpu`: forward and backward passes by hand, fused over tiles of rows, in parallel over lanes of tiles.
//!
//! # Same numbers everywhere
//! - A layer of 16 outputs or more: each output starts at its bias and adds its inputs in order, by fused multiply-add.
//! - A narrower layer: sixteen strided partial sums by fused multiply-add, added as a tree ([`sum16`](crate::math)), then the bias.
//! - A gradient adds its rows in order within a lane; lanes are cut by the number of rows alone and added in order. A small batch is one
//!   lane, in which actor and critic, where they share nothing, are computed side by side.
//!
//! So neither the width of the vectors nor the number of threads shows in a result.

mod act;
mod actor_critic;
mod aligned;
mod forward_backward;
mod head;
mod layer;
mod layout;
mod pass;
mod peak;
mod product;
pub mod simd;
mod transformer;
mod update;
mod weights;

pub use actor_critic::ActorCritic;
pub use peak::multiply_rate;
pub use transformer::Transformer;
