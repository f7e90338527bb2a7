//! The categorical distribution over actions that a row of logits stands for.

use crate::Output;
use crate::math::{exp_inline, ln_inline};

/// Turns logits into log-probabilities: log p_j = z_j - max z - ln sum exp(z - max z).
#[inline(always)]
pub(crate) fn log_softmax(logits: &mut [f32]) {
    let max = logits.iter().fold(f32::NEG_INFINITY, |max, z| if *z > max { *z } else { max });
    let mut sum = 0.0;
    for z in logits.iter() {
        sum += exp_inline(*z - max);
    }
    let log_sum = ln_inline(sum);
    for z in logits {
        *z = (*z - max) - log_sum; // in this order: large logits lose nothing
    }
}

/// H = - sum p log p, where an action of probability 0 counts 0.
#[inline(always)]
pub(crate) fn entropy(log_probs: &[f32]) -> f32 {
    let mut sum = 0.0;
    for l in log_probs {
        let p = exp_inline(*l);
        sum += if p > 0.0 { p * *l } else { 0.0 };
    }
    -sum
}

/// Replaces log-probabilities by the derivatives of the loss with respect to the logits, from those with respect to log pi(a) and H:
/// d log pi(a) / d z_j = \[j = a\] - p_j, and d H / d z_j = - p_j (log p_j + H).
#[inline(always)]
pub(crate) fn backward(log_probs: &mut [f32], action: usize, entropy: f32, derivative: Output) {
    for (j, l) in log_probs.iter_mut().enumerate() {
        let p = exp_inline(*l);
        let chosen = if j == action { 1.0 } else { 0.0 };
        let of_entropy = if p > 0.0 { -p * (*l + entropy) } else { 0.0 };
        *l = derivative.log_prob * (chosen - p) + derivative.entropy * of_entropy;
    }
}

/// The action that a uniform number of [0, 1) stands for: the first whose cumulated probability exceeds it.
#[inline(always)]
pub(crate) fn sample(log_probs: &[f32], uniform: f32) -> usize {
    let mut cumulated = 0.0;
    for (action, l) in log_probs.iter().enumerate() {
        cumulated += exp_inline(*l);
        if uniform < cumulated {
            return action;
        }
    }
    // rounding may leave the sum a little below 1: then it is the last action that can happen at all
    log_probs.iter().rposition(|l| *l > -87.0).unwrap_or(0)
}

/// The most probable action; the lowest of equals.
#[inline(always)]
pub(crate) fn greedy(log_probs: &[f32]) -> usize {
    let mut best = 0;
    for (action, l) in log_probs.iter().enumerate() {
        if *l > log_probs[best] {
            best = action;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Logits ln 1, ln 2, ln 5: probabilities 1/8, 2/8, 5/8.
    fn distribution() -> [f32; 3] {
        let mut z = [0.0, 2.0_f32.ln(), 5.0_f32.ln()];
        log_softmax(&mut z);
        z
    }

    #[test]
    fn hand_computed_table() {
        let l = distribution();
        for (l, p) in l.iter().zip([0.125_f32, 0.25, 0.625]) {
            assert!((l - p.ln()).abs() < 1e-6, "{l} is not ln {p}");
        }
        assert!((entropy(&l) - 0.900_256).abs() < 1e-6, "{}", entropy(&l));
        assert_eq!((greedy(&l), greedy(&[0.5, 0.7, 0.7])), (2, 1));
        let chosen: Vec<usize> = [0.0, 0.124, 0.126, 0.374, 0.376, 0.999_999_9].iter().map(|u| sample(&l, *u)).collect();
        assert_eq!(chosen, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn large_logits_do_not_overflow() {
        let mut z = [1000.0, 0.0, -1000.0];
        log_softmax(&mut z);
        assert_eq!(z, [0.0, -1000.0, -2000.0]);
        assert_eq!(entropy(&z), 0.0);
        backward(&mut z, 0, 0.0, Output { log_prob: 1.0, entropy: 1.0, value: 0.0 });
        assert!(z.iter().all(|d| d.is_finite()), "{z:?}");
    }

    /// Chi-squared with 2 degrees of freedom: 13.8 is exceeded once in a thousand.
    #[test]
    fn samples_follow_the_distribution() {
        let l = distribution();
        let mut stream = gradus_envs::random::Stream::new(1, gradus_envs::random::Purpose::Action, 0);
        let mut counts = [0.0_f64; 3];
        for _ in 0..80_000 {
            counts[sample(&l, stream.unit_f32())] += 1.0;
        }
        let chi2: f64 = counts.iter().zip([10_000.0, 20_000.0, 50_000.0]).map(|(c, e): (&f64, f64)| (c - e).powi(2) / e).sum();
        assert!(chi2 < 13.8, "chi-squared {chi2}: {counts:?}");
    }
}
