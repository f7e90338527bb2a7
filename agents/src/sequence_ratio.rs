//! One ratio for a whole text (Zheng et al., arXiv 2507.18071, "GSPO", equations 5 and 7), in place of one for each decision.
//!
//! > s = exp(1/T sum_t (log pi_t - log pi_old,t)),   L = - min(s A, clip(s, 1 - eps, 1 + eps_high) A)
//!
//! The derivative of s with respect to each log pi_t is s / T. Every decision of the text has this loss, with its own weight: with
//! `sequence-mean` a text's weights sum to 1/B, which is the paper's objective. The KL penalty and the entropy stay decision by decision.

use gradus_nets::math::exp;
use gradus_nets::{LossGrad, Moves, Objective, PolicyOutput, Sums};

use crate::grpo::{APPROX_KL, CLIP_FRACTION, CLIP_HIGH, CLIP_LOW, GrpoObjective, POLICY_LOSS};
use crate::surrogate::LOG_RATIO_LIMIT;

/// exp of the mean log-ratio of a text's decisions.
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

/// GRPO's objective with the ratio of whole texts: a slice must be the decisions of one text.
pub struct SequenceObjective<'a>(pub &'a GrpoObjective<'a>);

impl Objective for SequenceObjective<'_> {
    /// A decision that is a text of its own.
    fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
        self.0.decision(i, now)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        // who has weight 0 is not there
        let log_ratios: Vec<f32> = (indices.iter().zip(weights).zip(&*outputs))
            .filter(|((_, weight), _)| **weight != 0.0)
            .map(|((i, _), now)| now.log_prob - self.0.old_log_probs[*i as usize])
            .collect();
        let Some(first) = indices.first() else { return };
        let advantage = self.0.advantages[*first as usize];
        let clip = self.0.clip;
        let surrogate = clip.surrogate(mean(log_ratios.iter().copied()), advantage);
        let total: f32 = weights.iter().sum();
        let shared = total * surrogate.derivative / log_ratios.len().max(1) as f32;
        let (low, high) = clip.clips(surrogate.ratio, advantage);

        for ((index, weight), output) in indices.iter().zip(weights).zip(outputs) {
            if *weight == 0.0 {
                *output = PolicyOutput::default();
                continue;
            }
            let (i, now) = (*index as usize, *output);
            let mut alone = self.0.decision(i, now);
            let charge = self.0.kl_penalty.charge(i, now);
            alone.loss = surrogate.loss + charge.loss - self.0.entropy_coefficient * now.entropy;
            alone.diagnostics[POLICY_LOSS] = surrogate.loss;
            alone.diagnostics[APPROX_KL] = (surrogate.ratio - 1.0) - surrogate.log_ratio;
            alone.diagnostics[CLIP_FRACTION] = f32::from(u8::from(clip.is_outside(surrogate.ratio)));
            alone.diagnostics[CLIP_LOW] = f32::from(u8::from(low));
            alone.diagnostics[CLIP_HIGH] = f32::from(u8::from(high));
            sums.loss += f64::from(weight * alone.loss);
            for (sum, diagnostic) in sums.diagnostics.iter_mut().zip(alone.diagnostics) {
                *sum += f64::from(weight * diagnostic);
            }
            *output = PolicyOutput {
                log_prob: shared + weight * charge.d_log_prob,
                entropy: weight * alone.derivative.entropy,
                kl_ref: weight * charge.d_kl_ref,
                ..PolicyOutput::default()
            };
        }
    }

    fn moves(&self) -> Moves {
        self.0.moves()
    }
}
