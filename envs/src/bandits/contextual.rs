//! A contextual bandit: the value of each arm is a linear function of the observation.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(k)`: the arms |
//! | observations | the context x: d numbers, each uniform in \[-1, 1) |
//! | reward | drawn from N(w(a) . x, 1) |
//! | start | a new context in each episode |
//! | end | terminated after one pull |
//!
//! The weights w(a) are drawn from N(0, 1) with the problem's seed and are the same in every episode. The episode's seed determines the
//! context and the noise.

use super::{largest, normal};
use crate::episode_rng::{EpisodeRng, split_saved};
use crate::{Action, Env, EnvError, Space, Step};
use gradus_base::random::{Purpose, Stream};

/// One linear contextual bandit problem.
#[derive(Clone, Debug)]
pub struct ContextualBandit {
    /// One row per arm.
    weights: Vec<f64>,
    context: Vec<f32>,
    rng: EpisodeRng,
}

impl ContextualBandit {
    /// Creates the problem with seed `problem`, `arms` arms and contexts of `width` numbers.
    ///
    /// # Panics
    /// If `arms` or `width` is 0.
    pub fn new(arms: usize, width: usize, problem: u64) -> Self {
        assert!(arms > 0 && width > 0, "contextual bandit: expected at least 1 arm and 1 number per context, got {arms} and {width}");
        let mut stream = Stream::new(problem, Purpose::Problem, 0);
        let weights = (0..arms * width).map(|_| normal(&mut stream)).collect();
        Self { weights, context: vec![0.0; width], rng: EpisodeRng::new(0) }
    }

    /// Numbers per context.
    pub fn width(&self) -> usize {
        self.context.len()
    }

    /// The weights, one row per arm.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The mean reward of each arm in `context`.
    pub fn values(&self, context: &[f32]) -> Vec<f64> {
        let value = |row: &[f64]| row.iter().zip(context).map(|(w, x)| w * f64::from(*x)).sum();
        self.weights.chunks_exact(self.context.len()).map(value).collect()
    }

    /// The best arm in `context` and its mean reward.
    pub fn best(&self, context: &[f32]) -> (usize, f64) {
        largest(&self.values(context))
    }
}

impl Env for ContextualBandit {
    fn observation_space(&self) -> Space {
        let width = self.context.len();
        Space::Box { low: vec![-1.0; width], high: vec![1.0; width] }
    }

    fn action_space(&self) -> Space {
        Space::Discrete((self.weights.len() / self.context.len()) as u32)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.rng = EpisodeRng::new(seed);
        for number in &mut self.context {
            *number = 2.0 * self.rng.stream.unit_f32() - 1.0;
        }
        observation.copy_from_slice(&self.context);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(arm) = action else { panic!("contextual bandit: expected a number, got {action:?}") };
        let reward = self.values(&self.context)[arm as usize] + normal(&mut self.rng.stream);
        observation.copy_from_slice(&self.context);
        Step { reward, terminated: true, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        let context = self.context.iter().map(|number| u64::from(number.to_bits()));
        self.rng.save().into_iter().chain(context).collect()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let expected = EpisodeRng::WORDS + self.context.len();
        if state.len() != expected {
            return Err(EnvError::State(format!("contextual bandit: expected {expected} words, got {}", state.len())));
        }
        let (rng, context) = state.split_at(EpisodeRng::WORDS);
        let numbers: Vec<f32> = context.iter().map(|word| f32::from_bits(*word as u32)).collect();
        if let Some(number) = numbers.iter().find(|number| !(-1.0..=1.0).contains(*number)) {
            return Err(EnvError::State(format!("contextual bandit: expected a context between -1 and 1, got {number}")));
        }
        let (rng, []) = split_saved("contextual bandit", rng)?;
        (self.rng, self.context) = (rng, numbers);
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        if state.len() != self.context.len() || !state.iter().all(|number| (-1.0..=1.0).contains(number)) {
            let expected = self.context.len();
            return Err(EnvError::State(format!("contextual bandit: expected {expected} numbers between -1 and 1, got {state:?}")));
        }
        self.rng = EpisodeRng::new(0);
        self.context = state.iter().map(|number| *number as f32).collect();
        observation.copy_from_slice(&self.context);
        Ok(())
    }

    fn reseed(&mut self, seed: u64) {
        self.rng = EpisodeRng::new(seed);
    }
}
