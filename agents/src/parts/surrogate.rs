//! The ratio of probabilities and its clip range, which PPO, GRPO and REINFORCE share.

use gradus_nets::Of;
use serde::{Deserialize, Serialize};

/// Name of the diagnostic for the divergence from pi_old, the policy that collected the rollout.
pub const APPROX_KL: &str = "train/approx_kl";

/// Log-ratios are limited to this absolute value, so that their exponentials are finite.
pub const LOG_RATIO_LIMIT: f32 = 20.0;

/// Returns log pi - log pi_old, limited to [`LOG_RATIO_LIMIT`]; beyond it, there is no derivative.
#[inline(always)]
pub fn limited<O: Copy>(log_ratio: Of<O>) -> Of<O> {
    log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
}

/// What the clip of the ratio rho limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clipped {
    /// The objective rho A, as in PPO: beyond the clip range a decision has no derivative.
    Objective,
    /// The importance weight rho of the policy gradient, as in CISPO: every decision keeps a derivative.
    Weight,
}

/// The clip range of the ratio rho.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    /// eps_low: rho is clipped from below at 1 - eps_low.
    pub low: f32,
    /// eps_high: rho is clipped from above at 1 + eps_high. An eps_high above eps_low is "clip-higher" (DAPO, Yu et al., arXiv 2503.14476).
    pub high: f32,
}

impl Clip {
    /// Returns clip(rho, 1 - eps_low, 1 + eps_high).
    #[inline(always)]
    pub fn of<O: Copy>(self, ratio: Of<O>) -> Of<O> {
        ratio.clamp(1.0 - self.low, 1.0 + self.high)
    }

    /// Whether a ratio is outside the clip range, on either side.
    #[inline(always)]
    pub fn is_outside(self, ratio: f32) -> bool {
        ratio - 1.0 > self.high || 1.0 - ratio > self.low
    }

    /// Whether the surrogate's lower clip removes the gradient (rho < 1 - eps_low and A < 0), and whether the upper clip does (rho > 1 +
    /// eps_high and A > 0). With the opposite sign of A, the clips do not remove the gradient.
    #[inline(always)]
    pub fn clips(self, ratio: f32, advantage: f32) -> (bool, bool) {
        (ratio < 1.0 - self.low && advantage < 0.0, ratio > 1.0 + self.high && advantage > 0.0)
    }

    /// Returns the metrics of a [limited] log-ratio and its ratio: approx_kl, which is Schulman's k3 estimate of KL(pi_old || pi);
    /// whether the ratio is [outside](Clip::is_outside); and whether the lower and the upper clip [remove the gradient](Clip::clips).
    #[inline(always)]
    pub fn metrics(self, log_ratio: f32, ratio: f32, advantage: f32) -> [f32; 4] {
        let (low, high) = self.clips(ratio, advantage);
        let approx_kl = (ratio - 1.0) - log_ratio;
        let outside = self.is_outside(ratio);
        [approx_kl, f32::from(u8::from(outside)), f32::from(u8::from(low)), f32::from(u8::from(high))]
    }
}

/// Returns the upper bound of the loss under the dual clip c (Ye et al., arXiv 1912.09729, equation 5): - c A if A < 0, else infinity. An
/// infinite c turns it off.
#[inline(always)]
pub fn dual_bound(c: f32, advantage: f32) -> f32 {
    if advantage < 0.0 { -(c * advantage) } else { f32::INFINITY }
}
