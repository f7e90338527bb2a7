//! Running means and variances.
//!
//! Training normalises all observations of a rollout with the statistics from before the rollout. After the rollout, it merges the
//! observations and rewards into the statistics, environment by environment, and then scales the rewards. So the result does not depend
//! on the number of threads. An evaluation uses the frozen statistics that are saved with the policy.

use crate::EnvError;

/// Weight of the prior, in observations. The prior has mean 0 and variance 1.
const PRIOR_COUNT: f64 = 1e-4;

/// Count, mean and variance of rows of numbers, for each dimension (Gymnasium's `RunningMeanStd`).
///
/// ```
/// use gradus_envs::wrappers::RunningStatistics;
///
/// let mut statistics = RunningStatistics::new(2);
/// statistics.update(&[1.0, 10.0, 3.0, 30.0]); // two rows
/// statistics.update(&[5.0, 20.0]);
/// assert!((statistics.mean()[0] - 3.0).abs() < 1e-3);
/// assert!((statistics.variance()[1] - 200.0 / 3.0).abs() < 0.1); // of the population: divided by 3, not by 2
///
/// let mut row = [0.0; 2];
/// statistics.normalise(&[3.0, 1e6], &mut row, 10.0);
/// assert!(row[0].abs() < 1e-3);
/// assert_eq!(row[1], 10.0); // clipped
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RunningStatistics {
    count: f64,
    mean: Vec<f64>,
    variance: Vec<f64>,
    scale: Vec<f64>,
}

impl RunningStatistics {
    /// Added to the variance under the square root, to avoid a division by zero.
    pub const EPSILON: f64 = 1e-8;

    /// Creates the statistics of rows of `width` numbers before the first row: mean 0, variance 1, count 0.0001.
    pub fn new(width: usize) -> Self {
        Self::from_moments(PRIOR_COUNT, vec![0.0; width], vec![1.0; width])
    }

    /// Computes the statistics of `rows` (f32 or f64) alone, without a prior: population mean and variance, in two passes and a fixed
    /// order. The result is meant to be [merged](Self::merge).
    ///
    /// # Panics
    /// If `rows` does not consist of whole rows of `width` numbers, or if `width` is 0.
    pub fn of<T: Copy + Into<f64>>(rows: &[T], width: usize) -> Self {
        assert!(
            width > 0 && rows.len().is_multiple_of(width),
            "running statistics: expected rows of {width} numbers, got {} numbers",
            rows.len()
        );
        let count = (rows.len() / width) as f64;
        let mut mean = vec![0.0; width];
        let mut variance = vec![0.0; width];
        if rows.is_empty() {
            return Self::from_moments(0.0, mean, variance);
        }
        for row in rows.chunks_exact(width) {
            mean.iter_mut().zip(row).for_each(|(sum, x)| *sum += (*x).into());
        }
        mean.iter_mut().for_each(|sum| *sum /= count);
        for row in rows.chunks_exact(width) {
            for ((sum, x), mean) in variance.iter_mut().zip(row).zip(&mean) {
                let distance: f64 = (*x).into() - mean;
                *sum += distance * distance;
            }
        }
        variance.iter_mut().for_each(|sum| *sum /= count);
        Self::from_moments(count, mean, variance)
    }

    fn from_moments(count: f64, mean: Vec<f64>, variance: Vec<f64>) -> Self {
        let scale = variance.iter().map(|variance| (variance + Self::EPSILON).sqrt()).collect();
        Self { count, mean, variance, scale }
    }

    /// Numbers per row.
    pub fn width(&self) -> usize {
        self.mean.len()
    }

    /// Number of rows; the prior counts 0.0001.
    pub fn count(&self) -> f64 {
        self.count
    }

    /// The mean of each dimension.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The divisor of each dimension: sqrt(variance + 1e-8).
    pub fn scale(&self) -> &[f64] {
        &self.scale
    }

    /// The population variance of each dimension.
    pub fn variance(&self) -> &[f64] {
        &self.variance
    }

    /// Adds whole rows: [`of`](Self::of), then [`merge`](Self::merge).
    pub fn update(&mut self, rows: &[f32]) {
        self.merge(&Self::of(rows, self.width()));
    }

    /// Merges the statistics `other` (b) into these (a): with d = mean_b - mean_a and n = n_a + n_b,
    ///
    /// mean = mean_a + d n_b / n, and variance = (variance_a n_a + variance_b n_b + d^2 n_a n_b / n) / n
    ///
    /// (Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979).
    ///
    /// # Panics
    /// If the widths differ.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(other.width(), self.width(), "running statistics: expected {} numbers per row, got {}", self.width(), other.width());
        if other.count == 0.0 {
            return;
        }
        let (a, b) = (self.count, other.count);
        let n = a + b;
        for i in 0..self.width() {
            let d = other.mean[i] - self.mean[i];
            let squares = self.variance[i] * a + other.variance[i] * b + d * d * a * b / n;
            self.mean[i] += d * b / n;
            self.variance[i] = squares / n;
            self.scale[i] = (self.variance[i] + Self::EPSILON).sqrt();
        }
        self.count = n;
    }

    /// Writes (x - mean) / sqrt(variance + 1e-8), clipped to \[-`clip`, `clip`\], for every number x of `row`. `f32::INFINITY` means no
    /// clipping.
    pub fn normalise(&self, row: &[f32], out: &mut [f32], clip: f32) {
        assert!(row.len() == self.width() && out.len() == self.width(), "running statistics: expected {} numbers", self.width());
        for (i, (x, out)) in row.iter().zip(out).enumerate() {
            *out = self.normalised(i, *x, clip);
        }
    }

    /// As [`normalise`](Self::normalise), in place and for any number of rows.
    pub fn normalise_rows(&self, rows: &mut [f32], clip: f32) {
        assert!(rows.len().is_multiple_of(self.width()), "running statistics: expected rows of {} numbers", self.width());
        for row in rows.chunks_exact_mut(self.width()) {
            row.iter_mut().enumerate().for_each(|(i, x)| *x = self.normalised(i, *x, clip));
        }
    }

    #[inline(always)]
    fn normalised(&self, i: usize, x: f32, clip: f32) -> f32 {
        // `clamp` keeps NaN, so the later check of observations finds it
        (((f64::from(x) - self.mean[i]) / self.scale[i]) as f32).clamp(-clip, clip)
    }

    /// Returns the count, means and variances, for [`load`](Self::load).
    pub fn save(&self) -> Vec<f64> {
        [&[self.count], self.mean.as_slice(), self.variance.as_slice()].concat()
    }

    /// Restores [saved](Self::save) statistics of rows of `width` numbers.
    pub fn load(width: usize, numbers: &[f64]) -> Result<Self, EnvError> {
        let wrong = |expected: String, got: String| EnvError::State(format!("running statistics: expected {expected}, got {got}"));
        if numbers.len() != 1 + 2 * width {
            return Err(wrong(format!("{} numbers for rows of {width}", 1 + 2 * width), numbers.len().to_string()));
        }
        let (count, mean, variance) = (numbers[0], &numbers[1..1 + width], &numbers[1 + width..]);
        if let Some(mean) = mean.iter().find(|mean| !mean.is_finite()) {
            return Err(wrong("finite means".into(), mean.to_string()));
        }
        match std::iter::once(&count).chain(variance).find(|number| !(number.is_finite() && **number >= 0.0)) {
            Some(number) => Err(wrong("a count and variances of at least 0".into(), number.to_string())),
            None => Ok(Self::from_moments(count, mean.to_vec(), variance.to_vec())),
        }
    }
}
