//! A k-armed bandit as an environment.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(k)`: the arms |
//! | observations | always 1: there is nothing to observe, but a network needs an input |
//! | reward | Gaussian: drawn from N(q\*(a), 1); Bernoulli: 1 with probability p(a), else 0 |
//! | start | always the same |
//! | end | terminated after one pull |
//!
//! The arm values are the same in every episode. Unless they are given, they are drawn with the problem's seed: q\*(a) from N(0, 1), p(a)
//! uniformly from \[0, 1).

use super::testbed::arm_values;
use super::{largest, normal};
use crate::episode_rng::{EpisodeRng, split_saved};
use crate::{Action, Env, EnvError, Space, Step};
use gradus_base::random::{Purpose, Stream};

/// The reward distribution of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payout {
    /// The normal distribution: its mean is the arm's value, and its variance is 1.
    Gaussian,
    /// The Bernoulli distribution: 1 with the probability given by the arm's value, else 0.
    Bernoulli,
}

/// One k-armed bandit problem.
#[derive(Clone, Debug)]
pub struct Bandit {
    payout: Payout,
    values: Vec<f64>,
    rng: EpisodeRng,
}

impl Bandit {
    /// Creates the Gaussian problem with seed `problem`. Its arm values are those of problem 0 of the [`Testbed`](super::Testbed) with this
    /// seed and mean 0.
    ///
    /// # Panics
    /// If `arms` is 0.
    pub fn gaussian(arms: usize, problem: u64) -> Self {
        Self::with_values(Payout::Gaussian, arm_values(problem, 0, arms, 0.0))
    }

    /// Creates the Bernoulli problem with seed `problem`.
    ///
    /// # Panics
    /// If `arms` is 0.
    pub fn bernoulli(arms: usize, problem: u64) -> Self {
        let mut stream = Stream::new(problem, Purpose::Problem, 0);
        Self::with_values(Payout::Bernoulli, (0..arms).map(|_| stream.unit_f64()).collect())
    }

    /// Creates a problem from the mean reward of each arm.
    ///
    /// # Panics
    /// If `values` is empty, if a value is not finite, or if a value of a Bernoulli problem is not a probability.
    pub fn with_values(payout: Payout, values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "bandit: expected at least 1 arm, got 0");
        let is_sound = |value: &f64| value.is_finite() && (payout == Payout::Gaussian || (0.0..=1.0).contains(value));
        assert!(values.iter().all(is_sound), "bandit: expected finite values, and probabilities for Bernoulli, got {values:?}");
        Self { payout, values, rng: EpisodeRng::new(0) }
    }

    /// The reward distribution of the arms.
    pub fn payout(&self) -> Payout {
        self.payout
    }

    /// The mean reward of each arm.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The best arm and its mean reward.
    pub fn best(&self) -> (usize, f64) {
        largest(&self.values)
    }
}

impl Env for Bandit {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![1.0], high: vec![1.0] }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(self.values.len() as u32)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.rng = EpisodeRng::new(seed);
        observation[0] = 1.0;
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(arm) = action else { panic!("bandit: expected a number, got {action:?}") };
        let (value, stream) = (self.values[arm as usize], &mut self.rng.stream);
        let reward = match self.payout {
            Payout::Gaussian => value + normal(stream),
            Payout::Bernoulli => f64::from(u8::from(stream.unit_f64() < value)),
        };
        observation[0] = 1.0;
        Step { reward, terminated: true, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        self.rng.save().to_vec()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (rng, []) = split_saved("bandit", state)?;
        self.rng = rng;
        Ok(())
    }

    fn reseed(&mut self, seed: u64) {
        self.rng = EpisodeRng::new(seed);
    }
}
