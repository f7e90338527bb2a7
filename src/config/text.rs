//! The settings of text tasks.

use gradus_base::range::at_least;
use gradus_base::settings;
use gradus_envs::text::TextOptions;
use gradus_envs::text::rewards::{Limits, OnError, PythonRewards, RewardFunctions, Rewards};
use gradus_envs::{EnvError, EnvSpec};
use serde::{Deserialize, Serialize};

settings! {
    /// The length and penalties of completions on text tasks.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)] // older versions have fewer settings
    pub struct TextConfig {
        /// Maximum tokens per completion; 0: the limit that the task defines.
        pub max_new_tokens: usize = 0,
        /// Number n of tokens by which a completion may exceed this maximum, with a penalty that rises evenly to 1 (DAPO); 0: none.
        pub overlong_buffer: usize = 0,
        /// Penalty for a completion that is cut off before EOS.
        pub missing_eos_penalty: f64 = 0.0,
        /// Penalty per token of a completion.
        pub length_penalty: f64 = 0.0,
        /// Hash of the file of a task `file:PATH` when the run was created. The run is refused with another file; empty: no check.
        pub fingerprint: String = String::new(),
        /// Whether a completion that is cut off counts as truncated instead of terminated, so that the critic bootstraps its value.
        pub length_bootstraps: bool = false,
        /// Functions in Python whose rewards are added to the task's: python:FILE (all functions with a parameter `completions`) or
        /// python:FILE:NAME,NAME; empty: none.
        pub rewards: String = String::new(),
        /// Weight of each function's reward; empty: 1 each.
        pub reward_weights: Vec<f64> = Vec::new(),
        /// Weight of the task's own reward, if there are others.
        pub task_weight: f64 = 1.0,
        /// Seconds that a call of the functions may take.
        pub reward_seconds: u64 = 60 => at_least(1).up_to(1_000_000),
        /// Megabytes of data that their process may have, where the system can limit them; 0: any.
        pub reward_memory: u64 = 8192 => at_least(0).up_to(1 << 24),
        /// What happens if a completion cannot be rewarded: stop (the run ends) or zero (its functions count as 0, and `rewards/errors` counts it).
        pub reward_errors: RewardErrors = RewardErrors::Stop,
    }
}

/// What happens if a completion cannot be rewarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RewardErrors {
    /// The run ends.
    Stop,
    /// Its functions count as 0.
    Zero,
}

impl TextConfig {
    /// Returns the default settings for `world`.
    pub(super) fn of(world: &EnvSpec) -> Self {
        let fingerprint = world.text.as_ref().and_then(|text| text.task.fingerprint()).unwrap_or_default();
        Self { fingerprint, ..Self::default() }
    }

    /// Returns these settings without rewards of one's own.
    pub(crate) fn without_rewards(self) -> Self {
        Self { rewards: String::new(), reward_weights: Vec::new(), task_weight: 1.0, ..self }
    }

    /// Applies these options to `world`.
    pub(super) fn apply(&self, world: EnvSpec) -> Result<EnvSpec, EnvError> {
        let found = world.text.as_ref().and_then(|text| text.task.fingerprint()).unwrap_or_default();
        let fingerprint = &self.fingerprint;
        if !fingerprint.is_empty() && found != *fingerprint {
            let what = format!(
                "`{}`: expected the file with the hash {fingerprint}, with which the run was created, got one with the hash {found}",
                world.name
            );
            return Err(EnvError::Text(what));
        }
        let options = TextOptions {
            max_new_tokens: (self.max_new_tokens > 0).then_some(self.max_new_tokens),
            overlong_buffer: self.overlong_buffer,
            missing_eos_penalty: self.missing_eos_penalty,
            length_penalty: self.length_penalty,
            length_bootstraps: self.length_bootstraps,
        };
        // keeps options that the world already has
        let world = if options == TextOptions::default() { world } else { world.with_text_options(options)? };
        match self.own_rewards()? {
            Some(rewards) => world.with_rewards(rewards),
            None => Ok(world),
        }
    }

    /// Returns the rewards of one's own, if there are some.
    fn own_rewards(&self) -> Result<Option<Rewards>, EnvError> {
        let ours = |without: &str| EnvError::Text(format!("text.{without}: expected the default without text.rewards, got another value"));
        if self.rewards.is_empty() {
            let Self { reward_weights, task_weight, .. } = self;
            if !reward_weights.is_empty() {
                return Err(ours("reward_weights"));
            }
            return if *task_weight == 1.0 { Ok(None) } else { Err(ours("task_weight")) };
        }
        let limits = Limits { seconds: self.reward_seconds, megabytes: self.reward_memory };
        let functions = PythonRewards::open(&self.rewards, limits)?;
        let weights = if self.reward_weights.is_empty() { vec![1.0; functions.names().len()] } else { self.reward_weights.clone() };
        let on_error = match self.reward_errors {
            RewardErrors::Stop => OnError::Stop,
            RewardErrors::Zero => OnError::Zero,
        };
        Ok(Some(Rewards { functions, weights, task_weight: self.task_weight, on_error }))
    }
}
