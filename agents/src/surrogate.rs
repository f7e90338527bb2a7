//! The clipped surrogate of PPO and GRPO, and the clipped importance weight of CISPO, as pure functions of a log-ratio and an advantage.

use gradus_nets::math::exp_inline;
use serde::{Deserialize, Serialize};

/// Name of the diagnostic for the divergence from pi_old, the policy that collected the rollout.
pub const APPROX_KL: &str = "train/approx_kl";

/// Log-ratios are clamped to this absolute value, so that their exponentials are finite.
pub const LOG_RATIO_LIMIT: f32 = 20.0;

/// Clamps `x` to the range from `low` to `high`; NaN stays NaN. `f32::clamp` is not compiled to a vector instruction, because it checks
/// that low <= high.
#[inline(always)]
pub(crate) fn within(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// What the clip of the ratio rho limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clipped {
    /// The objective rho A, as in PPO: beyond the clip range a decision has no derivative ([`Clip::surrogate`]).
    Objective,
    /// The importance weight rho of the policy gradient, as in CISPO: every decision keeps a derivative ([`Clip::weighted`]).
    Weight,
}

/// The clip ranges of the ratio rho.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    /// eps_low: rho is clipped from below at 1 - eps_low.
    pub low: f32,
    /// eps_high: rho is clipped from above at 1 + eps_high. An eps_high above eps_low is "clip-higher" (DAPO, Yu et al., arXiv 2503.14476).
    pub high: f32,
    /// c of the dual clip (Ye et al., arXiv 1912.09729, equation 5): if A < 0, the loss is at most -c A. `inf`: off.
    pub dual: f32,
}

/// The loss of one decision or one sequence, from [`Clip::surrogate`] or [`Clip::weighted`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surrogate {
    /// The loss.
    pub loss: f32,
    /// The derivative of the loss with respect to the log-ratio.
    pub derivative: f32,
    /// The ratio rho.
    pub ratio: f32,
    /// ln rho, clamped.
    pub log_ratio: f32,
}

impl Clip {
    /// Computes the surrogate from the log-ratio log pi - log pi_old and an advantage. The loss is -min(rho A, clip(rho, 1 - eps_low, 1 +
    /// eps_high) A); if A < 0, it is at most -c A. The derivative is -rho A, or 0 if a clip determines the loss or the log-ratio is at
    /// [`LOG_RATIO_LIMIT`].
    ///
    /// ```
    /// use gradus_agents::surrogate::Clip;
    ///
    /// let clip = Clip { low: 0.2, high: 0.2, dual: f32::INFINITY };
    /// let surrogate = clip.surrogate(-1.8 - -2.1, 0.2);
    /// assert!((surrogate.ratio - 1.349_858_8).abs() < 1e-6 && (surrogate.loss + 0.24).abs() < 1e-7);
    /// assert_eq!(surrogate.derivative, 0.0); // beyond the clip
    /// ```
    #[inline(always)]
    pub fn surrogate(self, log_ratio: f32, advantage: f32) -> Surrogate {
        let log_ratio = within(log_ratio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
        let ratio = exp_inline(log_ratio);
        let plain = ratio * advantage;
        let clipped = within(ratio, 1.0 - self.low, 1.0 + self.high) * advantage;
        let lowest = if advantage < 0.0 { self.dual * advantage } else { f32::NEG_INFINITY };
        let ratio_decides = plain <= clipped && plain >= lowest && log_ratio.abs() < LOG_RATIO_LIMIT;
        let derivative = if ratio_decides { -plain } else { 0.0 };
        Surrogate { loss: -plain.min(clipped).max(lowest), derivative, ratio, log_ratio }
    }

    /// Computes CISPO's policy gradient (MiniMax, arXiv 2506.13585, equation 4) from the log-ratio, log pi and an advantage. The loss
    /// is -clip(rho, 1 - eps_low, 1 + eps_high) A log pi, where the clipped weight counts as a constant. Its derivative with respect to
    /// log pi is therefore -clip(rho, 1 - eps_low, 1 + eps_high) A, and within the clip range that of the plain surrogate.
    ///
    /// ```
    /// use gradus_agents::surrogate::Clip;
    ///
    /// let clip = Clip { low: 0.2, high: 0.2, dual: f32::INFINITY };
    /// let cispo = clip.weighted(-1.8 - -2.1, -1.8, 0.5); // ratio 1.35
    /// assert!((cispo.derivative + 1.2 * 0.5).abs() < 1e-6); // the surrogate's derivative is 0
    /// assert!((cispo.loss - 1.2 * 0.5 * 1.8).abs() < 1e-6);
    /// ```
    #[inline(always)]
    pub fn weighted(self, log_ratio: f32, log_prob: f32, advantage: f32) -> Surrogate {
        let log_ratio = within(log_ratio, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
        let ratio = exp_inline(log_ratio);
        let weight = within(ratio, 1.0 - self.low, 1.0 + self.high) * advantage;
        Surrogate { loss: -weight * log_prob, derivative: -weight, ratio, log_ratio }
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

    /// Returns the reported figures: approx_kl, which is Schulman's k3 estimate of KL(pi_old || pi); whether the ratio is
    /// [outside](Clip::is_outside); and whether the lower and the upper clip [remove the gradient](Clip::clips).
    #[inline(always)]
    pub fn figures(self, surrogate: Surrogate, advantage: f32) -> [f32; 4] {
        let (low, high) = self.clips(surrogate.ratio, advantage);
        let approx_kl = (surrogate.ratio - 1.0) - surrogate.log_ratio;
        let outside = self.is_outside(surrogate.ratio);
        [approx_kl, f32::from(u8::from(outside)), f32::from(u8::from(low)), f32::from(u8::from(high))]
    }
}
