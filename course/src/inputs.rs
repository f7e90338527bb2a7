//! Random inputs of the checks, with few decimals, so that they can be typed and computed by hand.

use gradus_base::random::{Purpose, Stream};

use crate::sheet::list;

/// Returns the random numbers of an exercise, whose number in a lesson is the last digit of `exercise`: 31 for exercise 3.1.
pub(crate) fn stream(seed: u64, exercise: u64) -> Stream {
    Stream::new(seed, Purpose::Problem, exercise)
}

/// Draws a number from -5 to 5 with one decimal.
pub(crate) fn number(stream: &mut Stream) -> f64 {
    f64::from(stream.below(101)) / 10.0 - 5.0
}

/// Draws numbers from -5 to 5 with one decimal.
pub(crate) fn numbers(stream: &mut Stream, n: usize) -> Vec<f64> {
    (0..n).map(|_| number(stream)).collect()
}

/// Draws numbers from N(0, 1).
pub(crate) fn normals(stream: &mut Stream, n: usize) -> Vec<f64> {
    (0..n).map(|_| rounded(f64::from(stream.normal()))).collect()
}

/// Draws a number from 0.05 to 0.95, such as a discount factor, or 1 in one of four cases.
pub(crate) fn share(stream: &mut Stream) -> f64 {
    if stream.below(4) == 0 { 1.0 } else { f64::from(1 + stream.below(19)) / 20.0 }
}

/// Returns a number with two decimals.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

/// Writes a list of whole numbers.
pub(crate) fn whole<T: Copy + TryInto<u32>>(numbers: &[T]) -> String {
    list(&numbers.iter().map(|n| (*n).try_into().map_or(f64::NAN, f64::from)).collect::<Vec<_>>())
}

/// Draws numbers as [`numbers`], no two of which are the same.
pub(crate) fn distinct(stream: &mut Stream, n: usize) -> Vec<f64> {
    let mut all: Vec<f64> = Vec::new();
    while all.len() < n {
        let new = number(stream);
        if !all.contains(&new) {
            all.push(new);
        }
    }
    all
}

/// Draws one of `all`.
pub(crate) fn one_of<T: Copy>(stream: &mut Stream, all: &[T]) -> T {
    all[stream.below(all.len() as u32) as usize]
}
