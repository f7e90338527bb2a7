//! The parts of updates and objectives that several agents share.
//!
//! - [`rewards`]: the path of a reward to the objective. [`returns`]: returns and advantages as pure functions. [`gae`]: advantages and
//!   value targets of a whole rollout. [`groups`]: advantages within groups of episodes with the same start.
//! - [`learner`]: minibatches ([`minibatches`], weighted by [`aggregation`]), gradients, optimiser steps and the report of an update.
//! - Objectives: the clip range of the ratio ([`surrogate`]), one ratio for a text ([`sequence_ratio`]), the frozen [`mod@reference`] policy,
//!   the estimators of the KL divergence from the reference ([`kl`]), and the divergence from the [`old_policy`].
//! - [`optimiser`]: the settings of the optimiser.

pub mod aggregation;
mod finite;
pub mod gae;
pub mod groups;
pub mod kl;
pub mod learner;
pub mod minibatches;
mod mismatch;
pub mod old_policy;
pub mod optimiser;
pub mod reference;
pub mod returns;
pub mod rewards;
pub mod sequence_ratio;
pub mod surrogate;
