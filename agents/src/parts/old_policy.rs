//! PPO's penalty variant (Schulman et al., arXiv 1707.06347, section 4). Instead of a clip, the loss contains the exact divergence from
//! pi_old, the policy that collected the rollout (equation 8):
//!
//! > L = - rho A + beta KL(pi_old(.|s) || pi(.|s)) + ...
//!
//! After each update beta is doubled if the divergence exceeds 1.5 times its target, and halved if it is below the target divided by 1.5.

use gradus_nets::{Batch, Evaluation, Objective, Outputs, Policy, UpdatedGroups};

use crate::rollout::Rollout;

/// The action distributions of pi_old; `None` if they are not needed.
pub struct OldPolicy(Option<Vec<f32>>);

impl OldPolicy {
    /// Stores the action distributions of `policy` for all decisions of `rollout` if `is_needed` is true.
    pub fn new(policy: &mut dyn Policy, rollout: &Rollout, is_needed: bool) -> Self {
        Self(is_needed.then(|| {
            let mut distributions = Vec::new();
            policy.distributions(&rollout.store, &mut distributions);
            distributions
        }))
    }

    /// Returns the distributions, for [`Batch::old`].
    pub fn distributions(&self) -> Option<&[f32]> {
        self.0.as_deref()
    }

    /// Returns the exact KL(pi_old || pi), averaged over all decisions; NaN without the distributions.
    pub fn divergence(&self, policy: &mut dyn Policy, rollout: &Rollout) -> f64 {
        let Some(old) = self.distributions() else { return f64::NAN };
        let indices: Vec<u32> = (0..rollout.len() as u32).collect();
        let weights = vec![1.0 / indices.len() as f32; indices.len()];
        policy.evaluate(&rollout.store, Batch { old: Some(old), ..Batch::new(&indices, &weights) }, &Divergence).loss
    }
}

/// Returns the next coefficient of the penalty: doubled if the divergence exceeds 1.5 times its target, halved if it is below the target
/// divided by 1.5. Halving stops at 1e-6, and doubling at 1e6. With an infinite target the coefficient is constant.
///
/// ```
/// use gradus_agents::old_policy::next_coefficient;
/// assert_eq!([0.005, 0.01, 0.02].map(|kl| next_coefficient(1.0, kl, 0.01)), [0.5, 1.0, 2.0]);
/// assert_eq!(next_coefficient(1.0, 0.02, f32::INFINITY), 1.0);
/// ```
pub fn next_coefficient(coefficient: f32, kl: f32, target: f32) -> f32 {
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

/// The objective KL(pi_old || pi).
struct Divergence;

impl Objective for Divergence {
    fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
        pi.kl_old.into()
    }

    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::Actor
    }
}
