//! Compares updates of DQN and QR-DQN with PyTorch, which computes gradients by automatic differentiation.
//!
//! `scripts/golden/pytorch_q_networks.py` writes the golden file and describes it.

use gradus_testing::golden;
#[path = "common/pytorch.rs"]
mod pytorch;

use golden::{floats, numbers};
use gradus_agents::dqn::{Dqn, DqnConfig, TdLoss};
use gradus_agents::off_policy::OffPolicyConfig;
use gradus_agents::q_learner::QLearnerConfig;
use gradus_agents::{
    End, GroupId, OffPolicy, OffPolicyAgent, OptimiserConfig, QrDqn, QrDqnConfig, Rollout, Sample, Segment, UpdateContext,
};
use gradus_envs::Space;
use gradus_nets::cpu::QNetwork;
use gradus_nets::{ActionRows, Activation, Behaviour, NetworkConfig, QHead, Rule, Schedule, Store};
use pytorch::{NEAR, assert_near, assert_parameters, tensors};
use serde_json::Value;

/// Returns the batch of a case as a sample.
fn sample(segments: &[Value], width: usize) -> Sample {
    let (mut observations, mut successors, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
    let (mut actions, mut made, mut first, mut weights) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, segment) in segments.iter().enumerate() {
        let (begin, own) = (rewards.len(), floats(&segment["rewards"]));
        observations.extend(floats(&segment["observations"]));
        actions.extend(std::iter::once(segment["action"].as_u64().unwrap() as u32).chain(vec![0; own.len() - 1]));
        rewards.extend(own);
        first.push(begin as u32);
        weights.push(floats(&segment["weight"])[0]);
        let successor = successors.len() / width;
        let end = match segment["end"].as_str().unwrap() {
            "terminated" => End::Terminated,
            "truncated" => End::Truncated { successor },
            _ => End::Cut { successor },
        };
        if end != End::Terminated {
            successors.extend(floats(&segment["next"]));
        }
        made.push(Segment { range: begin..rewards.len(), end, group: GroupId(i as u32) });
    }
    let n = rewards.len();
    let segments = made.iter().map(|segment| segment.moved(0, n)).collect();
    let store = Store::new(width, [observations, successors].concat(), ActionRows::Discrete(actions));
    Sample { rollout: Rollout::new(store, rewards, vec![0.0; n], segments), slots: vec![0; first.len()], first, weights }
}

#[test]
fn updates_are_those_of_pytorch() {
    let cases = golden::cases("q_networks.json");
    assert_eq!(cases.len(), 8);
    for case in cases {
        let (name, settings) = (case["name"].as_str().unwrap(), &case["settings"]);
        let size = |key: &str| settings[key].as_u64().unwrap() as usize;
        let is = |key: &str| settings[key].as_bool().unwrap();
        let (width, actions, atoms) = (size("width"), size("actions"), size("atoms"));
        let hidden = settings["hidden"].as_array().unwrap().iter().map(|width| width.as_u64().unwrap() as usize).collect();
        let activation = if settings["activation"] == "tanh" { Activation::Tanh } else { Activation::Relu };
        let perceptron = NetworkConfig { hidden, activation, layer_norm: is("layer_norm"), ..NetworkConfig::default() };
        let spaces = (Space::Box { low: vec![-9.0; width], high: vec![9.0; width] }, Space::Discrete(actions as u32));
        let head = QHead { atoms, dueling: is("dueling") };
        let mut network = QNetwork::new(&perceptron, head, &spaces.0, &spaces.1, 1).unwrap();
        network.load(&tensors(&case["first"]["parameters"])).unwrap();

        let off_policy = OffPolicyConfig { gamma: floats(&settings["gamma"])[0], ..OffPolicyConfig::default() };
        let config = QLearnerConfig { off_policy, ..QLearnerConfig::default() };
        let optimiser = OptimiserConfig {
            rule: if settings["rule"] == "radam" { Rule::RAdam } else { Rule::Adam },
            learning_rate: 0.01,
            schedule: Schedule::Constant,
            max_grad_norm: settings["max_grad_norm"].as_f64().map_or(f32::INFINITY, |norm| norm as f32),
            ..OptimiserConfig::default()
        };
        let mut learner = config.learner(optimiser, (1, 1000), Box::new(network));
        learner.target.load(&tensors(&case["first"]["target"])).unwrap();
        let batch = sample(case["segments"].as_array().unwrap(), width);

        let mut q = Vec::new();
        learner.network.q_values(&batch.rollout.store, 0..batch.rollout.len(), &mut q);
        let row = actions * atoms;
        let of_first: Vec<f32> = batch.first.iter().flat_map(|i| q[*i as usize * row..(*i as usize + 1) * row].to_vec()).collect();
        assert_near(&of_first, &case["q"], &format!("{name}, q"));

        let loss = if settings["loss"] == "squared" { TdLoss::Squared } else { TdLoss::Huber };
        let double = is("double");
        let agent: Box<dyn OffPolicyAgent<dyn gradus_nets::QNetwork>> = match atoms {
            1 => Box::new(Dqn { config: DqnConfig { loss, double, learner: config, ..DqnConfig::default() } }),
            _ => Box::new(QrDqn { config: QrDqnConfig { quantiles: atoms, double, learner: config, ..QrDqnConfig::default() } }),
        };
        let mut off_policy = OffPolicy { agent, learner };
        let context = UpdateContext { seed: 1, iteration: 0, progress: 0.0 };
        for update in 0..size("updates") {
            let what = |part: &str| format!("{name}, update {update}, {part}");
            let sums = off_policy.learn_from(&batch, context).unwrap().sums;
            let learner = &mut off_policy.learner;
            assert_near(&[sums.loss as f32], &case["losses"][update], &what("loss"));
            assert_near(&[learner.network.gradient_norm()], &case["norms"][update], &what("gradient norm"));
            let total: f64 = batch.weights.iter().map(|weight| f64::from(*weight)).sum();
            let weights: Vec<f64> = batch.weights.iter().map(|weight| f64::from(*weight) / total).collect();
            let error: f64 = numbers(&case["td_errors"][update]).iter().zip(&weights).map(|(error, weight)| error.abs() * weight).sum();
            assert!((sums.diagnostics[1] - error).abs() <= NEAR, "{}: expected {error}, got {}", what("error"), sums.diagnostics[1]);
            let tau = floats(&settings["tau"])[0];
            learner.target.track(learner.network.as_ref(), tau);
        }
        assert_parameters(off_policy.learner.network.as_ref(), &case["last"]["parameters"], &format!("{name}, parameters"));
        assert_parameters(off_policy.learner.target.as_ref(), &case["last"]["target"], &format!("{name}, target"));
    }
}
