//! The frozen reference policy and the KL penalty to it, shared by PPO, GRPO and REINFORCE.
//!
//! pi_ref is the policy at the start of training or at the last refresh. It differs from pi_old, the policy that collected the rollout.
//! pi_old is the denominator of the ratio and changes with every update. The penalty is beta times an estimate of the divergence
//! KL(pi || pi_ref) ([`kl`](crate::parts::kl)). It is applied in one of two places:
//!
//! - in the loss, with any estimator;
//! - in the reward of each decision, with k1: the reward becomes r_t - beta (log pi_old - log pi_ref), as in PPO for text (Ziegler et al.,
//!   arXiv 1909.08593). The expected gradient of this penalty is that of KL(pi || pi_ref) over whole episodes.
//!
//! The coefficient beta may adapt to the measured divergence, as in lm-human-preferences (Ziegler et al., section 2.2). The reference may
//! be refreshed every few updates, as in iterative GRPO (Shao et al., arXiv 2402.03300, algorithm 1).

use gradus_base::range::{above, from};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f32, get_u64, with_prefix, without_prefix};
use gradus_base::{Settings, settings};
use gradus_nets::{Outputs, Policy};
use serde::{Deserialize, Serialize};

pub use crate::parts::kl::Estimator;

use crate::agent::Report;
use crate::error::ConfigError;
use crate::parts::kl::{KlCoefficients, KlTerm};
use crate::rollout::Rollout;

/// Name of the divergence from the reference, in diagnostics and in reports.
pub const KL_REFERENCE: &str = "train/kl_reference";

/// Where the KL penalty is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlPlace {
    /// In the loss, by an [`Estimator`].
    Loss,
    /// In the reward of each decision, by k1.
    Reward,
}

/// The divergence that is compared with the target of the adaptive coefficient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KlUnit {
    /// Mean over decisions, as in verl.
    Token,
    /// Mean over episodes of the sum over their decisions, as in lm-human-preferences.
    Sequence,
}

settings! {
    /// The settings of the reference policy and the KL penalty to it. `inf` turns a limit off.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct ReferenceConfig {
        /// Coefficient beta of the divergence from the reference policy; 0: no penalty.
        pub coefficient: f32 = 0.0 => from(0.0),
        /// Place of the penalty: loss (by the estimator) or reward (by k1, for each decision).
        pub place: KlPlace = KlPlace::Loss,
        /// Estimator in the loss: k1 (gradient is noise), k2 (gradient of KL(pi || pi_ref)), k3 (gradient of KL(pi_ref || pi)) or exact.
        pub estimator: Estimator = Estimator::K3,
        /// Target of the divergence; after each update beta changes so that the divergence approaches the target; `inf`: beta is constant.
        pub adaptive_target: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// Divergence compared with the target: token (mean over decisions) or sequence (mean over episodes, or their pieces, of the sum over decisions).
        pub unit: KlUnit = KlUnit::Sequence,
        /// Number of episodes, or their pieces, over which beta changes by about 20 % at most.
        pub horizon: f32 = 10_000.0 => above(0.0),
        /// Number n: after every n-th update the current policy becomes the reference; 0: never.
        pub refresh_every: u64 = 0,
        /// Limit of the divergence (exact with the exact estimator, else k3) above which the update stops; `inf`: none.
        pub stop_kl: f32 = f32::INFINITY => above(0.0).or_inf(),
        /// Whether the divergence is measured even without a penalty and without `stop_kl`.
        pub measure: bool = false,
    }
}

impl ReferenceConfig {
    /// Checks that every setting is in range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges("reference")?;
        let adapts = self.adaptive_target < f32::INFINITY;
        let expected = "a number above 0 with adaptive_target";
        ConfigError::unless(!adapts || self.coefficient > 0.0, "reference.coefficient", expected, self.coefficient)
    }

    /// Whether a reference policy is needed.
    pub fn is_needed(&self) -> bool {
        self.coefficient > 0.0 || self.stop_kl < f32::INFINITY || self.measure
    }

    /// Checks that no setting needs a reference policy. Agents that have no reference policy call this.
    pub fn check_unused(&self, agent: &str) -> Result<(), ConfigError> {
        let (plain, why) = (Self::default(), format!("({agent} has no reference policy)"));
        ConfigError::unless(self.coefficient == 0.0, "reference.coefficient", &format!("0 {why}"), self.coefficient)?;
        ConfigError::unless(!self.measure, "reference.measure", &format!("false {why}"), self.measure)?;
        for (key, own, plain) in
            [("stop_kl", self.stop_kl, plain.stop_kl), ("adaptive_target", self.adaptive_target, plain.adaptive_target)]
        {
            ConfigError::unless(own == plain, &format!("reference.{key}"), &format!("{plain} {why}"), own)?;
        }
        Ok(())
    }
}

/// Returns beta (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon), the next beta after n episodes (Ziegler et al., section 2.2), or after n pieces of episodes where rollouts cut them.
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
    // beta must stay positive even if the rollout has more episodes than the horizon
    let factor = (1.0 + error * episodes as f64 / f64::from(horizon)).max(0.1);
    ((f64::from(beta) * factor) as f32).clamp(1e-9, 1e9)
}

/// The reference policy during training.
pub struct Reference {
    config: ReferenceConfig,
    policy: Option<Box<dyn Policy>>,
    /// Current beta.
    coefficient: f32,
    updates: u64,
}

/// The KL penalty of one rollout: the reference's log-probabilities and beta.
#[derive(Clone, Debug, Default)]
pub struct KlPenalty {
    /// log pi_ref(a|s) of every decision; empty without a reference.
    pub log_probs: Vec<f32>,
    /// Distributions of pi_ref, for [`Batch::reference`](gradus_nets::Batch::reference); empty unless the loss uses the exact estimator.
    pub distributions: Vec<f32>,
    /// Coefficient beta in the loss; 0 if the penalty is in the reward.
    pub in_loss: f32,
    /// Coefficient beta in the reward; 0 if the penalty is in the loss.
    pub in_reward: f32,
    /// Estimator in the loss; `None`: k3.
    pub estimator: Option<Estimator>,
    /// Limit of the divergence above which the update stops.
    pub stop_kl: f32,
}

impl KlPenalty {
    /// Returns the loss term of decision `i`.
    #[inline(always)]
    pub fn term(&self, i: usize, pi: Outputs) -> KlTerm {
        let coefficients = self.coefficients();
        coefficients.term(coefficients.log_prob(i), pi)
    }

    /// Returns the coefficients of the penalty in the loss.
    #[inline(always)]
    pub fn coefficients(&self) -> KlCoefficients<'_> {
        KlCoefficients::new(&self.log_probs, self.in_loss, self.estimator.unwrap_or(Estimator::K3))
    }

    /// Returns the reference's distributions, if the objective needs them.
    pub fn distributions(&self) -> Option<&[f32]> {
        (!self.distributions.is_empty()).then_some(&self.distributions)
    }

    /// Returns r_t - beta (log pi_old - log pi_ref) of every decision; r_t unless the penalty is in the reward.
    pub fn rewards(&self, rollout: &Rollout) -> Vec<f32> {
        let mut rewards = rollout.rewards.clone();
        if self.in_reward > 0.0 {
            let log_probs = rollout.log_probs.iter().zip(&self.log_probs);
            rewards.iter_mut().zip(log_probs).for_each(|(r, (old, reference))| *r -= self.in_reward * (old - reference));
        }
        rewards
    }

    /// Whether the divergence `kl` exceeds `stop_kl`. If so, the update takes no further step.
    pub fn stops_at(&self, kl: f64) -> bool {
        kl > f64::from(self.stop_kl)
    }

    /// Returns the sum of log pi_old - log pi_ref over all decisions; NaN without a reference.
    fn sum_k1(&self, rollout: &Rollout) -> f64 {
        if self.log_probs.is_empty() {
            return f64::NAN;
        }
        rollout.log_probs.iter().zip(&self.log_probs).map(|(old, reference)| f64::from(old - reference)).sum()
    }

    /// Returns two means of k1, which estimates the divergence of pi_old from the reference: the mean over decisions, and the mean over
    /// episodes of the sum over their decisions.
    pub fn measured(&self, rollout: &Rollout) -> (f64, f64) {
        let sum = self.sum_k1(rollout);
        (sum / rollout.len().max(1) as f64, sum / rollout.segments.len().max(1) as f64)
    }

    /// Returns the penalty's part of the update's report: the mean divergence over decisions, the mean over episodes of the sum over their
    /// decisions, and beta. The mean over decisions is that of k1 if the penalty is in the reward, and else `in_loss`, the objective's
    /// diagnostic.
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
    /// Creates a reference that has no policy yet.
    pub fn new(config: ReferenceConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { coefficient: config.coefficient, config, policy: None, updates: 0 })
    }

    /// Copies the initial policy, if a reference is needed.
    pub fn begin(&mut self, policy: &dyn Policy) {
        self.policy = self.config.is_needed().then(|| policy.snapshot());
    }

    /// Returns the current beta.
    pub fn coefficient(&self) -> f32 {
        self.coefficient
    }

    /// Computes the KL penalty of a rollout.
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
            kl_penalty.estimator = Some(Estimator::K3); // for the report only, as the loss has no penalty
        }
        kl_penalty
    }

    /// Returns the number of distributions that are kept of each decision: 1 if the loss uses the exact estimator, or 0.
    pub fn kept_distributions(&self) -> usize {
        let ReferenceConfig { estimator, place, coefficient, .. } = self.config;
        usize::from(estimator == Estimator::Exact && place == KlPlace::Loss && coefficient > 0.0)
    }

    /// Returns the number of policies that are kept: 1, or 0 if no reference is needed.
    pub fn kept_policies(&self) -> usize {
        usize::from(self.config.is_needed())
    }

    /// Returns log pi_ref of every decision of `rollout`; empty without a reference.
    pub fn log_probs(&mut self, rollout: &Rollout) -> Vec<f32> {
        let mut log_probs = Vec::new();
        self.policy.iter_mut().for_each(|policy| policy.log_probs(&rollout.store, &mut log_probs));
        log_probs
    }

    /// Adapts beta after an update with `rollout`. Every `refresh_every` updates, replaces the reference by `policy`.
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

    /// Returns the state for a checkpoint; empty without a reference.
    pub fn save(&self) -> Tensors {
        let Some(policy) = &self.policy else { return Tensors::new() };
        let mut tensors = with_prefix(policy.save(), PREFIX);
        tensors.insert("reference_coefficient".into(), Tensor::f32(&[1], vec![self.coefficient]));
        tensors.insert("reference_updates".into(), Tensor::u64(vec![self.updates]));
        tensors
    }

    /// Restores the state that [`save`](Reference::save) returned. The reference gets a network of the same shape as that of
    /// `policy`. Tensors that do not belong to the reference are ignored.
    pub fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        if !self.config.is_needed() {
            return Ok(());
        }
        let mut reference = policy.snapshot();
        reference.load(&without_prefix(state, PREFIX))?;
        let coefficient = get_f32(state, "reference_coefficient", &[1])?[0];
        let [updates] = *get_u64(state, "reference_updates")? else {
            return Err(TensorsError::State("reference_updates: expected one number".into()));
        };
        (self.policy, self.coefficient, self.updates) = (Some(reference), coefficient, updates);
        Ok(())
    }
}

/// Prefix of the reference's parameters in a checkpoint.
const PREFIX: &str = "reference.";
