//! Compares the transformer with PyTorch: log-probabilities, entropies, values and divergences of decisions, and gradients by name.
//!
//! `scripts/golden/pytorch_transformer.py` writes the golden file and describes it.

use gradus_testing::golden;

use golden::floats;
use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_envs::Space;
use gradus_nets::cpu::Transformer;
use gradus_nets::{ActionRows, Batch, Behaviour, Evaluation, Objective, Observations, Outputs, Policy, Store, Texts, TransformerConfig};
use serde_json::Value;
use std::sync::Mutex;

/// Tolerance of relative errors. An output's error is divided by its absolute value, or by 1 if that is larger. A gradient's error is
/// divided by the largest absolute value of its tensor, or by 0.01 if that is larger.
const TOLERANCE: f64 = 3e-6;

fn whole(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as u32).collect()
}

/// The loss is the sum of weight x (coefficients . outputs). The outputs are also recorded.
struct Linear {
    coefficients: [Vec<f32>; 5],
    seen: Mutex<Vec<[f32; 5]>>,
}

impl Objective for Linear {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let Outputs { log_prob, entropy, value, kl_old, kl_ref } = pi;
        self.seen.lock().unwrap()[i] = [log_prob.value(), entropy.value(), value.value(), kl_old.value(), kl_ref.value()];
        let c: [f32; 5] = std::array::from_fn(|k| self.coefficients[k][i]);
        (c[0] * log_prob + c[1] * entropy + c[2] * value + c[3] * kl_old + c[4] * kl_ref).into()
    }
}

#[test]
fn outputs_and_gradients_match_pytorch() {
    let cases = golden::cases("transformer.json");
    assert_eq!(cases.len(), 3);
    let (mut worst_output, mut worst_gradient) = (0.0_f64, 0.0_f64);
    for case in &cases {
        let mut config = case["config"].clone();
        let mut take = |key: &str| config.as_object_mut().unwrap().remove(key).unwrap().as_u64().unwrap();
        let (vocabulary, context) = (take("vocabulary") as u32, take("context") as usize);
        let config: TransformerConfig = serde_json::from_value(config).unwrap();
        let observations = Space::Text { vocabulary, context };
        let mut policy = Transformer::new(&config, &observations, &Space::Discrete(vocabulary), 1).unwrap();
        let named = case["parameters"].as_object().unwrap().iter().map(|(name, value)| {
            let shape = match value[0] {
                Value::Array(ref row) => vec![value.as_array().unwrap().len(), row.len()],
                _ => vec![value.as_array().unwrap().len()],
            };
            (name.clone(), Tensor::f32(&shape, floats(value).into_iter().map(|x| x / 64.0).collect()))
        });
        policy.load(&named.collect::<Tensors>()).unwrap();

        let mut texts = Texts::new(context);
        for prefix in case["prefixes"].as_array().unwrap() {
            let [text, length] = whole(prefix)[..] else { panic!("expected a text and a length") };
            let tokens = whole(&case["texts"][text as usize]);
            texts.push(tokens[..length as usize].iter().copied());
        }
        let store = Store::of(Observations::Texts(texts), ActionRows::Discrete(whole(&case["actions"])));
        let n = store.actions.len();
        let keys = ["log_prob", "entropy", "value", "kl_old", "kl_ref"];
        let objective =
            Linear { coefficients: keys.map(|key| floats(&case["coefficients"][key])), seen: Mutex::new(vec![[f32::NAN; 5]; n]) };
        let (weights, old, reference) = (floats(&case["weights"]), floats(&case["old"]), floats(&case["reference"]));
        let indices: Vec<u32> = (0..n as u32).collect();
        let batch = Batch { old: Some(&old), reference: Some(&reference), ..Batch::new(&indices, &weights) };
        let sums = policy.gradient(&store, batch, &objective);
        assert!((sums.loss - case["loss"].as_f64().unwrap()).abs() < 1e-5);

        let close = |what: &str, got: f32, expected: f32, scale: f64, worst: &mut f64| {
            let error = f64::from(got - expected).abs() / scale;
            *worst = worst.max(error);
            assert!(error < TOLERANCE, "{}, {what}: {got} instead of {expected} ({error:.1e})", case["name"]);
        };
        for (k, key) in keys.iter().enumerate() {
            let expected = floats(&case["outputs"][key]);
            for (i, seen) in objective.seen.lock().unwrap().iter().enumerate() {
                close(&format!("{key} of decision {i}"), seen[k], expected[i], f64::from(expected[i].abs()).max(1.0), &mut worst_output);
            }
        }
        let mut distributions = Vec::new();
        policy.distributions(&store, &mut distributions);
        for (i, (got, expected)) in distributions.iter().zip(floats(&case["distribution"])).enumerate() {
            close(&format!("distribution, place {i}"), *got, expected, f64::from(expected.abs()).max(1.0), &mut worst_output);
        }
        let stride = case["stride"].as_u64().unwrap() as usize;
        let gradients = policy.gradient_tensors();
        assert_eq!(gradients.len(), case["gradients"].as_object().unwrap().len());
        for (name, tensor) in gradients {
            let expected = floats(&case["gradients"][&name]);
            let Data::F32(got) = tensor.data else { unreachable!() };
            let got: Vec<f32> = got.into_iter().step_by(stride).collect();
            assert_eq!(got.len(), expected.len(), "{name}");
            let scale = expected.iter().fold(1e-2, |most: f64, x| most.max(f64::from(x.abs())));
            for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
                close(&format!("gradient of {name}, place {i}"), *got, *expected, scale, &mut worst_gradient);
            }
        }
    }
    println!("worst differences: outputs {worst_output:.1e}, gradients {worst_gradient:.1e}");
}
