//! The settings of the reward model.

use gradus_agents::ConfigError;
use gradus_agents::groups::Supervision;
use gradus_agents::reward_model::RewardModelConfig;
use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{above, at_least};
use gradus_base::{Settings, settings};
use gradus_envs::text::{Split, TextWorld};
use serde::{Deserialize, Serialize};

/// How the steps of solutions are labelled for a process reward model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepLabels {
    /// 1 if any of the completions sampled from the end of the step succeeds, else 0 (Wang et al., arXiv 2312.08935, equation 4).
    Hard,
    /// The fraction of the completions sampled from the end of the step that succeed (the same paper, equation 5).
    Soft,
    /// 1 if the task's reward of the step is above 0, else 0. This needs a task with rewards for steps.
    Verifier,
}

/// The labels of a process reward model's steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelling {
    /// How steps are labelled.
    pub labels: StepLabels,
    /// Number of completions sampled from the end of each step.
    pub rollouts: usize,
    /// Name of the task's score that is 1 for a completion that succeeds.
    pub success: String,
}

impl StepLabels {
    /// The name of the setting's value.
    pub(crate) fn name(self) -> &'static str {
        match self {
            StepLabels::Hard => "hard",
            StepLabels::Soft => "soft",
            StepLabels::Verifier => "verifier",
        }
    }
}

impl Labelling {
    /// Checks that the settings fit the task of `world`: it has the score of success, and it divides solutions into steps.
    pub(crate) fn check_for(&self, world: &TextWorld) -> Result<(), ConfigError> {
        let names = world.task.score_names();
        let expected = format!("a score of the task ({})", names.join(", "));
        let is_used = self.labels != StepLabels::Verifier;
        ConfigError::unless(!is_used || names.contains(&self.success), "reward_model.success", &expected, &self.success)?;
        // a right solution of a task with steps has two or more
        let problem = world.task.problem(Split::Train, &mut Stream::new(0, Purpose::Problem, 0));
        let ends = |tokens| world.task.step_reward(&problem.prompt, &problem.answer[..tokens]).is_some();
        let has_steps = problem.answer.is_empty() || (1..problem.answer.len()).any(ends);
        let expected = "outcome, because the task does not divide solutions into steps";
        ConfigError::unless(has_steps, "reward_model.supervision", expected, "process")
    }

    /// Returns labels by the task's rewards of steps, for evaluations.
    pub(crate) fn by_verifier() -> Self {
        Self { labels: StepLabels::Verifier, ..Self::default() }
    }

    /// Checks that every setting is in range.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let is_number = (1..=MOST_COMPLETIONS).contains(&self.rollouts);
        ConfigError::unless(is_number, "reward_model.rollouts", "1 to 1024", self.rollouts)
    }
}

impl Default for Labelling {
    fn default() -> Self {
        Self { labels: StepLabels::Hard, rollouts: 8, success: "exact".into() }
    }
}

settings! {
    /// A reward model that replaces the environment's reward: trained beforehand, during the run, or both.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default)] // older versions have fewer settings
    pub struct RewardConfig {
        /// Folder written by `gradus reward-model`, with the initial reward model and its rankings (retraining replays a share of them);
        /// empty: no reward model if `pairs` is 0, otherwise one initialised from the policy.
        pub folder: String = String::new(),
        /// Number of problems whose completions are sampled from the policy, and ranked by the environment's reward or labelled, each time the
        /// model is trained; 0: the model is not trained.
        pub pairs: usize = 0 => at_least(0).up_to(super::MOST as u64),
        /// Completions per problem. For a ranking, two make a pair, and of completions with equal rewards only the first is used.
        pub completions: usize = 2 => at_least(2).up_to(MOST_COMPLETIONS as u64),
        /// Number of updates between trainings of the model; the first training is before the first update; 0: no further training.
        pub retrain_every: u64 = 0,
        /// Learning rate of the reward model; its other optimiser settings are the policy's.
        pub learning_rate: f32 = 1e-3 => above(0.0),
        /// What the model scores: outcome (whole texts; it learns from ranked completions) or process (the steps of a solution; it learns
        /// from completions whose steps have labels).
        pub supervision: Supervision = Supervision::Outcome,
        /// Labels of steps: hard (1 if one of the completions sampled from the end of the step succeeds), soft (the fraction of them that
        /// succeed) or verifier (1 if the task's reward of the step is above 0).
        pub labels: StepLabels = StepLabels::Hard,
        /// Completions sampled from the end of each step for its label.
        pub rollouts: usize = 8,
        /// The task's score that is 1 for a completion that succeeds.
        pub success: String = "exact".into(),
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

    /// Returns how steps are labelled, if the model is a process reward model.
    pub fn labelling(&self) -> Option<Labelling> {
        (self.supervision == Supervision::Process).then(|| self.label_settings())
    }

    fn label_settings(&self) -> Labelling {
        Labelling { labels: self.labels, rollouts: self.rollouts, success: self.success.clone() }
    }

    /// Whether the run has a reward model that scores whole texts.
    pub(crate) fn scores_whole_texts(&self) -> bool {
        self.is_on() && self.supervision == Supervision::Outcome
    }

    /// Checks that every setting is in range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges("reward_model")?;
        let is_trained = self.retrain_every == 0 || self.pairs > 0;
        ConfigError::unless(is_trained, "reward_model.pairs", "above 0, because reward_model.retrain_every is set", self.pairs)?;
        self.label_settings().check()?;
        let RewardModelConfig { ranked, centring, .. } = RewardModelConfig::default();
        let is_of_rankings = self.training.ranked == ranked && self.training.centring == centring;
        let expected = "the defaults of ranked and centring, because a process reward model learns from labels";
        ConfigError::unless(self.supervision == Supervision::Outcome || is_of_rankings, "reward_model", expected, "other settings")?;
        self.training.check()
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    /// A run folder of version 0.1.0 is read: the settings that it does not have are those that change nothing.
    #[test]
    fn settings_that_older_versions_did_not_have_may_be_missing() {
        let new = ["overlong_buffer", "fingerprint", "clipped", "supervision", "labels", "rollouts", "success"];
        let config = Config::preset("grpo", "chain-sum", None).unwrap().with_setting("reward_model.pairs=7").unwrap();
        let all = config.to_file();
        let is_old = |line: &&str| !new.iter().any(|key| line.starts_with(&format!("{key} =")));
        let old: Vec<&str> = all.lines().filter(is_old).collect();
        assert_eq!(old.len() + new.len() + 1, all.lines().count(), "GRPO has a supervision of its own");
        assert!(Config::from_toml(&old.join("\n")).unwrap() == config);
    }
}
