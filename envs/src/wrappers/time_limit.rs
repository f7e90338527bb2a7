//! Time limits.

use crate::{Action, Env, EnvError, Scene, Space, Step};

/// Truncates the episodes of an environment after a number of steps (Gymnasium's `TimeLimit`).
pub struct TimeLimit<E> {
    env: E,
    limit: u32,
    elapsed: u32,
}

impl<E: Env> TimeLimit<E> {
    /// Wraps `env`, with episodes truncated after `limit` steps.
    ///
    /// # Panics
    /// If `limit` is 0.
    pub fn new(env: E, limit: u32) -> Self {
        assert!(limit > 0, "time limit: expected at least 1 step, got 0");
        Self { env, limit, elapsed: 0 }
    }

    /// Returns the wrapped environment and the number of elapsed steps.
    pub(crate) fn into_parts(self) -> (E, u32) {
        (self.env, self.elapsed)
    }
}

impl<E: Env> Env for TimeLimit<E> {
    fn observation_space(&self) -> Space {
        self.env.observation_space()
    }

    fn action_space(&self) -> Space {
        self.env.action_space()
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.elapsed = 0;
        self.env.reset(seed, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let step = self.env.step(action, observation);
        self.elapsed += 1;
        Step { truncated: step.truncated || self.elapsed >= self.limit, ..step }
    }

    fn save(&self) -> Vec<u64> {
        let mut state = self.env.save();
        state.push(u64::from(self.elapsed));
        state
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (elapsed, inner) = state.split_last().ok_or_else(|| EnvError::State("elapsed steps: expected 1 word, got none".into()))?;
        let within = u32::try_from(*elapsed).ok().filter(|elapsed| *elapsed <= self.limit);
        let within = within.ok_or_else(|| EnvError::State(format!("elapsed steps: expected at most {}, got {elapsed}", self.limit)))?;
        self.env.load(inner)?;
        self.elapsed = within;
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.env.start_from(state, observation)?;
        self.elapsed = 0;
        Ok(())
    }

    fn reseed(&mut self, seed: u64) {
        self.env.reseed(seed);
    }

    fn action_mask(&self, mask: &mut [bool]) -> bool {
        self.env.action_mask(mask)
    }

    fn ends_step(&self) -> bool {
        self.env.ends_step()
    }

    fn score_names(&self) -> Vec<String> {
        self.env.score_names()
    }

    fn scores(&self, scores: &mut [f64]) {
        self.env.scores(scores);
    }

    fn fault(&self) -> Option<String> {
        self.env.fault()
    }

    fn ansi(&self) -> Option<String> {
        self.env.ansi()
    }

    fn render(&self) -> Option<Scene> {
        self.env.render()
    }
}
