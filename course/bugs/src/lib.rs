//! The failure set of the course: whole agents with a planted bug each, made from a real one of public code.
//!
//! A student's program registers the agents that were opened, and runs: the commands of `gradus` then know them, so that `train`, `probe`,
//! `explain` and `inspect` can be used to find the bug, and `bug N --check` says whether it is found.
#![forbid(unsafe_code)]

mod bug;
mod check;
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
pub use program::{Program, program};
