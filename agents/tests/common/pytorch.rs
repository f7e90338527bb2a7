//! Compares networks with golden files that PyTorch wrote.

use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_nets::Behaviour;
use serde_json::Value;

use crate::golden::{floats, numbers, shape};

/// Tolerance for rounding errors: PyTorch's numbers are f64 and ours are f32.
pub const NEAR: f64 = 1e-5;

/// Reads tensors by name.
pub fn tensors(value: &Value) -> Tensors {
    value.as_object().unwrap().iter().map(|(name, value)| (name.clone(), Tensor::f32(&shape(value), floats(value)))).collect()
}

pub fn assert_near(got: &[f32], expected: &Value, what: &str) {
    let expected = numbers(expected);
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let distance = (f64::from(*got) - expected).abs();
        assert!(distance <= NEAR * expected.abs().max(1.0), "{what}, number {i}: expected {expected}, got {got}");
    }
}

pub fn assert_parameters(network: &dyn Behaviour, expected: &Value, what: &str) {
    let saved = network.save();
    let is_read = |name: &str| expected.as_object().unwrap().contains_key(name);
    // SAC's target in Stable-Baselines3 has no actor
    let left_out = saved.keys().filter(|name| !is_read(name)).count();
    assert!(left_out == 0 || saved.keys().all(|name| is_read(name) || name.starts_with("actor.")) && what.ends_with("target"), "{what}");
    for (name, expected) in expected.as_object().unwrap() {
        let Data::F32(got) = &saved[name].data else { panic!("{name}: expected f32") };
        assert_near(got, expected, &format!("{what}, {name}"));
    }
}
