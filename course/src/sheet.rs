//! What a function of a student returned, beside what was expected.

use std::any::Any;
use std::fmt::{self, Display, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

/// The relative difference up to which two numbers are the same: a correct function may add in another order, or in single precision.
const TOLERANCE: f64 = 1e-4;

/// A value that a function returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A number.
    Number(f64),
    /// A whole number: an action, a state, a count.
    Whole(i64),
    /// A list of numbers.
    Numbers(Vec<f64>),
    /// A table of numbers, row by row.
    Table(Vec<Vec<f64>>),
    /// Something in words: whether a claim holds, for example.
    Words(String),
    /// No value: the function panicked with this message.
    Panic(String),
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Whole(number as i64)
    }
}

impl From<Vec<f64>> for Value {
    fn from(numbers: Vec<f64>) -> Self {
        Self::Numbers(numbers)
    }
}

impl From<Vec<Vec<f64>>> for Value {
    fn from(rows: Vec<Vec<f64>>) -> Self {
        Self::Table(rows)
    }
}

impl From<&[f64]> for Value {
    fn from(numbers: &[f64]) -> Self {
        Self::Numbers(numbers.to_vec())
    }
}

impl Value {
    /// Returns whether two values are the same, apart from rounding.
    pub fn is_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => same(*a, *b),
            (Self::Numbers(a), Self::Numbers(b)) => all_same(a, b),
            (Self::Table(a), Self::Table(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| all_same(a, b)),
            (Self::Panic(_), Self::Panic(_)) => true,
            _ => self == other,
        }
    }
}

fn same(a: f64, b: f64) -> bool {
    let size = a.abs().max(b.abs()).max(1e-2); // a sum that cancels, in single precision
    a == b || a.is_nan() && b.is_nan() || size.is_finite() && (a - b).abs() <= TOLERANCE * size
}

fn all_same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(*a, *b))
}

/// Writes five significant digits.
fn shown(number: f64) -> String {
    if !number.is_finite() || number == 0.0 {
        return number.to_string();
    }
    let size = number.abs().log10().floor() as i32;
    if !(-4..9).contains(&size) {
        return format!("{number:.4e}");
    }
    let text = format!("{number:.*}", (4 - size).max(0) as usize);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

impl Display for Value {
    fn fmt(&self, to: &mut Formatter) -> fmt::Result {
        match self {
            Self::Number(number) => to.write_str(&shown(*number)),
            Self::Whole(number) => write!(to, "{number}"),
            Self::Numbers(numbers) => write!(to, "{}", list(numbers)),
            Self::Table(rows) => write!(to, "{}", self::rows(rows)),
            Self::Words(words) => to.write_str(words),
            Self::Panic(message) => write!(to, "a panic: {message}"),
        }
    }
}

/// Writes a list of numbers, the middle of a long one left out.
pub(crate) fn list(numbers: &[f64]) -> String {
    let words: Vec<String> = match numbers {
        [first @ .., last] if first.len() > 19 => first[..18].iter().map(|x| shown(*x)).chain(["...".into(), shown(*last)]).collect(),
        all => all.iter().map(|x| shown(*x)).collect(),
    };
    format!("[{}]", words.join(", "))
}

/// Writes a table of numbers, row by row.
pub(crate) fn rows(rows: &[Vec<f64>]) -> String {
    format!("[{}]", rows.iter().map(|row| list(row)).collect::<Vec<_>>().join(", "))
}

/// One call of a function.
#[derive(Clone, Debug)]
pub struct Entry {
    /// With what it was called, in words.
    pub place: String,
    /// What a correct function returns.
    pub expected: Value,
    /// What it returned.
    pub got: Value,
}

impl Entry {
    /// Returns whether the function is right here.
    pub fn is_right(&self) -> bool {
        self.expected.is_same_as(&self.got)
    }

    /// Returns whether the function is still the one of the template.
    pub fn is_not_written(&self) -> bool {
        matches!(&self.got, Value::Panic(message) if message.starts_with("not yet implemented"))
    }
}

/// The call that runs now, for the message about a function that does not return.
static NOW: Mutex<String> = Mutex::new(String::new());

/// Returns the call that runs now, in words.
pub(crate) fn now() -> String {
    NOW.lock().map(|place| place.clone()).unwrap_or_default()
}

/// All calls of a function in its checks.
#[derive(Clone, Debug, Default)]
pub struct Sheet {
    /// The calls, in order.
    pub entries: Vec<Entry>,
}

impl Sheet {
    /// Calls `call`, which calls the function, and notes what was returned beside `expected`.
    pub fn row<T: Into<Value>>(&mut self, place: impl Into<String>, expected: impl Into<Value>, call: impl FnOnce() -> T) {
        let place = place.into();
        if let Ok(mut now) = NOW.lock() {
            now.clone_from(&place);
        }
        let got = catch_unwind(AssertUnwindSafe(call)).map_or_else(|panic| Value::Panic(message(panic.as_ref())), Into::into);
        self.entries.push(Entry { place, expected: expected.into(), got });
    }

    /// Notes a claim about what a function did in many calls; `says` is what was seen.
    pub fn claim(&mut self, place: impl Into<String>, expected: &str, holds: bool, says: String) {
        let got = if holds { expected.into() } else { says };
        self.entries.push(Entry { place: place.into(), expected: Value::Words(expected.into()), got: Value::Words(got) });
    }

    /// Returns the first call in which the function was wrong.
    pub fn wrong(&self) -> Option<&Entry> {
        self.entries.iter().find(|entry| !entry.is_right())
    }

    /// Returns the share of the calls that one of two functions got wrong in which both returned the same; 0 if they did not in the first
    /// call that this one got wrong.
    pub fn agreement(&self, other: &Self) -> f64 {
        let pairs = self.entries.iter().zip(&other.entries);
        let wrong: Vec<(&Entry, &Entry)> = pairs.filter(|(a, b)| !a.is_right() || !b.is_right()).collect();
        let is_same = |(a, b): &&(&Entry, &Entry)| a.got.is_same_as(&b.got);
        if wrong.iter().find(|(a, _)| !a.is_right()).is_none_or(|pair| !is_same(&pair)) {
            return 0.0;
        }
        wrong.iter().filter(is_same).count() as f64 / wrong.len() as f64
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    text.unwrap_or("no message").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_up_to_rounding() {
        let same = |a: f64, b: f64| Value::Number(a).is_same_as(&Value::Number(b));
        assert!(same(1.0, 1.00005) && same(0.0, 5e-7) && same(f64::NAN, f64::NAN) && same(f64::INFINITY, f64::INFINITY));
        assert!(!same(1.0, 1.0002) && !same(0.0, 1e-5) && !same(f64::NAN, 1.0) && !same(f64::INFINITY, 1e300) && !same(1.0, -1.0));
        assert!(!Value::Numbers(vec![1.0]).is_same_as(&Value::Numbers(vec![1.0, 1.0])));
        let table = |rows: &[&[f64]]| Value::Table(rows.iter().map(|row| row.to_vec()).collect());
        assert!(
            table(&[&[1.0, 2.0]]).is_same_as(&table(&[&[1.0, 2.00001]])) && !table(&[&[1.0, 2.0]]).is_same_as(&table(&[&[1.0], &[2.0]]))
        );
        assert_eq!(table(&[&[1.0, 0.5], &[2.0, 6.0]]).to_string(), "[[1, 0.5], [2, 6]]");
        assert!(!Value::Whole(1).is_same_as(&Value::Number(1.0)));
    }

    #[test]
    fn numbers_are_shown_with_five_digits() {
        let all = [0.0, 1.0, -0.123456, 1234.5678, 123456.7, 1e-7, 2.5e12, f64::INFINITY];
        assert_eq!(all.map(shown), ["0", "1", "-0.12346", "1234.6", "123457", "1.0000e-7", "2.5000e12", "inf"]);
        assert_eq!(list(&[1.0, 0.5]), "[1, 0.5]");
        let numbers: Vec<f64> = (0..24).map(f64::from).collect();
        assert_eq!(list(&numbers), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, ..., 23]");
    }

    #[test]
    fn a_panic_is_a_value() {
        let mut sheet = Sheet::default();
        sheet.row("5 / 0", 1.0, || -> f64 { panic!("division\nby {}", "zero") });
        sheet.row("1", 1.0, || 1.0);
        assert_eq!(sheet.wrong().unwrap().got, Value::Panic("division by zero".into()));
        assert_eq!(sheet.entries.len(), 2);
    }
}
