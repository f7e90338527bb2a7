//! Acting with a policy: playing whole episodes and completing prompts. Training collects its rollouts with the same loop.

mod acting;
mod active;
mod clipped;
pub(crate) mod episodes;
pub(crate) mod generate;
pub mod normaliser;

use std::ops::Range;

use gradus_nets::{Behaviour, threads};

pub(crate) use acting::{Decisions, Environments, act};
pub(crate) use active::ActiveRows;
use clipped::Clipped;

/// Returns the number of actors that suits `policy` best: one, or one per thread.
pub(crate) fn actors(policy: &dyn Behaviour) -> usize {
    if policy.wants_one_actor() { 1 } else { threads::count() }
}

/// Splits 0..n into at most `parts` ranges of nearly equal length.
pub(crate) fn split(n: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(move |i| i * n / parts..(i + 1) * n / parts)
}
