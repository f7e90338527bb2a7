//! Networks of action values: the same bits at every level and for any number of threads, greedy actions, target networks, checkpoints.

use gradus_base::random::{Purpose, Stream};
use gradus_base::simd::Level;
use gradus_base::threads;
use gradus_envs::Space;
use gradus_nets::cpu::QNetwork;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Choice, Evaluation, Network, NetworkConfig, NetworkError, OptimiserStep, QHead,
    QNetwork as _, QValues, Rule, Store, ValueObjective, greedy,
};

/// The squared error to targets that depend on the decision, averaged over the atoms.
struct Squared;

impl ValueObjective for Squared {
    fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation {
        let (first, share) = (q.values()[0], 1.0 / q.values().len() as f32);
        let loss = share * q.sum(|k, q| (q - ((index * 7 + k * 3) % 5) as f32).squared());
        loss.with_diagnostics([first, loss.value()]).with_error(first - index as f32)
    }
}

const STEP: OptimiserStep = OptimiserStep {
    rule: Rule::Adam,
    epsilon: 1e-5,
    learning_rate: 0.01,
    critic_learning_rate: 0.01,
    weight_decay: 0.0,
    max_grad_norm: 1.0,
    clip_per_group: false,
};

fn configs() -> Vec<(NetworkConfig, QHead, u32)> {
    let config = |hidden: &[usize], activation, layer_norm, orthogonal| NetworkConfig {
        hidden: hidden.into(),
        activation,
        layer_norm,
        orthogonal,
        ..NetworkConfig::default()
    };
    vec![
        (config(&[256, 256], Activation::Relu, false, false), QHead::default(), 2),
        (config(&[20, 7], Activation::Tanh, false, true), QHead { atoms: 1, dueling: true }, 3),
        (config(&[33, 130], Activation::Relu, true, true), QHead { atoms: 5, dueling: false }, 4),
        (config(&[18], Activation::Relu, true, false), QHead { atoms: 3, dueling: true }, 17),
        (config(&[], Activation::Relu, false, false), QHead::default(), 6),
    ]
}

fn spaces(actions: u32) -> (Space, Space) {
    (Space::Box { low: vec![-3.0; 5], high: vec![3.0; 5] }, Space::Discrete(actions))
}

fn network(config: &NetworkConfig, head: QHead, actions: u32) -> QNetwork {
    let (observations, actions) = spaces(actions);
    QNetwork::new(config, head, &observations, &actions, 3).unwrap()
}

fn store(rows: usize, actions: u32) -> Store {
    let mut stream = Stream::new(8, Purpose::Environment, 0);
    let observations = (0..(rows + 3) * 5).map(|_| stream.uniform(-3.0, 3.0) as f32).collect();
    Store::new(5, observations, ActionRows::Discrete((0..rows).map(|_| stream.below(actions)).collect()))
}

/// Returns everything that three updates of a network compute.
fn updates(mut network: QNetwork, rows: usize, actions: u32) -> Vec<u32> {
    let store = store(rows, actions);
    let indices: Vec<u32> = (0..rows as u32).rev().collect();
    let weights: Vec<f32> = (0..rows).map(|i| if i % 11 == 5 { 0.0 } else { (1 + i % 3) as f32 / rows as f32 }).collect();
    let (mut target, mut numbers, mut q) = (network.snapshot(), Vec::new(), Vec::new());
    for _ in 0..3 {
        let evaluated = network.gradient(&store, Batch::new(&indices, &weights), &Squared);
        numbers.extend([evaluated.sums.loss as f32, evaluated.sums.diagnostics[1] as f32, network.gradient_norm()]);
        numbers.extend_from_slice(&evaluated.errors);
        numbers.extend_from_slice(network.last_gradient());
        assert_eq!(network.evaluate(&store, Batch::new(&indices, &weights), &Squared), evaluated);
        network.apply(&STEP);
        target.track(&network, 0.3);
        network.q_values(&store, 1..rows + 3, &mut q);
        numbers.extend_from_slice(&q);
    }
    numbers.extend_from_slice(network.parameters());
    numbers.extend_from_slice(target.parameters());
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn every_level_and_every_number_of_threads_gives_the_same_bits() {
    for (config, head, actions) in configs() {
        // more rows than the tiles that are kept at once, but not with wide layers, which are slow without vector instructions
        let is_wide = config.hidden.iter().any(|width| *width > 200);
        for rows in if is_wide { [1, 37, 100] } else { [1, 37, 2100] } {
            let first = updates(network(&config, head, actions).with_level(Level::Portable), rows, actions);
            for level in Level::available() {
                for n in [1, 2, 5] {
                    let other = threads::with(n, || updates(network(&config, head, actions).with_level(level), rows, actions));
                    assert!(first == other, "{config:?}, {head:?}, {rows} rows: {level:?} with {n} threads differs");
                }
            }
        }
    }
}

/// A loss of the batch, as a function of the parameters.
fn loss(network: &mut QNetwork, store: &Store, (indices, weights): (&[u32], &[f32]), parameters: &[f32]) -> f64 {
    network.set_parameters(parameters);
    network.evaluate(store, Batch::new(indices, weights), &Squared).sums.loss
}

#[test]
fn gradients_are_those_of_central_differences() {
    for (mut config, head, actions) in configs() {
        // the derivative of tanh is continuous
        config.activation = Activation::Tanh;
        config.hidden.iter_mut().for_each(|width| *width = (*width).min(33));
        let (mut network, store) = (network(&config, head, actions), store(40, actions));
        let (indices, weights): (Vec<u32>, Vec<f32>) = (0..40).map(|i| (i, 0.02 + 0.001 * i as f32)).unzip();
        network.gradient(&store, Batch::new(&indices, &weights), &Squared);
        let (gradient, start) = (network.last_gradient().to_vec(), network.parameters().to_vec());
        for direction in 0..12 {
            // only real parameters move, because padding must stay 0
            let mut stream = Stream::new(direction, Purpose::Environment, 1);
            let moves: Vec<f32> = gradient.iter().map(|g| if *g == 0.0 { 0.0 } else { stream.uniform(-1.0, 1.0) as f32 }).collect();
            let moved = |step: f32| start.iter().zip(&moves).map(|(p, m)| p + step * m).collect::<Vec<f32>>();
            let step = 2e-3;
            let (ahead, behind) = (moved(step), moved(-step));
            let difference =
                loss(&mut network, &store, (&indices, &weights), &ahead) - loss(&mut network, &store, (&indices, &weights), &behind);
            let expected: f64 = gradient.iter().zip(&moves).map(|(g, m)| f64::from(*g) * f64::from(*m)).sum();
            let got = difference / (2.0 * f64::from(step));
            assert!((got - expected).abs() <= 2e-3 * expected.abs().max(1.0), "{config:?}, {head:?}: expected {expected}, got {got}");
        }
    }
}

/// The error of each decision is the first atom of Q(s, a) less the number of the decision.
#[test]
fn errors_are_in_the_order_of_the_batch() {
    for (config, head, actions) in configs() {
        let (mut network, store, mut q) = (network(&config, head, actions), store(70, actions), Vec::new());
        network.q_values(&store, 0..70, &mut q);
        let ActionRows::Discrete(taken) = &store.actions else { panic!("expected discrete actions") };
        let of_action = |i: usize| q[(i * actions as usize + taken[i] as usize) * head.atoms];
        // not all decisions, and one of them twice
        let indices: Vec<u32> = (0..100).map(|i| i * 37 % 69).collect();
        let weights: Vec<f32> = (0..100).map(|i| if i % 9 == 4 { 0.0 } else { 0.01 }).collect();
        let is_counted = weights.iter().map(|weight| *weight != 0.0);
        let expected: Vec<f32> =
            indices.iter().zip(is_counted).map(|(i, counts)| if counts { of_action(*i as usize) - *i as f32 } else { 0.0 }).collect();
        let batch = Batch::new(&indices, &weights);
        for errors in [network.gradient(&store, batch, &Squared).errors, network.evaluate(&store, batch, &Squared).errors] {
            assert_eq!(errors.len(), 100);
            assert!(errors.iter().zip(&expected).all(|(got, expected)| (got - expected).abs() < 1e-5), "{errors:?}, {expected:?}");
        }
    }
}

#[test]
fn the_actor_takes_the_allowed_action_of_the_greatest_value() {
    for (config, head, actions) in configs() {
        let (mut network, store) = (network(&config, head, actions), store(50, actions));
        let (n, row, mut q) = (actions as usize, actions as usize * head.atoms, Vec::new());
        network.q_values(&store, 0..50, &mut q);
        let observations: Vec<f32> = (0..50).flat_map(|row| store.observation(row).to_vec()).collect();
        let masks: Vec<bool> = (0..50 * n).map(|i| i % n == 1 || i % 3 > 0).collect();
        for masks in [None, Some(&masks[..])] {
            let (mut chosen, mut log_probs) = (ActionRows::Discrete(Vec::new()), vec![1.0; 50]);
            network.actor().act(&observations, masks, Choice::Greedy, &mut chosen, &mut log_probs);
            let ActionRows::Discrete(chosen) = chosen else { panic!("expected discrete actions") };
            for (i, (action, q)) in chosen.iter().zip(q.chunks(row)).enumerate() {
                let value = |action: usize| q[action * head.atoms..(action + 1) * head.atoms].iter().sum::<f32>();
                let allowed = |action: &usize| masks.is_none_or(|masks| masks[i * n + action]);
                let best = (0..n).filter(allowed).map(value).fold(f32::NEG_INFINITY, f32::max);
                assert!(allowed(&(*action as usize)) && value(*action as usize) == best, "row {i} of {head:?}");
            }
            assert_eq!(log_probs, vec![0.0; 50]);
        }
    }
    assert_eq!(greedy(&[f32::NAN, 1.0], 1, Some(&[false, true])), 1);
}

#[test]
fn a_saved_network_continues_alike() {
    for (config, head, actions) in configs() {
        let (store, indices, weights) = (store(30, actions), (0..30).collect::<Vec<u32>>(), vec![0.1; 30]);
        let mut first = network(&config, head, actions);
        let train = |network: &mut QNetwork| {
            network.gradient(&store, Batch::new(&indices, &weights), &Squared);
            network.apply(&STEP);
        };
        train(&mut first);
        let mut second = QNetwork::new(&config, head, &spaces(actions).0, &spaces(actions).1, 99).unwrap();
        assert_ne!(first.parameters(), second.parameters());
        second.load(&first.save()).unwrap();
        second.load_optimiser(&first.save_optimiser()).unwrap();
        (0..2).for_each(|_| [&mut first, &mut second].into_iter().for_each(train));
        assert_eq!(first.parameters(), second.parameters());
        // a snapshot has its own memory
        let copy = first.snapshot();
        train(&mut first);
        assert!(copy.parameters() == second.parameters() && copy.parameters() != first.parameters());
    }
}

#[test]
fn settings_that_do_not_fit_are_named_in_one_line() {
    let message = |config: NetworkConfig, actions: &Space| {
        let error: NetworkError = QNetwork::new(&config, QHead::default(), &spaces(2).0, actions, 1).err().unwrap();
        error.to_string()
    };
    let (config, two) = (NetworkConfig::default, Space::Discrete(2));
    let shared = message(NetworkConfig { shared: true, ..config() }, &two);
    assert_eq!(shared, "network.shared: expected false, because a network of action values has one head, got true");
    let continuous = message(config(), &Space::Box { low: vec![0.0], high: vec![1.0] });
    assert!(continuous.starts_with("a network of action values needs discrete actions, got "), "{continuous}");
    assert_eq!(message(NetworkConfig { hidden: vec![0], ..config() }, &two), "network.hidden: expected widths from 1 to 65536, got 0");
}
