//! Formats numbers for readers, and computes means with standard deviations or standard errors.

pub use gradus_drawing::numbers::{rounded, short, typeset, with_error};

/// Formats a speed, such as `512.3k` or `50`.
///
/// ```
/// assert_eq!([512_345.6, 900.4].map(gradus::numbers::rate), ["512.3k", "900"]);
/// ```
pub fn rate(per_second: f64) -> String {
    if per_second < 1e3 { format!("{per_second:.0}") } else { format!("{}k", short(per_second / 1e3)) }
}

/// Returns the mean and the sample standard deviation (0 for a single number).
pub(crate) fn mean_and_std(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = numbers.clone().count() as f64;
    let mean = numbers.clone().sum::<f64>() / n;
    let squares: f64 = numbers.map(|x| (x - mean) * (x - mean)).sum();
    (mean, if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 })
}

/// Returns the mean and its standard error (NaN for a single number).
pub(crate) fn mean_and_error(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = numbers.clone().count() as f64;
    let (mean, std) = mean_and_std(numbers);
    (mean, if n > 1.0 { std / n.sqrt() } else { f64::NAN })
}
