//! Group-relative policy optimisation (Shao et al., arXiv 2402.03300, section 4.1).
//!
//! A group is G episodes with the same start, played by the same policy: G pulls in one context of a bandit, or G completions of one
//! prompt. The advantage of every decision of an episode is the episode's return relative to its group, so there is no critic:
//!
//! > A_i = (R_i - mean R) / (std R + 1e-4)
//!
//! For a few epochs, each optimiser step descends the gradient of PPO's clipped surrogate with a KL penalty to a frozen
//! [`reference`](crate::parts::reference) policy (equations 3 and 4):
//!
//! > L = mean_t [- min(rho A, clip(rho, 1 - eps, 1 + eps_high) A) + beta k3]
//!
//! ```text
//! for every update (algorithm 1):
//!     collect groups of G episodes with pi_old = pi
//!     A = (R - mean R) / (std R + 1e-4), within each group
//!     for each epoch:
//!         for each minibatch:
//!             descend the gradient of L by one step
//!     every `refresh_every` updates: pi_ref = pi
//! ```
//!
//! With `supervision = "process"`, the steps of a solution are compared instead of whole episodes (section 4.1.3). The advantage of a
//! decision is the sum of the normalised rewards of the steps that end at or after it. [`groups`](crate::parts::groups) has the formulas.
//!
//! The variants of GRPO are combinations of settings:
//!
//! - Dr. GRPO (arXiv 2503.20783): `group_std = "none"` and `aggregation = "constant-length"`;
//! - DAPO (arXiv 2503.14476): `clip_high = 0.28`, `aggregation = "token-mean"`, `sampling_rounds` above 1 with `group_filter = "correct"`, and
//!   `text.overlong_buffer`. With `mask_truncated_completions`, truncated completions have no loss ("overlong filtering"); the preset leaves it out, because the paper's last
//!   recipe penalises long answers instead;
//! - GSPO (arXiv 2507.18071): `ratio = "sequence"`, `aggregation = "sequence-mean"` and clip ranges below 0.001;
//! - CISPO (arXiv 2506.13585): `clipped = "weight"` and `aggregation = "token-mean"`.
//!
//! On texts each of them is a preset.
//!
//! By default the loss is the mean over all decisions; the paper uses `sequence-mean`. With one optimiser step per rollout the ratio is 1
//! and nothing is clipped. Left out: the paper's outer iterations, which retrain the reward model. The training loop of the crate
//! `gradus` runs these iterations.

use gradus_base::range::{above, at_least, from};
use gradus_base::tensors::{Tensors, TensorsError};
use gradus_base::{Settings, settings};
use gradus_nets::loss::LogProb;
use gradus_nets::{Evaluation, Objective, Of, Outputs, Policy, PolicyOutput, Sums, UpdatedGroups};
use serde::{Deserialize, Serialize};

pub use crate::parts::groups::{GroupFilter, GroupStd, Supervision, group_advantages};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::config::{Advantages, AgentConfig, AgentKind, Preset, Setup, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::parts::aggregation::Aggregation;
use crate::parts::groups::{GroupAdvantages, by_id, has_both};
use crate::parts::learner::Learner;
use crate::parts::minibatches::Minibatches;
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::reference::{KL_REFERENCE, KlPenalty, Reference, ReferenceConfig};
use crate::parts::rewards::penalised_rewards;
use crate::parts::sequence_ratio::MeanLogRatio;
use crate::parts::surrogate::{APPROX_KL, Clip, Clipped, dual_bound, limited};
use crate::rollout::Rollout;

/// The unit for which one probability ratio is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ratio {
    /// Each decision.
    Token,
    /// A whole text: the geometric mean of its decisions' ratios (Zheng et al., arXiv 2507.18071, "GSPO").
    Sequence,
}

settings! {
    /// The settings of GRPO.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GrpoConfig {
        /// Number of episodes in a group (episodes with the same start); at least 2, and a divisor of the number of environments.
        pub group_size: usize = 8,
        /// Whole episodes of each environment per update.
        pub episodes_per_env: usize = 1,
        /// Maximum number of collection rounds per update. Above 1, groups that do not pass `group_filter` are dropped, and rounds are added until as
        /// many groups are left as one round collects; groups beyond these are dropped, too. 1: one round; no group is dropped.
        pub sampling_rounds: usize = 1 => at_least(1),
        /// Groups kept with `sampling_rounds` above 1: spread (returns differ) or correct (some answers are correct and some are not, as in DAPO; texts only).
        pub group_filter: GroupFilter = GroupFilter::Spread,
        /// Whether truncated completions have no loss (texts only); they still count in the statistics of their group.
        pub mask_truncated_completions: bool = false,
        /// Passes over each rollout.
        pub epochs: usize = 2 => at_least(1),
        /// Minibatches in each pass; fewer if the rollout has fewer decisions, texts, or sequences of a network with a cell.
        pub minibatches: usize = 4 => at_least(1),
        /// Quantity compared within a group: outcome (returns of episodes) or process (rewards of steps; the environment marks step ends).
        pub supervision: Supervision = Supervision::Outcome,
        /// Divisor of a group's centred returns: population or sample (standard deviation), batch (that of all groups together) or none.
        pub group_std: GroupStd = GroupStd::Population,
        /// Aggregation of decision losses: token-mean, sequence-mean, sequence-sum or constant-length.
        pub aggregation: Aggregation = Aggregation::TokenMean,
        /// Constant L of constant-length; 0: the number of decisions of the longest possible episode.
        pub constant_length: usize = 0,
        /// Unit of the ratio: token (each decision) or sequence (a whole text, as in GSPO).
        pub ratio: Ratio = Ratio::Token,
        /// What the clip limits: objective (no derivative beyond the clip range, as in PPO) or weight (only the ratio, as in CISPO).
        pub clipped: Clipped = Clipped::Objective,
        /// Clip range eps of the ratio, below and above 1.
        pub clip: f32 = 0.2 => above(0.0).or_inf(),
        /// Clip range above 1, if it differs from the range below 1 (0.28 in DAPO); 0: use `clip`.
        pub clip_high: f32 = 0.0 => from(0.0).or_inf(),
        /// Dual clip c, above 1: if A < 0, the loss is at most -c A; `inf`: off.
        pub dual_clip: f32 = f32::INFINITY => above(1.0).or_inf(),
        /// Coefficient of the entropy bonus.
        pub entropy_coefficient: f32 = 0.0 => from(0.0),
    }
}

impl GrpoConfig {
    /// Checks that every setting is in range for `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        self.check_ranges(Self::NAME)?;
        let size = self.group_size;
        ConfigError::unless(size >= 2, "grpo.group_size", "at least 2 (a group of one has nothing to compare)", size)?;
        let expected = format!("a divisor of {envs}, the number of environments");
        ConfigError::unless(envs.is_multiple_of(size), "grpo.group_size", &expected, size)?;
        ConfigError::unless_rollout("grpo.episodes_per_env", self.episodes_per_env, envs)?;
        let fits = self.ratio == Ratio::Token || self.supervision == Supervision::Outcome;
        ConfigError::unless(fits, "grpo.ratio", "token with process supervision (a sequence ratio needs one advantage)", "sequence")?;
        let is_weight = self.clipped == Clipped::Weight;
        ConfigError::unless(!is_weight || self.ratio == Ratio::Token, "grpo.ratio", "token with clipped = \"weight\"", "sequence")?;
        let has_dual = self.dual_clip < f32::INFINITY;
        ConfigError::unless(!is_weight || !has_dual, "grpo.dual_clip", "inf with clipped = \"weight\"", self.dual_clip)
    }

    /// Returns the clip range of the ratio.
    #[inline(always)]
    pub fn clip(&self) -> Clip {
        let high = if self.clip_high > 0.0 { self.clip_high } else { self.clip };
        Clip { low: self.clip, high }
    }
}

impl AgentConfig for GrpoConfig {
    const NAME: &'static str = "grpo";
    const ABOUT: &'static str = "group-relative policy optimisation: episodes compared with others from the same start, no critic";
    const PRESETS: &'static [Preset] = preset_files!["grpo":
        "cartpole" "default"; "mountain-car" "default"; "mountain-car-continuous" "default"; "acrobot" "default";
        "pendulum" "default"; "text" "default" "dr-grpo" "dapo" "gspo" "cispo"; "chat" "default"; "sort" "default"
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        let is_process = self.supervision == Supervision::Process;
        let expected = "outcome with a reward model that scores whole texts (reward_model.supervision = outcome)";
        ConfigError::unless(!(setup.scores_whole_texts && is_process), "grpo.supervision", expected, "process")?;
        let is_text = setup.world.text.is_some();
        let has_answers = setup.world.text.as_ref().is_none_or(|text| text.task.has_answers());
        let expected = "spread (no problem has a verifier that says which answers are correct)";
        ConfigError::unless(has_answers || self.group_filter == GroupFilter::Spread, "grpo.group_filter", expected, "correct")?;
        let filters = is_text || self.group_filter == GroupFilter::Spread;
        ConfigError::unless(filters, "grpo.group_filter", "spread (only a text task says which answers are correct)", "correct")?;
        let masks = is_text || !self.mask_truncated_completions;
        ConfigError::unless(masks, "grpo.mask_truncated_completions", "false (this environment has no completions)", "true")?;
        let constant_length = self.aggregation.constant_length("grpo", self.constant_length, setup.world)?;
        let config = Self { constant_length, ..self.clone() };
        Ok(Grpo::new(config, setup.optimiser.clone(), setup.reference.clone(), setup.envs)?.into())
    }

    fn advantages(&self) -> Advantages {
        Advantages::OfGroup(self.group_std, self.supervision)
    }
}

/// GRPO's loss of one decision, as a function of the policy's current outputs.
pub struct GrpoObjective<'a> {
    /// The settings.
    pub config: &'a GrpoConfig,
    /// log pi_old(a|s).
    pub old_log_probs: &'a [f32],
    /// Advantages A.
    pub advantages: &'a [f32],
    /// KL penalty to the reference.
    pub kl_penalty: &'a KlPenalty,
}

impl GrpoObjective<'_> {
    /// Names of the diagnostics.
    pub const METRICS: &'static [&'static str] = &[
        "train/policy_gradient_loss",
        "train/entropy_loss",
        APPROX_KL,
        "train/clip_fraction",
        "train/clip_low",
        "train/clip_high",
        KL_REFERENCE,
    ];

    /// Returns - min(rho A, clip(rho, 1 - eps, 1 + eps_high) A), which is at most - c A if A < 0, with the ratio rho of a decision or a text.
    #[inline(always)]
    fn surrogate(&self, log_ratio: Of<LogProb>, a: f32) -> Of<LogProb> {
        let ratio = log_ratio.exp();
        let loss = -(ratio * a).min(self.config.clip().of(ratio) * a);
        loss.min(dual_bound(self.config.dual_clip, a))
    }

    /// Returns the loss of decision `i`, given its policy loss, which may be that of its text, and the log-ratio.
    #[inline(always)]
    fn loss(&self, i: usize, pi: Outputs, policy_loss: Of<LogProb>, log_ratio: Of<LogProb>) -> Evaluation {
        let kl = self.kl_penalty.term(i, pi);
        let loss = policy_loss + kl.loss - self.config.entropy_coefficient * pi.entropy;

        let ratio = log_ratio.exp();
        let [approx_kl, outside, low, high] = self.config.clip().metrics(log_ratio.value(), ratio.value(), self.advantages[i]);
        loss.with_diagnostics([policy_loss.value(), -pi.entropy.value(), approx_kl, outside, low, high, kl.divergence])
    }
}

impl Objective for GrpoObjective<'_> {
    #[inline(always)]
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let (a, log_ratio) = (self.advantages[i], limited(pi.log_prob - self.old_log_probs[i]));
        let policy_loss = match self.config.clipped {
            Clipped::Objective => self.surrogate(log_ratio, a),
            // CISPO (equation 4): - clip(rho) A log pi, where the clipped weight is a constant
            Clipped::Weight => -(self.config.clip().of(log_ratio.exp()).stop() * a) * pi.log_prob,
        };
        self.loss(i, pi, policy_loss, log_ratio)
    }

    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::Actor
    }
}

/// GRPO's objective with one ratio per text (GSPO). Each slice must hold the decisions of one text.
pub struct SequenceObjective<'a>(pub &'a GrpoObjective<'a>);

impl Objective for SequenceObjective<'_> {
    /// Computes the loss of a text with a single decision.
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        self.0.decision(i, pi)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        let Some(first) = indices.first() else { return };
        let advantage = self.0.advantages[*first as usize];
        let mean = MeanLogRatio::new(self.0.old_log_probs, indices, weights, outputs);
        let log_ratio = limited(mean.log_ratio());
        let policy_loss = self.0.surrogate(log_ratio, advantage);
        // the loss of each decision has the text's policy loss as a constant, because its slope is spread over the decisions
        let decision = |i, pi| self.0.loss(i, pi, policy_loss.stop().into(), log_ratio);
        mean.spread(policy_loss.slope(), decision, outputs, sums);
    }

    fn updates(&self) -> UpdatedGroups {
        self.0.updates()
    }
}

/// Group-relative policy optimisation.
pub struct Grpo {
    config: GrpoConfig,
    optimiser: OptimiserConfig,
    reference: Reference,
    envs: usize,
}

impl Grpo {
    /// Creates GRPO with these settings, for `envs` environments.
    pub fn new(config: GrpoConfig, optimiser: OptimiserConfig, reference: ReferenceConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        config.aggregation.check("grpo", config.constant_length)?;
        optimiser.check()?;
        Ok(Self { config, optimiser, reference: Reference::new(reference)?, envs })
    }

    /// Returns the advantages of all decisions, given the rewards of all decisions.
    fn compare(&self, rollout: &Rollout, rewards: &[f32]) -> GroupAdvantages {
        GroupAdvantages::new(rollout, rewards, self.config.supervision, self.config.group_std)
    }

    /// Returns, for each segment, whether its group passes the filter of dynamic sampling.
    fn passing(&self, rollout: &Rollout, grouped: &GroupAdvantages) -> Vec<bool> {
        match self.config.group_filter {
            _ if self.config.sampling_rounds == 1 => vec![true; rollout.segments.len()],
            GroupFilter::Spread => grouped.has_spread.clone(),
            GroupFilter::Correct => has_both(rollout),
        }
    }

    /// Returns, for each segment, whether it has a loss: it is in one of the first groups that pass the filter, as many as one round collects, and is not masked.
    fn kept(&self, rollout: &Rollout, passing: &[bool]) -> Vec<bool> {
        let mut kept = passing.to_vec();
        let groups = by_id(&rollout.segments);
        for group in groups.iter().filter(|group| passing[group[0]]).skip(self.groups_per_round()) {
            group.iter().for_each(|i| kept[*i] = false);
        }
        if self.config.mask_truncated_completions {
            kept.iter_mut().zip(&rollout.completions).for_each(|(kept, completion)| *kept &= !completion.is_truncated);
        }
        kept
    }

    fn groups_per_round(&self) -> usize {
        self.envs * self.config.episodes_per_env / self.config.group_size
    }

    /// Checks that the rollout has the step ends and the texts that the settings require.
    fn check_rollout(&self, rollout: &Rollout) -> Result<(), ConfigError> {
        let has_steps = self.config.supervision == Supervision::Outcome || !rollout.step_ends.is_empty();
        ConfigError::unless(has_steps, "grpo.supervision", "outcome (this environment does not mark where steps end)", "process")?;
        let says = rollout.completions.len() == rollout.segments.len();
        let knows = says && rollout.completions.iter().all(|completion| completion.is_correct.is_some());
        let filters = knows || self.config.group_filter == GroupFilter::Spread || self.config.sampling_rounds == 1;
        ConfigError::unless(filters, "grpo.group_filter", "spread (the rollout does not say which answers are correct)", "correct")?;
        let masks = says || !self.config.mask_truncated_completions;
        ConfigError::unless(masks, "grpo.mask_truncated_completions", "false (the rollout does not say what is truncated)", "true")?;
        let fits = rollout.is_text() || self.config.ratio == Ratio::Token;
        ConfigError::unless(fits, "grpo.ratio", "token (observations are not texts)", "sequence")
    }
}

impl Agent for Grpo {
    fn collection(&self) -> Collection {
        Collection::Episodes { per_env: self.config.episodes_per_env, group: self.config.group_size, greedy: false }
    }

    fn batch(&self, decisions: usize) -> usize {
        decisions / self.config.minibatches
    }

    fn kept_policies(&self) -> usize {
        self.reference.kept_policies()
    }

    fn kept_distributions(&self) -> usize {
        self.reference.kept_distributions()
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference.begin(policy);
    }

    fn may_want_more(&self) -> bool {
        self.config.sampling_rounds > 1
    }

    /// Dynamic sampling: returns true until the groups that pass the filter are as many as the groups of one round, or no round is left.
    fn wants_more(&self, rollout: &Rollout) -> bool {
        let per_round = self.envs * self.config.episodes_per_env;
        let rounds = rollout.segments.len().div_ceil(per_round);
        if rounds >= self.config.sampling_rounds || self.check_rollout(rollout).is_err() {
            return false;
        }
        let passing = self.passing(rollout, &self.compare(rollout, &rollout.rewards));
        by_id(&rollout.segments).iter().filter(|group| passing[group[0]]).count() < self.groups_per_round()
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let config = &self.config;
        self.check_rollout(rollout)?;
        let kl_penalty = self.reference.penalty(rollout);
        let grouped = self.compare(rollout, &penalised_rewards(rollout, &kl_penalty, false));
        context.check_advantages(rollout, &grouped.advantages)?;

        let (old_log_probs, advantages) = (&rollout.log_probs, &grouped.advantages);
        let objective = GrpoObjective { config, old_log_probs, advantages, kl_penalty: &kl_penalty };
        let of_sequences = SequenceObjective(&objective);
        let objective: &dyn Objective = if config.ratio == Ratio::Sequence { &of_sequences } else { &objective };

        let passing = self.passing(rollout, &grouped);
        let keep = self.kept(rollout, &passing);
        let mut learner = Learner::new(policy, rollout, &self.optimiser, context)
            .with_minibatches(Minibatches::new(rollout, &keep, config.aggregation, config.constant_length))
            .with_kl_penalty(&kl_penalty)
            .with_metrics(GrpoObjective::METRICS);
        'epochs: for _ in 0..config.epochs {
            for minibatch in learner.minibatches(config.minibatches) {
                learner.gradient(&minibatch, objective)?;
                if learner.exceeds_stop_kl() {
                    break 'epochs;
                }
                learner.step();
            }
        }
        learner.check_parameters()?;
        self.reference.finish(learner.policy(), rollout, &kl_penalty);
        let metrics = [("train/frac_zero_std", grouped.frac_zero_std()), ("train/frac_unscored", grouped.frac_unscored())];
        let of = |kept: &[bool]| 1.0 - kept.iter().filter(|kept| **kept).count() as f64 / kept.len().max(1) as f64;
        let filtered = (config.sampling_rounds > 1).then(|| ("train/frac_filtered", of(&passing)));
        let masked = config.mask_truncated_completions.then(|| ("train/frac_masked", of(&keep)));
        Ok(learner.report(metrics.into_iter().chain(filtered), masked))
    }

    fn save(&self) -> Tensors {
        self.reference.save()
    }

    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        self.reference.load(policy, state)
    }
}
