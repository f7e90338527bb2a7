//! The failure set of the course: whole agents with a planted bug each, made from a real one of public code.
//!
//! A student's folder has two programs. [`manage`] opens bugs, and gives hints. [`program`] registers the agents that were opened, so that the
//! commands of `gradus` know them: `train`, `probe`, `explain` and `inspect` are what bugs are found with. `bug N --check` says whether one is
//! found: it compares the first updates with those of the right agent.
#![forbid(unsafe_code)]

mod bug;
mod check;
mod curves;
#[cfg(test)]
mod page;
mod program;
mod variants;
mod worlds;

/// The agents without their bugs.
mod agents {
    pub(crate) mod actor_critic;
    pub(crate) mod dqn;
    pub(crate) mod grpo;
    pub(crate) mod ppo;
    pub(crate) mod q_learning;
    pub(crate) mod reinforce;
    pub(crate) mod sac;
}

pub use bug::Bug;
pub use check::{Verdict, verdict};
pub use program::{Program, manage, program};
