//! Reads the numbers that other programs computed, from the files in `tests/golden`.

use std::path::PathBuf;

use serde_json::Value;

/// Returns the path of a file in `tests/golden`.
pub fn path(name: &str) -> PathBuf {
    crate::root().join("tests/golden").join(name)
}

/// Returns the content of a JSON file in `tests/golden`.
pub fn read(name: &str) -> Value {
    let path = path(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the list of cases in a JSON file in `tests/golden`.
pub fn cases(name: &str) -> Vec<Value> {
    read(name).as_array().unwrap_or_else(|| panic!("{name}: expected a list")).clone()
}

/// Returns all numbers of a nested list, in order.
pub fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        number => vec![number.as_f64().unwrap_or_else(|| panic!("expected a number, got {number}"))],
    }
}

/// Returns all numbers of a nested list as f32, in order.
pub fn floats(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|x| x as f32).collect()
}

/// Returns the lengths of a nested list, from the outermost list to the innermost.
pub fn shape(value: &Value) -> Vec<usize> {
    match value {
        Value::Array(items) => std::iter::once(items.len()).chain(items.first().map(shape).unwrap_or_default()).collect(),
        _ => Vec::new(),
    }
}
