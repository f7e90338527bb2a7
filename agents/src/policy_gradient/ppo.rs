//! Proximal policy optimisation (Schulman, Wolski, Dhariwal, Radford, Klimov, arXiv 1707.06347).
//!
//! ```text
//! for every update (algorithm 1):
//!     collect a rollout with pi_old = pi
//!     estimate advantages A and value targets R by GAE
//!     for each epoch:
//!         for each minibatch of the rollout, at random:
//!             descend the gradient of L by one step
//! ```
//!
//! > L = - min(rho A, clip(rho, 1 - eps, 1 + eps) A) + c_v (V - R)^2 / 2 - c_e H,   rho = pi(a|s) / pi_old(a|s)
//!
//! L combines equations 7 and 9, with the sign of a loss. The clip removes the incentive to move the ratio rho far from 1, so several
//! epochs can use the same data. The implementation details that matter according to the "37 details" study (Huang et al., 2022) are
//! settings: fields of [`PpoConfig`], or settings of the optimiser, the network and the wrappers.
//!
//! With `clip = inf` and `kl_coefficient` above 0, this is the paper's other variant, which penalises the divergence from pi_old instead
//! ([`old_policy`](crate::parts::old_policy)). If A < 0, a ratio far above 1 makes the first term of L arbitrarily large; `dual_clip` bounds it
//! (Ye et al., arXiv 1912.09729).
//!
//! On texts a decision is a token. Rollouts hold whole episodes (`episodes_per_env`) and minibatches hold whole texts. The divergence from
//! the frozen [`reference`](crate::parts::reference) may be subtracted from each token's reward ([`rewards`](mod@crate::parts::rewards)).

use gradus_base::range::{above, at_least, from};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f32};
use gradus_base::{Settings, settings};
use gradus_nets::{Evaluation, Outputs, Pointwise, Policy, Schedule};
use serde::{Deserialize, Serialize};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::config::{AgentConfig, AgentKind, Preset, Setup, Work, preset_files};
use crate::error::{AgentError, ConfigError};
use crate::parts::gae::{Estimate, Gae};
use crate::parts::kl::KlCoefficients;
use crate::parts::learner::Learner;
use crate::parts::old_policy::{OldPolicy, next_coefficient};
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::reference::{KL_REFERENCE, Reference, ReferenceConfig};
use crate::parts::returns::{NormaliseOver, Truncated, standardisation_of};
use crate::parts::rewards::penalised_rewards;
use crate::parts::surrogate::{APPROX_KL, Clip, dual_bound, limited};
use crate::rollout::Rollout;

/// When an update compares approx_kl with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlStop {
    /// After each epoch: stops if approx_kl > target_kl in the last minibatch of the epoch, as in CleanRL.
    Epoch,
    /// Before each optimiser step: stops if approx_kl > 1.5 target_kl, as in Stable-Baselines3.
    Minibatch,
}

settings! {
    /// The settings of PPO. `inf` turns a limit off.
    #[derive(Clone, Debug, PartialEq)]
    pub struct PpoConfig {
        /// Steps of each environment in a rollout.
        pub rollout_steps: usize = 128,
        /// Whole episodes of each environment in a rollout; 0: use `rollout_steps`.
        pub episodes_per_env: usize = 0,
        /// Passes over each rollout.
        pub epochs: usize = 4 => at_least(1),
        /// Decisions in a minibatch. The last one of an epoch may be smaller. Texts, and sequences of a network with a cell, are not split: as many as fit, at least one.
        pub minibatch_size: usize = 128 => at_least(1),
        /// Discount factor gamma.
        pub gamma: f32 = 0.99 => from(0.0).to(1.0),
        /// Lambda of GAE.
        pub gae_lambda: f32 = 0.95 => from(0.0).to(1.0),
        /// Return of a truncated episode: bootstraps (adds the value of the final observation) or ends (adds 0; wrong, but as in CleanRL).
        pub truncated: Truncated = Truncated::Bootstraps,
        /// Clip range eps of the ratio.
        pub clip: f32 = 0.2 => above(0.0).or_inf(),
        /// Schedule of the clip range: constant, linear or cosine (both to 0).
        pub clip_schedule: Schedule = Schedule::Constant,
        /// Dual clip c, above 1: if A < 0, the loss is at most -c A; `inf`: off.
        pub dual_clip: f32 = f32::INFINITY => above(1.0).or_inf(),
        /// Coefficient beta of the divergence KL(pi_old || pi), for the penalty variant; 0: none.
        pub kl_coefficient: f32 = 0.0 => from(0.0),
        /// Target of the divergence; after each update beta changes so that the divergence approaches the target; `inf`: beta is constant.
        pub adaptive_kl_target: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// Clip range of the new value around the old value; `inf`: off.
        pub clip_value: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// Error above which the value loss is linear (Huber); `inf`: quadratic everywhere.
        pub huber: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// Coefficient c_e of the entropy bonus.
        pub entropy_coefficient: f32 = 0.0 => from(0.0),
        /// Coefficient c_v of the value loss, which is half the squared error. A coefficient 0.5 of the plain squared error is 1.0 here.
        pub value_coefficient: f32 = 0.5 => from(0.0),
        /// Whether advantages are normalised (mean 0, sample standard deviation 1).
        pub normalise_advantages: bool = true,
        /// Scope of the normalisation: minibatch or rollout.
        pub normalise_over: NormaliseOver = NormaliseOver::Minibatch,
        /// Whether the rewards of each rollout are scaled to standard deviation 1; their mean is kept.
        pub whiten_rewards: bool = false,
        /// Whether values and advantages are recomputed before every epoch, not only before the first.
        pub recompute_advantages: bool = false,
        /// Limit of approx_kl above which the update stops early; `inf`: none.
        pub target_kl: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// When approx_kl is checked: epoch (after each epoch) or minibatch (before each step, against 1.5 target_kl).
        pub kl_stop: KlStop = KlStop::Epoch,
    }
}

impl PpoConfig {
    /// Checks that every setting is in range for `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        self.check_ranges(Self::NAME)?;
        if self.episodes_per_env > 0 {
            ConfigError::unless_rollout("ppo.episodes_per_env", self.episodes_per_env, envs)?;
        } else {
            ConfigError::unless_rollout("ppo.rollout_steps", self.rollout_steps, envs)?;
            let decisions = self.rollout_steps.saturating_mul(envs);
            let expected = format!("1 to {decisions}, the decisions of a rollout ({envs} environments x {} steps)", self.rollout_steps);
            ConfigError::unless((1..=decisions).contains(&self.minibatch_size), "ppo.minibatch_size", &expected, self.minibatch_size)?;
        }
        let (beta, adapts) = (self.kl_coefficient, self.adaptive_kl_target < f32::INFINITY);
        let expected = "1e-6 to 1e6 with adaptive_kl_target";
        ConfigError::unless(!adapts || (1e-6..=1e6).contains(&beta), "ppo.kl_coefficient", expected, beta)
    }
}

impl AgentConfig for PpoConfig {
    const NAME: &'static str = "ppo";
    const ABOUT: &'static str = "proximal policy optimisation: clipped surrogate or KL penalty, and GAE";
    const PRESETS: &'static [Preset] = preset_files!["ppo":
        "cartpole" "default" "penalty" "cleanrl" "zoo" "sb3"; "mountain-car" "default"; "mountain-car-continuous" "default";
        "acrobot" "default"; "pendulum" "default"; "text" "default"; "chat" "default"; "LunarLander-v3" "default"; "LunarLanderContinuous-v3" "default";
        "BipedalWalker-v3" "default"; "MiniGrid-Empty-Random-5x5-v0" "default"; "MiniGrid-DoorKey-5x5-v0" "default";
        "MiniGrid-Unlock-v0" "default"; "MiniGrid-FourRooms-v0" "default"; "MiniGrid-GoToDoor-5x5-v0" "default";
        "MiniGrid-KeyCorridorS3R1-v0" "default"; "MiniGrid-PutNear-6x6-N2-v0" "default"; "MiniGrid-RedBlueDoors-6x6-v0" "default";
        "asterix" "default"; "breakout" "default"; "freeway" "default"; "seaquest" "default"; "space-invaders" "default";
        "atari" "default" "cleanrl"; "continuous" "default"; "cartpole-masked" "default" "zoo";
        "pendulum-masked" "zoo"; "mountain-car-continuous-masked" "zoo"
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        Ok(Ppo::new(self.clone(), setup.optimiser.clone(), setup.reference.clone(), setup.envs)?.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, self.gae_lambda)
    }

    fn work(&self, envs: usize) -> Option<Work> {
        let decisions = envs * self.rollout_steps;
        let steps = self.epochs * decisions.div_ceil(self.minibatch_size.max(1));
        Some(Work::ActorCritic { epochs: self.epochs, steps: steps as f64 / decisions.max(1) as f64 })
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        vec![("clip", f64::from(self.clip) * self.clip_schedule.factor(done as f64 / steps as f64))]
    }
}

/// PPO's loss of one decision, as a function of the policy's current outputs.
pub struct PpoObjective<'a> {
    /// The settings: a copy, because the compiler vectorises the loss only if it can read them in advance.
    pub config: PpoConfig,
    /// log pi_old(a|s).
    pub old_log_probs: &'a [f32],
    /// V_old(s).
    pub old_values: &'a [f32],
    /// Advantages A, before normalisation.
    pub advantages: &'a [f32],
    /// Value targets R.
    pub targets: &'a [f32],
    /// Mean subtracted from A; 0 without normalisation.
    pub advantage_mean: f32,
    /// Divisor of A: 1e-8 plus the standard deviation of A; 1 without normalisation.
    pub advantage_std: f32,
    /// Clip range eps of the ratio, after its schedule.
    pub clip: f32,
    /// KL penalty to the reference in the loss.
    pub reference_kl: KlCoefficients<'a>,
    /// Current coefficient beta of KL(pi_old || pi). If it is above 0, the batch must hold the distributions of pi_old.
    pub kl_coefficient: f32,
}

impl PpoObjective<'_> {
    /// Names of the diagnostics.
    pub const METRICS: &'static [&'static str] = &[
        "train/policy_gradient_loss",
        "train/value_loss",
        "train/entropy_loss",
        APPROX_KL,
        "train/clip_fraction",
        "train/clip_low",
        "train/clip_high",
        KL_REFERENCE,
    ];

    /// Normalises the advantages over `decisions` to mean 0 and sample standard deviation 1.
    fn normalise_advantages(&mut self, decisions: &[u32]) {
        (self.advantage_mean, self.advantage_std) = standardisation_of(self.advantages, decisions);
    }
}

impl Pointwise for PpoObjective<'_> {
    type Known = [f32; 5];

    #[inline(always)]
    fn known(&self, i: usize) -> [f32; 5] {
        [self.advantages[i], self.old_log_probs[i], self.targets[i], self.old_values[i], self.reference_kl.log_prob(i)]
    }

    #[inline(always)]
    fn loss(&self, [advantage, old_log_prob, target, old_value, reference]: [f32; 5], pi: Outputs) -> Evaluation {
        let (config, eps) = (&self.config, self.clip);
        let a = (advantage - self.advantage_mean) / self.advantage_std;

        // - min(rho A, clip(rho, 1 - eps, 1 + eps) A), with rho = pi / pi_old; if A < 0, at most - c A
        let log_ratio = limited(pi.log_prob - old_log_prob);
        let ratio = log_ratio.exp();
        let policy_loss = -(ratio * a).min(ratio.clamp(1.0 - eps, 1.0 + eps) * a);
        let policy_loss = policy_loss.min(dual_bound(config.dual_clip, a));

        // (V - R)^2 / 2, or that of the clipped value if it is larger
        let value_loss = (pi.value - target).huber(config.huber);
        let clipped_value = pi.value.near(old_value, config.clip_value);
        let value_loss = value_loss.max((clipped_value - target).huber(config.huber));

        let reference_kl = self.reference_kl.term(reference, pi);
        let (c_v, c_e, beta) = (config.value_coefficient, config.entropy_coefficient, self.kl_coefficient);
        let loss = policy_loss + reference_kl.loss + beta * pi.kl_old + c_v * value_loss - c_e * pi.entropy;

        let clip = Clip { low: eps, high: eps };
        let [approx_kl, outside, low, high] = clip.metrics(log_ratio.value(), ratio.value(), a);
        let (policy_loss, value_loss, entropy_loss) = (policy_loss.value(), value_loss.value(), -pi.entropy.value());
        loss.with_diagnostics([policy_loss, value_loss, entropy_loss, approx_kl, outside, low, high, reference_kl.divergence])
    }
}

/// Proximal policy optimisation.
pub struct Ppo {
    config: PpoConfig,
    optimiser: OptimiserConfig,
    /// Current coefficient beta of the penalty variant.
    kl_coefficient: f32,
    reference: Reference,
}

impl Ppo {
    /// Creates PPO with these settings, for `envs` environments.
    pub fn new(config: PpoConfig, optimiser: OptimiserConfig, reference: ReferenceConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { kl_coefficient: config.kl_coefficient, config, optimiser, reference: Reference::new(reference)? })
    }

    /// Returns the objective of an epoch, before advantages are normalised.
    fn objective<'a>(
        &self,
        rollout: &'a Rollout,
        old_values: &'a [f32],
        estimate: &'a Estimate,
        clip: f32,
        reference_kl: KlCoefficients<'a>,
    ) -> PpoObjective<'a> {
        PpoObjective {
            config: self.config.clone(),
            old_log_probs: &rollout.log_probs,
            old_values,
            advantages: &estimate.advantages,
            targets: &estimate.targets,
            advantage_mean: 0.0,
            advantage_std: 1.0,
            clip,
            reference_kl,
            kl_coefficient: self.kl_coefficient,
        }
    }
}

impl Agent for Ppo {
    fn collection(&self) -> Collection {
        match self.config.episodes_per_env {
            0 => Collection::Steps(self.config.rollout_steps),
            per_env => Collection::Episodes { per_env, group: 1, greedy: false },
        }
    }

    fn batch(&self, decisions: usize) -> usize {
        self.config.minibatch_size.min(decisions)
    }

    fn kept_policies(&self) -> usize {
        self.reference.kept_policies()
    }

    fn kept_distributions(&self) -> usize {
        self.reference.kept_distributions() + usize::from(self.kl_coefficient > 0.0)
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference.begin(policy);
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let config = &self.config;
        let kl_penalty = self.reference.penalty(rollout);
        let rewards = penalised_rewards(rollout, &kl_penalty, config.whiten_rewards);
        let gae = Gae { gamma: config.gamma, lambda: config.gae_lambda, truncated: config.truncated };
        let mut estimate = gae.estimate(policy, rollout, &rewards, context)?;
        let (old_values, explained_variance) = (estimate.values.clone(), estimate.explained_variance(rollout));
        let old_policy = OldPolicy::new(policy, rollout, self.kl_coefficient > 0.0);

        let normalised_over = config.normalise_advantages.then_some(config.normalise_over);
        let (clip, target_kl) = (config.clip * config.clip_schedule.factor(context.progress) as f32, f64::from(config.target_kl));
        let mut learner = Learner::new(policy, rollout, &self.optimiser, context)
            .with_metrics(PpoObjective::METRICS)
            .with_kl_penalty(&kl_penalty)
            .with_old_distributions(old_policy.distributions());
        // one step on all decisions needs no random order; it is then a step of A2C, bit for bit (Huang et al., arXiv 2205.09123)
        let is_one_step = config.epochs == 1 && config.minibatch_size >= learner.decisions();
        let mut epochs = 0;
        'epochs: for epoch in 0..config.epochs {
            if config.recompute_advantages && epoch > 0 {
                estimate = gae.estimate(learner.policy(), rollout, &rewards, context)?;
            }
            let mut objective = self.objective(rollout, &old_values, &estimate, clip, kl_penalty.coefficients());
            if normalised_over == Some(NormaliseOver::Rollout) {
                objective.normalise_advantages(&learner.all().indices);
            }
            for minibatch in if is_one_step { vec![learner.all()] } else { learner.minibatches_of_size(config.minibatch_size) } {
                if minibatch.indices.is_empty() {
                    continue; // no text of the rollout could be scored
                }
                if normalised_over == Some(NormaliseOver::Minibatch) {
                    objective.normalise_advantages(&minibatch.indices);
                }
                learner.gradient(&minibatch, &objective)?;
                if (config.kl_stop == KlStop::Minibatch && learner.last(APPROX_KL) > 1.5 * target_kl) || learner.exceeds_stop_kl() {
                    break 'epochs;
                }
                learner.step();
            }
            epochs += 1;
            if config.kl_stop == KlStop::Epoch && learner.last(APPROX_KL) > target_kl {
                break;
            }
        }
        learner.check_parameters()?;
        self.reference.finish(learner.policy(), rollout, &kl_penalty);

        let (beta, kl) = (self.kl_coefficient, old_policy.divergence(learner.policy(), rollout));
        self.kl_coefficient = next_coefficient(beta, kl as f32, config.adaptive_kl_target);
        let metrics = [("train/clip_range", clip.into()), ("train/kl_divergence", kl), ("train/kl_coefficient", beta.into())];
        let passes = [("train/epochs", f64::from(epochs)), ("train/frac_unscored", rollout.frac_unscored())];
        Ok(learner.report([("train/explained_variance", explained_variance)], metrics.into_iter().chain(passes)))
    }

    fn save(&self) -> Tensors {
        let mut tensors = self.reference.save();
        tensors.insert("kl_coefficient".into(), Tensor::f32(&[1], vec![self.kl_coefficient]));
        tensors
    }

    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        self.kl_coefficient = get_f32(state, "kl_coefficient", &[1])?[0];
        self.reference.load(policy, state)
    }
}
