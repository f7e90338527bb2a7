//! Aggregation of the losses of decisions into the loss of a minibatch. Each decision has a weight, fixed before the gradient is computed.
//! The loss of a minibatch is the sum of weight x loss over its decisions. Except for rounding, it does not depend on how the engine
//! splits the minibatch.
//!
//! For a minibatch of B episodes with lengths T_i, and a constant length L:
//!
//! | name | loss | a decision's weight |
//! | --- | --- | --- |
//! | token-mean | mean over all decisions (DAPO, Yu et al., arXiv 2503.14476) | 1 / sum T_i |
//! | sequence-mean | mean over episodes of the mean over their decisions (GRPO, arXiv 2402.03300, equation 3) | 1 / (B T_i) |
//! | sequence-sum | mean over episodes of the sum over their decisions | 1 / B |
//! | constant-length | sum over all decisions / (B L) (Liu et al., arXiv 2503.20783, "Dr. GRPO") | 1 / (B L) |
//!
//! With sequence-sum and decision losses -G log pi, the negative gradient of the loss estimates the policy gradient. With sequence-mean,
//! each decision of a long wrong answer is penalised less than each decision of a short wrong answer.

use gradus_envs::EnvSpec;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

/// How the losses of decisions are aggregated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// Mean over all decisions.
    TokenMean,
    /// Mean over episodes of the mean over their decisions.
    SequenceMean,
    /// Mean over episodes of the sum over their decisions.
    SequenceSum,
    /// As `SequenceSum`, divided by a constant length.
    ConstantLength,
}

impl Aggregation {
    /// Returns the constant length L: `length`, or the longest possible episode of `world` if `length` is 0.
    pub(crate) fn constant_length(self, agent: &str, length: usize, world: &EnvSpec) -> Result<usize, ConfigError> {
        let longest = world.text.as_ref().map(|text| text.max_new_tokens()).or(world.max_episode_steps.map(|steps| steps as usize));
        match longest {
            Some(longest) if length == 0 => Ok(longest),
            _ => self.check(agent, length).map(|()| length),
        }
    }

    /// Checks that `length` is at least 1 if the aggregation is constant-length.
    pub(crate) fn check(self, agent: &str, length: usize) -> Result<(), ConfigError> {
        let has_length = self != Aggregation::ConstantLength || length > 0;
        ConfigError::unless(
            has_length,
            &format!("{agent}.constant_length"),
            "at least 1, because the aggregation is constant-length",
            length,
        )
    }

    /// Returns the weight of a decision in an episode of length `length`, in a minibatch of `decisions` decisions and `episodes` episodes.
    /// Only constant-length uses `constant_length`, which is L.
    ///
    /// ```
    /// use gradus_agents::Aggregation;
    ///
    /// // two episodes, with the decision losses [1, 3] and [2, 2, 2, 6]
    /// let loss = |how: Aggregation| 4.0 * how.weight(2, 6, 2.0, 8) + 12.0 * how.weight(4, 6, 2.0, 8);
    /// let all = [Aggregation::SequenceMean, Aggregation::TokenMean, Aggregation::SequenceSum, Aggregation::ConstantLength];
    /// assert_eq!(all.map(loss), [2.5, 16.0 / 6.0, 8.0, 1.0]);
    /// ```
    pub fn weight(self, length: usize, decisions: usize, episodes: f32, constant_length: usize) -> f32 {
        match self {
            Aggregation::TokenMean => 1.0 / decisions as f32,
            Aggregation::SequenceMean => 1.0 / (length as f32 * episodes),
            Aggregation::SequenceSum => 1.0 / episodes,
            Aggregation::ConstantLength => 1.0 / (constant_length as f32 * episodes),
        }
    }
}
