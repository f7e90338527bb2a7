//! Objectives: losses and their derivatives, as pure functions of the policy's output.

#[path = "../common/mod.rs"]
mod common;
mod kl;
mod ppo;
mod surrogate;
