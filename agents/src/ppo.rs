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
//! with `dual_clip` c it becomes - max(min(rho A, clip(rho, ...) A), c A).
//!
//! Left out: recurrent policies.

use gradus_envs::random::{Purpose, Stream};
use gradus_nets::math::exp;
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_f32};
use gradus_nets::{Batch, DIAGNOSTICS, Decision, Objective, Output, Policy, Schedule, Sums};
use serde::{Deserialize, Serialize};

use crate::returns::{Truncated, explained_variance, gae_of_rollout, mean_and_sample_std};
use crate::{Agent, AgentError, Collection, ConfigError, Moment, OptimiserConfig, Report, Rollout};

/// When an update stops early because the policy has moved too far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlStop {
    /// After an epoch whose last minibatch had approx_kl > target_kl, as in CleanRL.
    Epoch,
    /// Before the step of a minibatch with approx_kl > 1.5 target_kl, as in Stable-Baselines3.
    Minibatch,
}

/// The text of this file, from which the command line takes what each setting means.
pub const SOURCE: &str = include_str!("ppo.rs");

/// The settings of PPO. `inf` turns a limit off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PpoConfig {
    /// Steps of each environment in a rollout.
    pub rollout_steps: usize,
    /// Passes over each rollout.
    pub epochs: usize,
    /// Decisions in a minibatch; the last one of an epoch may be smaller.
    pub minibatch_size: usize,
    /// Discount factor gamma, 0 to 1.
    pub gamma: f32,
    /// Lambda of GAE, 0 to 1.
    pub gae_lambda: f32,
    /// What a truncated episode's return is: bootstraps (it would have gone on) or ends (wrong, but what CleanRL does).
    pub truncated: Truncated,
    /// The clip range eps of the ratio.
    pub clip: f32,
    /// How the clip range moves: constant or linear (to 0).
    pub clip_schedule: Schedule,
    /// Dual clip c, above 1: where A < 0 the loss does not grow beyond -c A; `inf`: off.
    pub dual_clip: f32,
    /// Coefficient beta of the divergence KL(pi_old || pi), the penalty variant's; 0: none.
    pub kl_coefficient: f32,
    /// The divergence towards which beta adapts after each update; `inf`: it stays.
    pub adaptive_kl_target: f32,
    /// The clip range of the value around its old value; `inf`: the value is not clipped.
    pub clip_value: f32,
    /// Coefficient c_e of the entropy bonus.
    pub entropy_coefficient: f32,
    /// Coefficient c_v of the value loss, which is half the squared error (where libraries use the plain square, theirs times two).
    pub value_coefficient: f32,
    /// Whether the advantages of each minibatch are normalised (mean 0, sample standard deviation 1).
    pub normalise_advantages: bool,
    /// Whether values and advantages are computed anew before every epoch, not only before the first.
    pub recompute_advantages: bool,
    /// The update stops early when approx_kl exceeds this; `inf`: never.
    pub target_kl: f32,
    /// When that is looked at: epoch (after each) or minibatch (before its step, at 1.5 target_kl).
    pub kl_stop: KlStop,
}

impl Default for PpoConfig {
    fn default() -> Self {
        Self {
            rollout_steps: 128,
            epochs: 4,
            minibatch_size: 128,
            gamma: 0.99,
            gae_lambda: 0.95,
            truncated: Truncated::Bootstraps,
            clip: 0.2,
            clip_schedule: Schedule::Constant,
            dual_clip: f32::INFINITY,
            kl_coefficient: 0.0,
            adaptive_kl_target: f32::INFINITY,
            clip_value: f32::INFINITY,
            entropy_coefficient: 0.0,
            value_coefficient: 0.5,
            normalise_advantages: true,
            recompute_advantages: false,
            target_kl: f32::INFINITY,
            kl_stop: KlStop::Epoch,
        }
    }
}

impl PpoConfig {
    /// Whether every setting is in range, with `envs` environments.
    pub fn check(&self, envs: usize) -> Result<(), ConfigError> {
        ConfigError::unless_rollout("ppo.rollout_steps", self.rollout_steps, envs)?;
        ConfigError::unless_at_least_one("ppo.epochs", self.epochs)?;
        let decisions = self.rollout_steps.saturating_mul(envs);
        let expected = format!("1 to {decisions}, the decisions of a rollout ({envs} environments x {} steps)", self.rollout_steps);
        ConfigError::unless((1..=decisions).contains(&self.minibatch_size), "ppo.minibatch_size", &expected, self.minibatch_size)?;
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
        ConfigError::unless_not_negative("ppo.entropy_coefficient", self.entropy_coefficient)?;
        ConfigError::unless_not_negative("ppo.value_coefficient", self.value_coefficient)?;
        ConfigError::unless_above_zero("ppo.target_kl", self.target_kl)
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
    /// eps.
    pub clip: f32,
    /// c of the dual clip.
    pub dual_clip: f32,
    /// beta of the penalty; the batch must carry the old distributions where it is not 0.
    pub kl_coefficient: f32,
    /// The clip range of the value.
    pub clip_value: f32,
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

/// The log-ratio stays within this, so that its exponential is a number.
const LOG_RATIO_LIMIT: f32 = 20.0;

impl Objective for PpoObjective<'_> {
    fn decision(&self, i: usize, now: Output) -> Decision {
        // the policy: the clipped surrogate. Where the clip decides, the ratio has no influence and the derivative is 0
        let advantage = (self.advantages[i] - self.advantage_mean) / self.advantage_std;
        let log_ratio = (now.log_prob - self.old_log_probs[i]).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
        let ratio = exp(log_ratio);
        let surrogate = ratio * advantage;
        let clipped = ratio.clamp(1.0 - self.clip, 1.0 + self.clip) * advantage;
        let lowest = if advantage < 0.0 { self.dual_clip * advantage } else { f32::NEG_INFINITY };
        let policy_loss = -surrogate.min(clipped).max(lowest);
        let ratio_decides = surrogate <= clipped && surrogate >= lowest && log_ratio.abs() < LOG_RATIO_LIMIT;
        let d_log_prob = if ratio_decides { -surrogate } else { 0.0 };

        // the critic: half the squared error, and the worse of it and its clipped version
        let (target, old_value) = (self.targets[i], self.old_values[i]);
        let (error, moved) = (now.value - target, now.value - old_value);
        let clipped_error =
            if moved.abs() > self.clip_value { old_value + moved.clamp(-self.clip_value, self.clip_value) - target } else { error };
        let value_loss = 0.5 * (error * error).max(clipped_error * clipped_error);
        let d_value = if error * error >= clipped_error * clipped_error { error } else { 0.0 };

        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[POLICY_LOSS] = policy_loss;
        diagnostics[VALUE_LOSS] = value_loss;
        diagnostics[ENTROPY] = now.entropy;
        diagnostics[APPROX_KL] = (ratio - 1.0) - log_ratio; // Schulman's k3, joschu.net/blog/kl-approx.html
        diagnostics[CLIP_FRACTION] = if (ratio - 1.0).abs() > self.clip { 1.0 } else { 0.0 };
        diagnostics[KL_OLD] = now.kl_old;
        let penalty = self.kl_coefficient * now.kl_old;
        Decision {
            loss: policy_loss + penalty + self.value_coefficient * value_loss - self.entropy_coefficient * now.entropy,
            derivative: Output {
                log_prob: d_log_prob,
                entropy: -self.entropy_coefficient,
                value: self.value_coefficient * d_value,
                kl_old: self.kl_coefficient,
                ..Output::default()
            },
            diagnostics,
        }
    }
}

/// KL(pi_old || pi) and nothing else.
struct Divergence;

impl Objective for Divergence {
    fn decision(&self, _: usize, now: Output) -> Decision {
        Decision { loss: now.kl_old, derivative: Output { kl_old: 1.0, ..Output::default() }, ..Decision::default() }
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
    /// beta, as it is now.
    kl_coefficient: f32,
}

impl Ppo {
    /// PPO with these settings, for `envs` environments.
    pub fn new(config: PpoConfig, optimiser: OptimiserConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { kl_coefficient: config.kl_coefficient, config, optimiser })
    }
}

impl Agent for Ppo {
    fn collection(&self) -> Collection {
        Collection::Steps(self.config.rollout_steps)
    }

    /// The report's figures are means over all minibatches of the update, under Stable-Baselines3's names.
    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, moment: Moment) -> Result<Report, AgentError> {
        let config = &self.config;
        let clip = config.clip * config.clip_schedule.factor(moment.progress) as f32;
        let step = self.optimiser.step(moment.progress);

        // advantages and value targets
        let discounting = (config.gamma, config.gae_lambda, config.truncated);
        let (mut values, mut advantages, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        policy.values(&rollout.store, &mut values);
        gae_of_rollout(rollout, &values, discounting, &mut advantages, &mut targets);
        moment.check_advantages(&advantages)?;
        let old_values = values.clone();
        let explained_variance = explained_variance(&values[..rollout.len()], &targets);

        let mut old_distributions = Vec::new();
        if self.kl_coefficient > 0.0 {
            policy.distributions(&rollout.store, &mut old_distributions);
        }
        let old = (self.kl_coefficient > 0.0).then_some(&*old_distributions);

        // epochs of minibatches
        let mut stream = Stream::new(moment.seed, Purpose::Shuffle, moment.iteration);
        let mut order: Vec<u32> = (0..rollout.len() as u32).collect();
        let (mut means, mut grad_norm, mut minibatches, mut epochs) = (Sums::default(), 0.0, 0.0, 0);
        'epochs: for epoch in 0..config.epochs {
            if config.recompute_advantages && epoch > 0 {
                policy.values(&rollout.store, &mut values);
                gae_of_rollout(rollout, &values, discounting, &mut advantages, &mut targets);
            }
            stream.shuffle(&mut order);
            let mut last_kl = 0.0;
            for indices in order.chunks(config.minibatch_size) {
                let (advantage_mean, advantage_std) = if config.normalise_advantages && indices.len() > 1 {
                    let (mean, std) = mean_and_sample_std(indices.iter().map(|i| advantages[*i as usize]));
                    (mean as f32, std as f32 + 1e-8)
                } else {
                    (0.0, 1.0)
                };
                let objective = PpoObjective {
                    old_log_probs: &rollout.log_probs,
                    old_values: &old_values,
                    advantages: &advantages,
                    targets: &targets,
                    advantage_mean,
                    advantage_std,
                    clip,
                    dual_clip: config.dual_clip,
                    kl_coefficient: self.kl_coefficient,
                    clip_value: config.clip_value,
                    entropy_coefficient: config.entropy_coefficient,
                    value_coefficient: config.value_coefficient,
                };
                let weights = vec![1.0 / indices.len() as f32; indices.len()];
                let batch = Batch { old, ..Batch::new(indices, &weights) };
                let (sums, norm) = moment.gradient(policy, (&rollout.store, batch), &objective, epoch)?;
                means.add(&sums);
                grad_norm += norm;
                minibatches += 1.0;
                last_kl = sums.diagnostics[APPROX_KL];
                if config.kl_stop == KlStop::Minibatch && last_kl > 1.5 * f64::from(config.target_kl) {
                    break 'epochs;
                }
                policy.apply(&step);
            }
            epochs += 1;
            if config.kl_stop == KlStop::Epoch && last_kl > f64::from(config.target_kl) {
                break;
            }
        }

        moment.check_parameters(policy, epochs.max(1) - 1)?;
        let charged = self.kl_coefficient;
        let mut kl = f64::NAN;
        if let Some(old) = old {
            // how far the whole update has gone
            let indices: Vec<u32> = (0..rollout.len() as u32).collect();
            let weights = vec![1.0 / indices.len() as f32; indices.len()];
            kl = policy.evaluate(&rollout.store, Batch { old: Some(old), ..Batch::new(&indices, &weights) }, &Divergence).loss;
            self.kl_coefficient = adapted(charged, kl as f32, config.adaptive_kl_target);
        }
        let mean = |i: usize| means.diagnostics[i] / minibatches;
        Ok(vec![
            ("train/loss", means.loss / minibatches),
            ("train/policy_gradient_loss", mean(POLICY_LOSS)),
            ("train/value_loss", mean(VALUE_LOSS)),
            ("train/entropy_loss", -mean(ENTROPY)),
            ("train/approx_kl", mean(APPROX_KL)),
            ("train/clip_fraction", mean(CLIP_FRACTION)),
            ("train/explained_variance", explained_variance),
            ("train/grad_norm", grad_norm / minibatches),
            ("train/learning_rate", f64::from(step.learning_rate)),
            ("train/clip_range", f64::from(clip)),
            ("train/kl_divergence", kl),
            ("train/kl_coefficient", f64::from(charged)),
            ("train/epochs", epochs as f64),
        ])
    }

    fn save(&self) -> Tensors {
        Tensors::from([("kl_coefficient".into(), Tensor::f32(&[1], vec![self.kl_coefficient]))])
    }

    fn load(&mut self, _: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        self.kl_coefficient = get_f32(state, "kl_coefficient", &[1])?[0];
        Ok(())
    }
}
