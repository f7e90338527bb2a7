//! Contextual bandits with linear values: LinUCB and Thompson sampling.

use gradus_base::random::Stream;

use super::{epsilon_greedy, greedy};

/// A rule for choosing arms by an observed context x, if the value of arm a is theta(a) . x.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LinearRule {
    /// The arm with the highest estimate, or a random one with probability epsilon.
    EpsilonGreedy {
        /// Probability of a random arm.
        epsilon: f64,
    },
    /// The arm with the highest upper confidence bound, theta . x + alpha sqrt(x' A^-1 x) (Li et al., WWW 2010, algorithm 1).
    Ucb {
        /// Width of the bound, in standard deviations.
        alpha: f64,
    },
    /// The arm with the highest theta' . x for theta' drawn from N(theta, v^2 A^-1) (Agrawal and Goyal, ICML 2013).
    Thompson {
        /// Standard deviation v of the rewards.
        v: f64,
    },
}

/// A ridge regression of an arm's rewards on contexts: A = I + sum x x', b = sum r x, theta = A^-1 b.
///
/// ```
/// use gradus_agents::bandit::Ridge;
///
/// let mut ridge = Ridge::new(2);
/// ridge.learn(&[1.0, 0.0], 3.0);
/// // A = diag(2, 1), b = (3, 0)
/// assert_eq!((ridge.value(&[1.0, 5.0]), ridge.variance(&[2.0, 1.0])), (1.5, 3.0));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Ridge {
    width: usize,
    /// A^-1, row by row.
    inverse: Vec<f64>,
    b: Vec<f64>,
    theta: Vec<f64>,
}

impl Ridge {
    /// Creates a regression without data on contexts of `width` numbers.
    pub fn new(width: usize) -> Self {
        let inverse = (0..width * width).map(|i| if i % (width + 1) == 0 { 1.0 } else { 0.0 }).collect();
        Self { width, inverse, b: vec![0.0; width], theta: vec![0.0; width] }
    }

    /// Returns A^-1 x.
    fn inverse_times(&self, x: &[f64]) -> Vec<f64> {
        self.inverse.chunks_exact(self.width).map(|row| dot(row, x)).collect()
    }

    /// Adds a reward. The inverse is updated by the formula of Sherman and Morrison.
    pub fn learn(&mut self, x: &[f64], reward: f64) {
        let u = self.inverse_times(x);
        let divisor = 1.0 + dot(x, &u);
        for (row, a) in self.inverse.chunks_exact_mut(self.width).zip(&u) {
            row.iter_mut().zip(&u).for_each(|(entry, b)| *entry -= a * b / divisor);
        }
        self.b.iter_mut().zip(x).for_each(|(b, x)| *b += reward * x);
        self.theta = self.inverse_times(&self.b);
    }

    /// Returns theta . x, the estimated value.
    pub fn value(&self, x: &[f64]) -> f64 {
        dot(&self.theta, x)
    }

    /// Returns x' A^-1 x, the variance of the estimate for rewards of variance 1.
    pub fn variance(&self, x: &[f64]) -> f64 {
        dot(x, &self.inverse_times(x))
    }

    /// Draws the value of a context from N(theta . x, v^2 x' A^-1 x), the distribution of theta' . x. (For a single context this is the same as drawing all of theta'.)
    pub fn sample(&self, x: &[f64], v: f64, stream: &mut Stream) -> f64 {
        self.value(x) + v * self.variance(x).sqrt() * f64::from(stream.normal())
    }
}

fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

/// A linear rule with its regressions, one for each arm, for one problem.
#[derive(Clone, Debug)]
pub struct LinearLearner {
    rule: LinearRule,
    arms: Vec<Ridge>,
}

impl LinearLearner {
    /// Creates the initial state of a rule.
    ///
    /// # Panics
    /// If `arms` is 0.
    pub fn new(rule: LinearRule, arms: usize, width: usize) -> Self {
        assert!(arms > 0, "bandit: expected at least 1 arm, got 0");
        Self { rule, arms: vec![Ridge::new(width); arms] }
    }

    /// Chooses an arm for a context.
    pub fn choose(&self, x: &[f64], stream: &mut Stream) -> usize {
        let value = |ridge: &Ridge| match self.rule {
            LinearRule::Ucb { alpha } => ridge.value(x) + alpha * ridge.variance(x).sqrt(),
            LinearRule::EpsilonGreedy { .. } | LinearRule::Thompson { .. } => ridge.value(x),
        };
        let values: Vec<f64> = match self.rule {
            LinearRule::Thompson { v } => self.arms.iter().map(|ridge| ridge.sample(x, v, stream)).collect(),
            _ => self.arms.iter().map(value).collect(),
        };
        match self.rule {
            LinearRule::EpsilonGreedy { epsilon } => epsilon_greedy(&values, epsilon, stream),
            _ => greedy(&values, stream),
        }
    }

    /// Learns from the reward of the chosen arm.
    pub fn learn(&mut self, x: &[f64], action: usize, reward: f64) {
        self.arms[action].learn(x, reward);
    }
}
