//! A policy acts: episodes are played to their end, prompts are completed.

pub(crate) mod episodes;
pub(crate) mod generate;
pub mod normaliser;
mod slots;

use std::ops::Range;

use gradus_envs::{Actions, Space};
use gradus_nets::{ActionRows, Behaviour, threads};

pub(crate) use slots::Slots;

/// By how many actors `policy` is best asked.
pub(crate) fn actors(policy: &dyn Behaviour) -> usize {
    if policy.wants_one_actor() { 1 } else { threads::count() }
}

/// The numbers 0 to n - 1 in `parts` ranges of nearly equal length.
pub(crate) fn split(n: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(move |i| i * n / parts..(i + 1) * n / parts)
}

/// Actions as a world takes them: a policy's continuous actions know no bounds and are clipped to the world's, as in
/// Stable-Baselines3. What is learnt from are the actions as they were drawn.
pub(crate) struct Clipped {
    space: Space,
    rows: Vec<f32>,
}

impl Clipped {
    pub fn to(space: Space) -> Self {
        Self { space, rows: Vec::new() }
    }

    pub fn clip<'a>(&'a mut self, actions: &'a ActionRows) -> Actions<'a> {
        match actions {
            ActionRows::Continuous { rows, width } => {
                self.rows.clone_from(rows);
                self.space.clip(&mut self.rows);
                Actions::Continuous { rows: &self.rows, width: *width }
            }
            discrete => discrete.view(),
        }
    }
}
