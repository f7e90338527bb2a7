//! The difference between two policies that were evaluated on the same problems.
//!
//! The difficulty of a problem affects both policies' scores and cancels in their difference. So the bootstrap resamples problems, each
//! with both of its scores (Efron and Tibshirani, "An introduction to the bootstrap", 1993, chapter 8).

use super::{Bootstrap, Estimate, Scores, ScoresError, mean};

/// Returns the mean of x - y over the problems, and its percentile interval.
///
/// > d = mean over i of (x_i - y_i)
///
/// The problems i are resampled with replacement.
///
/// The interval covers other samples of problems for these two policies. It does not cover other training seeds.
///
/// ```
/// use gradus_statistics::{Bootstrap, mean_paired_difference};
///
/// let (x, y) = ([0.9, 0.2, 0.6, 1.0], [0.8, 0.1, 0.5, 0.9]); // x is better by 0.1 on every problem
/// let difference = mean_paired_difference(&x, &y, &Bootstrap::default())?;
/// assert!((difference.point - 0.1).abs() < 1e-12 && difference.high - difference.low < 1e-12);
/// # Ok::<(), gradus_statistics::ScoresError>(())
/// ```
///
/// # Panics
/// If `x` and `y` have different lengths.
pub fn mean_paired_difference(x: &[f64], y: &[f64], bootstrap: &Bootstrap) -> Result<Estimate, ScoresError> {
    assert_eq!(x.len(), y.len(), "paired difference: expected two scores of each problem");
    let differences = x.iter().zip(y).map(|(x, y)| x - y).collect();
    Ok(bootstrap.interval(&Scores::new(vec![differences])?, mean))
}

#[cfg(test)]
mod tests {
    use gradus_base::threads;

    use super::*;

    /// By hand: the differences 0, 0, 0 and 1 have 4^4 equally likely resamples. The mean of a resample is a quarter of a binomial number
    /// of 4 draws with p = 1/4. Since P(0) = 81/256, P(4) = 1/256 and P(3 or 4) = 13/256, the middle 80 % of the means lies between 0 and
    /// 2/4, and the middle 95 % between 0 and 3/4.
    #[test]
    fn the_interval_of_four_pairs_matches_a_calculation_by_hand() {
        let (x, y) = ([5.0, 2.0, -1.0, 8.0], [5.0, 2.0, -1.0, 7.0]);
        for (level, high) in [(0.8, 0.5), (0.95, 0.75), (0.999, 1.0)] {
            let estimate = mean_paired_difference(&x, &y, &Bootstrap { level, ..Bootstrap::default() }).unwrap();
            assert_eq!(estimate, Estimate { point: 0.25, low: 0.0, high }, "{level}");
            let turned = mean_paired_difference(&y, &x, &Bootstrap { level, ..Bootstrap::default() }).unwrap();
            assert_eq!(turned, Estimate { point: -0.25, low: -high, high: 0.0 }, "{level}");
        }
    }

    /// ```text
    /// import numpy as np, scipy.stats                                    # numpy 2.4.6, scipy 1.17.1
    /// i = np.arange(145)
    /// x, y = (7 * i % 11) / 10 + (i % 3) / 4, (7 * i % 11) / 10 + (i % 5) / 8 - 0.1
    /// r = scipy.stats.bootstrap((x, y), lambda a, b, axis: np.mean(a - b, axis=axis), paired=True, method='percentile',
    ///                           n_resamples=1_000_000, batch=10_000, rng=np.random.default_rng(1))
    /// np.mean(x - y), r.confidence_interval
    /// r = scipy.stats.bootstrap((x, y), lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis), paired=False, ...)
    /// ```
    #[test]
    fn the_interval_matches_scipy() {
        let i = || (0..145).map(f64::from);
        let x: Vec<f64> = i().map(|i| (7.0 * i % 11.0) / 10.0 + (i % 3.0) / 4.0).collect();
        let y: Vec<f64> = i().map(|i| (7.0 * i % 11.0) / 10.0 + (i % 5.0) / 8.0 - 0.1).collect();
        let estimate = mean_paired_difference(&x, &y, &Bootstrap::default()).unwrap();
        assert!((estimate.point - 0.098_275_862_068_965_53).abs() < 1e-12, "{estimate:?}");
        let [low, high] = [0.054_310_34, 0.142_241_38];
        assert!((estimate.low - low).abs() < 1e-3 && (estimate.high - high).abs() < 1e-3, "{estimate:?}");
        // without pairing the interval is much wider, in scipy and in this crate's bootstrap of x and y alone
        let unpaired = |scores: &[f64]| Bootstrap::default().interval(&Scores::new(vec![scores.to_vec()]).unwrap(), mean);
        let [a, b] = [unpaired(&x), unpaired(&y)].map(|estimate| (estimate.high - estimate.low) / 2.0);
        assert!((a.hypot(b) - (0.182_758_62 - 0.013_793_10) / 2.0).abs() < 2e-3 && a.hypot(b) > 0.75 * (estimate.high - estimate.low));
    }

    #[test]
    fn the_number_of_threads_does_not_change_the_interval() {
        let (x, y): (Vec<f64>, Vec<f64>) = (0..40).map(|i| (f64::from(i * i % 7), f64::from(i % 5))).unzip();
        let of = |threads| threads::with(threads, || mean_paired_difference(&x, &y, &Bootstrap::default()).unwrap());
        assert_eq!((of(1), of(1)), (of(2), of(5)));
        let error = mean_paired_difference(&[], &[], &Bootstrap::default()).unwrap_err().to_string();
        assert_eq!(error, "scores: expected at least one task and one run, got 1 tasks and 0 runs");
    }
}
