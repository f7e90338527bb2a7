//! Environments in which everything happens early.

use gradus::envs::tabular::CliffWalking;
use gradus::envs::{CartPole, EnvSpec};

/// CartPole whose episodes are cut off after twelve steps, when some have fallen and most have not.
pub(crate) fn short_pole() -> EnvSpec {
    EnvSpec::limited("short-pole", 12, CartPole::default)
}

/// CliffWalking whose episodes are cut off after twenty steps, wherever they are.
pub(crate) fn short_cliff() -> EnvSpec {
    EnvSpec::of_table("short-cliff", 20, CliffWalking::deterministic)
}
