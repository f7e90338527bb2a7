//! Group-relative policy optimisation (Shao et al., arXiv 2402.03300, section 4.1).
//!
//! A group is G episodes that begin alike, played by the same policy: G pulls in one context of a bandit, G completions of one prompt. What
//! an episode was worth is how its return compares with the group's: that is the advantage of its every step, so no critic is needed,
//!
//! > A_i = (R_i - mean R) / (std R + 1e-4)
//!
//! and then, for a few epochs, the gradient of PPO's clipped surrogate with a KL penalty to a frozen reference policy (equations 3 and 4, and
//! [`reference`](crate::reference)),
//!
//! > L = mean_t [- min(rho A, clip(rho, 1 - eps, 1 + eps_high) A) + beta k3]
//!
//! With `supervision = "process"` the steps of a longer solution are compared instead of whole episodes (section 4.1.3): a decision's advantage is
//! the sum of the normalised rewards of the steps that end at it or after it. [`groups`] has the formulas.
//!
//! Its descendants are settings: Dr. GRPO (arXiv 2503.20783) is `group_std = "none"`, `aggregation = "constant-length"`; DAPO (arXiv 2503.14476)
//! is `clip_high = 0.28`, `aggregation = "token-mean"`, `sampling_rounds` above 1; GSPO (arXiv 2507.18071) is `ratio = "sequence"`,
//! `aggregation = "sequence-mean"`.
//!
//! The default mean is over all decisions, so that each counts alike; the paper's own is `sequence-mean`. With one step per rollout the
//! ratio is 1 and nothing is ever clipped. Left out: the paper's iterations over reward models, which are the training's business.

use crate::registry::preset_files;
use crate::{AgentConfig, Built, Preset, Setup};
use gradus_envs::random::{Purpose, Stream};
use gradus_nets::settings;
use gradus_nets::tensors::{Tensors, TensorsError};
use gradus_nets::{Batch, DIAGNOSTICS, LossGrad, Moves, Objective, Policy, PolicyOutput, Sums};
use serde::{Deserialize, Serialize};

pub use crate::groups::{GroupStd, group_advantages};

use crate::groups::{self, EPSILON, Step};
use crate::mismatch::{AgainstSampler, Mismatch};
use crate::reference::{KlPenalty, Reference, ReferenceConfig};
use crate::sequence_ratio::SequenceObjective;
use crate::surrogate::Clip;
use crate::{Agent, AgentError, Aggregation, Collection, ConfigError, Minibatches, OptimiserConfig, Report, Rollout, UpdateContext};

/// What is compared within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Supervision {
    /// The returns of whole episodes.
    Outcome,
    /// The rewards of the steps of a longer solution, where the world says where they end.
    Process,
}

/// Of what the ratio is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ratio {
    /// Of each decision.
    Token,
    /// Of a whole text, to the power of one over its length (Zheng et al., arXiv 2507.18071, "GSPO").
    Sequence,
}

settings! {
    /// The settings of GRPO.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct GrpoConfig {
        /// Episodes of a group, which begin alike; at least 2, and a divisor of the number of environments.
        pub group_size: usize = 8,
        /// Whole episodes of each environment per update.
        pub episodes_per_env: usize = 1,
        /// Rounds of collecting, at most, until as many groups as one round has differ in their returns; the others are dropped. 1: none is.
        pub sampling_rounds: usize = 1,
        /// Passes over each rollout.
        pub epochs: usize = 2,
        /// Minibatches of each pass.
        pub minibatches: usize = 4,
        /// What is compared within a group: outcome (returns of episodes) or process (rewards of steps, where the world says where they end).
        pub supervision: Supervision = Supervision::Outcome,
        /// By what a group's returns are divided: population or sample (standard deviation), batch (of all groups), or none.
        pub group_std: GroupStd = GroupStd::Population,
        /// How losses of decisions become one: token-mean, sequence-mean, sequence-sum or constant-length.
        pub aggregation: Aggregation = Aggregation::TokenMean,
        /// The length that constant-length divides by: that of the longest episode there may be.
        pub constant_length: usize = 0,
        /// Of what the ratio is: token (each decision) or sequence (a whole text, as in GSPO).
        pub ratio: Ratio = Ratio::Token,
        /// The clip range eps of the ratio, below 1 and above.
        pub clip: f32 = 0.2,
        /// The clip range above 1, where it is another one (0.28 in DAPO); 0: the same.
        pub clip_high: f32 = 0.0,
        /// Dual clip c, above 1: where A < 0 the loss does not grow beyond -c A; `inf`: off.
        pub dual_clip: f32 = f32::INFINITY,
        /// Coefficient of the entropy bonus.
        pub entropy_coefficient: f32 = 0.0,
    }
}

impl GrpoConfig {
    /// Whether every setting is in range, with `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        let size = self.group_size;
        ConfigError::unless(size >= 2, "grpo.group_size", "at least 2, for a group of one has nothing to compare", size)?;
        let expected = format!("a divisor of the number of environments, {envs}");
        ConfigError::unless(envs.is_multiple_of(size), "grpo.group_size", &expected, size)?;
        ConfigError::unless_rollout("grpo.episodes_per_env", self.episodes_per_env, envs)?;
        ConfigError::unless_at_least_one("grpo.sampling_rounds", self.sampling_rounds)?;
        ConfigError::unless_at_least_one("grpo.epochs", self.epochs)?;
        ConfigError::unless_at_least_one("grpo.minibatches", self.minibatches)?;
        self.aggregation.check("grpo", self.constant_length)?;
        let fits = self.ratio == Ratio::Token || self.supervision == Supervision::Outcome;
        ConfigError::unless(fits, "grpo.ratio", "token with process supervision, for a text's one ratio has one advantage", "sequence")?;
        ConfigError::unless_above_zero("grpo.clip", self.clip)?;
        ConfigError::unless(self.clip_high >= 0.0, "grpo.clip_high", "a number from 0 up", self.clip_high)?;
        ConfigError::unless(self.dual_clip > 1.0, "grpo.dual_clip", "a number above 1, or inf", self.dual_clip)?;
        ConfigError::unless_not_negative("grpo.entropy_coefficient", self.entropy_coefficient)
    }

    /// The clip ranges of the ratio.
    pub fn clip(&self) -> Clip {
        let high = if self.clip_high > 0.0 { self.clip_high } else { self.clip };
        Clip { low: self.clip, high, dual: self.dual_clip }
    }
}

impl AgentConfig for GrpoConfig {
    const NAME: &'static str = "grpo";
    const ABOUT: &'static str = "group-relative policy optimisation: episodes compared with others that began alike, no critic";
    const PRESETS: &'static [Preset] = preset_files![
        "grpo":
        "cartpole" "default",
        "mountain-car" "default",
        "mountain-car-continuous" "default",
        "acrobot" "default",
        "pendulum" "default",
        "text" "default",
        "sort" "default",
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError> {
        let is_process = self.supervision == Supervision::Process;
        let expected = "outcome with a learned reward, for a reward model scores whole texts and no steps";
        ConfigError::unless(!(setup.has_reward_model && is_process), "grpo.supervision", expected, "process")?;
        Ok(Grpo::new(self.clone(), setup.optimiser.clone(), setup.reference.clone(), setup.envs)?.into())
    }
}

/// GRPO's loss, as a function of what the policy now says of a decision.
pub struct GrpoObjective<'a> {
    /// log pi_old(a|s).
    pub old_log_probs: &'a [f32],
    /// A.
    pub advantages: &'a [f32],
    /// eps.
    pub clip: Clip,
    /// What the reference says, and beta.
    pub kl_penalty: &'a KlPenalty,
    /// Coefficient of the entropy bonus.
    pub entropy_coefficient: f32,
}

/// Where the diagnostics stand in the objective's sums.
pub(crate) const POLICY_LOSS: usize = 0;
pub(crate) const KL_REFERENCE: usize = 1;
pub(crate) const ENTROPY: usize = 2;
pub(crate) const APPROX_KL: usize = 3;
pub(crate) const CLIP_FRACTION: usize = 4;
pub(crate) const CLIP_LOW: usize = 5;
pub(crate) const CLIP_HIGH: usize = 6;

impl Objective for GrpoObjective<'_> {
    #[inline(always)]
    fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
        let advantage = self.advantages[i];
        let surrogate = self.clip.surrogate(now.log_prob - self.old_log_probs[i], advantage);
        let charge = self.kl_penalty.charge(i, now);
        let (low, high) = self.clip.clips(surrogate.ratio, advantage);

        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[POLICY_LOSS] = surrogate.loss;
        diagnostics[KL_REFERENCE] = charge.divergence;
        diagnostics[ENTROPY] = now.entropy;
        diagnostics[APPROX_KL] = (surrogate.ratio - 1.0) - surrogate.log_ratio;
        diagnostics[CLIP_FRACTION] = f32::from(u8::from(self.clip.is_outside(surrogate.ratio)));
        diagnostics[CLIP_LOW] = f32::from(u8::from(low));
        diagnostics[CLIP_HIGH] = f32::from(u8::from(high));
        LossGrad {
            loss: surrogate.loss + charge.loss - self.entropy_coefficient * now.entropy,
            derivative: PolicyOutput {
                log_prob: surrogate.derivative + charge.d_log_prob,
                entropy: -self.entropy_coefficient,
                kl_ref: charge.d_kl_ref,
                ..PolicyOutput::default()
            },
            diagnostics,
        }
    }

    fn moves(&self) -> Moves {
        Moves::Actor
    }
}

/// Group-relative policy optimisation.
pub struct Grpo {
    config: GrpoConfig,
    optimiser: OptimiserConfig,
    reference: Reference,
    envs: usize,
}

/// What a rollout's groups say.
struct GroupAdvantages {
    advantages: Vec<f32>,
    /// Whether each segment's group has anything to choose between.
    has_spread: Vec<bool>,
    groups: usize,
    groups_with_spread: usize,
    unscored: usize,
}

impl Grpo {
    /// GRPO with these settings, for `envs` environments.
    pub fn new(config: GrpoConfig, optimiser: OptimiserConfig, reference: ReferenceConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { config, optimiser, reference: Reference::new(reference)?, envs })
    }

    /// The numbers of each segment that its group compares: one return, or the rewards of its steps.
    fn compared(&self, rollout: &Rollout, rewards: &[f32]) -> Vec<Vec<Step>> {
        let of_segment = |segment: &crate::Segment| {
            let rewards = &rewards[segment.range.clone()];
            match self.config.supervision {
                Supervision::Process => groups::steps(rewards, &rollout.step_ends[segment.range.clone()]),
                // one step that is the whole episode
                Supervision::Outcome => {
                    let reward = rewards.iter().map(|r| f64::from(*r)).sum();
                    vec![Step { end: rewards.len().saturating_sub(1), reward }]
                }
            }
        };
        rollout.segments.iter().map(of_segment).collect()
    }

    /// The advantages of all decisions, where each is paid as `rewards` says; spread is that of the rewards as they came.
    fn advantages(&self, rollout: &Rollout, rewards: &[f32]) -> GroupAdvantages {
        let (raw, paid) = (self.compared(rollout, &rollout.rewards), self.compared(rollout, rewards));
        let pool = |of: &[Vec<Step>], segments: &[usize]| -> Vec<f64> {
            segments.iter().flat_map(|i| of[*i].iter().map(|step| step.reward)).collect()
        };
        let all: Vec<usize> = (0..paid.len()).collect();
        let batch_std = groups::batch_std(&pool(&paid, &all));
        let groups = groups::by_id(&rollout.segments);
        let mut grouped = GroupAdvantages {
            advantages: vec![0.0; rollout.len()],
            has_spread: vec![false; paid.len()],
            groups: groups.len(),
            groups_with_spread: 0,
            unscored: raw.iter().filter(|steps| steps.iter().any(|step| step.reward.is_nan())).count(),
        };
        for group in &groups {
            let episodes: Vec<(Vec<Step>, usize)> = group.iter().map(|i| (paid[*i].clone(), rollout.segments[*i].range.len())).collect();
            let advantages = groups::process_advantages(&episodes, self.config.group_std, batch_std, EPSILON);
            for (i, advantages) in group.iter().zip(advantages) {
                let of_segment = &mut grouped.advantages[rollout.segments[*i].range.clone()];
                of_segment.iter_mut().zip(advantages).for_each(|(to, a)| *to = a as f32);
            }
            if groups::has_spread(&pool(&raw, group)) {
                grouped.groups_with_spread += 1;
                group.iter().for_each(|i| grouped.has_spread[*i] = true);
            }
        }
        grouped
    }

    /// That the rollout has what the settings ask for.
    fn check_rollout(&self, rollout: &Rollout) -> Result<(), ConfigError> {
        let has_steps = self.config.supervision == Supervision::Outcome || !rollout.step_ends.is_empty();
        ConfigError::unless(has_steps, "grpo.supervision", "outcome, for this world does not say where steps end", "process")?;
        let fits = rollout.is_text() || self.config.ratio == Ratio::Token;
        ConfigError::unless(fits, "grpo.ratio", "token, for observations are no texts", "sequence")
    }
}

impl Agent for Grpo {
    fn collection(&self) -> Collection {
        Collection::Episodes { per_env: self.config.episodes_per_env, group: self.config.group_size, greedy: false }
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference.begin(policy);
    }

    fn may_want_more(&self) -> bool {
        self.config.sampling_rounds > 1
    }

    /// Dynamic sampling: until as many groups have spread as one round of collecting has groups.
    fn wants_more(&self, rollout: &Rollout) -> bool {
        let per_round = self.envs * self.config.episodes_per_env;
        let rounds = rollout.segments.len().div_ceil(per_round);
        rounds < self.config.sampling_rounds
            && self.check_rollout(rollout).is_ok()
            && self.advantages(rollout, &rollout.rewards).groups_with_spread < per_round / self.config.group_size
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let config = &self.config;
        self.check_rollout(rollout)?;
        let kl_penalty = self.reference.penalty(rollout);
        let grouped = self.advantages(rollout, &kl_penalty.rewards(rollout));
        context.check_advantages(&grouped.advantages)?;

        // epochs of minibatches
        let objective = GrpoObjective {
            old_log_probs: &rollout.log_probs,
            advantages: &grouped.advantages,
            clip: config.clip(),
            kl_penalty: &kl_penalty,
            entropy_coefficient: config.entropy_coefficient,
        };
        let of_sequences = SequenceObjective(&objective);
        let objective: &dyn Objective = if config.ratio == Ratio::Sequence { &of_sequences } else { &objective };
        let mut mismatch = Mismatch::default();
        let step = self.optimiser.step(context.progress);
        let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
        let keep = if config.sampling_rounds > 1 { &*grouped.has_spread } else { &[] };
        let mut deck = Minibatches::new(rollout, keep, config.aggregation, config.constant_length);
        let (mut means, mut grad_norm, mut minibatches) = (Sums::default(), 0.0, 0.0_f64);
        'epochs: for epoch in 0..config.epochs {
            deck.shuffle(&mut stream);
            for minibatch in deck.parts(config.minibatches) {
                let batch = Batch { reference: kl_penalty.distributions(), ..Batch::new(&minibatch.indices, &minibatch.weights) };
                let objective = AgainstSampler::new(objective, rollout);
                let (sums, norm) = context.gradient(policy, (&rollout.store, batch), &objective, epoch)?;
                let sums = minibatch.averaged(sums);
                mismatch.add(&objective, &sums);
                means.add(&sums);
                grad_norm += norm;
                minibatches += 1.0;
                if kl_penalty.stops_at(sums.diagnostics[KL_REFERENCE]) {
                    break 'epochs;
                }
                policy.apply(&step);
            }
        }
        context.check_parameters(policy, config.epochs - 1)?;
        self.reference.finish(policy, rollout, &kl_penalty);

        let minibatches = minibatches.max(1.0);
        let mean = |i: usize| means.diagnostics[i] / minibatches;
        let mut report = vec![
            ("train/loss", means.loss / minibatches),
            ("train/policy_gradient_loss", mean(POLICY_LOSS)),
            ("train/entropy_loss", -mean(ENTROPY)),
            ("train/approx_kl", mean(APPROX_KL)),
            ("train/clip_fraction", mean(CLIP_FRACTION)),
            ("train/clip_low", mean(CLIP_LOW)),
            ("train/clip_high", mean(CLIP_HIGH)),
            ("train/frac_zero_std", 1.0 - grouped.groups_with_spread as f64 / grouped.groups.max(1) as f64),
            ("train/frac_unscored", grouped.unscored as f64 / rollout.segments.len().max(1) as f64),
            ("train/grad_norm", grad_norm / minibatches),
            ("train/learning_rate", f64::from(step.learning_rate)),
        ];
        report.extend(mismatch.report(rollout));
        report.extend(Reference::report(&kl_penalty, rollout, mean(KL_REFERENCE)));
        Ok(report)
    }

    fn save(&self) -> Tensors {
        self.reference.save()
    }

    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        self.reference.load(policy, state)
    }
}
