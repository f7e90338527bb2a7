//! KL-UCB: upper confidence bounds from the Kullback-Leibler divergence (Garivier and Cappe, COLT 2011).

use gradus_base::math::{ln, powi};

/// Returns the divergence of a Bernoulli distribution with probability `q` from one with `p`: p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)).
///
/// ```
/// use gradus_agents::bandit::bernoulli_kl;
///
/// assert_eq!(bernoulli_kl(0.3, 0.3), 0.0);
/// assert!((bernoulli_kl(0.2, 0.5) - 0.192_745).abs() < 1e-6);
/// assert!((bernoulli_kl(0.5, 0.4999) / 2e-8 - 1.0).abs() < 1e-6);
/// assert_eq!(bernoulli_kl(0.5, 1.0), f64::INFINITY);
/// ```
pub fn bernoulli_kl(p: f64, q: f64) -> f64 {
    let d = q - p;
    if d.abs() < 0.05 * p.min(1.0 - p) {
        // close to each other the logarithms cancel: the series of -p ln(1 + d / p) - (1 - p) ln(1 - d / (1 - p)), whose first-order terms cancel
        let series = |share: f64, x: f64| (2..10).map(|k| share * powi(-x, k) / f64::from(k)).sum::<f64>();
        return series(p, d / p) + series(1.0 - p, -d / (1.0 - p));
    }
    let term = |p: f64, q: f64| match (p > 0.0, q > 0.0) {
        (false, _) => 0.0,
        (true, false) => f64::INFINITY,
        (true, true) => p * f64::from(ln((p / q) as f32)),
    };
    (term(p, q) + term(1.0 - p, 1.0 - q)).max(0.0)
}

/// Returns the largest q with n KL(mean, q) <= ln t, the upper confidence bound of an arm with `n` rewards of 0 or 1 at step `t`.
///
/// ```
/// use gradus_agents::bandit::{bernoulli_kl, kl_ucb};
///
/// let bound = kl_ucb(0.4, 20, 1000);
/// assert!((20.0 * bernoulli_kl(0.4, bound) - 1000_f64.ln()).abs() < 1e-4);
/// ```
pub fn kl_ucb(mean: f64, n: u32, t: u32) -> f64 {
    let budget = f64::from(ln(t as f32)) / f64::from(n);
    let (mut low, mut high) = (mean, 1.0);
    // 24 bisections: to the precision of the logarithm
    for _ in 0..24 {
        let middle = 0.5 * (low + high);
        if bernoulli_kl(mean, middle) <= budget { low = middle } else { high = middle }
    }
    low
}

/// Returns the bound for normal rewards with variance 1, where KL(mean, q) = (q - mean)^2 / 2: mean + sqrt(2 ln t / n).
pub fn gaussian_kl_ucb(mean: f64, n: u32, t: u32) -> f64 {
    mean + (2.0 * f64::from(ln(t as f32)) / f64::from(n)).sqrt()
}

/// Returns the constant of the bound of Lai and Robbins (1985): for a rule that is good on all problems, the regret after t steps is at least this number times ln t,
/// asymptotically. It is the sum over the arms that are not best of (best value - value) / KL(value, best value), where `kl` is the divergence between two arms.
///
/// ```
/// let normal = |x: f64, y: f64| 0.5 * (x - y) * (x - y);
/// assert_eq!(gradus_agents::bandit::lai_robbins(&[1.0, 0.5, 0.0], normal), 6.0); // 2 / 0.5 + 2 / 1
/// ```
pub fn lai_robbins(values: &[f64], kl: impl Fn(f64, f64) -> f64) -> f64 {
    let best = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    values.iter().filter(|value| **value < best).map(|value| (best - value) / kl(*value, best)).sum()
}
