//! What an agent's update does to a policy, on rollouts made by hand.

#[path = "../common/mod.rs"]
mod common;
mod lineage;
mod ppo;
mod reinforce;
mod trpo;
