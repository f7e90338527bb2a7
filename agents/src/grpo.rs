//! Group-relative policy optimisation (Shao et al., arXiv 2402.03300, section 4.1), outside text.
//!
//! A group is G episodes that begin alike, played by the same policy. What an episode was worth is how its return compares with the
//! group's: that is the advantage of its every step, so no critic is needed,
//!
//! > A_i = (R_i - mean R) / (std R + 1e-4)
//!
//! and then, for a few epochs, the gradient of PPO's clipped surrogate with a leash to a frozen reference policy (equations 3 and 4),
//!
//! > L = mean_t [- min(rho A, clip(rho, 1 - eps, 1 + eps) A) + beta k3],   k3 = pi_ref / pi - log(pi_ref / pi) - 1
//!
//! The reference is the policy that training began with. The leash may instead be part of the reward, as in PPO for text:
//! r_t - beta (log pi_old - log pi_ref).
//!
//! On a bandit a group is G pulls in one context. Left out: process supervision and all that only text needs; and the division of each episode
//! by its own length, which stands in the paper's equation 3: ours is the mean over all steps, so that every step counts alike, as in
//! DAPO (Yu et al., arXiv 2503.14476) and "Dr. GRPO".

use gradus_envs::random::{Purpose, Stream};
use gradus_nets::math::exp;
use gradus_nets::tensors::{Tensors, TensorsError};
use gradus_nets::{Batch, DIAGNOSTICS, Decision, Objective, Output, Policy, Sums};
use serde::{Deserialize, Serialize};

use crate::{Agent, AgentError, Collection, ConfigError, GroupId, Moment, OptimiserConfig, Report, Rollout, Segment};

/// By what the returns of a group are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupStd {
    /// The population's standard deviation (over G).
    Population,
    /// The sample standard deviation (over G - 1).
    Sample,
    /// Nothing (one half of Liu et al., arXiv 2503.20783, "Dr. GRPO"; the other is that lengths do not divide).
    None,
}

/// Where the divergence from the reference is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlPlace {
    /// In the loss, by k3.
    Loss,
    /// In the reward of each step, by k1.
    Reward,
}

/// The text of this file, from which the command line takes what each setting means.
pub const SOURCE: &str = include_str!("grpo.rs");

/// The settings of GRPO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GrpoConfig {
    /// Episodes of a group, which begin alike; at least 2, and a divisor of the number of environments.
    pub group_size: usize,
    /// Whole episodes of each environment per update.
    pub episodes_per_env: usize,
    /// Passes over each rollout.
    pub epochs: usize,
    /// Minibatches of each pass.
    pub minibatches: usize,
    /// By what a group's returns are divided: population or sample (standard deviation), or none.
    pub group_std: GroupStd,
    /// The clip range eps of the ratio.
    pub clip: f32,
    /// Coefficient beta of the divergence from the reference policy; 0: none.
    pub kl_coefficient: f32,
    /// Where that is charged: loss (k3) or reward (k1).
    pub kl_place: KlPlace,
    /// Coefficient of the entropy bonus.
    pub entropy_coefficient: f32,
}

impl Default for GrpoConfig {
    fn default() -> Self {
        Self {
            group_size: 8,
            episodes_per_env: 1,
            epochs: 2,
            minibatches: 4,
            group_std: GroupStd::Population,
            clip: 0.2,
            kl_coefficient: 0.0,
            kl_place: KlPlace::Loss,
            entropy_coefficient: 0.0,
        }
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
        ConfigError::unless_at_least_one("grpo.epochs", self.epochs)?;
        ConfigError::unless_at_least_one("grpo.minibatches", self.minibatches)?;
        ConfigError::unless_above_zero("grpo.clip", self.clip)?;
        ConfigError::unless_not_negative("grpo.kl_coefficient", self.kl_coefficient)?;
        ConfigError::unless_not_negative("grpo.entropy_coefficient", self.entropy_coefficient)
    }
}

/// What is added to a group's standard deviation, as in TRL.
const EPSILON: f64 = 1e-4;

/// The advantage of each episode of one group, from their returns.
///
/// ```
/// use gradus_agents::grpo::{GroupStd, group_advantages};
///
/// let advantages = group_advantages(&[1.0, 0.8, 0.4, 0.2], GroupStd::Population);
/// assert!(advantages.iter().zip([1.264_511, 0.632_256, -0.632_256, -1.264_511]).all(|(a, b)| (a - b).abs() < 1e-6));
/// assert_eq!(group_advantages(&[0.3, 0.3, 0.3], GroupStd::Sample), [0.0; 3]); // nothing to choose between
/// ```
pub fn group_advantages(returns: &[f64], std: GroupStd) -> Vec<f64> {
    let n = returns.len() as f64;
    let mean = returns.iter().sum::<f64>() / n;
    let spread = returns.iter().fold(f64::NEG_INFINITY, |m, r| m.max(*r)) - returns.iter().fold(f64::INFINITY, |m, r| m.min(*r));
    if spread <= 1e-9 * mean.abs().max(1.0) {
        return vec![0.0; returns.len()];
    }
    let squares: f64 = returns.iter().map(|r| (r - mean) * (r - mean)).sum();
    let divisor = match std {
        GroupStd::Population => (squares / n).sqrt() + EPSILON,
        GroupStd::Sample => (squares / (n - 1.0)).sqrt() + EPSILON,
        GroupStd::None => 1.0,
    };
    returns.iter().map(|r| (r - mean) / divisor).collect()
}

/// GRPO's loss, as a function of what the policy now says of a decision.
pub struct GrpoObjective<'a> {
    /// log pi_old(a|s).
    pub old_log_probs: &'a [f32],
    /// log pi_ref(a|s); empty without a reference in the loss.
    pub reference_log_probs: &'a [f32],
    /// A.
    pub advantages: &'a [f32],
    /// eps.
    pub clip: f32,
    /// beta.
    pub kl_coefficient: f32,
    /// Coefficient of the entropy bonus.
    pub entropy_coefficient: f32,
}

/// Where the diagnostics stand in the objective's sums.
const POLICY_LOSS: usize = 0;
const KL_REFERENCE: usize = 1;
const ENTROPY: usize = 2;
const APPROX_KL: usize = 3;
const CLIP_FRACTION: usize = 4;

/// Log-ratios stay within this, so that their exponentials are numbers.
const LOG_RATIO_LIMIT: f32 = 20.0;

impl Objective for GrpoObjective<'_> {
    fn decision(&self, i: usize, now: Output) -> Decision {
        // the clipped surrogate, as in PPO
        let advantage = self.advantages[i];
        let log_ratio = (now.log_prob - self.old_log_probs[i]).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
        let ratio = exp(log_ratio);
        let surrogate = ratio * advantage;
        let clipped = ratio.clamp(1.0 - self.clip, 1.0 + self.clip) * advantage;
        let policy_loss = -surrogate.min(clipped);
        let d_surrogate = if surrogate <= clipped && log_ratio.abs() < LOG_RATIO_LIMIT { -surrogate } else { 0.0 };

        // the leash: k3 of (pi, pi_ref), never negative, and its derivative 1 - pi_ref / pi
        let to_reference = self.reference_log_probs.get(i).map_or(0.0, |reference| reference - now.log_prob);
        let to_reference = to_reference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
        let reference_ratio = exp(to_reference);
        let k3 = (reference_ratio - 1.0) - to_reference;

        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[POLICY_LOSS] = policy_loss;
        diagnostics[KL_REFERENCE] = k3;
        diagnostics[ENTROPY] = now.entropy;
        diagnostics[APPROX_KL] = (ratio - 1.0) - log_ratio;
        diagnostics[CLIP_FRACTION] = if (ratio - 1.0).abs() > self.clip { 1.0 } else { 0.0 };
        Decision {
            loss: policy_loss + self.kl_coefficient * k3 - self.entropy_coefficient * now.entropy,
            derivative: Output {
                log_prob: d_surrogate + self.kl_coefficient * (1.0 - reference_ratio),
                entropy: -self.entropy_coefficient,
                ..Output::default()
            },
            diagnostics,
        }
    }
}

/// Group-relative policy optimisation.
pub struct Grpo {
    config: GrpoConfig,
    optimiser: OptimiserConfig,
    /// The policy that training began with, where the divergence from it is charged.
    reference: Option<Box<dyn Policy>>,
}

impl Grpo {
    /// GRPO with these settings, for `envs` environments.
    pub fn new(config: GrpoConfig, optimiser: OptimiserConfig, envs: usize) -> Result<Self, ConfigError> {
        config.check(envs)?;
        optimiser.check()?;
        Ok(Self { config, optimiser, reference: None })
    }

    /// The return of each episode, which carries the charge for leaving the reference when that belongs to the reward.
    fn returns(&self, rollout: &Rollout, reference_log_probs: &[f32]) -> Vec<f64> {
        let charge = if self.config.kl_place == KlPlace::Reward { f64::from(self.config.kl_coefficient) } else { 0.0 };
        let reward = |i: usize| {
            let k1 = reference_log_probs.get(i).map_or(0.0, |reference| f64::from(rollout.log_probs[i] - reference));
            f64::from(rollout.rewards[i]) - charge * k1
        };
        rollout.segments.iter().map(|segment| segment.range.clone().map(reward).sum()).collect()
    }
}

/// The numbers of the segments of each group, the episodes of a group that began alike being its n-th ones of every environment.
fn groups(segments: &[Segment]) -> Vec<Vec<usize>> {
    let mut groups: std::collections::BTreeMap<GroupId, Vec<usize>> = std::collections::BTreeMap::new();
    for (i, segment) in segments.iter().enumerate() {
        groups.entry(segment.group).or_default().push(i);
    }
    groups.into_values().collect()
}

impl Agent for Grpo {
    fn collection(&self) -> Collection {
        Collection::Episodes { per_env: self.config.episodes_per_env, group: self.config.group_size, greedy: false }
    }

    fn begin(&mut self, policy: &dyn Policy) {
        self.reference = (self.config.kl_coefficient > 0.0).then(|| policy.snapshot());
    }

    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, moment: Moment) -> Result<Report, AgentError> {
        let mut reference_log_probs = Vec::new();
        if let Some(reference) = &mut self.reference {
            reference.log_probs(&rollout.store, &mut reference_log_probs);
        }
        let config = &self.config;

        // every step of an episode has the episode's advantage
        let returns = self.returns(rollout, &reference_log_probs);
        let groups = groups(&rollout.segments);
        let mut advantages = vec![0.0; rollout.len()];
        let mut without_spread = 0;
        for group in &groups {
            let of_group: Vec<f64> = group.iter().map(|segment| returns[*segment]).collect();
            let of_group = group_advantages(&of_group, config.group_std);
            without_spread += usize::from(of_group.iter().all(|a| *a == 0.0));
            for (segment, advantage) in group.iter().zip(of_group) {
                advantages[rollout.segments[*segment].range.clone()].fill(advantage as f32);
            }
        }
        moment.check_advantages(&advantages)?;

        // epochs of minibatches
        let objective = GrpoObjective {
            old_log_probs: &rollout.log_probs,
            reference_log_probs: if config.kl_place == KlPlace::Loss { &reference_log_probs } else { &[] },
            advantages: &advantages,
            clip: config.clip,
            kl_coefficient: if config.kl_place == KlPlace::Loss { config.kl_coefficient } else { 0.0 },
            entropy_coefficient: config.entropy_coefficient,
        };
        let step = self.optimiser.step(moment.progress);
        let mut stream = Stream::new(moment.seed, Purpose::Shuffle, moment.iteration);
        let mut order: Vec<u32> = (0..rollout.len() as u32).collect();
        let (mut means, mut grad_norm, mut minibatches) = (Sums::default(), 0.0, 0.0);
        for epoch in 0..config.epochs {
            stream.shuffle(&mut order);
            for indices in order.chunks(order.len().div_ceil(config.minibatches)) {
                let weights = vec![1.0 / indices.len() as f32; indices.len()];
                let batch = Batch::new(indices, &weights);
                let (sums, norm) = moment.gradient(policy, (&rollout.store, batch), &objective, epoch)?;
                policy.apply(&step);
                means.add(&sums);
                grad_norm += norm;
                minibatches += 1.0;
            }
        }
        moment.check_parameters(policy, config.epochs - 1)?;

        let mean = |i: usize| means.diagnostics[i] / minibatches;
        let kl_reference = match config.kl_place {
            _ if reference_log_probs.is_empty() => f64::NAN,
            KlPlace::Loss => mean(KL_REFERENCE),
            // k1, as it was charged
            KlPlace::Reward => {
                let k1 = rollout.log_probs.iter().zip(&reference_log_probs).map(|(now, reference)| f64::from(now - reference));
                k1.sum::<f64>() / rollout.len() as f64
            }
        };
        Ok(vec![
            ("train/loss", means.loss / minibatches),
            ("train/policy_gradient_loss", mean(POLICY_LOSS)),
            ("train/entropy_loss", -mean(ENTROPY)),
            ("train/approx_kl", mean(APPROX_KL)),
            ("train/clip_fraction", mean(CLIP_FRACTION)),
            ("train/kl_reference", kl_reference),
            ("train/frac_zero_std", without_spread as f64 / groups.len() as f64),
            ("train/grad_norm", grad_norm / minibatches),
            ("train/learning_rate", f64::from(step.learning_rate)),
        ])
    }

    fn save(&self) -> Tensors {
        self.reference.as_ref().map(|reference| reference.save()).unwrap_or_default()
    }

    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        if self.config.kl_coefficient > 0.0 {
            let mut reference = policy.snapshot();
            reference.load(state)?;
            self.reference = Some(reference);
        }
        Ok(())
    }
}
