//! The k-armed testbed (Sutton and Barto, section 2.3): many Gaussian problems, stepped together. Also with rewards of 0 and 1, and with values that drift.
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

use super::{Payout, largest, normal};
use gradus_base::random::{Purpose, Stream};

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
    payout: Payout,
    /// The standard deviation of the steps of the values, and a stream for each problem.
    drift: Option<(f64, Vec<Stream>)>,
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
        Self { arms, values, best, noise, payout: Payout::Gaussian, drift: None }
    }

    /// Creates problems with rewards of 0 or 1, whose probabilities are drawn uniformly from \[0, 1).
    ///
    /// # Panics
    /// If `arms` is 0.
    pub fn bernoulli(problems: Range<usize>, arms: usize, seed: u64) -> Self {
        let mut testbed = Self::new(problems.clone(), arms, 0.0, seed);
        for (values, problem) in testbed.values.chunks_exact_mut(arms).zip(problems) {
            let mut stream = Stream::new(seed, Purpose::Problem, problem as u64);
            values.iter_mut().for_each(|value| *value = stream.unit_f64());
        }
        testbed.best = testbed.values.chunks_exact(arms).map(|values| largest(values).0).collect();
        Self { payout: Payout::Bernoulli, ..testbed }
    }

    /// Creates problems that all have these values, with noise of their own.
    ///
    /// # Panics
    /// If there are no values.
    pub fn with_values(problems: Range<usize>, payout: Payout, values: &[f64], seed: u64) -> Self {
        let testbed = Self::new(problems, values.len(), 0.0, seed);
        let n = testbed.len();
        Self { values: values.repeat(n), best: vec![largest(values).0; n], payout, ..testbed }
    }

    /// Creates problems that change: all values begin at 0, and after every pull each of them takes a step drawn from N(0, std^2) (exercise 2.5, where std is 0.01).
    ///
    /// # Panics
    /// If `arms` is 0.
    pub fn drifting(problems: Range<usize>, arms: usize, std: f64, seed: u64) -> Self {
        let streams = problems.clone().map(|problem| Stream::new(seed, Purpose::Problem, problem as u64)).collect();
        let mut testbed = Self::new(problems, arms, 0.0, seed);
        testbed.values.fill(0.0);
        testbed.best.fill(0);
        Self { drift: Some((std, streams)), ..testbed }
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
            let value = values[*action as usize];
            *reward = match self.payout {
                Payout::Gaussian => value + normal(noise),
                Payout::Bernoulli => f64::from(u8::from(noise.unit_f64() < value)),
            };
        }
        if let Some((std, streams)) = &mut self.drift {
            for ((values, stream), best) in self.values.chunks_exact_mut(self.arms).zip(streams).zip(&mut self.best) {
                values.iter_mut().for_each(|value| *value += *std * normal(stream));
                *best = largest(values).0;
            }
        }
    }
}

/// Draws the true values of problem `problem` of the testbed with seed `seed`.
pub(super) fn arm_values(seed: u64, problem: u64, arms: usize, mean: f64) -> Vec<f64> {
    let mut stream = Stream::new(seed, Purpose::Problem, problem);
    (0..arms).map(|_| mean + normal(&mut stream)).collect()
}
