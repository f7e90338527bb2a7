//! How actions differ from those of the policy while it learns. The collector explores; an agent only says how.

/// How the actions of a training are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Exploration {
    /// Sampled from the policy, which explores by itself.
    #[default]
    Sampled,
    /// The policy's greedy action or, with probability epsilon, a random one. Every environment draws for itself.
    EpsilonGreedy(EpsilonGreedy),
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
