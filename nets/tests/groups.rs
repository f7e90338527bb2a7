//! Parameter groups: an objective updates the groups that it names, each group has its own clock, and gradients are clipped together or by
//! group. The reference is PyTorch with a separate optimiser for each group (`scripts/golden/pytorch_groups.py`).

use gradus_testing::golden;

use std::ops::Range;

use golden::{floats, numbers, shape};
use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_envs::Space;
use gradus_nets::cpu::{ActorCritic, Transformer};
use gradus_nets::{
    ActionRows, Batch, Behaviour, Critic, Evaluation, Loss, Network, NetworkConfig, Objective, Observations, OptimiserStep, Outputs,
    Policy, Rule, Store, Texts, TransformerConfig, UpdatedGroups,
};
use serde_json::Value;

/// Tolerance. PyTorch's numbers are f64, ours f32. After six steps of Adam, the largest difference seen is 6e-7.
const NEAR: f64 = 2e-6;

/// A loss with terms of the policy, of the values, or both.
struct Terms {
    updates: UpdatedGroups,
    coefficients: Vec<f32>,
    targets: Vec<f32>,
}

impl Objective for Terms {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let mut loss = Loss::default();
        if self.updates != UpdatedGroups::Critic {
            loss = loss + self.coefficients[i] * pi.log_prob;
        }
        if self.updates != UpdatedGroups::Actor {
            loss = loss + 0.5 * (pi.value - self.targets[i]).squared();
        }
        loss.into()
    }

    fn updates(&self) -> UpdatedGroups {
        self.updates
    }
}

fn tensors(value: &Value) -> Tensors {
    value.as_object().unwrap().iter().map(|(name, x)| (name.clone(), Tensor::f32(&shape(x), floats(x)))).collect()
}

fn numbers_of(tensor: &Tensor) -> &[f32] {
    match &tensor.data {
        Data::F32(numbers) => numbers,
        Data::F64(_) | Data::U64(_) => panic!("expected f32"),
    }
}

/// Returns the number of steps of a clock, which holds the bits of beta1^t and beta2^t.
fn steps(clock: &Tensor) -> u64 {
    match &clock.data {
        Data::U64(powers) => (f64::from_bits(powers[0]).ln() / 0.9_f64.ln()).round() as u64,
        Data::F32(_) | Data::F64(_) => panic!("expected the bits of f64"),
    }
}

/// Returns the parameters after the golden steps, and the number of steps of each group's clock.
fn after(golden: &Value, clip_per_group: bool) -> (Tensors, Vec<(&'static str, u64)>) {
    let width = golden["observations"][0].as_array().unwrap().len();
    let config = NetworkConfig {
        hidden: numbers(&golden["hidden"]).iter().map(|n| *n as usize).collect(),
        shared: golden["shared"].as_bool().unwrap(),
        ..NetworkConfig::default()
    };
    let observations = Space::Box { low: vec![f32::MIN; width], high: vec![f32::MAX; width] };
    let mut policy = ActorCritic::new(&config, &observations, &Space::Discrete(4), 0).unwrap();
    policy.load(&tensors(&golden["parameters"])).unwrap();
    let actions: Vec<u32> = numbers(&golden["actions"]).iter().map(|a| *a as u32).collect();
    let n = actions.len();
    let store = Store::new(width, floats(&golden["observations"]), ActionRows::Discrete(actions));
    let (indices, weights) = ((0..n as u32).collect::<Vec<u32>>(), vec![1.0 / n as f32; n]);
    let number = |key: &str| golden["optimiser"][key].as_f64().unwrap() as f32;
    let step = OptimiserStep {
        rule: Rule::Adam,
        epsilon: number("epsilon"),
        learning_rate: number("learning_rate"),
        critic_learning_rate: number("critic_learning_rate"),
        weight_decay: number("weight_decay"),
        max_grad_norm: number("max_grad_norm"),
        clip_per_group,
    };
    for name in golden["steps"].as_array().unwrap() {
        let updates = match name.as_str() {
            Some("actor") => UpdatedGroups::Actor,
            Some("critic") => UpdatedGroups::Critic,
            _ => UpdatedGroups::All,
        };
        let terms = Terms { updates, coefficients: floats(&golden["coefficients"]), targets: floats(&golden["targets"]) };
        policy.gradient(&store, Batch::new(&indices, &weights), &terms);
        policy.apply(&step);
    }
    let optimiser = policy.save_optimiser();
    let clocks = policy.groups().iter().map(|group| (group.name, steps(&optimiser[&format!("powers.{}", group.name)]))).collect();
    (policy.save(), clocks)
}

/// Returns the largest difference between parameters and those of a golden entry.
fn distance(got: &Tensors, golden: &Value) -> f64 {
    let expected = golden.as_object().unwrap();
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    let apart = |(name, expected): (&String, &Value)| {
        let pairs = numbers_of(&got[name]).iter().zip(numbers(expected)).map(|(a, b)| (f64::from(*a) - b).abs());
        pairs.fold(0.0, f64::max)
    };
    expected.iter().map(apart).fold(0.0, f64::max)
}

/// The steps are critic, critic, all, actor, critic, all: PyTorch's optimisers of trunk, actor and critic take 6, 3 and 5 steps.
#[test]
fn groups_move_like_pytorch_parameters_with_separate_optimisers() {
    for golden in &golden::cases("groups.json") {
        let (joint, per_group) = (after(golden, false), after(golden, true));
        for ((parameters, clocks), key, other) in [(&joint, "joint", "per_group"), (&per_group, "per_group", "joint")] {
            let apart = distance(parameters, &golden[key]);
            println!("{apart:.1e} {} {key}", golden["name"]);
            assert!(apart < NEAR, "{}, {key}: {apart:.1e}", golden["name"]);
            assert!(distance(parameters, &golden[other]) > 100.0 * NEAR, "{}: both kinds of clipping agree", golden["name"]);
            let expected = [("trunk", 6), ("actor", 3), ("critic", 5)];
            assert_eq!(clocks[..], expected[expected.len() - clocks.len()..], "{}", golden["name"]);
        }
        let norms: Vec<f64> = golden["norms"].as_object().unwrap().values().map(|norm| norm.as_f64().unwrap()).collect();
        let limit = golden["optimiser"]["max_grad_norm"].as_f64().unwrap();
        assert!(norms.iter().any(|norm| *norm > limit), "nothing was clipped");
    }
}

/// Returns perceptrons and transformers, whose actor and critic share nothing, layers, or only embeddings. Each has a store and the names
/// of its groups.
fn policies() -> Vec<(Box<dyn Policy>, Store, &'static [&'static str])> {
    let mut stream = Stream::new(2, Purpose::Environment, 0);
    let rows: Vec<f32> = (0..200 * 3).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
    let actions: Vec<u32> = (0..200).map(|_| stream.below(4)).collect();
    let own = Store::new(3, rows.clone(), ActionRows::Discrete(actions));
    let means = ActionRows::Continuous { rows: (0..400).map(|_| stream.uniform(-1.0, 1.0) as f32).collect(), width: 2 };
    let continuous = Store::new(3, rows, means);
    let perceptron = |shared: bool, actions: Space| -> Box<dyn Policy> {
        let config = NetworkConfig { hidden: vec![20], shared, ..NetworkConfig::default() };
        let observations = Space::Box { low: vec![-1.0; 3], high: vec![1.0; 3] };
        Box::new(ActorCritic::new(&config, &observations, &actions, 1).unwrap())
    };
    let mut texts = Texts::new(8);
    for i in 0..200 {
        texts.push([i % 5, 1, i % 3].into_iter());
        texts.end_text();
    }
    let texts = Store::of(Observations::Texts(texts), ActionRows::Discrete((0..200).map(|i| i % 5).collect()));
    let transformer = |critic: Critic, shared_embeddings: bool| -> Box<dyn Policy> {
        let config =
            TransformerConfig { layers: 1, width: 16, heads: 1, feed_forward_width: 16, critic, shared_embeddings, ..Default::default() };
        let (observations, actions) = (Space::Text { vocabulary: 5, context: 8 }, Space::Discrete(5));
        let mut policy = Transformer::new(&config, &observations, &actions, 1).unwrap();
        let parameters: Vec<f32> = policy.parameters().iter().enumerate().map(|(i, x)| x + 0.1 * ((i % 7) as f32 - 3.0)).collect();
        policy.set_parameters(&parameters);
        Box::new(policy)
    };
    let box_of_two = || Space::Box { low: vec![-1.0; 2], high: vec![1.0; 2] };
    vec![
        (perceptron(false, Space::Discrete(4)), own.clone(), &["actor", "critic"]),
        (perceptron(true, Space::Discrete(4)), own, &["trunk", "actor", "critic"]),
        (perceptron(false, box_of_two()), continuous, &["actor", "critic"]),
        (transformer(Critic::Separate, false), texts.clone(), &["actor", "critic"]),
        (transformer(Critic::Separate, true), texts.clone(), &["trunk", "actor", "critic"]),
        (transformer(Critic::Head, false), texts, &["trunk", "critic"]),
    ]
}

/// A group that the objective does not name keeps every bit of its parameters, its moments and its clock, despite weight decay. A named
/// group changes. This holds for small and for large batches, which engines compute differently.
#[test]
fn an_objective_moves_exactly_the_groups_that_it_names() {
    for (mut policy, store, names) in policies() {
        let groups = policy.groups();
        assert_eq!(groups.iter().map(|group| group.name).collect::<Vec<_>>(), names);
        for (rule, size) in [(Rule::Adam, 30), (Rule::RmsProp, 30), (Rule::Adam, 200)] {
            for updates in [UpdatedGroups::All, UpdatedGroups::Critic, UpdatedGroups::Actor, UpdatedGroups::Critic] {
                let terms = Terms { updates, coefficients: vec![0.7; 200], targets: vec![3.0; 200] };
                let (indices, weights) = ((0..size).collect::<Vec<u32>>(), vec![1.0 / size as f32; size as usize]);
                let before = (policy.parameters().to_vec(), policy.save_optimiser());
                policy.gradient(&store, Batch::new(&indices, &weights), &terms);
                let (norm, gradient) = (policy.gradient_norm(), policy.last_gradient().to_vec());
                let squares = |range: Range<usize>| gradient[range].iter().map(|g| g * g).sum::<f32>();
                assert!((norm / squares(0..gradient.len()).sqrt() - 1.0).abs() < 1e-4);
                policy.apply(&OptimiserStep {
                    rule,
                    epsilon: 1e-5,
                    learning_rate: 0.01,
                    critic_learning_rate: 0.01,
                    weight_decay: 0.1,
                    max_grad_norm: 0.5,
                    clip_per_group: size == 200,
                });
                let (after, optimiser) = (policy.parameters(), policy.save_optimiser());
                for group in &groups {
                    let clock = format!("powers.{}", group.name);
                    let counted = steps(&optimiser[&clock]) - steps(&before.1[&clock]);
                    let bits = |numbers: &[f32]| numbers[group.range.clone()].iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
                    let (has_moved, is_named) = (bits(after) != bits(&before.0), updates.includes(group.name));
                    assert_eq!((has_moved, counted), (is_named, u64::from(is_named)), "{}, {updates:?}, {names:?}", group.name);
                    assert_eq!(squares(group.range.clone()) > 0.0, is_named, "the gradient of {}, {updates:?}, {names:?}", group.name);
                }
                // moments by name: with separate actor and critic, every name shows its group
                if names == ["actor", "critic"] {
                    for (name, tensor) in optimiser.iter().filter(|(name, _)| name.starts_with("second.")) {
                        let group = if name.starts_with("second.critic") { "critic" } else { "actor" };
                        assert_eq!(*tensor != before.1[name], updates.includes(group), "{name}, {updates:?}");
                    }
                }
            }
        }
    }
}
