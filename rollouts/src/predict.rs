//! [`Predictor`]: the actions of a policy for observations that the caller has.

use gradus_base::random::Stream;
use gradus_envs::{Actions, Space};
use gradus_nets::{Behaviour, Sampling};

use crate::Normaliser;
use crate::acting::{Chooser, Explores};

/// Chooses actions for given observations, as a policy does in its environments: it normalises the observations with frozen statistics, and
/// clips continuous actions to their bounds. It keeps the buffers that a call needs.
pub struct Predictor {
    normaliser: Normaliser,
    width: usize,
    chooser: Chooser,
    rows: Vec<f32>,
}

impl Predictor {
    /// Creates a predictor for observations of `width` numbers. `normaliser` has the statistics of the observations.
    ///
    /// # Panics
    /// If `action_space` is a space of texts.
    pub fn new(normaliser: &Normaliser, width: usize, action_space: &Space) -> Self {
        Self { normaliser: normaliser.of_observations(), width, chooser: Chooser::new(action_space.clone()), rows: Vec::new() }
    }

    /// Returns the statistics of the observations.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// Chooses an action for each row of `observations`, which are as the environment returns them. With `masks` (rows x actions), only
    /// actions whose entry is true can be chosen. `streams` has one stream per row, or none if `sampling` is greedy. `memory` is what a policy
    /// with a memory remembers of the episode of each row, [`Behaviour::memory_width`] numbers, which the call replaces; 0 when it begins.
    ///
    /// # Panics
    /// If `memory` has another length.
    pub fn predict(
        &mut self,
        policy: &dyn Behaviour,
        observations: &[f32],
        masks: Option<&[bool]>,
        memory: &mut [f32],
        (sampling, streams): (&Sampling, &mut [Stream]),
    ) -> Actions<'_> {
        let Self { normaliser, width, chooser, rows } = self;
        rows.clear();
        rows.extend_from_slice(observations);
        normaliser.show(rows);
        let count = rows.len() / *width;
        assert_eq!(
            memory.len(),
            count * policy.memory_width(),
            "memory: expected {} numbers for each of {count} rows",
            policy.memory_width()
        );
        chooser.resize(count);
        let mut actor = policy.actor();
        if let Some(own) = actor.memory() {
            own.extend_from_slice(memory);
        }
        chooser.choose(actor.as_mut(), (rows, masks), Explores::Not, sampling, streams);
        if let Some(own) = actor.memory() {
            memory.copy_from_slice(own);
        }
        chooser.decisions().clipped
    }
}
