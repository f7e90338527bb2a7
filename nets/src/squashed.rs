//! The squashed Gaussian distribution over actions (Haarnoja et al., arXiv 1812.05905, appendix C): a = tanh u with u = mu + sigma epsilon and
//! epsilon ~ N(0, 1).
//!
//! The density of a row of actions is that of u divided by the slopes da/du = 1 - tanh^2 u:
//!
//! > log pi(a|s) = sum of (-epsilon^2 / 2 - log sigma - ln(2 pi) / 2 - ln(1 - tanh^2 u))

use serde::{Deserialize, Serialize};

use gradus_base::math::{exp_inline, ln_inline, tanh_inline};

/// ln(2 pi) / 2.
pub(crate) const HALF_LN_2PI: f32 = 0.918_938_5;

/// How the log standard deviation of a squashed Gaussian is kept within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogStdBounds {
    /// The network's output, clamped to -20 to 2, as in Stable-Baselines3. Beyond the bounds the derivative is 0.
    Clamp,
    /// A tanh of the network's output, scaled to -5 to 2, as in CleanRL.
    Tanh,
}

impl LogStdBounds {
    /// Returns the log standard deviation of a network's output, and its derivative.
    #[inline(always)]
    pub(crate) fn of(self, x: f32) -> (f32, f32) {
        match self {
            LogStdBounds::Clamp => {
                let (low, high) = (-20.0, 2.0);
                let y = if x > high { high } else { x };
                let y = if y < low { low } else { y };
                (y, if y == x { 1.0 } else { 0.0 })
            }
            LogStdBounds::Tanh => {
                let (low, half) = (-5.0_f32, 3.5_f32);
                let t = tanh_inline(x);
                (half.mul_add(t + 1.0, low), half * (1.0 - t * t))
            }
        }
    }
}

/// ln(1 - tanh^2 u) = 2 (ln 2 - |u| - ln(1 + exp(-2 |u|))), which is exact where tanh u rounds to 1.
#[inline(always)]
pub(crate) fn log_slope(u: f32) -> f32 {
    let u = u.abs();
    2.0 * (std::f32::consts::LN_2 - u - ln_inline(1.0 + exp_inline(-2.0 * u)))
}

/// The term of log pi(a|s) of one dimension, with noise `epsilon` and log standard deviation `log_std`.
#[inline(always)]
pub(crate) fn log_prob(epsilon: f32, log_std: f32, u: f32) -> f32 {
    -0.5 * epsilon * epsilon - log_std - HALF_LN_2PI - log_slope(u)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same number from f64: ln(1 - tanh^2 u) = -2 ln cosh u.
    fn truth(epsilon: f64, log_std: f64, u: f64) -> f64 {
        let log_cosh = u.abs() + (-2.0 * u.abs()).exp().ln_1p() - std::f64::consts::LN_2;
        -0.5 * epsilon * epsilon - log_std - 0.5 * std::f64::consts::TAU.ln() + 2.0 * log_cosh
    }

    #[test]
    fn log_probabilities_match_f64_for_u_up_to_20() {
        let mut worst = (0.0, 0.0);
        for i in -20_000..=20_000 {
            let u = i as f32 / 1000.0;
            for (epsilon, log_std) in [(0.0, 0.0), (1.5, -3.0), (-2.5, 1.0), (0.3, -19.0)] {
                let (got, expected) = (log_prob(epsilon, log_std, u), truth(epsilon.into(), log_std.into(), u.into()));
                // near 0, the error is relative to the largest term
                let error = (f64::from(got) - expected).abs() / expected.abs().max(0.1);
                worst = if error > worst.0 { (error, u) } else { worst };
            }
        }
        assert!(worst.0 < 1e-5, "relative error {} at u = {}", worst.0, worst.1);
    }

    /// The density of a, summed over the interval from -1 to 1, is 1: with a = tanh u, the integral of pi(a) da is that of
    /// pi(tanh u) (1 - tanh^2 u) du.
    #[test]
    fn the_density_integrates_to_1() {
        for (mean, log_std) in [(0.0_f32, 0.0_f32), (0.7, -1.0), (-2.0, 0.5), (3.0, -2.0)] {
            let (n, sigma) = (100_000, log_std.exp());
            // over a, in cells whose ends are at equal distances in u
            let ends: Vec<f64> =
                (0..=n).map(|i| (f64::from(mean) + (f64::from(i) / f64::from(n) - 0.5) * 16.0 * f64::from(sigma)).tanh()).collect();
            let mut integral = 0.0;
            for (i, cell) in ends.windows(2).enumerate() {
                let u = mean + ((i as f32 + 0.5) / n as f32 - 0.5) * 16.0 * sigma;
                integral += f64::from(log_prob((u - mean) / sigma, log_std, u)).exp() * (cell[1] - cell[0]);
            }
            assert!((integral - 1.0).abs() < 1e-3, "mean {mean}, log std {log_std}: {integral}");
        }
    }

    #[test]
    fn bounds_of_the_log_standard_deviation() {
        let clamp = [-30.0, -20.0, 0.5, 2.5].map(|x| LogStdBounds::Clamp.of(x));
        assert_eq!(clamp, [(-20.0, 0.0), (-20.0, 1.0), (0.5, 1.0), (2.0, 0.0)]);
        assert_eq!(LogStdBounds::Tanh.of(0.0), (-1.5, 3.5));
        for x in [-3.0_f32, -0.4, 1.2] {
            let (y, slope) = LogStdBounds::Tanh.of(x);
            let near = |x: f32| f64::from(LogStdBounds::Tanh.of(x).0);
            assert!((-5.0..=2.0).contains(&y) && ((near(x + 0.01) - near(x - 0.01)) / 0.02 - f64::from(slope)).abs() < 2e-3, "{x}");
        }
    }
}
