//! A policy acts: episodes are played to their end, prompts are completed. Training collects its rollouts by the same loop.

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

/// The number of actors that `policy` is best asked by.
pub(crate) fn actors(policy: &dyn Behaviour) -> usize {
    if policy.wants_one_actor() { 1 } else { threads::count() }
}

/// The numbers 0 to n - 1 in `parts` ranges of nearly equal length.
pub(crate) fn split(n: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(move |i| i * n / parts..(i + 1) * n / parts)
}
