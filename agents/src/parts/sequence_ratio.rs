//! One ratio for a whole text (Zheng et al., arXiv 2507.18071, "GSPO", equations 5 and 7), instead of one for each decision.
//!
//! > s = exp(1/T sum_t (log pi_t - log pi_old,t)),   L = - min(s A, clip(s, 1 - eps, 1 + eps_high) A)
//!
//! The loss is a function of one number, the mean log-ratio of the text. Its derivative with respect to each log pi_t is the derivative with
//! respect to the mean, divided by T. Every decision of the text has the loss L, multiplied by the weight of the decision. With
//! `sequence-mean` the weights of a text sum to 1/B, as in the paper's objective for B texts. The KL penalty and the entropy bonus are still
//! computed per decision.

use gradus_nets::loss::LogProb;
use gradus_nets::{Evaluation, Of, Outputs, PolicyOutput, Sums};

/// The mean log-ratio of the decisions of one text.
pub struct MeanLogRatio<'a> {
    indices: &'a [u32],
    weights: &'a [f32],
    mean: f32,
    /// Number of decisions whose weight is not 0.
    length: usize,
}

impl<'a> MeanLogRatio<'a> {
    /// Computes the mean over the decisions `indices` of a text whose weights are not 0.
    pub fn new(old_log_probs: &[f32], indices: &'a [u32], weights: &'a [f32], outputs: &[PolicyOutput]) -> Self {
        let (mut sum, mut length) = (0.0, 0);
        for ((i, _), now) in indices.iter().zip(weights).zip(outputs).filter(|((_, weight), _)| **weight != 0.0) {
            sum += f64::from(now.log_prob - old_log_probs[*i as usize]);
            length += 1;
        }
        Self { indices, weights, mean: (sum / length.max(1) as f64) as f32, length }
    }

    /// Returns the mean, as the number that the loss of the text is a function of.
    pub fn log_ratio(&self) -> Of<LogProb> {
        Of::variable(self.mean)
    }

    /// Implements the rest of [`Objective::slice`](gradus_nets::Objective::slice): spreads `slope`, the derivative of the text's loss with
    /// respect to the mean, over the decisions, and adds the losses of the decisions.
    pub fn spread(&self, slope: f32, decision: impl Fn(usize, Outputs) -> Evaluation, outputs: &mut [PolicyOutput], sums: &mut Sums) {
        let total: f32 = self.weights.iter().sum();
        let shared = total * slope / self.length.max(1) as f32;
        for ((index, weight), output) in self.indices.iter().zip(self.weights).zip(outputs) {
            if *weight == 0.0 {
                *output = PolicyOutput::default();
                continue;
            }
            let Evaluation { loss, diagnostics, .. } = decision(*index as usize, (*output).into());
            sums.loss += f64::from(weight * loss.value);
            for (sum, diagnostic) in sums.diagnostics.iter_mut().zip(diagnostics) {
                *sum += f64::from(weight * diagnostic);
            }
            *output = (*weight * loss).slopes;
            output.log_prob += shared;
        }
    }
}
