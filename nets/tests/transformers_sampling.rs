//! Compares truncated sampling with the logits processors of Hugging Face's transformers.
//!
//! `scripts/golden/transformers_sampling.py` writes the golden file and describes it.

use gradus_nets::Sampling;
use serde_json::Value;

/// Tolerance of log-probabilities; the largest difference seen is 1e-6.
const TOLERANCE: f64 = 3e-6;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("expected a number, got {value}"))
}

#[test]
fn truncated_distributions_match_transformers() {
    let path = gradus_testing::golden::path("sampling.json");
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}"));
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() > 70);
    let mut worst = 0.0_f64;
    for case in &cases {
        let setting = |key: &str| number(&case[key]) as f32;
        let sampling = Sampling {
            temperature: setting("temperature"),
            top_k: setting("top_k") as usize,
            top_p: setting("top_p"),
            min_p: setting("min_p"),
        };
        let mut got: Vec<f32> = case["log_probs"].as_array().unwrap().iter().map(|x| number(x) as f32).collect();
        sampling.truncate(&mut got);
        let expected = case["expected"].as_array().unwrap();
        assert_eq!(got.len(), expected.len());
        for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
            let what = format!("{} with {sampling:?}, token {i}: {got} instead of {expected}", case["distribution"]);
            match expected {
                Value::Null => assert_eq!(*got, f32::NEG_INFINITY, "{what}"),
                expected => {
                    let error = (f64::from(*got) - number(expected)).abs();
                    worst = worst.max(error);
                    assert!(error <= TOLERANCE, "{what} ({error:.1e})");
                }
            }
        }
    }
    println!("worst difference: {worst:.1e}");
}
