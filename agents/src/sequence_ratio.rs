//! One ratio for a whole text (Zheng et al., arXiv 2507.18071, "GSPO", equations 5 and 7), instead of one for each decision.
//!
//! > s = exp(1/T sum_t (log pi_t - log pi_old,t)),   L = - min(s A, clip(s, 1 - eps, 1 + eps_high) A)
//!
//! The derivative of s with respect to each log pi_t is s / T. Every decision of the text has the loss L, multiplied by the weight
//! of the decision. With `sequence-mean` the weights of a text sum to 1/B, as in the paper's objective for B texts. The KL penalty and the
//! entropy bonus are still computed per decision.

use gradus_nets::math::exp;
use gradus_nets::{LossGrad, PolicyOutput, Sums};

use crate::surrogate::{LOG_RATIO_LIMIT, Surrogate};

/// Returns exp of the mean log-ratio of a text's decisions.
///
/// ```
/// use gradus_agents::sequence_ratio::sequence_ratio;
/// assert!((sequence_ratio(&[0.1, -0.05, 0.2]) - 1.086_904).abs() < 1e-6);
/// ```
pub fn sequence_ratio(log_ratios: &[f32]) -> f32 {
    exp(mean(log_ratios.iter().copied()).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT))
}

fn mean(numbers: impl ExactSizeIterator<Item = f32>) -> f32 {
    let n = numbers.len().max(1) as f64;
    (numbers.map(f64::from).sum::<f64>() / n) as f32
}

/// Implements [`Objective::slice`](gradus_nets::Objective::slice) for the decisions of one text, which share one ratio. `loss_grad`
/// returns the loss and the derivatives of a decision, given the text's surrogate.
pub fn slice(
    (indices, weights, outputs): (&[u32], &[f32], &mut [PolicyOutput]),
    old_log_probs: &[f32],
    surrogate: impl FnOnce(f32) -> Surrogate,
    loss_grad: impl Fn(usize, PolicyOutput, Surrogate) -> LossGrad,
    sums: &mut Sums,
) {
    // skips decisions of weight 0
    let log_ratios: Vec<f32> = (indices.iter().zip(weights).zip(&*outputs))
        .filter(|((_, weight), _)| **weight != 0.0)
        .map(|((i, _), now)| now.log_prob - old_log_probs[*i as usize])
        .collect();
    let surrogate = surrogate(mean(log_ratios.iter().copied()));
    let total: f32 = weights.iter().sum();
    let shared = total * surrogate.derivative / log_ratios.len().max(1) as f32;

    for ((index, weight), output) in indices.iter().zip(weights).zip(outputs) {
        if *weight == 0.0 {
            *output = PolicyOutput::default();
            continue;
        }
        // the surrogate's derivative is 0 here, because `shared` contains it
        let LossGrad { loss, derivative, diagnostics } = loss_grad(*index as usize, *output, Surrogate { derivative: 0.0, ..surrogate });
        sums.loss += f64::from(weight * loss);
        for (sum, diagnostic) in sums.diagnostics.iter_mut().zip(diagnostics) {
            *sum += f64::from(weight * diagnostic);
        }
        *output = PolicyOutput {
            log_prob: shared + weight * derivative.log_prob,
            entropy: weight * derivative.entropy,
            kl_ref: weight * derivative.kl_ref,
            ..PolicyOutput::default()
        };
    }
}
