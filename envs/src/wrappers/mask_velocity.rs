//! Observations without velocities, which an agent must remember or estimate.

use super::{pass_through, pass_through_batch};
use crate::{Action, Actions, Batch, Ending, Env, EnvError, Space, Step};

/// Sets some numbers of every observation to 0, such as the velocities of the classic tasks (rl-zoo's `MaskVelocityWrapper`). What is left does not determine the state.
///
/// ```
/// use gradus_envs::{Action, CartPole, Env, wrappers::MaskVelocity};
///
/// let mut env = MaskVelocity::new(CartPole::default(), &[1, 3]);
/// let mut row = [0.0; 4];
/// env.reset(1, &mut row);
/// env.step(Action::Discrete(1), &mut row);
/// assert!(row[0] != 0.0 && row[1] == 0.0 && row[2] != 0.0 && row[3] == 0.0);
/// ```
pub struct MaskVelocity<E> {
    env: E,
    masked: &'static [usize],
}

impl<E: Env> MaskVelocity<E> {
    /// Wraps `env`; the numbers at these places are 0.
    ///
    /// # Panics
    /// If an observation has no such place.
    pub fn new(env: E, masked: &'static [usize]) -> Self {
        let width = env.observation_space().width();
        assert!(masked.iter().all(|place| *place < width), "MaskVelocity: expected places below {width}, got {masked:?}");
        Self { env, masked }
    }
}

fn mask(masked: &[usize], observation: &mut [f32]) {
    masked.iter().for_each(|place| observation[*place] = 0.0);
}

impl<E: Env> Env for MaskVelocity<E> {
    pass_through!(observation_space, action_space, save, load, reseed, action_mask, render, about_text);

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.env.reset(seed, observation);
        mask(self.masked, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let step = self.env.step(action, observation);
        mask(self.masked, observation);
        step
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.env.start_from(state, observation)?;
        mask(self.masked, observation);
        Ok(())
    }
}

/// As [`MaskVelocity`], for copies that step together.
pub(crate) struct MaskedBatch {
    batch: Box<dyn Batch>,
    masked: &'static [usize],
    width: usize,
}

impl MaskedBatch {
    pub(crate) fn new(batch: Box<dyn Batch>, masked: &'static [usize]) -> Self {
        let width = batch.observation_space().width();
        Self { batch, masked, width }
    }
}

impl Batch for MaskedBatch {
    pass_through_batch!();

    fn observation_space(&self) -> Space {
        self.batch.observation_space()
    }

    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]) {
        self.batch.reset(env, seed, observation);
        mask(self.masked, observation);
    }

    fn reset_many(&mut self, envs: &[usize], seeds: &[u64], observations: &mut [f32]) {
        self.batch.reset_many(envs, seeds, observations);
        observations.chunks_exact_mut(self.width).for_each(|row| mask(self.masked, row));
    }

    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        self.batch.step(actions, finished, observations, rewards, endings);
        observations.chunks_exact_mut(self.width).for_each(|row| mask(self.masked, row));
    }

    fn save(&self, env: usize) -> Vec<u64> {
        self.batch.save(env)
    }

    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError> {
        self.batch.load(env, state)
    }
}
