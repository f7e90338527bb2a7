//! The settings of the optimiser, which all agents share.

use gradus_base::range::{above, from};
use gradus_base::{Settings, settings};
use gradus_nets::{OptimiserStep, Rule, Schedule};
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

settings! {
    /// The settings of the optimiser. `inf` turns a limit off.
    ///
    /// ```
    /// use gradus_agents::OptimiserConfig;
    /// let optimiser = OptimiserConfig { learning_rate: 1e-3, ..OptimiserConfig::default() };
    /// assert_eq!(optimiser.step(0.25).learning_rate, 0.75e-3); // a quarter of the training is done
    /// let optimiser = OptimiserConfig { warmup: 0.1, ..optimiser };
    /// let rates = [0.0, 0.05, 0.1, 0.55, 1.0].map(|progress| optimiser.step(progress).learning_rate);
    /// assert!(rates.iter().zip([0.0, 0.5e-3, 1e-3, 0.5e-3, 0.0]).all(|(a, b)| (a - b).abs() < 1e-9));
    /// ```
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct OptimiserConfig {
        /// Update rule: adam, radam or rmsprop.
        pub rule: Rule = Rule::Adam,
        /// Constant added to the denominator of the update rule.
        pub epsilon: f32 = 1e-5 => above(0.0),
        /// Learning rate.
        pub learning_rate: f32 = 2.5e-4 => above(0.0),
        /// Learning rate of the critic, as a multiple of `learning_rate`.
        pub critic_learning_rate_ratio: f32 = 1.0 => above(0.0),
        /// Schedule of the learning rate: constant, linear or cosine (both to 0).
        pub schedule: Schedule = Schedule::Linear,
        /// Fraction of the training in which the learning rate rises linearly from 0; the schedule is that of the rest.
        #[serde(default)]
        pub warmup: f64 = 0.0 => from(0.0).below(1.0),
        /// Decoupled weight decay, as in AdamW: each step subtracts learning rate x decay x weight; 0: none.
        pub weight_decay: f32 = 0.0 => from(0.0),
        /// Maximum norm of the gradient; a larger gradient is clipped; `inf`: off.
        pub max_grad_norm: f32 = 0.5 => above(0.0).or_inf(),
        /// Whether the gradient of each parameter group (actor, critic, trunk) is clipped separately. Otherwise all groups share one norm,
        /// and a large gradient in one group shortens the steps of the others.
        #[serde(default)]
        pub clip_per_group: bool = false,
    }
}

impl OptimiserConfig {
    /// Checks that every setting is in range.
    pub fn check(&self) -> Result<(), ConfigError> {
        Ok(self.check_ranges("optimiser")?)
    }

    /// Returns the settings of an optimiser step when the fraction `progress` of the training is done. The warm-up and the schedule scale the
    /// learning rate.
    pub fn step(&self, progress: f64) -> OptimiserStep {
        let is_rising = progress < self.warmup;
        let factor = if is_rising { progress / self.warmup } else { self.schedule.factor((progress - self.warmup) / (1.0 - self.warmup)) };
        let learning_rate = self.learning_rate * factor as f32;
        OptimiserStep {
            rule: self.rule,
            epsilon: self.epsilon,
            learning_rate,
            critic_learning_rate: learning_rate * self.critic_learning_rate_ratio,
            weight_decay: self.weight_decay,
            max_grad_norm: self.max_grad_norm,
            clip_per_group: self.clip_per_group,
        }
    }
}
