//! Validation and encoding of physical states.

use crate::EnvError;

/// Checks that `numbers` are the `N` finite numbers that the environment `name` expects.
pub(crate) fn finite<const N: usize>(name: &str, numbers: &[f64]) -> Result<[f64; N], EnvError> {
    let state = <[f64; N]>::try_from(numbers);
    let state = state.map_err(|_| EnvError::State(format!("{name}: expected {N} numbers, got {}", numbers.len())))?;
    match state.iter().find(|number| !number.is_finite()) {
        Some(number) => Err(EnvError::State(format!("{name}: expected finite numbers, got {number}"))),
        None => Ok(state),
    }
}

/// Checks `numbers` as [`finite`] does, and also that every number is from `low` to `high`, both included. `bounds` holds (name, low, high)
/// for each number.
pub(crate) fn within<const N: usize>(name: &str, numbers: &[f64], bounds: [(&str, f64, f64); N]) -> Result<[f64; N], EnvError> {
    let state = finite(name, numbers)?;
    let outside = state.iter().zip(bounds).find(|(number, (_, low, high))| !(low..=high).contains(number));
    match outside {
        Some((got, (what, low, high))) => Err(EnvError::State(format!("{name}: {what}: expected {low} to {high}, got {got}"))),
        None => Ok(state),
    }
}

/// Encodes a state as the words of a checkpoint.
pub(crate) fn words(state: &[f64]) -> Vec<u64> {
    state.iter().map(|number| number.to_bits()).collect()
}

/// Decodes the result of [`words`].
pub(crate) fn numbers(words: &[u64]) -> Vec<f64> {
    words.iter().map(|word| f64::from_bits(*word)).collect()
}
