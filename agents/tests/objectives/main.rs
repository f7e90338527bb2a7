//! Objectives: losses and their derivatives, as pure functions of what a policy says of a decision.

#[path = "../common/mod.rs"]
mod common;
mod kl;
mod ppo;
mod surrogate;
