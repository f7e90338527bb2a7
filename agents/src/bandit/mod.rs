//! Bandit rules: epsilon-greedy, optimistic initial values, upper confidence bounds, the gradient bandit, Thompson sampling, KL-UCB and Exp3; with contexts,
//! [`LinearRule`]: LinUCB and linear Thompson sampling.
//!
//! Sutton and Barto, "Reinforcement Learning: An Introduction", second edition, 2018, chapter 2. Equation numbers refer to this book.
//! The rule of optimistic initial values is epsilon-greedy with epsilon 0 and a high [`initial`](Rule::EpsilonGreedy::initial) estimate.
//!
//! Left out: the variants of UCB and of the gradient bandit for nonstationary problems.
//!
//! Ties are broken at random, as in the book's experiments. This matters at the start, when all estimates are equal: always taking the
//! first arm would favour it. A rule does not depend on an environment: it chooses an arm and receives the reward.

use gradus_base::math::{exp, ln};
use gradus_base::random::Stream;

mod exp3;
mod kl_ucb;
mod linear;
mod thompson;

pub use exp3::{exp3_probabilities, exp3_step};
pub use kl_ucb::{bernoulli_kl, gaussian_kl_ucb, kl_ucb, lai_robbins};
pub use linear::{LinearLearner, LinearRule, Ridge};
pub use thompson::{bernoulli_sample, beta, gaussian_sample};

/// The step size of an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepSize {
    /// 1/n for the n-th reward of an arm. The estimate is then the mean of the arm's rewards.
    SampleAverage,
    /// This constant. Recent rewards then have more weight.
    Constant(f64),
}

/// The baseline of the gradient bandit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The constant 0.
    None,
    /// Mean of the earlier rewards. The baseline of the first reward is that reward itself.
    MeanReward,
}

/// A rule for choosing arms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// With probability epsilon a random arm, else the arm with the highest estimate.
    EpsilonGreedy {
        /// Probability of a random arm.
        epsilon: f64,
        /// Q_1, the initial estimate of every arm. If it is high, even a greedy rule tries every arm.
        initial: f64,
        /// Step size of the estimates.
        step: StepSize,
    },
    /// The arm with the highest upper confidence bound (equation 2.10). Estimates are sample averages.
    Ucb {
        /// Degree of exploration c.
        c: f64,
    },
    /// An arm sampled from the softmax of preferences (equation 2.11). Preferences change by stochastic gradient ascent (equation 2.12).
    Gradient {
        /// Step size alpha.
        alpha: f64,
        /// Baseline subtracted from each reward.
        baseline: Baseline,
    },
    /// The arm with the highest value drawn from its posterior, for normal rewards with variance 1 and values from N(0, prior^2).
    GaussianThompson {
        /// Standard deviation of the values.
        prior: f64,
    },
    /// The arm with the highest probability drawn from its posterior, for rewards of 0 or 1.
    BernoulliThompson,
    /// The arm with the highest bound of KL-UCB, for rewards of 0 or 1.
    KlUcb,
    /// The arm with the highest bound of KL-UCB, for normal rewards with variance 1.
    GaussianKlUcb,
    /// An arm drawn with the probabilities of Exp3, for rewards between 0 and 1.
    Exp3 {
        /// Share of uniformly random arms gamma, 0 to 1.
        gamma: f64,
    },
}

/// Returns argmax_a Q(a) (equation 2.2). Ties are broken at random.
pub fn greedy(values: &[f64], stream: &mut Stream) -> usize {
    let best = values.iter().fold(f64::NEG_INFINITY, |best, value| if *value > best { *value } else { best });
    // counts the best arms and stores the index of the last of them; the loop has no branches, as the CPU could not predict them
    let (mut ties, mut last) = (0, 0);
    for (arm, value) in values.iter().enumerate() {
        let is_best = *value == best;
        ties += u32::from(is_best);
        last = if is_best { arm } else { last };
    }
    if ties < 2 {
        return last;
    }
    let chosen = stream.below(ties) as usize;
    values.iter().enumerate().filter(|(_, value)| **value == best).nth(chosen).map_or(0, |(arm, _)| arm)
}

/// Returns a uniformly random arm with probability `epsilon`, else the greedy arm (section 2.2).
pub fn epsilon_greedy(values: &[f64], epsilon: f64, stream: &mut Stream) -> usize {
    if stream.unit_f64() < epsilon { stream.below(values.len() as u32) as usize } else { greedy(values, stream) }
}

/// Returns argmax_a Q_t(a) + c sqrt(ln t / N_t(a)) (equation 2.10). Ties are broken at random. The bound of an arm that was never pulled
/// is infinite.
pub fn upper_confidence_bound(values: &[f64], counts: &[u32], t: u32, c: f64, stream: &mut Stream) -> usize {
    let log_t = f64::from(ln(t as f32));
    let bound = |(value, n): (&f64, &u32)| if *n == 0 { f64::INFINITY } else { value + c * (log_t / f64::from(*n)).sqrt() };
    let bounds = values.iter().zip(counts).map(bound);
    const FEW: usize = 16; // up to this number of arms nothing is allocated
    if values.len() > FEW {
        return greedy(&bounds.collect::<Vec<_>>(), stream);
    }
    let mut few = [0.0; FEW];
    few.iter_mut().zip(bounds).for_each(|(place, bound)| *place = bound);
    greedy(&few[..values.len()], stream)
}

/// Returns Q_{n+1} = Q_n + alpha (R_n - Q_n) (equation 2.5). With alpha = 1/n this is the mean of n rewards (equation 2.3).
///
/// ```
/// use gradus_agents::bandit::moved_towards;
/// let mean = [3.0, 5.0, 1.0].iter().zip(1..).fold(0.0, |q, (reward, n)| moved_towards(q, *reward, 1.0 / f64::from(n)));
/// assert_eq!(mean, 3.0);
/// ```
pub fn moved_towards(estimate: f64, reward: f64, alpha: f64) -> f64 {
    estimate + alpha * (reward - estimate)
}

/// Computes pi(a) = e^{H(a)} / sum_b e^{H(b)} for every arm a (equation 2.11).
///
/// ```
/// let mut probabilities = [0.0; 2];
/// gradus_agents::bandit::softmax(&[0.0, 1.0], &mut probabilities);
/// assert!((probabilities[1] - 0.731_058_6).abs() < 1e-6);
/// ```
pub fn softmax(preferences: &[f64], probabilities: &mut [f64]) {
    let highest = preferences.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (p, h) in probabilities.iter_mut().zip(preferences) {
        *p = f64::from(exp((h - highest) as f32));
        sum += *p;
    }
    probabilities.iter_mut().for_each(|p| *p /= sum);
}

/// Samples an arm from a distribution.
pub fn sample(probabilities: &[f64], stream: &mut Stream) -> usize {
    let mut left = stream.unit_f64();
    for (arm, p) in probabilities.iter().enumerate() {
        left -= p;
        if left < 0.0 {
            return arm;
        }
    }
    // only rounding errors lead here: return the last arm with a positive probability
    probabilities.iter().rposition(|p| *p > 0.0).unwrap_or(0)
}

/// Adds alpha (R - baseline) (1\[a = A\] - pi(a)) to H(a) for every arm a (equation 2.12).
///
/// ```
/// let mut preferences = [0.0, 0.0];
/// gradus_agents::bandit::gradient_step(&mut preferences, &[0.25, 0.75], 0, 3.0, 1.0, 0.1);
/// assert!((preferences[0] - 0.15_f64).abs() < 1e-15 && (preferences[1] + 0.15_f64).abs() < 1e-15);
/// ```
pub fn gradient_step(preferences: &mut [f64], probabilities: &[f64], action: usize, reward: f64, baseline: f64, alpha: f64) {
    for (arm, (h, p)) in preferences.iter_mut().zip(probabilities).enumerate() {
        let taken = f64::from(u8::from(arm == action));
        *h += alpha * (reward - baseline) * (taken - p);
    }
}

/// A rule with its estimates for one bandit problem.
#[derive(Clone, Debug)]
pub struct Learner {
    rule: Rule,
    /// Q(a); H(a) for the gradient bandit, and the logarithms of the weights for Exp3.
    estimates: Vec<f64>,
    /// N(a), the number of rewards of each arm.
    counts: Vec<u32>,
    /// pi(a) at the last choice, for the gradient bandit and Exp3.
    probabilities: Vec<f64>,
    mean_reward: f64,
    /// Number of rewards so far.
    steps: u32,
}

impl Learner {
    /// Creates the initial state of a rule, before any reward.
    ///
    /// # Panics
    /// If `arms` is 0.
    pub fn new(rule: Rule, arms: usize) -> Self {
        assert!(arms > 0, "bandit: expected at least 1 arm, got 0");
        let initial = if let Rule::EpsilonGreedy { initial, .. } = rule { initial } else { 0.0 };
        Self {
            rule,
            estimates: vec![initial; arms],
            counts: vec![0; arms],
            probabilities: vec![1.0 / arms as f64; arms],
            mean_reward: 0.0,
            steps: 0,
        }
    }

    /// Returns Q(a) of every arm; for the gradient bandit, the preferences H(a).
    pub fn estimates(&self) -> &[f64] {
        &self.estimates
    }

    /// Chooses an arm.
    pub fn choose(&mut self, stream: &mut Stream) -> usize {
        match self.rule {
            Rule::EpsilonGreedy { epsilon, .. } => epsilon_greedy(&self.estimates, epsilon, stream),
            Rule::Ucb { c } => upper_confidence_bound(&self.estimates, &self.counts, self.steps + 1, c, stream),
            Rule::Gradient { .. } => {
                softmax(&self.estimates, &mut self.probabilities);
                sample(&self.probabilities, stream)
            }
            Rule::Exp3 { gamma } => {
                exp3_probabilities(&self.estimates, gamma, &mut self.probabilities);
                sample(&self.probabilities, stream)
            }
            Rule::GaussianThompson { prior } => self.highest(|mean, n, stream| gaussian_sample(mean, n, prior, stream), stream),
            Rule::BernoulliThompson => {
                let draw = |mean: f64, n: u32, stream: &mut Stream| {
                    let successes = mean * f64::from(n);
                    bernoulli_sample(successes, f64::from(n) - successes, stream)
                };
                self.highest(draw, stream)
            }
            Rule::KlUcb => self.highest_bound(kl_ucb, stream),
            Rule::GaussianKlUcb => self.highest_bound(gaussian_kl_ucb, stream),
        }
    }

    /// Returns the arm with the highest number, which `number` computes from its mean and its count.
    fn highest(&self, number: impl Fn(f64, u32, &mut Stream) -> f64, stream: &mut Stream) -> usize {
        let numbers: Vec<f64> = self.estimates.iter().zip(&self.counts).map(|(mean, n)| number(*mean, *n, stream)).collect();
        greedy(&numbers, stream)
    }

    /// Returns the arm with the highest bound; that of an arm that was never pulled is infinite.
    fn highest_bound(&self, bound: fn(f64, u32, u32) -> f64, stream: &mut Stream) -> usize {
        let step = self.steps + 1;
        self.highest(|mean, n, _| if n == 0 { f64::INFINITY } else { bound(mean, n, step) }, stream)
    }

    /// Updates the estimates with the reward of the chosen arm.
    pub fn learn(&mut self, action: usize, reward: f64) {
        self.steps += 1;
        self.counts[action] += 1;
        let one_over_n = 1.0 / f64::from(self.counts[action]);
        let estimate = &mut self.estimates[action];
        match self.rule {
            Rule::EpsilonGreedy { step: StepSize::Constant(alpha), .. } => *estimate = moved_towards(*estimate, reward, alpha),
            Rule::Exp3 { gamma } => *estimate += exp3_step(reward, self.probabilities[action], gamma, self.probabilities.len()),
            Rule::EpsilonGreedy { .. }
            | Rule::Ucb { .. }
            | Rule::GaussianThompson { .. }
            | Rule::BernoulliThompson
            | Rule::KlUcb
            | Rule::GaussianKlUcb => *estimate = moved_towards(*estimate, reward, one_over_n),
            Rule::Gradient { alpha, baseline } => {
                let baseline = match baseline {
                    Baseline::None => 0.0,
                    Baseline::MeanReward if self.steps == 1 => reward,
                    Baseline::MeanReward => self.mean_reward,
                };
                gradient_step(&mut self.estimates, &self.probabilities, action, reward, baseline, alpha);
            }
        }
        self.mean_reward = moved_towards(self.mean_reward, reward, 1.0 / f64::from(self.steps));
    }
}
