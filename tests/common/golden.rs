//! Reads the numbers that other programs computed, from the files in `tests/golden`. Tests of all crates include this module by its path.
#![allow(dead_code)] // no test calls every function

use std::path::Path;

use serde_json::Value;

/// Returns the content of a JSON file in `tests/golden`.
pub fn read(name: &str) -> Value {
    // the tests of a crate and those of the workspace start from different folders
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("tests/golden"));
    let path = folders.map(|folder| folder.join(name)).find(|path| path.exists()).unwrap_or_else(|| panic!("no tests/golden/{name}"));
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
