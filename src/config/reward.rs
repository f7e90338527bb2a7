//! The settings of a learned reward.

use gradus_agents::ConfigError;
use gradus_agents::reward_model::RewardModelConfig;
use gradus_nets::settings;
use serde::{Deserialize, Serialize};

settings! {
    /// A learned reward in place of the world's own: a reward model that was trained before, or one that is trained in the run, or both.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct RewardConfig {
        /// A folder of `gradus reward-model` with the reward model to begin with and the rankings that it was trained on, of which a share is
        /// replayed where it is trained further; nothing: none, unless pairs are drawn, which then begins as the policy does.
        pub folder: String = String::new(),
        /// Problems of which completions are drawn from the policy and ranked by the world's own reward, whenever the model is trained; 0: it
        /// stays as it is.
        pub pairs: usize = 0,
        /// Completions of each of them: two make a pair, more a ranking; of those that are worth the same only the first one counts.
        pub completions: usize = 2,
        /// The model is trained before the first update, and again after every so many; 0: no more.
        pub retrain_every: u64 = 0,
        /// The learning rate of the model; the rest of its optimiser is the policy's.
        pub learning_rate: f32 = 1e-3,
        /// How it is trained.
        #[serde(flatten)]
        pub training: RewardModelConfig = RewardModelConfig::default(),
    }
}

/// Completions of a problem that are ranked, at most.
pub const MOST_COMPLETIONS: usize = 1024;

impl RewardConfig {
    /// Whether there is a learned reward at all.
    pub fn is_on(&self) -> bool {
        !self.folder.is_empty() || self.pairs > 0
    }

    /// Whether every setting is in range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless(self.pairs <= super::MOST, "reward_model.pairs", "0 to 16777216", self.pairs)?;
        let is_ranking = (2..=MOST_COMPLETIONS).contains(&self.completions);
        ConfigError::unless(is_ranking, "reward_model.completions", "2 to 1024", self.completions)?;
        let is_trained = self.retrain_every == 0 || self.pairs > 0;
        ConfigError::unless(is_trained, "reward_model.pairs", "above 0, to train the model again with", self.pairs)?;
        let is_rate = self.learning_rate > 0.0 && self.learning_rate.is_finite();
        ConfigError::unless(is_rate, "reward_model.learning_rate", "a number above 0", self.learning_rate)?;
        self.training.check()
    }
}
