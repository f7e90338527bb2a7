//! Many copies of one environment, stepped together.

use std::cell::Cell;

use crate::{Actions, Ending, Env, EnvError, Space};

/// Many copies of one environment that step together. [`VecEnv`](crate::VecEnv) decides when to reset them.
///
/// In every method, `observations` holds one row per copy.
pub trait Batch: Send {
    /// Number of copies.
    fn len(&self) -> usize;

    /// Whether there are no copies.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The observation space.
    fn observation_space(&self) -> Space;

    /// The action space.
    fn action_space(&self) -> Space;

    /// The copy whose code was called last. It names the place of a panic. A batch whose copies share one computation returns 0.
    fn current(&self) -> usize {
        0
    }

    /// Begins the episode with seed `seed` in copy `env`.
    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]);

    /// As [`reset`](Batch::reset), for each copy in `envs` with its seed in `seeds`.
    fn reset_many(&mut self, envs: &[usize], seeds: &[u64], observations: &mut [f32]) {
        let width = observations.len() / self.len().max(1);
        for (env, seed) in envs.iter().zip(seeds) {
            self.reset(*env, *seed, &mut observations[env * width..(env + 1) * width]);
        }
    }

    /// Steps every copy that `finished` does not mark. A marked copy waits for a reset, and the values written for it are ignored. A marked
    /// text environment may instead be [paused](crate::VecEnv::hold), and then its observation must not be changed.
    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]);

    /// As [`Env::reseed`], for copy `env`.
    fn reseed(&mut self, env: usize, seed: u64) {
        let _ = (env, seed);
    }

    /// As [`Env::action_mask`], for copy `env`.
    fn action_mask(&self, env: usize, mask: &mut [bool]) -> bool {
        let _ = (env, mask);
        false
    }

    /// As [`Env::ends_step`], for copy `env`.
    fn ends_step(&self, env: usize) -> bool {
        let _ = env;
        false
    }

    /// As [`Env::score_names`].
    fn score_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// As [`Env::scores`], for copy `env`.
    fn scores(&self, env: usize, scores: &mut [f64]) {
        let _ = (env, scores);
    }

    /// As [`Env::fault`], for copy `env`.
    fn fault(&self, env: usize) -> Option<String> {
        let _ = env;
        None
    }

    /// As [`Env::save`], for copy `env`.
    fn save(&self, env: usize) -> Vec<u64>;

    /// As [`Env::load`], for copy `env`.
    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError>;

    /// Says that copy `env` will be reset with `seed` when its episode ends, so that a batch can do this in the same step. Its
    /// [`reset_many`](Batch::reset_many) then only returns the observation.
    fn announce(&mut self, env: usize, seed: u64) {
        let _ = (env, seed);
    }
}

/// Many copies of any environment, stepped one after the other.
pub struct ScalarBatch<E> {
    envs: Vec<E>,
    width: usize,
    /// The copy whose code was called last.
    current: Cell<usize>,
}

impl<E: Env> ScalarBatch<E> {
    /// Creates a batch of the given environments, which must have equal spaces.
    ///
    /// # Panics
    /// If `envs` is empty, or if the spaces differ.
    pub fn new(envs: Vec<E>) -> Self {
        let width = common_width(&mut envs.iter().map(|env| (env.observation_space(), env.action_space())));
        Self { width, envs, current: Cell::new(0) }
    }

    fn env(&self, env: usize) -> &E {
        self.current.set(env);
        &self.envs[env]
    }

    fn env_mut(&mut self, env: usize) -> &mut E {
        self.current.set(env);
        &mut self.envs[env]
    }
}

/// Returns the width of the observations of environments with the given observation and action spaces.
fn common_width(spaces: &mut dyn Iterator<Item = (Space, Space)>) -> usize {
    let first = spaces.next().expect("environments: expected at least 1, got 0");
    for spaces in spaces {
        assert!(spaces == first, "environments of one batch must have equal spaces");
    }
    first.0.width()
}

/// The copy that takes a step. It is stored on drop, so also on a panic; storing it at every step would be slower.
struct Stepping<'a> {
    env: usize,
    current: &'a Cell<usize>,
}

impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        self.current.set(self.env);
    }
}

impl<E: Env> Batch for ScalarBatch<E> {
    fn len(&self) -> usize {
        self.envs.len()
    }

    fn current(&self) -> usize {
        self.current.get()
    }

    fn observation_space(&self) -> Space {
        self.envs[0].observation_space()
    }

    fn action_space(&self) -> Space {
        self.envs[0].action_space()
    }

    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]) {
        self.env_mut(env).reset(seed, observation);
    }

    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        let rows = observations.chunks_exact_mut(self.width);
        let mut stepping = Stepping { env: 0, current: &self.current };
        for (i, (env, row)) in self.envs.iter_mut().zip(rows).enumerate() {
            if !finished[i] {
                stepping.env = i;
                let step = env.step(actions.get(i), row);
                rewards[i] = step.reward as f32;
                endings[i] = Ending::new(step.terminated, step.truncated);
            }
        }
    }

    fn reseed(&mut self, env: usize, seed: u64) {
        self.env_mut(env).reseed(seed);
    }

    fn action_mask(&self, env: usize, mask: &mut [bool]) -> bool {
        self.env(env).action_mask(mask)
    }

    fn ends_step(&self, env: usize) -> bool {
        self.env(env).ends_step()
    }

    fn score_names(&self) -> Vec<String> {
        self.envs[0].score_names()
    }

    fn scores(&self, env: usize, scores: &mut [f64]) {
        self.env(env).scores(scores);
    }

    fn fault(&self, env: usize) -> Option<String> {
        self.env(env).fault()
    }

    fn save(&self, env: usize) -> Vec<u64> {
        self.env(env).save()
    }

    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError> {
        self.env_mut(env).load(state)
    }
}
