//! How actions differ from those of the policy while it learns. The collector explores; an agent only says how.

use serde::{Deserialize, Serialize};

/// How the actions of a training are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Exploration {
    /// Sampled from the policy, which explores by itself.
    #[default]
    Sampled,
    /// The policy's greedy action or, with probability epsilon, a random one. Every environment draws for itself.
    EpsilonGreedy(EpsilonGreedy),
    /// Continuous actions: uniform ones at the beginning, then those of the policy, with noise.
    Noisy(Noisy),
}

/// Noise added to continuous actions, which are then clipped to their bounds. Every environment draws for itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noisy {
    /// Steps at the beginning in which all actions are uniform between their bounds.
    pub random_steps: u64,
    /// The kind of noise.
    pub noise: ActionNoise,
    /// Standard deviation of the noise, for actions scaled to -1 to 1.
    pub std: f32,
}

/// A kind of noise for continuous actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ActionNoise {
    /// None.
    None,
    /// Gaussian, independent in every step.
    Normal,
    /// The process of Ornstein and Uhlenbeck, whose numbers are correlated within an episode.
    OrnsteinUhlenbeck,
}

/// Rate at which the process of Ornstein and Uhlenbeck returns to 0, and its time step, as in Stable-Baselines3.
const OU_THETA: f32 = 0.15;
const OU_DT: f32 = 1e-2;

impl Noisy {
    /// Returns the noise of a step; `last` is that of the step before, 0 in the first step of an episode, and `normal` a standard normal
    /// number. The process of Ornstein and Uhlenbeck is x' = x - theta x dt + std sqrt(dt) N(0, 1) with theta = 0.15 and dt = 0.01.
    ///
    /// ```
    /// use gradus_agents::{ActionNoise, Noisy};
    ///
    /// let of = |noise| Noisy { random_steps: 0, noise, std: 0.5 };
    /// assert_eq!(of(ActionNoise::Normal).next(10.0, -2.0), -1.0);
    /// assert_eq!(of(ActionNoise::None).next(10.0, -2.0), 0.0);
    /// assert!((of(ActionNoise::OrnsteinUhlenbeck).next(2.0, 1.0) - (2.0 - 0.003 + 0.05)).abs() < 1e-6);
    /// ```
    pub fn next(&self, last: f32, normal: f32) -> f32 {
        match self.noise {
            ActionNoise::None => 0.0,
            ActionNoise::Normal => self.std * normal,
            ActionNoise::OrnsteinUhlenbeck => last - OU_THETA * last * OU_DT + self.std * OU_DT.sqrt() * normal,
        }
    }
}

/// The probability of a random action, by environment step.
///
/// ```
/// use gradus_agents::EpsilonGreedy;
///
/// let exploration = EpsilonGreedy { random_steps: 10, first: 1.0, last: 0.5, over: 100 };
/// assert_eq!([0, 9, 50, 100, 5000].map(|step| exploration.epsilon(step)), [1.0, 1.0, 0.75, 0.5, 0.5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpsilonGreedy {
    /// Steps at the beginning in which all actions are random.
    pub random_steps: u64,
    /// Epsilon at step 0.
    pub first: f64,
    /// Epsilon from step `over` on.
    pub last: f64,
    /// Step until which epsilon changes linearly.
    pub over: u64,
}

impl EpsilonGreedy {
    /// Returns epsilon after `step` environment steps.
    pub fn epsilon(&self, step: u64) -> f64 {
        if step < self.random_steps {
            return 1.0;
        }
        let progress = if self.over == 0 { 1.0 } else { (step as f64 / self.over as f64).min(1.0) };
        self.first + progress * (self.last - self.first)
    }
}
