//! The settings of the reward model.

use gradus_agents::ConfigError;
use gradus_agents::reward_model::RewardModelConfig;
use gradus_nets::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// A reward model that replaces the environment's reward: trained beforehand, during the run, or both.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct RewardConfig {
        /// Folder written by `gradus reward-model`, with the initial reward model and its rankings (retraining replays a share of them);
        /// empty: no reward model if `pairs` is 0, otherwise one initialised from the policy.
        pub folder: String = String::new(),
        /// Number of problems whose completions are sampled from the policy and ranked by the environment's reward each time the model is
        /// trained; 0: the model is not trained.
        pub pairs: usize = 0,
        /// Completions per problem: two make a pair, more make a ranking; of completions with equal rewards only the first is used.
        pub completions: usize = 2,
        /// Number of updates between trainings of the model; the first training is before the first update; 0: no further training.
        pub retrain_every: u64 = 0,
        /// Learning rate of the reward model; its other optimiser settings are the policy's.
        pub learning_rate: f32 = 1e-3,
        /// Settings of the reward model's training.
        #[serde(flatten)]
        pub training: RewardModelConfig = RewardModelConfig::default(),
    }
}

/// Maximum number of ranked completions per problem.
pub const MOST_COMPLETIONS: usize = 1024;

impl RewardConfig {
    /// Whether the run uses a reward model.
    pub fn is_on(&self) -> bool {
        !self.folder.is_empty() || self.pairs > 0
    }

    /// Checks that every setting is in range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless(self.pairs <= super::MOST, "reward_model.pairs", "0 to 16777216", self.pairs)?;
        let is_ranking = (2..=MOST_COMPLETIONS).contains(&self.completions);
        ConfigError::unless(is_ranking, "reward_model.completions", "2 to 1024", self.completions)?;
        let is_trained = self.retrain_every == 0 || self.pairs > 0;
        ConfigError::unless(is_trained, "reward_model.pairs", "above 0, because reward_model.retrain_every is set", self.pairs)?;
        let is_rate = self.learning_rate > 0.0 && self.learning_rate.is_finite();
        ConfigError::unless(is_rate, "reward_model.learning_rate", "a number above 0", self.learning_rate)?;
        self.training.check()
    }
}
