//! [`Predictor`]: the actions of a policy for observations that the caller has.

use gradus_envs::random::Stream;
use gradus_envs::{Actions, Space};
use gradus_nets::{ActionRows, Behaviour, Choice, Sampling};

use crate::{Clipped, Normaliser};

/// Chooses actions for given observations, as a policy does in its environments: it normalises the observations with frozen statistics, and
/// clips continuous actions to their bounds. It keeps the buffers that a call needs.
pub struct Predictor {
    normaliser: Normaliser,
    width: usize,
    actions: ActionRows,
    clipped: Clipped,
    log_probs: Vec<f32>,
    rows: Vec<f32>,
}

impl Predictor {
    /// Creates a predictor for observations of `width` numbers. `normaliser` has the statistics of the observations.
    ///
    /// # Panics
    /// If `action_space` is a space of texts.
    pub fn new(normaliser: &Normaliser, width: usize, action_space: &Space) -> Self {
        let (actions, clipped) = (ActionRows::empty(action_space), Clipped::to(action_space.clone()));
        Self { normaliser: normaliser.of_observations(), width, actions, clipped, log_probs: Vec::new(), rows: Vec::new() }
    }

    /// Returns the statistics of the observations.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// Chooses an action for each row of `observations`, which are as the environment returns them. With `masks` (rows x actions), only
    /// actions whose entry is true can be chosen. `streams` has one stream per row, or none if `sampling` is greedy.
    pub fn predict(
        &mut self,
        policy: &dyn Behaviour,
        observations: &[f32],
        masks: Option<&[bool]>,
        (sampling, streams): (&Sampling, &mut [Stream]),
    ) -> Actions<'_> {
        let Self { normaliser, width, actions, clipped, log_probs, rows } = self;
        rows.clear();
        rows.extend_from_slice(observations);
        normaliser.show(rows);
        let count = rows.len() / *width;
        actions.resize(count);
        log_probs.resize(count, 0.0);
        policy.actor().act(rows, masks, Choice::by(sampling, streams), actions, log_probs);
        clipped.clip(actions)
    }
}
