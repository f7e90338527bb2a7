//! Learning from preferences and demonstrations of texts: [`dpo`], [`sft`], the [`reward_model`] of whole texts, the [`process_reward`] model
//! of steps.

pub mod dpo;
pub mod process_reward;
pub mod reward_model;
pub mod sft;
mod slopes;

pub use dpo::{Dpo, DpoConfig};
