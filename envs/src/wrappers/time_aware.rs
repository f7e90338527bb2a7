//! Elapsed time as part of the observation.

use super::{bounds, pass_through, split_state};
use crate::{Action, Env, EnvError, Space, Step};

/// Appends the number of steps taken so far to the observation (Gymnasium's `TimeAwareObservation`).
///
/// With a time limit, the value of a state depends on the remaining time. Bootstrapping at truncation ignores this dependence. An agent
/// that maximises the return within a fixed time must observe the time (Pardo et al., "Time limits in reinforcement learning", 2018).
///
/// ```
/// use gradus_envs::{Action, CartPole, Env, TimeLimit, wrappers::TimeAware};
///
/// let mut env = TimeAware::new(TimeLimit::new(CartPole::default(), 500), 500);
/// let mut row = [0.0; 5];
/// env.reset(1, &mut row);
/// assert_eq!(row[4], 0.0);
/// env.step(Action::Discrete(1), &mut row);
/// assert_eq!(row[4], 1.0);
/// ```
pub struct TimeAware<E> {
    env: E,
    limit: u32,
    unit: f64,
    elapsed: u32,
}

impl<E: Env> TimeAware<E> {
    /// Wraps `env`, which has episodes of at most `limit` steps, and appends the number of elapsed steps.
    ///
    /// # Panics
    /// If the observation space of `env` is not a box (see [`OneHot`](super::OneHot)), or if `limit` is 0.
    pub fn new(env: E, limit: u32) -> Self {
        assert!(limit > 0, "TimeAware: expected a limit of at least 1 step, got 0");
        bounds("TimeAware", env.observation_space());
        Self { env, limit, unit: 1.0, elapsed: 0 }
    }

    /// As [`new`](TimeAware::new), with the elapsed steps as a fraction of `limit` (Gymnasium's `normalize_time`).
    pub fn fraction(env: E, limit: u32) -> Self {
        Self { unit: f64::from(limit), ..Self::new(env, limit) }
    }

    /// Writes the wrapped environment's observation into `row`, followed by the elapsed time.
    fn observe<T>(&mut self, row: &mut [f32], call: impl FnOnce(&mut E, &mut [f32]) -> T) -> T {
        let (time, own) = row.split_last_mut().expect("room for the time");
        *time = (f64::from(self.elapsed) / self.unit) as f32;
        call(&mut self.env, own)
    }
}

impl<E: Env> Env for TimeAware<E> {
    pass_through!(action_space, reseed, action_mask, render, about_text);

    fn observation_space(&self) -> Space {
        let (mut low, mut high) = bounds("TimeAware", self.env.observation_space());
        low.push(0.0);
        high.push((f64::from(self.limit) / self.unit) as f32);
        Space::Box { low, high }
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.elapsed = 0;
        self.observe(observation, |env, own| env.reset(seed, own))
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        self.elapsed += 1;
        self.observe(observation, |env, own| env.step(action, own))
    }

    fn save(&self) -> Vec<u64> {
        [self.env.save(), vec![u64::from(self.elapsed)]].concat()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (inner, own) = split_state("TimeAware", state, 1)?;
        let within = u32::try_from(own[0]).ok().filter(|elapsed| *elapsed <= self.limit);
        let elapsed = within.ok_or_else(|| EnvError::State(format!("elapsed steps: expected at most {}, got {}", self.limit, own[0])))?;
        self.env.load(inner)?;
        self.elapsed = elapsed;
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        let before = std::mem::replace(&mut self.elapsed, 0);
        let begun = self.observe(observation, |env, own| env.start_from(state, own));
        // a state that is refused changes nothing
        if begun.is_err() {
            self.elapsed = before;
        }
        begun
    }
}
