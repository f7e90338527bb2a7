//! The k-armed testbed (Sutton and Barto, section 2.3): many Gaussian problems, stepped together.
//!
//! | | |
//! |---|---|
//! | problem | the arms' true values q\*(a), each drawn from N(mean, 1) |
//! | action | one of k arms |
//! | reward | q\*(a) plus noise drawn from N(0, 1) |
//!
//! Problem p of a testbed is a pure function of the seed, p, the number of arms and their mean. The noise of its n-th pull does not depend
//! on the pulled arm. So methods that are compared on one testbed share their random numbers, and the differences between their results
//! have less variance. The results do not depend on how the problems are split into testbeds.

use std::ops::Range;

use super::{largest, normal};
use crate::random::{Purpose, Stream};

/// Many k-armed Gaussian problems.
///
/// ```
/// use gradus_envs::bandits::Testbed;
///
/// let mut testbed = Testbed::new(0..2000, 10, 0.0, 7);
/// let best: Vec<u32> = (0..testbed.len()).map(|problem| testbed.best(problem) as u32).collect();
/// let mut rewards = vec![0.0; testbed.len()];
/// testbed.pull(&best, &mut rewards);
/// // the mean value of the best of ten arms is 1.54
/// let mean = rewards.iter().sum::<f64>() / 2000.0;
/// assert!((mean - 1.54).abs() < 0.1);
/// ```
#[derive(Clone, Debug)]
pub struct Testbed {
    arms: usize,
    /// One row per problem.
    values: Vec<f64>,
    best: Vec<usize>,
    noise: Vec<Stream>,
}

impl Testbed {
    /// Creates the problems `problems` of the testbed with seed `seed`. Each has `arms` arms with values drawn from N(`mean`, 1).
    ///
    /// # Panics
    /// If `arms` is 0.
    pub fn new(problems: Range<usize>, arms: usize, mean: f64, seed: u64) -> Self {
        assert!(arms > 0, "testbed: expected at least 1 arm, got 0");
        let values: Vec<f64> = problems.clone().flat_map(|problem| arm_values(seed, problem as u64, arms, mean)).collect();
        let best = values.chunks_exact(arms).map(|values| largest(values).0).collect();
        let noise = problems.map(|problem| Stream::new(seed, Purpose::Environment, problem as u64)).collect();
        Self { arms, values, best, noise }
    }

    /// Number of problems.
    pub fn len(&self) -> usize {
        self.best.len()
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.best.is_empty()
    }

    /// Number of arms of each problem.
    pub fn arms(&self) -> usize {
        self.arms
    }

    /// The arms' true values in problem `problem`, counted from the first problem of this testbed.
    pub fn values(&self, problem: usize) -> &[f64] {
        &self.values[problem * self.arms..(problem + 1) * self.arms]
    }

    /// The arm with the highest true value in problem `problem`.
    pub fn best(&self, problem: usize) -> usize {
        self.best[problem]
    }

    /// Pulls one arm in every problem.
    ///
    /// # Panics
    /// If there is not one action and one reward per problem, or if an action is not an arm.
    pub fn pull(&mut self, actions: &[u32], rewards: &mut [f64]) {
        assert_eq!((actions.len(), rewards.len()), (self.len(), self.len()), "testbed: expected one action and one reward per problem");
        let rows = self.values.chunks_exact(self.arms);
        for (((action, reward), values), noise) in actions.iter().zip(rewards).zip(rows).zip(&mut self.noise) {
            *reward = values[*action as usize] + normal(noise);
        }
    }
}

/// Draws the true values of problem `problem` of the testbed with seed `seed`.
pub(super) fn arm_values(seed: u64, problem: u64, arms: usize, mean: f64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Problem, problem);
    (0..arms).map(|_| mean + normal(&mut stream)).collect()
}
