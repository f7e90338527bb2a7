//! Estimators of the divergence KL(pi || pi_ref) from sampled actions (Schulman, joschu.net/blog/kl-approx.html) and their gradients.
//!
//! With d = log pi - log pi_ref of an action sampled from pi, the estimators are
//!
//! > k1 = d,   k2 = d^2 / 2,   k3 = e^-d - 1 + d
//!
//! | in the loss | derivative with respect to log pi | expected gradient |
//! | --- | --- | --- |
//! | k1 | 1 | 0: the expected loss is the divergence, but the gradient is only noise |
//! | k2 | d | the gradient of KL(pi \|\| pi_ref), at each state |
//! | k3 (GRPO) | 1 - e^-d | the gradient of the reverse divergence KL(pi_ref \|\| pi); to first order in d it equals the gradient of k2 |
//! | exact | - | the gradient of KL(pi \|\| pi_ref), summed over all actions, at each state |

use gradus_nets::{Loss, Of, Outputs};
use serde::{Deserialize, Serialize};

use crate::parts::surrogate::LOG_RATIO_LIMIT;

/// The estimator of the divergence in the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Estimator {
    /// d. Its expected gradient is 0.
    K1,
    /// d^2 / 2. Its expected gradient is that of KL(pi || pi_ref).
    K2,
    /// e^-d - 1 + d, never negative. Its expected gradient is that of KL(pi_ref || pi).
    K3,
    /// KL(pi || pi_ref) over all actions.
    Exact,
}

/// Returns k1 = d, unbiased and with a high variance.
#[inline(always)]
pub fn k1<O: Copy>(d: Of<O>) -> Of<O> {
    d
}

/// Returns k2 = d^2 / 2, biased and never negative.
#[inline(always)]
pub fn k2<O: Copy>(d: Of<O>) -> Of<O> {
    0.5 * d * d
}

/// Returns k3 = e^-d - 1 + d, unbiased and never negative.
///
/// ```
/// use gradus_agents::kl::{k1, k2, k3};
/// use gradus_nets::{Of, loss::LogProb};
///
/// let d = Of::<LogProb>::variable(0.3);
/// assert_eq!((k1(d).value(), k2(d).value()), (0.3, 0.045));
/// assert!((k3(d).value() - 0.040_818).abs() < 1e-6 && (k3(d).slope() - 0.259_182).abs() < 1e-6); // 1 - e^-d
/// ```
#[inline(always)]
pub fn k3<O: Copy>(d: Of<O>) -> Of<O> {
    ((-d).exp() - 1.0) + d
}

/// The KL term of one decision's loss.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KlTerm {
    /// beta times the estimator.
    pub loss: Loss,
    /// The divergence for reports: exact with the exact estimator, k3 with every other estimator. It is never negative.
    pub divergence: f32,
}

/// The coefficients of the KL term. The term is computed without branches, so that it vectorises over decisions.
#[derive(Clone, Copy, Debug, Default)]
pub struct KlCoefficients<'a> {
    /// log pi_ref(a|s) of every decision; empty without a reference.
    log_probs: &'a [f32],
    /// Coefficients of k1, k2, k3 and the exact divergence: beta for the chosen estimator, 0 for the others.
    betas: [f32; 4],
    /// Weights of k3 and the exact divergence in the report: one of them is 1 and the other is 0. Without a reference both are 0.
    reported: [f32; 2],
}

impl<'a> KlCoefficients<'a> {
    /// Creates the coefficients for one estimator. `log_probs` holds log pi_ref(a|s) of every decision; if it is empty, there is no term.
    #[inline(always)]
    pub fn new(log_probs: &'a [f32], beta: f32, estimator: Estimator) -> Self {
        let (mut betas, mut reported) = ([0.0; 4], [0.0; 2]);
        if !log_probs.is_empty() {
            betas[estimator as usize] = beta;
            reported[usize::from(estimator == Estimator::Exact)] = 1.0;
        }
        Self { log_probs, betas, reported }
    }

    /// Returns log pi_ref(a|s) of decision `i`; 0 without a reference.
    #[inline(always)]
    pub fn log_prob(&self, i: usize) -> f32 {
        self.log_probs.get(i).copied().unwrap_or(0.0)
    }

    /// Returns the term of a decision, given the reference's log-probability. Beyond a log-ratio of [`LOG_RATIO_LIMIT`] it still pulls the
    /// policy back.
    #[inline(always)]
    pub fn term(&self, reference: f32, pi: Outputs) -> KlTerm {
        let d = (pi.log_prob - reference).bounded(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
        let ([beta1, beta2, beta3, exact], [as_k3, as_exact]) = (self.betas, self.reported);
        KlTerm {
            loss: beta1 * k1(d) + beta2 * k2(d) + beta3 * k3(d) + exact * pi.kl_ref,
            divergence: as_k3 * k3(d).value() + as_exact * pi.kl_ref.value(),
        }
    }
}
