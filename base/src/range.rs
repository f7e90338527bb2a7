//! The numbers that a setting accepts.

use std::fmt;

/// An interval of numbers. It is displayed as an error names it.
///
/// ```
/// use gradus_base::range::{above, at_least, from};
///
/// assert_eq!(from(0.0).to(1.0).to_string(), "a number from 0 to 1");
/// assert_eq!(above(0.0).or_inf().to_string(), "a number above 0, or inf");
/// assert_eq!(at_least(1).to_string(), "at least 1");
/// assert_eq!(at_least(1).up_to(256).to_string(), "1 to 256");
/// assert!(from(0.0).to(1.0).contains(1.0) && !above(0.0).contains(0.0) && !above(0.0).contains(f64::INFINITY));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    low: Bound,
    high: Bound,
    /// Whether infinity is accepted: it turns a limit off.
    has_inf: bool,
    is_whole: bool,
}

/// An end of an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bound {
    None,
    Included(f64),
    Excluded(f64),
}

/// Finite numbers from `least` on.
pub const fn from(least: f64) -> Range {
    Range { low: Bound::Included(least), high: Bound::None, has_inf: false, is_whole: false }
}

/// All finite numbers.
pub const fn finite() -> Range {
    Range { low: Bound::None, ..from(0.0) }
}

/// Finite numbers above `bound`.
pub const fn above(bound: f64) -> Range {
    Range { low: Bound::Excluded(bound), ..from(0.0) }
}

/// Whole numbers from `least` on.
pub const fn at_least(least: u64) -> Range {
    Range { is_whole: true, ..from(least as f64) }
}

impl Range {
    /// Up to `most`.
    pub const fn to(self, most: f64) -> Self {
        Self { high: Bound::Included(most), ..self }
    }

    /// Up to the whole number `most`.
    pub const fn up_to(self, most: u64) -> Self {
        self.to(most as f64)
    }

    /// Below `bound`.
    pub const fn below(self, bound: f64) -> Self {
        Self { high: Bound::Excluded(bound), ..self }
    }

    /// And infinity.
    pub const fn or_inf(self) -> Self {
        Self { has_inf: true, ..self }
    }

    /// Whether the interval contains `x`. NaN is in no interval.
    pub fn contains(&self, x: f64) -> bool {
        let is_high = match self.low {
            Bound::None => x > f64::NEG_INFINITY,
            Bound::Included(low) => x >= low,
            Bound::Excluded(low) => x > low,
        };
        let is_low = match self.high {
            Bound::None => x < f64::INFINITY,
            Bound::Included(high) => x <= high,
            Bound::Excluded(high) => x < high,
        };
        is_high && (is_low || self.has_inf && x == f64::INFINITY)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_whole, self.low, self.high) {
            (true, Bound::Included(low), Bound::None) => return write!(f, "at least {low}"),
            (true, Bound::Included(low), Bound::Included(high)) => return write!(f, "{low} to {high}"),
            (_, Bound::None, Bound::None) => return f.write_str("a finite number"),
            _ => f.write_str("a number")?,
        }
        match self.low {
            Bound::None => {}
            Bound::Included(low) => write!(f, " from {low}")?,
            Bound::Excluded(low) => write!(f, " above {low}")?,
        }
        match (self.low, self.high) {
            (Bound::Included(_), Bound::None) => f.write_str(" up")?,
            (_, Bound::None) => {}
            (Bound::Excluded(_), Bound::Included(high)) => write!(f, " and at most {high}")?,
            (_, Bound::Included(high)) => write!(f, " to {high}")?,
            (Bound::Excluded(_), Bound::Excluded(high)) => write!(f, " and below {high}")?,
            (_, Bound::Excluded(high)) => write!(f, " to below {high}")?,
        }
        f.write_str(if self.has_inf { ", or inf" } else { "" })
    }
}

/// A setting whose number is not in its [`Range`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: expected {expected}, got {got}")]
pub struct OutOfRange {
    /// Name of the setting, with its section.
    pub key: String,
    /// The accepted numbers.
    pub expected: String,
    /// The number.
    pub got: String,
}

/// Checks a field of a struct of settings.
#[doc(hidden)] // for `settings!`
pub fn check(section: &str, field: &str, range: &Range, x: f64, got: &dyn fmt::Display) -> Result<(), OutOfRange> {
    if range.contains(x) {
        return Ok(());
    }
    let key = if section.is_empty() { field.into() } else { format!("{section}.{field}") };
    Err(OutOfRange { key, expected: range.to_string(), got: got.to_string() })
}
