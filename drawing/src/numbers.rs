//! Formats numbers for readers, with only the digits that are meaningful.
//!
//! Returns have any magnitude: 0.74 on FrozenLake, 500 on CartPole, -1200 on Pendulum. A mean with a known standard error is rounded at the
//! second significant digit of the error. Other numbers have four significant digits and at most three decimals. No digit before the point
//! is rounded away.

/// Formats a number with four significant digits and at most three decimals, without zeros at the end of the decimals. All digits before
/// the point are kept.
///
/// ```
/// use gradus_drawing::numbers::short;
///
/// assert_eq!([short(-130.137_758), short(0.74), short(500.0), short(1234.5)], ["-130.1", "0.74", "500", "1234"]);
/// ```
pub fn short(value: f64) -> String {
    trimmed(format!("{value:.*}", decimals(value)))
}

/// Formats a number like [`short`], but with a typographic minus sign, for figures and pages.
pub fn typeset(value: f64) -> String {
    short(value).replace('-', "−")
}

/// Formats a mean, rounded at the second significant digit of its standard error, or to a whole number if that digit is before the point.
/// If the error is not positive or not finite, formats the mean like [`short`].
///
/// ```
/// use gradus_drawing::numbers::with_error;
///
/// assert_eq!(with_error(0.7432, 0.0437), "0.743");
/// assert_eq!(with_error(-162.561, 9.34), "-162.6");
/// assert_eq!(with_error(-1069.96, 28.1), "-1070");
/// assert_eq!(with_error(500.0, 0.0), "500");
/// ```
pub fn with_error(mean: f64, standard_error: f64) -> String {
    if !(standard_error.is_finite() && standard_error > 0.0) {
        return short(mean);
    }
    // the exponent after rounding to two digits: 0.0996 is 0.10
    let exponent: i32 = format!("{standard_error:.1e}").split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    without_minus_zero(format!("{mean:.*}", (1 - exponent).clamp(0, 9) as usize))
}

/// Returns the number of decimals for four significant digits of `value`, at most three.
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        large if large >= 1000.0 => 0,
        large if large >= 100.0 => 1,
        large if large >= 10.0 => 2,
        _ => 3,
    }
}

/// Returns a common number of decimals for numbers that are shown together: the decimals of the number that is largest in
/// magnitude, or 0 if all are whole.
pub fn common_decimals(values: impl Iterator<Item = f64> + Clone) -> usize {
    if values.clone().all(|value| value.fract() == 0.0) { 0 } else { decimals(values.fold(0.0, |largest, value| largest.max(value.abs()))) }
}

/// Formats a number with `decimals` decimals, without a minus sign before 0.
pub fn rounded(value: f64, decimals: usize) -> String {
    without_minus_zero(format!("{value:.decimals$}"))
}

fn trimmed(text: String) -> String {
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text };
    without_minus_zero(text)
}

fn without_minus_zero(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| c == '0' || c == '.') => rest.into(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, expected) in [
            (500.0, "500"),
            (499.96, "500"),
            (487.31, "487.3"),
            (-0.0004, "0"),
            (-1234.5, "−1234"),
            (0.5, "0.5"),
            (12.345, "12.35"),
            (100.0, "100"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(typeset(value), expected, "{value}");
        }
        assert_eq!(short(-130.137_758_825_664_92), "-130.1");
    }

    #[test]
    fn the_error_of_a_mean_decides_its_digits() {
        for (mean, error, expected) in [
            (0.74, 0.0439, "0.740"),
            (0.74, 0.44, "0.74"),
            (0.4, 0.0996, "0.40"), // rounds to 0.10
            (-0.0001, 0.05, "0.000"),
            (489.4376, 1.72, "489.4"),
            (489.4376, 17.2, "489"),
            (-1069.96, 281.0, "-1070"),
            (0.981_25, 0.000_31, "0.98125"),
            (0.3, f64::NAN, "0.3"),
            (200.0, 0.0, "200"),
        ] {
            assert_eq!(with_error(mean, error), expected, "{mean} +- {error}");
        }
    }

    #[test]
    fn numbers_in_one_place_have_the_same_decimals() {
        let of = |values: &[f64]| common_decimals(values.iter().copied());
        assert_eq!(of(&[0.0, -17.0, 200.0]), 0);
        assert_eq!(of(&[0.0, -9.5, -745.698]), 1);
        assert_eq!(of(&[0.0, 0.25]), 3);
        assert_eq!(of(&[]), 0);
        assert_eq!([rounded(-0.04, 1), rounded(-505.46, 1), rounded(-17.0, 0)], ["0.0", "-505.5", "-17"]);
    }
}
