//! Proximal policy optimisation (Schulman, Wolski, Dhariwal, Radford, Klimov, arXiv 1707.06347).
//!
//! Collect a rollout with the present policy, pi_old. Estimate advantages by GAE. Then, for a few epochs, walk through the rollout in
//! random minibatches and follow the gradient of
//!
//! > L = - min(rho A, clip(rho, 1 - eps, 1 + eps) A) + c_v (V - R)^2 / 2 - c_e H,   rho = pi(a|s) / pi_old(a|s)
//!
//! (equations 7 and 9; ours is a loss, hence the signs). The clip takes away the reward for moving the ratio rho far from 1, so several
//! epochs on the same data do no harm. The rest are the details that the "37 details" study (Huang et al., 2022) found to matter:
//! each is a field of [`PpoConfig`].
//!
//! The paper's other variant charges the divergence instead (equation 8): with `clip = inf` and `kl_coefficient` above 0,
//!
//! > L = - rho A + beta KL(pi_old(.|s) || pi(.|s)) + ...
//!
//! exact, and after each update beta is doubled where the divergence came out above 1.5 times `adaptive_kl_target`, and halved where below
//! a 1.5th of it (section 4).
//!
//! Dual clip (Ye et al., arXiv 1912.09729, section "Dual-clip PPO"): where A < 0 a ratio far above 1 makes the first term as large as it likes, so
//! with `dual_clip` c it becomes - max(min(rho A, clip(rho, ...) A), c A). [`surrogate`](crate::surrogate) has these formulas.
//!
//! On texts a decision is a token: whole episodes are collected (`episodes_per_env`), minibatches hold whole texts, and the divergence from the
//! frozen [`reference`](crate::reference) is charged token by token in the reward (Ziegler et al., arXiv 1909.08593, equation 2),
//!
//! > r_t - beta (log pi_old - log pi_ref),
//!
//! the text's score being part of its last token's reward. Advantages and, if asked for, rewards are whitened over the tokens there are.
//!
//! Left out: recurrent policies.

use crate::registry::preset_files;
use crate::{AgentConfig, Built, Preset, Setup};
use gradus_envs::random::{Purpose, Stream};
use gradus_nets::settings;
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_f32};
use gradus_nets::{Batch, DIAGNOSTICS, LossGrad, Moves, Objective, Pointwise, Policy, PolicyOutput, Schedule, Sums, loss_grad_slice};
use serde::{Deserialize, Serialize};

use crate::mismatch::{AgainstSampler, Mismatch};
use crate::reference::{KlCoefficients, Reference, ReferenceConfig};
use crate::returns::{Truncated, explained_variance, gae_of_rewards, mean_and_sample_std, whiten};
use crate::surrogate::{Clip, within};
use crate::{Agent, AgentError, Aggregation, Collection, ConfigError, Minibatches, OptimiserConfig, Report, Rollout, UpdateContext};

/// When an update stops early because the policy has moved too far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlStop {
    /// After an epoch whose last minibatch had approx_kl > target_kl, as in CleanRL.
    Epoch,
    /// Before the step of a minibatch with approx_kl > 1.5 target_kl, as in Stable-Baselines3.
    Minibatch,
}

/// Over what advantages are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormaliseOver {
    /// Each minibatch for itself, as in CleanRL and Stable-Baselines3.
    Minibatch,
    /// The whole rollout, as is usual for texts.
    Rollout,
}

settings! {
    /// The settings of PPO. `inf` turns a limit off.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct PpoConfig {
        /// Steps of each environment in a rollout.
        pub rollout_steps: usize = 128,
        /// Whole episodes of each environment in a rollout, in place of `rollout_steps`; 0: those.
        pub episodes_per_env: usize = 0,
        /// Passes over each rollout.
        pub epochs: usize = 4,
        /// Decisions in a minibatch; the last one of an epoch may be smaller, and texts are not cut.
        pub minibatch_size: usize = 128,
        /// Discount factor gamma, 0 to 1.
        pub gamma: f32 = 0.99,
        /// Lambda of GAE, 0 to 1.
        pub gae_lambda: f32 = 0.95,
        /// What a truncated episode's return is: bootstraps (it would have gone on) or ends (wrong, but what CleanRL does).
        pub truncated: Truncated = Truncated::Bootstraps,
        /// The clip range eps of the ratio.
        pub clip: f32 = 0.2,
        /// How the clip range moves: constant or linear (to 0).
        pub clip_schedule: Schedule = Schedule::Constant,
        /// Dual clip c, above 1: where A < 0 the loss does not grow beyond -c A; `inf`: off.
        pub dual_clip: f32 = f32::INFINITY,
        /// Coefficient beta of the divergence KL(pi_old || pi), the penalty variant's; 0: none.
        pub kl_coefficient: f32 = 0.0,
        /// The divergence towards which beta adapts after each update; `inf`: it stays.
        pub adaptive_kl_target: f32 = f32::INFINITY,
        /// The clip range of the value around its old value; `inf`: the value is not clipped.
        pub clip_value: f32 = f32::INFINITY,
        /// From which error on the value loss is linear (Huber); `inf`: it is quadratic everywhere.
        pub huber: f32 = f32::INFINITY,
        /// Coefficient c_e of the entropy bonus.
        pub entropy_coefficient: f32 = 0.0,
        /// Coefficient c_v of the value loss, which is half the squared error (where libraries use the plain square, theirs times two).
        pub value_coefficient: f32 = 0.5,
        /// Whether the advantages of each minibatch are normalised (mean 0, sample standard deviation 1).
        pub normalise_advantages: bool = true,
        /// Over what they are: minibatch or rollout.
        pub normalise_over: NormaliseOver = NormaliseOver::Minibatch,
        /// Whether the rewards of each rollout are divided by their sample standard deviation about their mean, which stays.
        pub whiten_rewards: bool = false,
        /// Whether values and advantages are computed anew before every epoch, not only before the first.
        pub recompute_advantages: bool = false,
        /// The update stops early when approx_kl exceeds this; `inf`: never.
        pub target_kl: f32 = f32::INFINITY,
        /// When that is looked at: epoch (after each) or minibatch (before its step, at 1.5 target_kl).
        pub kl_stop: KlStop = KlStop::Epoch,
    }
}

impl PpoConfig {
    /// Whether every setting is in range, with `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        ConfigError::unless_at_least_one("ppo.epochs", self.epochs)?;
        if self.episodes_per_env > 0 {
            ConfigError::unless_rollout("ppo.episodes_per_env", self.episodes_per_env, envs)?;
            ConfigError::unless_at_least_one("ppo.minibatch_size", self.minibatch_size)?;
        } else {
            ConfigError::unless_rollout("ppo.rollout_steps", self.rollout_steps, envs)?;
            let decisions = self.rollout_steps.saturating_mul(envs);
            let expected = format!("1 to {decisions}, the decisions of a rollout ({envs} environments x {} steps)", self.rollout_steps);
            ConfigError::unless((1..=decisions).contains(&self.minibatch_size), "ppo.minibatch_size", &expected, self.minibatch_size)?;
        }
        ConfigError::unless_fraction("ppo.gamma", self.gamma)?;
        ConfigError::unless_fraction("ppo.gae_lambda", self.gae_lambda)?;
        ConfigError::unless_above_zero("ppo.clip", self.clip)?;
        ConfigError::unless(self.dual_clip > 1.0, "ppo.dual_clip", "a number above 1, or inf", self.dual_clip)?;
        ConfigError::unless_not_negative("ppo.kl_coefficient", self.kl_coefficient)?;
        ConfigError::unless_above_zero("ppo.adaptive_kl_target", self.adaptive_kl_target)?;
        let (beta, adapts) = (self.kl_coefficient, self.adaptive_kl_target < f32::INFINITY);
        let expected = "1e-6 to 1e6, from where adaptive_kl_target doubles and halves it";
        ConfigError::unless(!adapts || (1e-6..=1e6).contains(&beta), "ppo.kl_coefficient", expected, beta)?;
        ConfigError::unless_above_zero("ppo.clip_value", self.clip_value)?;
        ConfigError::unless_above_zero("ppo.huber", self.huber)?;
        ConfigError::unless_not_negative("ppo.entropy_coefficient", self.entropy_coefficient)?;
        ConfigError::unless_not_negative("ppo.value_coefficient", self.value_coefficient)?;
        ConfigError::unless_above_zero("ppo.target_kl", self.target_kl)
    }
}

impl AgentConfig for PpoConfig {
    const NAME: &'static str = "ppo";
    const ABOUT: &'static str = "proximal policy optimisation: clipped surrogate or KL penalty, and GAE";
    const PRESETS: &'static [Preset] = preset_files![
        "ppo":
        "cartpole" "default",
        "cartpole" "penalty",
        "cartpole" "cleanrl",
        "cartpole" "zoo",
        "cartpole" "sb3",
        "mountain-car" "default",
        "mountain-car-continuous" "default",
        "acrobot" "default",
        "pendulum" "default",
        "text" "default",
    ];

    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError> {
        Ok(Ppo::new(self.clone(), setup.optimiser.clone(), setup.reference.clone(), setup.envs)?.into())
    }

    fn discounts(&self) -> (f32, f32) {
        (self.gamma, self.gae_lambda)
    }
}

/// PPO's loss, as a function of what the policy now says of a decision.
pub struct PpoObjective<'a> {
    /// log pi_old(a|s).
    pub old_log_probs: &'a [f32],
    /// V_old(s).
    pub old_values: &'a [f32],
    /// A, before it is normalised.
    pub advantages: &'a [f32],
    /// R, the targets of the values.
    pub targets: &'a [f32],
    /// Subtracted from A: the minibatch's mean, or 0.
    pub advantage_mean: f32,
    /// A is divided by this: the minibatch's standard deviation + 1e-8, or 1.
    pub advantage_std: f32,
    /// eps, and c of the dual clip.
    pub clip: Clip,
    /// What the reference says, and beta where the loss pays for it.
    pub reference_kl: KlCoefficients<'a>,
    /// beta of the penalty; the batch must carry the old distributions where it is not 0.
    pub kl_coefficient: f32,
    /// The clip range of the value.
    pub clip_value: f32,
    /// From which error on the value loss is linear.
    pub huber: f32,
    /// c_e.
    pub entropy_coefficient: f32,
    /// c_v.
    pub value_coefficient: f32,
}

/// Where the diagnostics stand in the objective's sums.
const POLICY_LOSS: usize = 0;
const VALUE_LOSS: usize = 1;
const ENTROPY: usize = 2;
const APPROX_KL: usize = 3;
const CLIP_FRACTION: usize = 4;
const KL_OLD: usize = 5;
const CLIP_LOW: usize = 6;
const CLIP_HIGH: usize = 7;
const KL_REFERENCE: usize = 8;

/// Huber's loss of an error, and its derivative: half the square up to `delta`, and a straight line from there.
///
/// ```
/// use gradus_agents::ppo::huber;
/// assert_eq!((huber(1.0, 2.0), huber(-3.0, 2.0), huber(-3.0, f32::INFINITY)), ((0.5, 1.0), (4.0, -2.0), (4.5, -3.0)));
/// ```
#[inline(always)]
pub fn huber(error: f32, delta: f32) -> (f32, f32) {
    if error.abs() <= delta { (0.5 * (error * error), error) } else { (delta * (error.abs() - 0.5 * delta), within(error, -delta, delta)) }
}

impl Objective for PpoObjective<'_> {
    fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
        self.loss_grad(self.known(i), now)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        loss_grad_slice(self, indices, weights, outputs, sums);
    }
}

impl Pointwise<5> for PpoObjective<'_> {
    #[inline(always)]
    fn known(&self, i: usize) -> [f32; 5] {
        [self.advantages[i], self.old_log_probs[i], self.targets[i], self.old_values[i], self.reference_kl.log_prob(i)]
    }

    #[inline(always)]
    fn loss_grad(&self, [advantage, old_log_prob, target, old_value, reference]: [f32; 5], now: PolicyOutput) -> LossGrad {
        // the policy: the clipped surrogate. Where the clip decides, the ratio has no influence and the derivative is 0
        let advantage = (advantage - self.advantage_mean) / self.advantage_std;
        let surrogate = self.clip.surrogate(now.log_prob - old_log_prob, advantage);
        let (low, high) = self.clip.clips(surrogate.ratio, advantage);
        let charge = self.reference_kl.charge(reference, now);

        // the critic: half the squared error or Huber's, and the worse of it and its clipped version
        let (error, moved) = (now.value - target, now.value - old_value);
        let clipped_error =
            if moved.abs() > self.clip_value { old_value + within(moved, -self.clip_value, self.clip_value) - target } else { error };
        let ((plain_loss, slope), (clipped_loss, _)) = (huber(error, self.huber), huber(clipped_error, self.huber));
        let value_loss = plain_loss.max(clipped_loss);
        let d_value = if plain_loss >= clipped_loss { slope } else { 0.0 };

        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[POLICY_LOSS] = surrogate.loss;
        diagnostics[VALUE_LOSS] = value_loss;
        diagnostics[ENTROPY] = now.entropy;
        diagnostics[APPROX_KL] = (surrogate.ratio - 1.0) - surrogate.log_ratio; // Schulman's k3, joschu.net/blog/kl-approx.html
        diagnostics[CLIP_FRACTION] = f32::from(u8::from(self.clip.is_outside(surrogate.ratio)));
        diagnostics[KL_OLD] = now.kl_old;
        diagnostics[CLIP_LOW] = f32::from(u8::from(low));
        diagnostics[CLIP_HIGH] = f32::from(u8::from(high));
        diagnostics[KL_REFERENCE] = charge.divergence;
        let policy_loss = surrogate.loss + charge.loss;
        let penalty = self.kl_coefficient * now.kl_old;
        LossGrad {
            loss: policy_loss + penalty + self.value_coefficient * value_loss - self.entropy_coefficient * now.entropy,
            derivative: PolicyOutput {
                log_prob: surrogate.derivative + charge.d_log_prob,
                entropy: -self.entropy_coefficient,
                value: self.value_coefficient * d_value,
                kl_old: self.kl_coefficient,
                kl_ref: charge.d_kl_ref,
            },
            diagnostics,
        }
    }
}

/// KL(pi_old || pi) and nothing else.
struct Divergence;

impl Objective for Divergence {
    fn decision(&self, _: usize, now: PolicyOutput) -> LossGrad {
        LossGrad { loss: now.kl_old, derivative: PolicyOutput { kl_old: 1.0, ..PolicyOutput::default() }, ..LossGrad::default() }
    }

    fn moves(&self) -> Moves {
        Moves::Actor
    }
}

/// The next coefficient of the penalty (section 4): doubled where the divergence came out above 1.5 times its target, halved where it came
/// out below a 1.5th of it; within 1e-6 and 1e6, from where it finds back.
///
/// ```
/// use gradus_agents::ppo::adapted;
/// assert_eq!([0.005, 0.01, 0.02].map(|kl| adapted(1.0, kl, 0.01)), [0.5, 1.0, 2.0]);
/// assert_eq!(adapted(1.0, 0.02, f32::INFINITY), 1.0);
/// ```
pub fn adapted(coefficient: f32, kl: f32, target: f32) -> f32 {
    if target == f32::INFINITY {
        coefficient
    } else if kl < target / 1.5 {
        (coefficient / 2.0).max(1e-6)
    } else if kl > target * 1.5 {
        (coefficient * 2.0).min(1e6)
    } else {
        coefficient
    }
}

/// Proximal policy optimisation.
pub struct Ppo {
    config: PpoConfig,
    optimiser: OptimiserConfig,
    /// beta of the penalty, as it is now.
    kl_coefficient: f32,
    reference: Reference,
}

impl Ppo {
    /// PPO with these settings, for `envs` environments.
    pub fn new(config: PpoConfig, optimiser: OptimiserConfig, reference: ReferenceConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { kl_coefficient: config.kl_coefficient, config, optimiser, reference: Reference::new(reference)? })
    }
}

impl Agent for Ppo {
    fn collection(&self) -> Collection {
        match self.config.episodes_per_env {
            0 => Collection::Steps(self.config.rollout_steps),
            per_env => Collection::Episodes { per_env, group: 1, greedy: false },
        }
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference.begin(policy);
    }

    /// The report's figures are means over all minibatches of the update, under Stable-Baselines3's names.
    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let config = &self.config;
        let clip = config.clip * config.clip_schedule.factor(context.progress) as f32;
        let step = self.optimiser.step(context.progress);

        // what the reference charges in the reward; texts that could not be scored teach nothing
        let kl_penalty = self.reference.penalty(rollout);
        let scored = rollout.scored();
        let mut rewards = kl_penalty.rewards(rollout);
        let mut deck = Minibatches::new(rollout, &scored, Aggregation::TokenMean, 0);
        if config.whiten_rewards {
            let all = deck.all().indices;
            let mut valid: Vec<f32> = all.iter().map(|i| rewards[*i as usize]).collect();
            whiten(&mut valid, true);
            all.iter().zip(valid).for_each(|(i, reward)| rewards[*i as usize] = reward);
        }

        // advantages and value targets
        let discounting = (config.gamma, config.gae_lambda, config.truncated);
        let (mut values, mut advantages, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        let judge = |values: &[f32], advantages: &mut Vec<f32>, targets: &mut Vec<f32>| {
            gae_of_rewards(rollout, &rewards, values, discounting, advantages, targets);
            for (segment, _) in rollout.segments.iter().zip(&scored).filter(|(_, is_scored)| !**is_scored) {
                advantages[segment.range.clone()].fill(0.0);
                targets[segment.range.clone()].copy_from_slice(&values[segment.range.clone()]);
            }
        };
        policy.values(&rollout.store, &mut values);
        judge(&values, &mut advantages, &mut targets);
        context.check_advantages(&advantages)?;
        let old_values = values.clone();
        let explained_variance = explained_variance(&values[..rollout.len()], &targets);

        let mut old_distributions = Vec::new();
        if self.kl_coefficient > 0.0 {
            policy.distributions(&rollout.store, &mut old_distributions);
        }
        let old = (self.kl_coefficient > 0.0).then_some(&*old_distributions);

        // epochs of minibatches
        let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
        let moments = |indices: &[u32], advantages: &[f32]| {
            if !config.normalise_advantages || indices.len() < 2 {
                return (0.0, 1.0);
            }
            let (mean, std) = mean_and_sample_std(indices.iter().map(|i| advantages[*i as usize]));
            (mean as f32, std as f32 + 1e-8)
        };
        let (mut means, mut grad_norm, mut minibatches, mut epochs) = (Sums::default(), 0.0, 0.0_f64, 0);
        let mut mismatch = Mismatch::default();
        'epochs: for epoch in 0..config.epochs {
            if config.recompute_advantages && epoch > 0 {
                policy.values(&rollout.store, &mut values);
                judge(&values, &mut advantages, &mut targets);
            }
            let of_rollout = (config.normalise_over == NormaliseOver::Rollout).then(|| moments(&deck.all().indices, &advantages));
            deck.shuffle(&mut stream);
            let mut last_kl = 0.0;
            for minibatch in deck.of_size(config.minibatch_size) {
                let (advantage_mean, advantage_std) = of_rollout.unwrap_or_else(|| moments(&minibatch.indices, &advantages));
                let objective = PpoObjective {
                    old_log_probs: &rollout.log_probs,
                    old_values: &old_values,
                    advantages: &advantages,
                    targets: &targets,
                    advantage_mean,
                    advantage_std,
                    clip: Clip { low: clip, high: clip, dual: config.dual_clip },
                    reference_kl: kl_penalty.coefficients(),
                    kl_coefficient: self.kl_coefficient,
                    clip_value: config.clip_value,
                    huber: config.huber,
                    entropy_coefficient: config.entropy_coefficient,
                    value_coefficient: config.value_coefficient,
                };
                let batch = Batch { old, reference: kl_penalty.distributions(), ..Batch::new(&minibatch.indices, &minibatch.weights) };
                let objective = AgainstSampler::new(&objective, rollout);
                let (sums, norm) = context.gradient(policy, (&rollout.store, batch), &objective, epoch)?;
                mismatch.add(&objective, &sums);
                means.add(&sums);
                grad_norm += norm;
                minibatches += 1.0;
                last_kl = sums.diagnostics[APPROX_KL];
                if config.kl_stop == KlStop::Minibatch && last_kl > 1.5 * f64::from(config.target_kl) {
                    break 'epochs;
                }
                if kl_penalty.stops_at(sums.diagnostics[KL_REFERENCE]) {
                    break 'epochs;
                }
                policy.apply(&step);
            }
            epochs += 1;
            if config.kl_stop == KlStop::Epoch && last_kl > f64::from(config.target_kl) {
                break;
            }
        }

        context.check_parameters(policy, epochs.max(1) - 1)?;
        let charged = self.kl_coefficient;
        let mut kl = f64::NAN;
        if let Some(old) = old {
            // how far the whole update has gone
            let indices: Vec<u32> = (0..rollout.len() as u32).collect();
            let weights = vec![1.0 / indices.len() as f32; indices.len()];
            kl = policy.evaluate(&rollout.store, Batch { old: Some(old), ..Batch::new(&indices, &weights) }, &Divergence).loss;
            self.kl_coefficient = adapted(charged, kl as f32, config.adaptive_kl_target);
        }
        self.reference.finish(policy, rollout, &kl_penalty);
        let minibatches = minibatches.max(1.0);
        let mean = |i: usize| means.diagnostics[i] / minibatches;
        let unscored = scored.iter().filter(|is_scored| !**is_scored).count();
        let mut report = vec![
            ("train/loss", means.loss / minibatches),
            ("train/policy_gradient_loss", mean(POLICY_LOSS)),
            ("train/value_loss", mean(VALUE_LOSS)),
            ("train/entropy_loss", -mean(ENTROPY)),
            ("train/approx_kl", mean(APPROX_KL)),
            ("train/clip_fraction", mean(CLIP_FRACTION)),
            ("train/clip_low", mean(CLIP_LOW)),
            ("train/clip_high", mean(CLIP_HIGH)),
            ("train/explained_variance", explained_variance),
            ("train/grad_norm", grad_norm / minibatches),
            ("train/learning_rate", f64::from(step.learning_rate)),
            ("train/clip_range", f64::from(clip)),
            ("train/kl_divergence", kl),
            ("train/kl_coefficient", f64::from(charged)),
            ("train/epochs", epochs as f64),
            ("train/frac_unscored", unscored as f64 / scored.len().max(1) as f64),
        ];
        report.extend(mismatch.report(rollout));
        report.extend(Reference::report(&kl_penalty, rollout, mean(KL_REFERENCE)));
        Ok(report)
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
