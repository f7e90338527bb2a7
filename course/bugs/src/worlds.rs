//! Environments in which everything happens early.

use gradus::envs::{CartPole, EnvSpec};

/// CartPole whose episodes are cut off after twelve steps, when some have fallen and most have not.
pub(crate) fn short_pole() -> EnvSpec {
    EnvSpec::limited("short-pole", 12, CartPole::default)
}
