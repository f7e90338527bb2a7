//! The frozen reference policy and the KL penalty to it, as PPO, GRPO and REINFORCE share them.
//!
//! pi_ref is the policy that training began with, or as it was at the last refresh. It is not pi_old, which collected the rollout: that one
//! is the ratio's denominator and a new one every update. The penalty is beta times the divergence KL(pi || pi_ref), by an estimator of
//! [`kl`](crate::kl):
//!
//! - in the loss, by any of them;
//! - in the reward of each decision, by k1: r_t - beta (log pi_old - log pi_ref), as in PPO for text (Ziegler et al., arXiv 1909.08593). Its
//!   gradient is that of KL(pi || pi_ref) over whole episodes.
//!
//! beta may follow the divergence that was measured, as in lm-human-preferences (Ziegler et al., section 2.2); the reference may be
//! refreshed every few updates, as in iterative GRPO (Shao et al., arXiv 2402.03300, algorithm 1).

use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_f32, get_u64};
use gradus_nets::{Policy, PolicyOutput, settings};
use serde::{Deserialize, Serialize};

pub use crate::kl::Estimator;

use crate::kl::{KlCoefficients, KlTerm, k1};
use crate::{ConfigError, Report, Rollout};

/// The name of the divergence from the reference, among the figures of an objective and in a report.
pub const KL_REFERENCE: &str = "train/kl_reference";

/// Where the KL penalty is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlPlace {
    /// In the loss, by an [`Estimator`].
    Loss,
    /// In the reward of each decision, by k1.
    Reward,
}

/// Of what the adaptive coefficient sees the divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlUnit {
    /// The mean over decisions, as in verl.
    Token,
    /// The mean over episodes of the sum over their decisions, as in lm-human-preferences.
    Sequence,
}

settings! {
    /// The settings of the reference policy and the KL penalty to it. `inf` turns a limit off.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ReferenceConfig {
        /// Coefficient beta of the divergence from the reference policy; 0: none.
        pub coefficient: f32 = 0.0,
        /// Where it is charged: loss (by the estimator) or reward (by k1, decision by decision).
        pub place: KlPlace = KlPlace::Loss,
        /// What stands for it in the loss: k1 (of no use), k2 (the gradient of KL(pi || pi_ref)), k3 (that of KL(pi_ref || pi)) or exact.
        pub estimator: Estimator = Estimator::K3,
        /// The divergence towards which beta adapts after each update; `inf`: it stays.
        pub adaptive_target: f32 = f32::INFINITY,
        /// What that divergence is: token (mean over decisions) or sequence (sum over each episode).
        pub unit: KlUnit = KlUnit::Sequence,
        /// How slowly beta adapts: in so many episodes it changes by a fifth at most.
        pub horizon: f32 = 10_000.0,
        /// The reference becomes the present policy after every so many updates; 0: never.
        pub refresh_every: u64 = 0,
        /// The update stops before a step at which the divergence (k3) has passed this; `inf`: never.
        pub stop_kl: f32 = f32::INFINITY,
        /// Whether the divergence is measured where nothing else needs it, too.
        pub measure: bool = false,
    }
}

impl ReferenceConfig {
    /// Whether every setting is in range.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless_not_negative("reference.coefficient", self.coefficient)?;
        ConfigError::unless_above_zero_or_inf("reference.adaptive_target", self.adaptive_target)?;
        let adapts = self.adaptive_target < f32::INFINITY;
        let expected = "a number above 0, from where adaptive_target moves it";
        ConfigError::unless(!adapts || self.coefficient > 0.0, "reference.coefficient", expected, self.coefficient)?;
        ConfigError::unless_above_zero("reference.horizon", self.horizon)?;
        ConfigError::unless_above_zero_or_inf("reference.stop_kl", self.stop_kl)
    }

    /// Whether there has to be a reference policy at all.
    pub fn is_needed(&self) -> bool {
        self.coefficient > 0.0 || self.stop_kl < f32::INFINITY || self.measure
    }

    /// That nothing is asked of a reference, for agents that have none.
    pub fn check_unused(&self, agent: &str) -> Result<(), ConfigError> {
        let expected = format!("0, for {agent} has no reference policy");
        ConfigError::unless(!self.is_needed(), "reference.coefficient", &expected, self.coefficient)
    }
}

/// The next beta: beta (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon) after n episodes (Ziegler et al., section 2.2).
///
/// ```
/// use gradus_agents::reference::next_coefficient;
/// assert!((next_coefficient(1.0, 9.0, 6.0, 64, 10_000.0) - 1.001_28).abs() < 1e-6); // clipped: 9 / 6 - 1 is more than 0.2
/// assert_eq!(next_coefficient(1.0, 9.0, f32::INFINITY, 64, 10_000.0), 1.0);
/// ```
pub fn next_coefficient(beta: f32, kl: f64, target: f32, episodes: usize, horizon: f32) -> f32 {
    if target == f32::INFINITY {
        return beta;
    }
    let error = (kl / f64::from(target) - 1.0).clamp(-0.2, 0.2);
    // a horizon below the rollout must not turn beta over
    let factor = (1.0 + error * episodes as f64 / f64::from(horizon)).max(0.1);
    ((f64::from(beta) * factor) as f32).clamp(1e-9, 1e9)
}

/// The reference policy of a training.
pub struct Reference {
    config: ReferenceConfig,
    policy: Option<Box<dyn Policy>>,
    /// beta, as it is now.
    coefficient: f32,
    updates: u64,
}

/// The KL penalty of one rollout: what the reference says of its decisions, and beta.
#[derive(Clone, Debug, Default)]
pub struct KlPenalty {
    /// log pi_ref(a|s) of every decision; empty without a reference.
    pub log_probs: Vec<f32>,
    /// The reference's distributions, for [`Batch::reference`](gradus_nets::Batch::reference); empty unless the estimator is exact.
    pub distributions: Vec<f32>,
    /// beta in the loss; 0 where the penalty is in the reward.
    pub in_loss: f32,
    /// beta in the reward; 0 where the penalty is in the loss.
    pub in_reward: f32,
    /// What stands for the divergence in the loss; `None`: k3.
    pub estimator: Option<Estimator>,
    /// Where the update stops.
    pub stop_kl: f32,
}

impl KlPenalty {
    /// The term of the loss for decision `i`, of which the policy now says `now`.
    #[inline(always)]
    pub fn term(&self, i: usize, now: PolicyOutput) -> KlTerm {
        let coefficients = self.coefficients();
        coefficients.term(coefficients.log_prob(i), now)
    }

    /// The penalty in the loss.
    #[inline(always)]
    pub fn coefficients(&self) -> KlCoefficients<'_> {
        KlCoefficients::new(&self.log_probs, self.in_loss, self.estimator.unwrap_or(Estimator::K3))
    }

    /// The distributions that a batch needs.
    pub fn distributions(&self) -> Option<&[f32]> {
        (!self.distributions.is_empty()).then_some(&self.distributions)
    }

    /// r_t - beta (log pi_old - log pi_ref) of every decision; r_t where the penalty is in the loss.
    pub fn rewards(&self, rollout: &Rollout) -> Vec<f32> {
        let mut rewards = rollout.rewards.clone();
        if self.in_reward > 0.0 {
            let log_probs = rollout.log_probs.iter().zip(&self.log_probs);
            rewards.iter_mut().zip(log_probs).for_each(|(r, (old, reference))| *r -= self.in_reward * k1(old - reference));
        }
        rewards
    }

    /// Whether a step must not be taken any more, where the divergence is `kl`.
    pub fn stops_at(&self, kl: f64) -> bool {
        kl > f64::from(self.stop_kl)
    }

    /// log pi_old - log pi_ref, summed over all decisions; NaN without a reference.
    fn sum_k1(&self, rollout: &Rollout) -> f64 {
        if self.log_probs.is_empty() {
            return f64::NAN;
        }
        rollout.log_probs.iter().zip(&self.log_probs).map(|(old, reference)| f64::from(old - reference)).sum()
    }

    /// The mean divergence of the policy that collected the rollout from the reference: k1, by decision and by episode.
    pub fn measured(&self, rollout: &Rollout) -> (f64, f64) {
        let sum = self.sum_k1(rollout);
        (sum / rollout.len().max(1) as f64, sum / rollout.segments.len().max(1) as f64)
    }

    /// Its part of an agent's report: the mean divergence (`in_loss` as the objective has seen it, or k1 where the penalty is in the reward), the same
    /// by episode, and beta.
    pub fn report(&self, rollout: &Rollout, in_loss: f64) -> Report {
        let (by_decision, by_episode) = self.measured(rollout);
        let (kl, beta) = match () {
            () if self.log_probs.is_empty() => (f64::NAN, f64::NAN),
            () if self.in_reward > 0.0 => (by_decision, f64::from(self.in_reward)),
            () => (in_loss, f64::from(self.in_loss)),
        };
        vec![(KL_REFERENCE, kl), ("train/kl_reference_sequence", by_episode), ("train/reference_coefficient", beta)]
    }
}

impl Reference {
    /// A reference with these settings, which has not seen a policy yet.
    pub fn new(config: ReferenceConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { coefficient: config.coefficient, config, policy: None, updates: 0 })
    }

    /// Sees the policy that training begins with.
    pub fn begin(&mut self, policy: &dyn Policy) {
        self.policy = self.config.is_needed().then(|| policy.snapshot());
    }

    /// beta, as it is now.
    pub fn coefficient(&self) -> f32 {
        self.coefficient
    }

    /// The KL penalty of a rollout.
    pub fn penalty(&mut self, rollout: &Rollout) -> KlPenalty {
        let mut kl_penalty = KlPenalty { stop_kl: self.config.stop_kl, estimator: Some(self.config.estimator), ..KlPenalty::default() };
        let Some(policy) = &mut self.policy else { return kl_penalty };
        policy.log_probs(&rollout.store, &mut kl_penalty.log_probs);
        match self.config.place {
            KlPlace::Loss => kl_penalty.in_loss = self.coefficient,
            KlPlace::Reward => kl_penalty.in_reward = self.coefficient,
        }
        if kl_penalty.in_loss > 0.0 && self.config.estimator == Estimator::Exact {
            policy.distributions(&rollout.store, &mut kl_penalty.distributions);
        } else if self.config.estimator == Estimator::Exact {
            kl_penalty.estimator = Some(Estimator::K3); // there is no penalty: what is left is the report
        }
        kl_penalty
    }

    /// After an update with that rollout: beta follows the divergence, and the reference is refreshed when its time has come.
    pub fn finish(&mut self, policy: &dyn Policy, rollout: &Rollout, kl_penalty: &KlPenalty) {
        if self.policy.is_none() {
            return;
        }
        let (by_decision, by_episode) = kl_penalty.measured(rollout);
        let kl = if self.config.unit == KlUnit::Token { by_decision } else { by_episode };
        self.coefficient = next_coefficient(self.coefficient, kl, self.config.adaptive_target, rollout.segments.len(), self.config.horizon);
        self.updates += 1;
        if self.config.refresh_every > 0 && self.updates.is_multiple_of(self.config.refresh_every) {
            self.policy = Some(policy.snapshot());
        }
    }

    /// What it remembers, for a checkpoint: nothing without a reference.
    pub fn save(&self) -> Tensors {
        let Some(policy) = &self.policy else { return Tensors::new() };
        let mut tensors: Tensors = policy.save().into_iter().map(|(name, tensor)| (format!("{PREFIX}{name}"), tensor)).collect();
        tensors.insert("reference_coefficient".into(), Tensor::f32(&[1], vec![self.coefficient]));
        tensors.insert("reference_updates".into(), Tensor::u64(vec![self.updates]));
        tensors
    }

    /// Takes over what [`save`](Reference::save) saved, for `policy`; other tensors are left to others.
    pub fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        if !self.config.is_needed() {
            return Ok(());
        }
        let of_policy = state.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(PREFIX)?.into(), tensor.clone())));
        let mut reference = policy.snapshot();
        reference.load(&of_policy.collect())?;
        let coefficient = get_f32(state, "reference_coefficient", &[1])?[0];
        let [updates] = *get_u64(state, "reference_updates")? else {
            return Err(TensorsError::State("reference_updates: expected one number".into()));
        };
        (self.policy, self.coefficient, self.updates) = (Some(reference), coefficient, updates);
        Ok(())
    }
}

/// What the names of the reference's parameters begin with in a checkpoint.
const PREFIX: &str = "reference.";
