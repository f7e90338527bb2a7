//! The effect of an agent's update on a policy, for small hand-made or sampled rollouts.

#[path = "../common/mod.rs"]
mod common;

mod a3c;
mod lineage;
mod ppo;
mod reinforce;
mod trpo;
