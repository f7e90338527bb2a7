//! Normalised observations and rewards, by [`RunningStatistics`].

use std::sync::Arc;

use super::{RunningStatistics, pass_through, pass_through_batch};
use crate::{Action, Actions, Batch, Ending, Env, EnvError, Space, Step};

/// Normalises observations to mean 0 and variance 1 (Gymnasium's `NormalizeObservation` with `update_running_mean = False`).
///
/// The statistics are frozen. Use this wrapper for evaluation, where episodes must not depend on each other.
///
/// ```
/// use std::sync::Arc;
/// use gradus_envs::{CartPole, Env, wrappers::{NormaliseObservation, RunningStatistics}};
///
/// let statistics = RunningStatistics::load(4, &[100.0, 0.01, 0.0, 0.0, 0.0, 0.04, 1.0, 1.0, 1.0])?;
/// let mut env = NormaliseObservation::new(CartPole::default(), Arc::new(statistics), 10.0);
/// let mut row = [0.0; 4];
/// env.start_from(&[0.03, 0.5, -0.1, 99.0], &mut row)?;
/// assert!((row[0] - 0.1).abs() < 1e-6); // (0.03 - 0.01) / sqrt(0.04)
/// assert_eq!(row[3], 10.0); // clipped
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
pub struct NormaliseObservation<E> {
    env: E,
    statistics: Arc<RunningStatistics>,
    clip: f32,
}

impl<E: Env> NormaliseObservation<E> {
    /// Wraps `env`, with observations normalised by `statistics` and clipped to \[-`clip`, `clip`\]. The usual `clip` is 10, and
    /// `f32::INFINITY` means no clipping.
    ///
    /// # Panics
    /// If the widths of the observations and of `statistics` differ, or if `clip` is not above 0.
    pub fn new(env: E, statistics: Arc<RunningStatistics>, clip: f32) -> Self {
        let width = env.observation_space().width();
        assert_eq!(statistics.width(), width, "NormaliseObservation: expected statistics of {width} numbers, got {}", statistics.width());
        assert!(clip > 0.0, "NormaliseObservation: expected a clip above 0, got {clip}");
        Self { env, statistics, clip }
    }
}

impl<E: Env> Env for NormaliseObservation<E> {
    pass_through!(action_space, save, load, reseed, action_mask, render, about_text);

    fn observation_space(&self) -> Space {
        let width = self.statistics.width();
        Space::Box { low: vec![-self.clip; width], high: vec![self.clip; width] }
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.env.reset(seed, observation);
        self.statistics.normalise_rows(observation, self.clip);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let step = self.env.step(action, observation);
        self.statistics.normalise_rows(observation, self.clip);
        step
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.env.start_from(state, observation)?;
        self.statistics.normalise_rows(observation, self.clip);
        Ok(())
    }
}

/// As [`NormaliseObservation`], for copies that step together.
pub(crate) struct NormalisedBatch {
    batch: Box<dyn Batch>,
    statistics: Arc<RunningStatistics>,
    clip: f32,
}

impl NormalisedBatch {
    pub(crate) fn new(batch: Box<dyn Batch>, statistics: Arc<RunningStatistics>, clip: f32) -> Self {
        Self { batch, statistics, clip }
    }
}

impl Batch for NormalisedBatch {
    pass_through_batch!();

    fn observation_space(&self) -> Space {
        let width = self.statistics.width();
        Space::Box { low: vec![-self.clip; width], high: vec![self.clip; width] }
    }

    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]) {
        self.batch.reset(env, seed, observation);
        self.statistics.normalise_rows(observation, self.clip);
    }

    fn reset_many(&mut self, envs: &[usize], seeds: &[u64], observations: &mut [f32]) {
        self.batch.reset_many(envs, seeds, observations);
        let width = self.statistics.width();
        for env in envs {
            self.statistics.normalise_rows(&mut observations[env * width..(env + 1) * width], self.clip);
        }
    }

    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        self.batch.step(actions, finished, observations, rewards, endings);
        for (row, _) in observations.chunks_exact_mut(self.statistics.width()).zip(finished).filter(|(_, finished)| !**finished) {
            self.statistics.normalise_rows(row, self.clip);
        }
    }

    fn save(&self, env: usize) -> Vec<u64> {
        self.batch.save(env)
    }

    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError> {
        self.batch.load(env, state)
    }
}

/// Normalises rewards by the standard deviation of discounted returns (Gymnasium's `NormalizeReward` for vectors of environments with
/// autoreset within the step).
///
/// Every environment has a running return R_t = gamma R_{t-1} + r_t, which begins at 0 with each episode. As in Gymnasium, the sample of
/// R at a terminating step is that step's reward alone. Rewards are divided by sqrt(variance of R + 1e-8). The mean is not subtracted,
/// because that would change the optimal policy.
///
/// ```
/// use gradus_envs::{Ending, wrappers::ReturnStatistics};
///
/// let mut statistics = ReturnStatistics::new(1, 0.5);
/// assert_eq!(statistics.normalise(3.0, 10.0), 3.0); // without rewards, the variance is 1
/// statistics.update(0, &[8.0, 4.0, 4.0], &[Ending::Running; 3]); // R is 8, 8, 8
/// statistics.update(0, &[-4.0], &[Ending::Truncated]); // R is 0
/// assert!((statistics.statistics().variance()[0] - 12.0).abs() < 0.01);
/// assert!((statistics.normalise(3.0, 10.0) - 3.0 / 12.0_f32.sqrt()).abs() < 0.001);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ReturnStatistics {
    discount: f64,
    returns: Vec<f64>,
    statistics: RunningStatistics,
}

impl ReturnStatistics {
    /// Creates the statistics of `envs` environments, with discount gamma.
    pub fn new(envs: usize, discount: f64) -> Self {
        Self { discount, returns: vec![0.0; envs], statistics: RunningStatistics::new(1) }
    }

    /// The statistics of the running returns.
    pub fn statistics(&self) -> &RunningStatistics {
        &self.statistics
    }

    /// Adds the unnormalised rewards of environment `env` in consecutive steps. Call it for every environment after a rollout, in the
    /// order of the environments.
    ///
    /// # Panics
    /// If the lengths of `endings` and `rewards` differ, or if `env` does not exist.
    pub fn update(&mut self, env: usize, rewards: &[f32], endings: &[Ending]) {
        assert_eq!(rewards.len(), endings.len(), "return statistics: expected {} endings, got {}", rewards.len(), endings.len());
        let mut running = self.returns[env];
        let returns = rewards.iter().zip(endings).map(|(reward, ending)| {
            let before = if ending.terminated() { 0.0 } else { running };
            let sample = self.discount * before + f64::from(*reward);
            running = if ending.done() { 0.0 } else { sample };
            sample
        });
        let batch = RunningStatistics::of(&returns.collect::<Vec<f64>>(), 1);
        self.returns[env] = running;
        self.statistics.merge(&batch);
    }

    /// Returns reward / sqrt(variance + 1e-8), clipped to \[-`clip`, `clip`\]. The `clip` of Stable-Baselines3 is 10, and that of
    /// Gymnasium is infinity.
    pub fn normalise(&self, reward: f32, clip: f32) -> f32 {
        ((f64::from(reward) / self.statistics.scale()[0]) as f32).clamp(-clip, clip)
    }

    /// Begins the running returns again, because all environments begin new episodes.
    pub fn begin_again(&mut self) {
        self.returns.fill(0.0);
    }

    /// Returns the count, mean and variance of the running returns, then the current running return of each environment.
    pub fn save(&self) -> Vec<f64> {
        [self.statistics.save(), self.returns.clone()].concat()
    }

    /// Continues from [saved](Self::save) statistics of the same number of environments.
    pub fn load(&mut self, numbers: &[f64]) -> Result<(), EnvError> {
        let (expected, got) = (3 + self.returns.len(), numbers.len());
        if got != expected {
            return Err(EnvError::State(format!("return statistics: expected {expected} numbers, got {got}")));
        }
        let (statistics, returns) = numbers.split_at(3);
        if let Some(number) = returns.iter().find(|number| !number.is_finite()) {
            return Err(EnvError::State(format!("return statistics: expected finite returns, got {number}")));
        }
        self.statistics = RunningStatistics::load(1, statistics)?;
        self.returns.copy_from_slice(returns);
        Ok(())
    }
}
