//! Objectives: the losses and derivatives that they compute from the policy's output.

#[path = "../common/mod.rs"]
mod common;
mod derivatives;
mod kl;
mod ppo;
mod surrogate;
mod watched;
