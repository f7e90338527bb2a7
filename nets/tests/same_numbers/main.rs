//! The same seed gives the same bits with any instruction set and any number of threads.

mod bits;
mod parameters;
mod pinned;

use gradus_base::random::{Purpose, Stream};
use gradus_base::simd::Level;
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Choice, Evaluation, Network, NetworkConfig, Objective, OptimiserStep, Outputs, Policy, Rule,
    Store,
};

const WIDTH: usize = 5;

/// A loss of sums and products only, which every machine rounds alike.
struct Quadratic;

impl Objective for Quadratic {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        let (a, target) = (0.5 + 0.25 * (index % 4) as f32, (index % 7) as f32 - 3.0);
        let Outputs { log_prob: l, entropy: h, value: v, kl_old, .. } = pi;
        // the product l v by the product rule, because a loss is a sum of functions of one output each
        let product = (l - l.stop()) * v.stop() + l.stop() * v;
        let loss = a * l * l + product - 0.1 * h + 0.5 * (v - target).squared() + 0.5 * kl_old;
        loss.with_diagnostics([h.value()])
    }
}

fn a_box(width: usize) -> Space {
    Space::Box { low: vec![-1.0; width], high: vec![1.0; width] }
}

fn policy(config: &NetworkConfig, actions: &Space, level: Level) -> ActorCritic {
    ActorCritic::new(config, &a_box(WIDTH), actions, 1).unwrap().with_level(level)
}

/// A deterministic store with this number of decisions, followed by one row without an action.
fn store(rows: usize, space: &Space) -> Store {
    let mut stream = Stream::new(1, Purpose::Environment, rows as u64);
    let observations = (0..(rows + 1) * WIDTH).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
    let mut actions = ActionRows::empty(space);
    actions.resize(rows);
    match (&mut actions, space) {
        (ActionRows::Discrete(actions), Space::Discrete(n)) => actions.iter_mut().for_each(|a| *a = stream.below(*n)),
        (ActionRows::Continuous { rows, .. }, _) => rows.iter_mut().for_each(|a| *a = stream.uniform(-2.0, 2.0) as f32),
        _ => panic!("{space} has other actions"),
    }
    let store = Store::new(WIDTH, observations, actions);
    match (&store.actions, space) {
        // of four or more actions, some are masked
        (ActionRows::Discrete(actions), Space::Discrete(n @ 4..)) => {
            let masks = actions.iter().flat_map(|a| (0..*n).map(move |j| j == *a || (3 * j + a) % 4 != 0)).collect();
            store.with_masks(masks)
        }
        _ => store,
    }
}

fn step(rule: Rule) -> OptimiserStep {
    OptimiserStep {
        rule,
        epsilon: 1e-5,
        learning_rate: 0.01,
        critic_learning_rate: 0.02,
        weight_decay: 0.0,
        max_grad_norm: 0.5,
        clip_per_group: false,
    }
}

fn bits(numbers: &[f32]) -> Vec<u64> {
    numbers.iter().map(|x| u64::from(x.to_bits())).collect()
}

/// The bits of all numbers that a short training run computes, by name.
type History = Vec<(String, Vec<u64>)>;

fn history(config: &NetworkConfig, actions: &Space, rows: usize, rule: Rule, level: Level) -> History {
    let mut policy = policy(config, actions, level);
    let store = store(rows, actions);
    let indices: Vec<u32> = (0..rows as u32).rev().collect();
    let weights: Vec<f32> = (0..rows).map(|i| (1 + i % 3) as f32 / rows as f32).collect();
    let mut history = History::new();
    let (mut old, mut product) = (Vec::new(), Vec::new());
    policy.distributions(&store, &mut old);
    for i in 0..5 {
        let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
        let sums = policy.gradient(&store, batch, &Quadratic);
        history.push((format!("sums {i}"), std::iter::once(sums.loss).chain(sums.diagnostics).map(f64::to_bits).collect()));
        history.push((format!("gradient {i}"), bits(policy.last_gradient())));
        history.push((format!("gradient norm {i}"), bits(&[policy.gradient_norm()])));
        if policy.supports_fisher() {
            let vector = policy.last_gradient().to_vec();
            policy.fisher_vector_product(&store, batch, &vector, &mut product);
            history.push((format!("Fisher-vector product {i}"), bits(&product)));
        }
        policy.apply(&step(rule));
        history.push((format!("parameters {i}"), bits(policy.parameters())));
    }
    let mut numbers = Vec::new();
    policy.values(&store, &mut numbers);
    history.push(("values".into(), bits(&numbers)));
    policy.distributions(&store, &mut numbers);
    history.push(("distributions".into(), bits(&numbers)));
    policy.log_probs(&store, &mut numbers);
    history.push(("log-probabilities of the store".into(), bits(&numbers)));
    let mut streams: Vec<Stream> = (0..rows as u64).map(|row| Stream::new(1, Purpose::Action, row)).collect();
    let observations: Vec<f32> = (0..rows).flat_map(|row| store.observation(row).to_vec()).collect();
    let (mut actions, mut log_probs) = (ActionRows::empty(actions), vec![0.0; rows]);
    policy.actor().act(&observations, None, Choice::Sample(&mut streams), &mut actions, &mut log_probs);
    let actions = match actions {
        ActionRows::Discrete(actions) => actions.into_iter().map(u64::from).collect(),
        ActionRows::Continuous { rows, .. } => bits(&rows),
        ActionRows::OnDevice(_) => unreachable!("this engine has no device"),
    };
    history.push(("actions".into(), actions));
    history.push(("log-probabilities".into(), bits(&log_probs)));
    history
}

fn assert_same(expected: &History, got: &History, case: &str) {
    for ((name, expected), (_, got)) in expected.iter().zip(got) {
        let differing = expected.iter().zip(got).position(|(a, b)| a != b);
        assert!(differing.is_none() && expected.len() == got.len(), "{case}: {name}: numbers differ at position {differing:?}");
    }
    assert_eq!(expected.len(), got.len());
}

/// Networks with wide and narrow layers, full vectors and remainders, both activations, with and without a shared trunk, and every head.
fn shapes() -> [(NetworkConfig, Space); 10] {
    let config = |hidden: &[usize], activation, shared| NetworkConfig { hidden: hidden.into(), activation, shared, ..Default::default() };
    [
        (config(&[], Activation::Tanh, false), Space::Discrete(3)),
        (config(&[7], Activation::Tanh, true), Space::Discrete(17)),
        (config(&[16, 33], Activation::Relu, false), Space::Discrete(2)),
        (config(&[70, 20], Activation::Tanh, true), Space::Discrete(4)),
        (config(&[64, 64], Activation::Tanh, false), Space::Discrete(2)),
        (config(&[], Activation::Tanh, false), a_box(3)),
        (config(&[20, 7], Activation::Relu, true), a_box(17)),
        (config(&[64, 64], Activation::Tanh, false), a_box(1)),
        (NetworkConfig { gsde: true, ..config(&[16, 33], Activation::Tanh, false) }, a_box(2)),
        (NetworkConfig { gsde: true, ..config(&[7], Activation::Relu, true) }, a_box(18)),
    ]
}
