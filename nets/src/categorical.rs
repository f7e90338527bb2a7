//! The categorical distribution over actions, given by a row of logits.

use crate::{Choice, PolicyOutput};
use gradus_base::math::{exp_inline, ln_inline};
use gradus_base::simd::{max16, sum16};

/// Splits a row into groups of sixteen numbers. The last group is padded with minus infinity, whose exponential is 0.
#[inline(always)]
fn sixteens(row: &[f32]) -> impl Iterator<Item = [f32; 16]> {
    let (groups, rest) = row.as_chunks::<16>();
    let mut last = [f32::NEG_INFINITY; 16];
    last[..rest.len()].copy_from_slice(rest);
    groups.iter().copied().chain((!rest.is_empty()).then_some(last))
}

/// Turns logits into log-probabilities: log p_j = z_j - max z - ln sum exp(z - max z). Processes sixteen logits at a time and adds the
/// sixteen partial sums as a tree.
#[inline(always)]
pub(crate) fn log_softmax(logits: &mut [f32]) {
    let (mut max, mut sum) = ([f32::NEG_INFINITY; 16], [0.0; 16]);
    for z in sixteens(logits) {
        for i in 0..16 {
            max[i] = if z[i] > max[i] { z[i] } else { max[i] };
        }
    }
    let max = max16(max);
    for z in sixteens(logits) {
        for i in 0..16 {
            sum[i] += exp_inline(z[i] - max);
        }
    }
    let sum = ln_inline(sum16(sum));
    for z in logits {
        *z = (*z - max) - sum; // in this order, large logits keep their precision
    }
}

/// As [`log_softmax`], for `L` rows at once; `logits[j]` holds the logits of action j.
#[inline(always)]
pub(crate) fn log_softmax_of<const L: usize>(logits: &mut [[f32; L]]) {
    let (mut max, mut sum) = ([f32::NEG_INFINITY; L], [0.0; L]);
    for z in logits.iter() {
        for i in 0..L {
            max[i] = if z[i] > max[i] { z[i] } else { max[i] };
        }
    }
    for z in logits.iter() {
        for i in 0..L {
            sum[i] += exp_inline(z[i] - max[i]);
        }
    }
    // loops instead of `map`, here and below: a closure that is not inlined is compiled without the vector instructions
    for sum in &mut sum {
        *sum = ln_inline(*sum);
    }
    for z in logits {
        for i in 0..L {
            z[i] = (z[i] - max[i]) - sum[i]; // in this order, large logits keep their precision
        }
    }
}

/// Computes p from log p.
#[inline(always)]
pub(crate) fn probabilities_of<const L: usize>(log_probs: &[[f32; L]], probabilities: &mut [[f32; L]]) {
    for (l, p) in log_probs.iter().zip(probabilities) {
        for i in 0..L {
            p[i] = exp_inline(l[i]);
        }
    }
}

/// H = - sum p log p, where an action of probability 0 adds 0.
#[inline(always)]
pub(crate) fn entropy(log_probs: &[f32]) -> f32 {
    let mut sum = [0.0; 16];
    for l in sixteens(log_probs) {
        for i in 0..16 {
            sum[i] += entropy_term(l[i], exp_inline(l[i]));
        }
    }
    -sum16(sum)
}

/// As [`entropy`], for `L` rows at once.
#[inline(always)]
pub(crate) fn entropy_of<const L: usize>(log_probs: &[[f32; L]], probabilities: &[[f32; L]]) -> [f32; L] {
    let mut sum = [0.0; L];
    for (l, p) in log_probs.iter().zip(probabilities) {
        for i in 0..L {
            sum[i] += entropy_term(l[i], p[i]);
        }
    }
    for sum in &mut sum {
        *sum = -*sum;
    }
    sum
}

#[inline(always)]
fn entropy_term(l: f32, p: f32) -> f32 {
    if p > 0.0 { p * l } else { 0.0 }
}

/// Computes the derivatives of the loss with respect to the logits from those with respect to log pi(a) and H:
/// d log pi(a) / d z_j = \[j = a\] - p_j, and d H / d z_j = - p_j (log p_j + H).
#[inline(always)]
pub(crate) fn backward(log_probs: &[f32], action: usize, entropy: f32, derivative: PolicyOutput, d_logits: &mut [f32]) {
    for (group, (l, d)) in sixteens(log_probs).zip(d_logits.chunks_mut(16)).enumerate() {
        let mut slopes = [0.0; 16];
        for i in 0..16 {
            slopes[i] = slope(l[i], exp_inline(l[i]), 16 * group + i == action, entropy, (derivative.log_prob, derivative.entropy));
        }
        d.copy_from_slice(&slopes[..d.len()]);
    }
}

/// As [`backward`], for `L` rows at once.
#[inline(always)]
pub(crate) fn backward_of<const L: usize>(
    log_probs: &[[f32; L]],
    probabilities: &[[f32; L]],
    actions: &[u32; L],
    entropies: &[f32; L],
    (d_log_probs, d_entropies): (&[f32; L], &[f32; L]),
    d_logits: &mut [[f32; L]],
) {
    for (j, ((l, p), d)) in log_probs.iter().zip(probabilities).zip(d_logits).enumerate() {
        for i in 0..L {
            d[i] = slope(l[i], p[i], actions[i] == j as u32, entropies[i], (d_log_probs[i], d_entropies[i]));
        }
    }
}

#[inline(always)]
fn slope(l: f32, p: f32, is_chosen: bool, entropy: f32, (d_log_prob, d_entropy): (f32, f32)) -> f32 {
    let chosen = if is_chosen { 1.0 } else { 0.0 };
    let of_entropy = if p > 0.0 { -p * (l + entropy) } else { 0.0 };
    d_log_prob * (chosen - p) + d_entropy * of_entropy
}

/// Sets the logits of forbidden actions to minus infinity.
#[inline(always)]
pub(crate) fn mask(logits: &mut [f32], allowed: &[bool]) {
    for (z, allowed) in logits.iter_mut().zip(allowed) {
        *z = if *allowed { *z } else { f32::NEG_INFINITY };
    }
}

/// KL(old || new) = sum p_old (log p_old - log p), from log-probabilities. It is exactly 0 if the two distributions are equal.
#[inline(always)]
pub(crate) fn kl(old: &[f32], log_probs: &[f32]) -> f32 {
    let mut sum = 0.0;
    for (old, l) in old.iter().zip(log_probs) {
        let p = exp_inline(*old);
        sum += if p > 0.0 { p * (*old - *l) } else { 0.0 };
    }
    sum
}

/// Adds the derivatives through KL(old || new): d KL / d z_j = p_j - p_old_j.
#[inline(always)]
pub(crate) fn backward_kl(old: &[f32], log_probs: &[f32], derivative: f32, d_logits: &mut [f32]) {
    for ((old, l), d) in old.iter().zip(log_probs).zip(d_logits) {
        *d += derivative * (exp_inline(*l) - exp_inline(*old));
    }
}

/// Adds the derivatives through KL(new || reference): d KL / d z_j = p_j (log p_j - log r_j - KL), where r_j is the reference's probability
/// of action j. The value of KL is `divergence`. An action of probability 0 adds 0 for any reference.
#[inline(always)]
pub(crate) fn backward_kl_ref(log_probs: &[f32], reference: &[f32], divergence: f32, derivative: f32, d_logits: &mut [f32]) {
    for ((l, r), d) in log_probs.iter().zip(reference).zip(d_logits) {
        let p = exp_inline(*l);
        *d += if p > 0.0 { derivative * (p * ((*l - *r) - divergence)) } else { 0.0 };
    }
}

/// Multiplies a change of the logits by weight x (diag p - p p'), in place. The matrix diag p - p p' is the distribution's Fisher
/// information.
#[inline(always)]
pub(crate) fn fisher(log_probs: &[f32], weight: f32, change: &mut [f32]) {
    let mut mean = 0.0;
    for (l, t) in log_probs.iter().zip(change.iter()) {
        mean += exp_inline(*l) * *t;
    }
    for (l, t) in log_probs.iter().zip(change) {
        *t = weight * (exp_inline(*l) * (*t - mean));
    }
}

/// Returns the first action whose cumulative probability exceeds `uniform`, a number of [0, 1).
#[inline(always)]
pub(crate) fn sample(log_probs: &[f32], uniform: f32) -> usize {
    let mut cumulated = 0.0;
    for (group, l) in sixteens(log_probs).enumerate() {
        let mut probabilities = [0.0; 16];
        for i in 0..16 {
            probabilities[i] = exp_inline(l[i]);
        }
        for (i, p) in probabilities.into_iter().enumerate() {
            cumulated += p;
            if uniform < cumulated {
                return 16 * group + i;
            }
        }
    }
    last_possible(log_probs.iter().copied())
}

/// As [`sample`], for `L` rows at once; returns the actions and their log-probabilities.
#[inline(always)]
pub(crate) fn sample_of<const L: usize>(log_probs: &[[f32; L]], uniforms: &[f32; L]) -> ([u32; L], [f32; L]) {
    let n = log_probs.len() as u32;
    let (mut cumulated, mut actions, mut chosen) = ([0.0; L], [n; L], [0.0; L]);
    for (action, l) in (0..n).zip(log_probs) {
        for i in 0..L {
            cumulated[i] += exp_inline(l[i]);
            let is_first = (uniforms[i] < cumulated[i]) & (actions[i] == n);
            (actions[i], chosen[i]) = if is_first { (action, l[i]) } else { (actions[i], chosen[i]) };
        }
    }
    for i in 0..L {
        if actions[i] == n {
            let action = last_possible(log_probs.iter().map(|l| l[i]));
            (actions[i], chosen[i]) = (action as u32, log_probs[action][i]);
        }
    }
    (actions, chosen)
}

/// Returns the last action with a probability above e^-87. It is selected if rounding leaves the sum of all probabilities at or below the
/// uniform number.
#[inline(always)]
fn last_possible(mut log_probs: impl ExactSizeIterator<Item = f32> + DoubleEndedIterator) -> usize {
    log_probs.rposition(|l| l > -87.0).unwrap_or(0)
}

/// Returns the most probable action, or the first of several.
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

/// Chooses the action of row `row`.
#[inline(always)]
pub(crate) fn choose(log_probs: &[f32], choice: &mut Choice<'_>, row: usize) -> usize {
    match choice {
        Choice::Greedy => greedy(log_probs),
        Choice::Sample(streams) => sample(log_probs, streams[row].unit_f32()),
        Choice::Truncated(streams, sampling) => {
            let mut left = log_probs.to_vec();
            sampling.truncate(&mut left);
            sample(&left, streams[row].unit_f32())
        }
    }
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
        let mut d = [f32::NAN; 3];
        backward(&z, 0, 0.0, PolicyOutput { log_prob: 1.0, entropy: 1.0, ..Default::default() }, &mut d);
        assert!(d.iter().all(|d| d.is_finite()), "{d:?}");
    }

    /// Without the first action, the other two have probabilities 2/7 and 5/7.
    #[test]
    fn masked_actions_have_probability_0_and_no_gradient() {
        let mut z = [9.0, 2.0_f32.ln(), 5.0_f32.ln()];
        mask(&mut z, &[false, true, true]);
        log_softmax(&mut z);
        assert_eq!(z[0], f32::NEG_INFINITY);
        assert!((z[1] - (2.0_f32 / 7.0).ln()).abs() < 1e-6, "{z:?}");
        let h = entropy(&z);
        assert!((h - 0.598_269_6).abs() < 1e-6, "{h}");
        let mut d = [f32::NAN; 3];
        backward(&z, 1, h, PolicyOutput { log_prob: 1.0, entropy: 1.0, ..Default::default() }, &mut d);
        backward_kl(&[f32::NEG_INFINITY, 0.5_f32.ln(), 0.5_f32.ln()], &z, 1.0, &mut d);
        assert!(d[0] == 0.0 && d.iter().all(|d| d.is_finite()), "{d:?}");
        let mut change = [7.0, 1.0, -1.0];
        fisher(&z, 1.0, &mut change);
        assert!(change[0] == 0.0 && (change[1] - 20.0 / 49.0).abs() < 1e-6, "{change:?}");
        for u in [0.0, 0.28, 0.29, 0.999_999_9] {
            assert_eq!(sample(&z, u), if u < 2.0 / 7.0 { 1 } else { 2 });
        }
        assert_eq!((greedy(&z), kl(&z, &z)), (2, 0.0));
    }

    /// KL((1/8, 2/8, 5/8) || (1/2, 1/4, 1/4)) = ln(1/4) / 8 + 5/8 ln(5/2).
    #[test]
    fn divergence_by_hand() {
        let new = [0.5_f32.ln(), 0.25_f32.ln(), 0.25_f32.ln()];
        assert!((kl(&distribution(), &new) - 0.399_395).abs() < 1e-6, "{}", kl(&distribution(), &new));
        let mut d = [1.0; 3];
        backward_kl(&distribution(), &new, 2.0, &mut d);
        for (d, expected) in d.iter().zip([1.75, 1.0, 0.25]) {
            assert!((d - expected).abs() < 1e-6, "expected {expected}, got {d}");
        }
    }

    /// With the distributions of [`divergence_by_hand`], d_j = p_j (log(p_j / r_j) - KL). An action of probability 0 adds nothing.
    #[test]
    fn divergence_from_a_reference_by_hand() {
        let reference = [0.5_f32.ln(), 0.25_f32.ln(), 0.25_f32.ln()];
        let divergence = kl(&distribution(), &reference);
        let mut d = [1.0; 3];
        backward_kl_ref(&distribution(), &reference, divergence, 2.0, &mut d);
        for (d, expected) in d.iter().zip([0.553_578, 0.800_303, 1.646_12]) {
            assert!((d - expected).abs() < 1e-5, "expected {expected}, got {d}");
        }
        let never = [f32::NEG_INFINITY, 0.5_f32.ln(), 0.5_f32.ln()];
        let reference = [f32::NEG_INFINITY, 0.25_f32.ln(), 0.75_f32.ln()];
        let divergence = kl(&never, &reference);
        assert!((divergence - 0.5 * (4.0_f32 / 3.0).ln()).abs() < 1e-6, "{divergence}");
        backward_kl_ref(&never, &reference, divergence, 1.0, &mut d);
        assert!(d.iter().all(|d| d.is_finite()), "{d:?}");
    }

    /// A row gets the same action alone and together with others. The first round uses 1 in place of a uniform number: it tests the rare
    /// case that rounding leaves the sum of the probabilities at or below the uniform number. The second round uses 0, which must not
    /// select a masked action.
    #[test]
    fn rows_are_sampled_the_same_together_and_alone() {
        let mut stream = gradus_base::random::Stream::new(2, gradus_base::random::Purpose::Action, 0);
        let mut columns: [[f32; 16]; 5] = [(); 5].map(|()| [(); 16].map(|()| 4.0 * stream.unit_f32()));
        columns[4][..8].fill(f32::NEG_INFINITY);
        columns[0][3] = f32::NEG_INFINITY;
        log_softmax_of(&mut columns);
        for round in 0..200_usize {
            let uniforms = [(); 16].map(|()| [1.0, 0.0].get(round).copied().unwrap_or_else(|| stream.unit_f32()));
            let (actions, log_probs) = sample_of(&columns, &uniforms);
            for lane in 0..16 {
                let row = columns.map(|column| column[lane]);
                let action = sample(&row, uniforms[lane]);
                assert_eq!((actions[lane] as usize, log_probs[lane]), (action, row[action]), "lane {lane} of round {round}");
            }
        }
    }

    /// Chi-squared with 2 degrees of freedom exceeds 13.8 with probability 1/1000.
    #[test]
    fn samples_follow_the_distribution() {
        let l = distribution();
        let mut stream = gradus_base::random::Stream::new(1, gradus_base::random::Purpose::Action, 0);
        let mut counts = [0.0_f64; 3];
        for _ in 0..80_000 {
            counts[sample(&l, stream.unit_f32())] += 1.0;
        }
        let chi2: f64 = counts.iter().zip([10_000.0, 20_000.0, 50_000.0]).map(|(c, e): (&f64, f64)| (c - e).powi(2) / e).sum();
        assert!(chi2 < 13.8, "chi-squared {chi2}: {counts:?}");
    }
}
