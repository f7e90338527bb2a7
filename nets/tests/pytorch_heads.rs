//! Compares the heads with torch.distributions, and Fisher-vector products with double differentiation in PyTorch.
//!
//! `scripts/golden/pytorch_heads.py` writes the golden file and describes it.

use gradus_testing::golden;

use std::sync::Mutex;

use golden::{floats, numbers, shape};
use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Evaluation, Network, NetworkConfig, Objective, Outputs, Policy, PolicyOutput, Store,
};
use serde_json::Value;

/// Tolerance of an output's error, relative to 1 + PyTorch's absolute value. PyTorch's numbers are f64 and ours f32, so rounding errors
/// remain: the largest error seen is 3e-7, for outputs and for gradients.
const OUTPUT: f64 = 1e-6;
/// Tolerance of a gradient's error, relative to the largest derivative of all tensors, or to 0.001 if that is larger.
const GRADIENT: f64 = 1e-6;

fn tensors(value: &Value) -> Tensors {
    value.as_object().unwrap().iter().map(|(name, x)| (name.clone(), Tensor::f32(&shape(x), floats(x)))).collect()
}

/// The loss is one of four outputs.
struct Only(&'static str);

impl Objective for Only {
    fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
        match self.0 {
            "log_prob" => pi.log_prob.into(),
            "entropy" => pi.entropy.into(),
            "value" => pi.value.into(),
            "kl_old" => pi.kl_old.into(),
            name => panic!("no output {name}"),
        }
    }
}

/// Records the policy's output for each decision.
struct Recorder(Mutex<Vec<PolicyOutput>>);

impl Objective for Recorder {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        self.0.lock().unwrap()[index] = PolicyOutput::from(pi);
        Evaluation::default()
    }
}

struct Case {
    golden: Value,
    name: String,
    policy: ActorCritic,
    store: Store,
    indices: Vec<u32>,
    weights: Vec<f32>,
    old: Vec<f32>,
}

impl Case {
    fn new(golden: Value) -> Self {
        let config = &golden["config"];
        let size = |value: &Value| value.as_u64().unwrap() as usize;
        let (width, n) = (size(&config["obs_dim"]), size(&config["n_actions"]));
        let network = NetworkConfig {
            hidden: config["hidden"].as_array().unwrap().iter().map(size).collect(),
            activation: if config["activation"] == "tanh" { Activation::Tanh } else { Activation::Relu },
            shared: !config["separate"].as_bool().unwrap(),
            gsde: config["head"] == "gsde",
            ..Default::default()
        };
        let is_discrete = config["head"] == "categorical" || config["head"] == "masked";
        let actions = match is_discrete {
            true => ActionRows::Discrete(numbers(&golden["actions"]).iter().map(|a| *a as u32).collect()),
            false => ActionRows::Continuous { rows: floats(&golden["actions"]), width: n },
        };
        let space = if is_discrete { Space::Discrete(n as u32) } else { Space::Box { low: vec![-1.0; n], high: vec![1.0; n] } };
        let observations = Space::Box { low: vec![f32::MIN; width], high: vec![f32::MAX; width] };
        let mut policy = ActorCritic::new(&network, &observations, &space, 0).unwrap();
        policy.load(&tensors(&golden["parameters"])).unwrap();
        let mut store = Store::new(width, floats(&golden["observations"]), actions);
        if let Value::Array(rows) = &golden["masks"] {
            store = store.with_masks(rows.iter().flat_map(|row| row.as_array().unwrap()).map(|x| x.as_bool().unwrap()).collect());
        }
        Self {
            policy,
            indices: (0..store.actions.len() as u32).collect(),
            store,
            weights: floats(&golden["weights"]),
            old: floats(&golden["old"]),
            name: golden["name"].as_str().unwrap().into(),
            golden,
        }
    }

    fn assert_tensors(&self, what: &str, got: &Tensors, expected: &Value) {
        let expected = expected.as_object().unwrap();
        assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}: names of {what}", self.name);
        let largest = expected.values().flat_map(numbers).fold(1e-3_f64, |largest, x| largest.max(x.abs()));
        for (name, expected) in expected {
            assert_eq!(got[name].shape, shape(expected), "{}: {name}", self.name);
            let Data::F32(got) = &got[name].data else { panic!("{name}: expected f32") };
            for (i, (got, expected)) in got.iter().zip(numbers(expected)).enumerate() {
                let error = (f64::from(*got) - expected).abs() / largest;
                assert!(error <= GRADIENT, "{}: {what} of {name}[{i}]: {got} instead of {expected} ({error:.1e})", self.name);
            }
        }
    }
}

#[test]
fn distributions_and_outputs_match_pytorch() {
    for mut case in golden::cases("heads.json").into_iter().map(Case::new) {
        let mut distributions = Vec::new();
        case.policy.distributions(&case.store, &mut distributions);
        let expected = &case.golden["distribution"];
        assert_eq!(shape(expected), [case.indices.len(), case.policy.distribution_width()], "{}", case.name);
        for (got, expected) in distributions.iter().zip(numbers(expected)) {
            // a masked action has a very low number in PyTorch and minus infinity here
            let error = (f64::from(*got) - expected).abs() / (1.0 + expected.abs());
            let fits = if expected < -1e8 { *got == f32::NEG_INFINITY } else { error <= OUTPUT };
            assert!(fits, "{}: {got} instead of {expected} ({error:.1e})", case.name);
        }

        let recorder = Recorder(Mutex::new(vec![PolicyOutput::default(); case.indices.len()]));
        let batch = Batch { old: Some(&case.old), ..Batch::new(&case.indices, &case.weights) };
        case.policy.evaluate(&case.store, batch, &recorder);
        let expected = &case.golden["outputs"];
        for (i, output) in recorder.0.into_inner().unwrap().iter().enumerate() {
            let outputs = [("log_prob", output.log_prob), ("entropy", output.entropy), ("value", output.value), ("kl_old", output.kl_old)];
            for (key, got) in outputs {
                let expected = expected[key][i].as_f64().unwrap();
                let error = (f64::from(got) - expected).abs() / (1.0 + expected.abs());
                assert!(error <= OUTPUT, "{}: {key} of row {i}: {got} instead of {expected} ({error:.1e})", case.name);
            }
        }
    }
}

#[test]
fn the_gradient_of_each_output_matches_pytorch() {
    for mut case in golden::cases("heads.json").into_iter().map(Case::new) {
        for key in ["log_prob", "entropy", "value", "kl_old"] {
            let batch = Batch { old: Some(&case.old), ..Batch::new(&case.indices, &case.weights) };
            case.policy.gradient(&case.store, batch, &Only(key));
            case.assert_tensors(key, &case.policy.gradient_tensors(), &case.golden["gradients"][key]);
        }
    }
}

#[test]
fn fisher_vector_products_match_pytorch() {
    let mut compared = 0;
    for mut case in golden::cases("heads.json").into_iter().map(Case::new).filter(|case| case.policy.supports_fisher()) {
        let start = case.policy.save();
        let through_parameters = |policy: &mut ActorCritic, tensors: &Tensors| {
            policy.load(tensors).unwrap();
            let flat = policy.parameters().to_vec();
            policy.load(&start).unwrap();
            flat
        };
        let direction = through_parameters(&mut case.policy, &tensors(&case.golden["direction"]));
        let mut product = Vec::new();
        let batch = Batch::new(&case.indices, &case.weights);
        case.policy.fisher_vector_product(&case.store, batch, &direction, &mut product);
        // converts the product to named tensors in PyTorch's layout
        case.policy.set_parameters(&product);
        case.assert_tensors("fisher", &case.policy.save(), &case.golden["fisher"]);
        compared += 1;
    }
    assert_eq!(compared, 6);
}
