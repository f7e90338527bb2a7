//! The diagonal Gaussian distribution over actions, given by a row of means and a row of log standard deviations.
//!
//! In the formulas, mu is a mean, sigma a standard deviation and z = (a - mu) / sigma. Sums run over the dimensions, in order. An old or a
//! reference distribution is a row of [`Policy::distributions`](crate::Policy::distributions): the means, then the log standard deviations.

use crate::PolicyOutput;
use gradus_base::math::exp_inline;

/// ln(2 pi) / 2.
const HALF_LN_2PI: f32 = 0.918_938_5;

/// log pi(a|s) = sum of (-z^2 / 2 - log sigma - ln(2 pi) / 2).
#[inline(always)]
pub(crate) fn log_prob(means: &[f32], log_stds: &[f32], action: &[f32]) -> f32 {
    let mut sum = 0.0;
    for ((mean, log_std), a) in means.iter().zip(log_stds).zip(action) {
        let z = (a - mean) * exp_inline(-log_std);
        sum += -0.5 * z * z - log_std - HALF_LN_2PI;
    }
    sum
}

/// H = sum of (log sigma + ln(2 pi e) / 2).
#[inline(always)]
pub(crate) fn entropy(log_stds: &[f32]) -> f32 {
    let mut sum = 0.0;
    for log_std in log_stds {
        sum += log_std + (0.5 + HALF_LN_2PI);
    }
    sum
}

/// KL(old || new) = sum of (d + (exp(-2 d) - 1) / 2 + ((mu - mu_old) / sigma)^2 / 2), with d = log sigma - log sigma_old. It is exactly 0
/// if the two distributions are equal.
#[inline(always)]
pub(crate) fn kl(old: &[f32], means: &[f32], log_stds: &[f32]) -> f32 {
    let (old_means, old_log_stds) = old.split_at(means.len());
    let mut sum = 0.0;
    for ((mean, log_std), (old_mean, old_log_std)) in means.iter().zip(log_stds).zip(old_means.iter().zip(old_log_stds)) {
        let d = log_std - old_log_std;
        let z = (mean - old_mean) * exp_inline(-log_std);
        sum += d + 0.5 * (exp_inline(-2.0 * d) - 1.0) + 0.5 * z * z;
    }
    sum
}

/// Computes the derivatives of the loss with respect to means and log standard deviations from those with respect to log pi(a) and H:
/// d log pi / d mu = z / sigma, d log pi / d log sigma = z^2 - 1, and d H / d log sigma = 1.
#[inline(always)]
pub(crate) fn backward(
    (means, log_stds): (&[f32], &[f32]),
    action: &[f32],
    derivative: PolicyOutput,
    (d_means, d_log_stds): (&mut [f32], &mut [f32]),
) {
    for (k, a) in action.iter().enumerate() {
        let precision = exp_inline(-log_stds[k]);
        let z = (a - means[k]) * precision;
        d_means[k] = derivative.log_prob * (z * precision);
        d_log_stds[k] = derivative.log_prob * (z * z - 1.0) + derivative.entropy;
    }
}

/// Adds the derivatives through KL(old || new): d KL / d mu = (mu - mu_old) / sigma^2, and
/// d KL / d log sigma = 1 - (sigma_old / sigma)^2 - ((mu - mu_old) / sigma)^2.
#[inline(always)]
pub(crate) fn backward_kl(
    old: &[f32],
    (means, log_stds): (&[f32], &[f32]),
    derivative: f32,
    (d_means, d_log_stds): (&mut [f32], &mut [f32]),
) {
    let n = means.len();
    for k in 0..n {
        let precision = exp_inline(-log_stds[k]);
        let z = (means[k] - old[k]) * precision;
        d_means[k] += derivative * (z * precision);
        d_log_stds[k] += derivative * (1.0 - exp_inline(-2.0 * (log_stds[k] - old[n + k])) - z * z);
    }
}

/// KL(new || reference) = sum of (d + (exp(-2 d) - 1) / 2 + ((mu - mu_ref) / sigma_ref)^2 / 2), with d = log sigma_ref - log sigma. It is
/// exactly 0 if the two distributions are equal.
#[inline(always)]
pub(crate) fn kl_ref(reference: &[f32], means: &[f32], log_stds: &[f32]) -> f32 {
    let (ref_means, ref_log_stds) = reference.split_at(means.len());
    let mut sum = 0.0;
    for ((mean, log_std), (ref_mean, ref_log_std)) in means.iter().zip(log_stds).zip(ref_means.iter().zip(ref_log_stds)) {
        let d = ref_log_std - log_std;
        let z = (mean - ref_mean) * exp_inline(-ref_log_std);
        sum += d + 0.5 * (exp_inline(-2.0 * d) - 1.0) + 0.5 * z * z;
    }
    sum
}

/// Adds the derivatives through KL(new || reference): d KL / d mu = (mu - mu_ref) / sigma_ref^2, and
/// d KL / d log sigma = (sigma / sigma_ref)^2 - 1.
#[inline(always)]
pub(crate) fn backward_kl_ref(
    reference: &[f32],
    (means, log_stds): (&[f32], &[f32]),
    derivative: f32,
    (d_means, d_log_stds): (&mut [f32], &mut [f32]),
) {
    let n = means.len();
    for k in 0..n {
        let precision = exp_inline(-reference[n + k]);
        let z = (means[k] - reference[k]) * precision;
        d_means[k] += derivative * (z * precision);
        d_log_stds[k] += derivative * (exp_inline(-2.0 * (reference[n + k] - log_stds[k])) - 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A distribution with standard deviations 1/2 and 2.
    const MEANS: [f32; 2] = [1.0, -0.5];
    const LOG_STDS: [f32; 2] = [-std::f32::consts::LN_2, std::f32::consts::LN_2];

    fn near(got: f32, expected: f32) {
        assert!((got - expected).abs() < 2e-6, "expected {expected}, got {got}");
    }

    /// For z = 1 and -1, log pi = -1/2 - 1/2 - ln(1/2) - ln 2 - ln(2 pi). H = ln(1/2) + ln 2 + ln(2 pi e).
    #[test]
    fn hand_computed_table() {
        let two_pi = std::f32::consts::TAU;
        near(log_prob(&MEANS, &LOG_STDS, &[1.5, -2.5]), -1.0 - two_pi.ln());
        near(log_prob(&MEANS, &LOG_STDS, &MEANS), -two_pi.ln());
        near(entropy(&LOG_STDS), two_pi.ln() + 1.0);
        near(entropy(&[0.0]), 1.418_938_5);
    }

    /// KL(N(0, 1) || N(1, 2^2)) = ln 2 + (1 + 1) / 8 - 1/2, and KL(N(1, 2^2) || N(0, 1)) = -ln 2 + (4 + 1) / 2 - 1/2.
    #[test]
    fn divergences_of_two_gaussians() {
        let (narrow, wide) = ([0.0, 0.0], [1.0, std::f32::consts::LN_2]);
        near(kl(&narrow, &wide[..1], &wide[1..]), std::f32::consts::LN_2 - 0.25);
        near(kl(&wide, &narrow[..1], &narrow[1..]), 2.0 - std::f32::consts::LN_2);
        assert_eq!(kl(&[1.0, -0.5, LOG_STDS[0], LOG_STDS[1]], &MEANS, &LOG_STDS), 0.0);
    }

    /// KL(new || reference) has its own derivatives. For N(1, 2^2) and the reference N(0, 1), they are (1 - 0) / 1 for mu and 4 / 1 - 1 for
    /// log sigma.
    #[test]
    fn divergence_from_a_reference() {
        let (narrow, wide) = ([0.0, 0.0], [1.0, std::f32::consts::LN_2]);
        near(kl_ref(&narrow, &wide[..1], &wide[1..]), 2.0 - std::f32::consts::LN_2);
        near(kl_ref(&wide, &narrow[..1], &narrow[1..]), std::f32::consts::LN_2 - 0.25);
        assert_eq!(kl_ref(&[1.0, -0.5, LOG_STDS[0], LOG_STDS[1]], &MEANS, &LOG_STDS), 0.0);
        let (mut d_means, mut d_log_stds) = ([0.5], [0.0]);
        backward_kl_ref(&narrow, (&wide[..1], &wide[1..]), 2.0, (&mut d_means, &mut d_log_stds));
        near(d_means[0], 2.5);
        near(d_log_stds[0], 6.0);
    }

    #[test]
    fn derivatives_by_hand() {
        let (mut d_means, mut d_log_stds) = ([f32::NAN; 2], [f32::NAN; 2]);
        let of_log_prob = PolicyOutput { log_prob: 1.0, ..Default::default() };
        backward((&MEANS, &LOG_STDS), &[2.0, -2.5], of_log_prob, (&mut d_means, &mut d_log_stds));
        // z = 2 and -1
        for (got, expected) in [(d_means[0], 4.0), (d_means[1], -0.5), (d_log_stds[0], 3.0), (d_log_stds[1], 0.0)] {
            near(got, expected);
        }
        let of_entropy = PolicyOutput { entropy: 0.5, ..Default::default() };
        backward((&MEANS, &LOG_STDS), &[2.0, -2.5], of_entropy, (&mut d_means, &mut d_log_stds));
        assert_eq!((d_means, d_log_stds), ([0.0; 2], [0.5; 2]));
        // old: means 0 and -0.5, standard deviations 1 and 2
        backward_kl(&[0.0, -0.5, 0.0, LOG_STDS[1]], (&MEANS, &LOG_STDS), 2.0, (&mut d_means, &mut d_log_stds));
        for (got, expected) in [(d_means[0], 8.0), (d_means[1], 0.0), (d_log_stds[0], 0.5 + 2.0 * (1.0 - 4.0 - 4.0)), (d_log_stds[1], 0.5)]
        {
            near(got, expected);
        }
    }
}
