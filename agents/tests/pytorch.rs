//! Compares the actor-critic, PPO's loss and the optimisers' steps with PyTorch, which computes gradients by automatic differentiation.
//!
//! `scripts/golden/pytorch_ppo.py` writes the golden file and describes it.

use gradus_testing::golden;

use std::sync::Mutex;

use golden::{floats, numbers, shape};
use gradus_agents::kl::KlCoefficients;
use gradus_agents::ppo::{PpoConfig, PpoObjective};
use gradus_agents::returns::mean_and_sample_std;
use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Evaluation, Network, NetworkConfig, Objective, OptimiserStep, Outputs, Policy, PolicyOutput,
    Rule, Store,
};
use serde_json::Value;

/// Tolerances for rounding errors: PyTorch's numbers are f64 and ours are f32. The largest measured differences are 6e-7 in an output, 8e-8
/// in a gradient, 2e-7 in a parameter after Adam and 7e-7 in a parameter after RMSprop. Adam divides small gradients by their own size.
/// At the same learning rate, RMSprop's first step is ten times as long as Adam's.
const OUTPUT: f64 = 2e-6;
const GRADIENT: f64 = 4e-7;
const ADAM: f64 = 1e-6;
const RMSPROP: f64 = 3e-6;

fn size(value: &Value) -> usize {
    value.as_u64().unwrap() as usize
}

/// A golden case with its policy, its minibatch, and the inputs of PPO's objective.
struct Case {
    golden: Value,
    policy: ActorCritic,
    store: Store,
    old_log_probs: Vec<f32>,
    old_values: Vec<f32>,
    advantages: Vec<f32>,
    returns: Vec<f32>,
    indices: Vec<u32>,
    weights: Vec<f32>,
}

impl Case {
    fn new(golden: Value) -> Self {
        let config = &golden["config"];
        let width = size(&config["obs_dim"]);
        let network = NetworkConfig {
            hidden: config["hidden"].as_array().unwrap().iter().map(size).collect(),
            activation: if config["activation"] == "tanh" { Activation::Tanh } else { Activation::Relu },
            shared: !config["separate"].as_bool().unwrap(),
            gsde: config["gsde"].as_bool().unwrap_or(false),
            ..Default::default()
        };
        let space = match config["action_dim"].as_u64() {
            Some(n) => Space::Box { low: vec![-1.0; n as usize], high: vec![1.0; n as usize] },
            None => Space::Discrete(size(&config["n_actions"]) as u32),
        };
        let observations = Space::Box { low: vec![f32::MIN; width], high: vec![f32::MAX; width] };
        let mut policy = ActorCritic::new(&network, &observations, &space, 0).unwrap();
        let parameters = golden["parameters"].as_object().unwrap();
        let parameters: Tensors = parameters.iter().map(|(name, x)| (name.clone(), Tensor::f32(&shape(x), floats(x)))).collect();
        policy.load(&parameters).unwrap();
        let actions = match space {
            Space::Box { low, .. } => ActionRows::Continuous { rows: floats(&golden["actions"]), width: low.len() },
            _ => ActionRows::Discrete(numbers(&golden["actions"]).iter().map(|a| *a as u32).collect()),
        };
        let rows = actions.len();
        Self {
            policy,
            store: Store::new(width, floats(&golden["observations"]), actions),
            old_log_probs: floats(&golden["old_log_probs"]),
            old_values: floats(&golden["old_values"]),
            advantages: floats(&golden["advantages"]),
            returns: floats(&golden["returns"]),
            indices: (0..rows as u32).collect(),
            weights: vec![1.0 / rows as f32; rows],
            golden,
        }
    }

    fn name(&self) -> &str {
        self.golden["name"].as_str().unwrap()
    }

    fn gradient(&mut self) -> gradus_nets::Sums {
        let ppo = &self.golden["ppo"];
        let number = |key: &str| ppo[key].as_f64().map(|x| x as f32);
        let (mean, std) = mean_and_sample_std(self.advantages.iter().copied());
        let normalise = ppo["normalize_advantages"].as_bool().unwrap();
        let config = PpoConfig {
            clip_value: number("clip_value").unwrap_or(f32::INFINITY),
            entropy_coefficient: number("entropy_coefficient").unwrap(),
            value_coefficient: number("value_coefficient").unwrap(),
            ..PpoConfig::default()
        };
        let objective = PpoObjective {
            config,
            old_log_probs: &self.old_log_probs,
            old_values: &self.old_values,
            advantages: &self.advantages,
            targets: &self.returns,
            advantage_mean: if normalise { mean as f32 } else { 0.0 },
            advantage_std: if normalise { std as f32 + 1e-8 } else { 1.0 },
            clip: number("clip").unwrap(),
            reference_kl: KlCoefficients::default(),
            kl_coefficient: 0.0,
        };
        self.policy.gradient(&self.store, Batch::new(&self.indices, &self.weights), &objective)
    }

    /// Returns the largest difference between our tensors and PyTorch's, and a description of it. The names must match.
    fn worst(&self, got: &Tensors, key: &str) -> (f64, String) {
        self.worst_of(got, key, &self.golden[key])
    }

    fn worst_of(&self, got: &Tensors, key: &str, expected: &Value) -> (f64, String) {
        let expected = expected.as_object().unwrap();
        assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}: names of {key}", self.name());
        let mut worst = (0.0, String::new());
        for (name, expected) in expected {
            assert_eq!(got[name].shape, shape(expected), "{}: {name}", self.name());
            let Data::F32(got) = &got[name].data else { panic!("{name}: expected f32") };
            for (i, (got, expected)) in got.iter().zip(numbers(expected)).enumerate() {
                let difference = (f64::from(*got) - expected).abs();
                if difference.is_nan() || difference > worst.0 {
                    worst = (difference, format!("{}: {key} of {name}[{i}]: expected {expected}, got {got}", self.name()));
                }
            }
        }
        worst
    }

    fn assert_near(&self, what: &str, got: f64, expected: &Value, tolerance: f64) {
        let expected = expected.as_f64().unwrap();
        let difference = (got - expected).abs();
        println!("{difference:.1e} {what}");
        assert!(difference <= tolerance, "{}: {what}: expected {expected}, got {got} (difference {difference:.1e})", self.name());
    }
}

fn assert_within(worst: (f64, String), tolerance: f64) {
    println!("{:.1e} of {tolerance:.0e}: {}", worst.0, worst.1);
    assert!(worst.0 <= tolerance, "{} ({:.1e})", worst.1, worst.0);
}

/// Records the policy's output for each decision.
struct Recorder(Mutex<Vec<PolicyOutput>>);

impl Objective for Recorder {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        let (log_prob, entropy, value) = (pi.log_prob.value(), pi.entropy.value(), pi.value.value());
        self.0.lock().unwrap()[index] = PolicyOutput { log_prob, entropy, value, ..PolicyOutput::default() };
        Evaluation::default()
    }
}

#[test]
fn log_probabilities_entropies_and_values_match_pytorch() {
    for mut case in golden::cases("ppo_update.json").into_iter().map(Case::new) {
        let recorder = Recorder(Mutex::new(vec![PolicyOutput::default(); case.indices.len()]));
        case.policy.evaluate(&case.store, Batch::new(&case.indices, &case.weights), &recorder);
        let outputs = recorder.0.into_inner().unwrap();
        let expected = &case.golden["outputs"];
        assert_eq!(shape(&expected["value"]), [outputs.len()], "{}: rows", case.name());
        for (i, output) in outputs.iter().enumerate() {
            for (key, got) in [("log_prob", output.log_prob), ("entropy", output.entropy), ("value", output.value)] {
                case.assert_near(&format!("{key} of row {i}"), f64::from(got), &expected[key][i], OUTPUT);
            }
        }
    }
}

#[test]
fn loss_gradients_norm_and_diagnostics_match_pytorch() {
    for mut case in golden::cases("ppo_update.json").into_iter().map(Case::new) {
        let sums = case.gradient();
        case.assert_near("loss", sums.loss, &case.golden["loss"], GRADIENT);
        // in the order of `PpoObjective::METRICS`
        let diagnostics = [("policy_loss", 1.0), ("value_loss", 1.0), ("entropy", -1.0), ("approx_kl", 1.0), ("clip_fraction", 1.0)];
        for ((key, sign), got) in diagnostics.into_iter().zip(sums.diagnostics) {
            case.assert_near(key, sign * got, &case.golden["diagnostics"][key], GRADIENT);
        }
        assert_within(case.worst(&case.policy.gradient_tensors(), "gradients"), GRADIENT);
        case.assert_near("gradient norm", f64::from(case.policy.gradient_norm()), &case.golden["grad_norm"], GRADIENT);
    }
}

/// Takes three optimiser steps on the same minibatch with the gradient norm clipped to 0.5, as the script does.
fn after_three_steps(case: &mut Case, rule: Rule, learning_rate: f32) -> Tensors {
    for _ in 0..3 {
        case.gradient();
        let step = OptimiserStep {
            rule,
            epsilon: 1e-5,
            learning_rate,
            critic_learning_rate: learning_rate,
            weight_decay: 0.0,
            max_grad_norm: 0.5,
            clip_per_group: false,
        };
        case.policy.apply(&step);
    }
    case.policy.save()
}

#[test]
fn three_steps_of_adam_match_pytorch() {
    for mut case in golden::cases("ppo_update.json").into_iter().map(Case::new) {
        let parameters = after_three_steps(&mut case, Rule::Adam, 2.5e-4);
        assert_within(case.worst(&parameters, "after_adam"), ADAM);
    }
}

#[test]
fn three_steps_of_rmsprop_match_pytorch() {
    for mut case in golden::cases("ppo_update.json").into_iter().map(Case::new) {
        let parameters = after_three_steps(&mut case, Rule::RmsProp, 7e-4);
        assert_within(case.worst(&parameters, "after_rmsprop"), RMSPROP);
    }
}

/// Continuous actions of three dimensions, with gSDE and without: the updates of Stable-Baselines3's own `train`.
/// `scripts/golden/sb3_updates.py` writes the golden file and describes it.
#[test]
fn updates_of_ppo_are_those_of_stable_baselines3() {
    let cases = golden::cases("sb3_ppo.json");
    assert_eq!(cases.len(), 3);
    for mut case in cases.into_iter().map(Case::new) {
        let start = case.worst_of(&case.policy.save(), "updates", &case.golden["updates"][2]).0;
        assert!(start > 0.01, "{}: the steps are {start}", case.name());
        for update in 0..3 {
            case.gradient();
            let step = OptimiserStep {
                rule: Rule::Adam,
                epsilon: 1e-5,
                learning_rate: 0.01,
                critic_learning_rate: 0.01,
                weight_decay: 0.0,
                max_grad_norm: 0.5,
                clip_per_group: false,
            };
            case.policy.apply(&step);
            assert_within(case.worst_of(&case.policy.save(), &format!("update {update}"), &case.golden["updates"][update]), 1e-5);
        }
    }
}

/// The golden steps test the optimiser only if they are much longer than the tolerance. Clipping must affect some of them, but not all.
#[test]
fn the_golden_steps_exceed_the_tolerance_and_some_are_clipped() {
    let mut clipped = Vec::new();
    for case in golden::cases("ppo_update.json").into_iter().map(Case::new) {
        for (key, tolerance) in [("after_adam", ADAM), ("after_rmsprop", RMSPROP)] {
            assert!(case.worst(&case.policy.save(), key).0 > 100.0 * tolerance, "{}: {key}", case.name());
        }
        clipped.push(case.golden["grad_norm"].as_f64() > Some(0.5));
    }
    assert!(clipped.contains(&true) && clipped.contains(&false), "clipped: {clipped:?}");
}
