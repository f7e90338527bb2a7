//! Networks that see images: their outputs and gradients against a reference in f64, products with the Fisher information, the same bits at
//! every level and for any number of threads, and what does not fit.

mod reference;

use gradus_base::random::{Purpose, Stream};
use gradus_base::simd::Level;
use gradus_base::tensors::{Data, Tensor};
use gradus_base::threads;
use gradus_envs::{Image, Space};
use gradus_nets::cpu::{ActorCritic, QNetwork};
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Choice, Evaluation, Network, NetworkConfig, Objective, Observations, OptimiserStep, Outputs,
    Policy, QHead, QNetwork as _, QValues, Rule, Store, ValueObjective,
};

use reference::{Layer, Parameters, Reference, parameters};

const STEP: OptimiserStep = OptimiserStep {
    rule: Rule::Adam,
    epsilon: 1e-5,
    learning_rate: 0.01,
    critic_learning_rate: 0.01,
    weight_decay: 0.0,
    max_grad_norm: 1.0,
    clip_per_group: false,
};

/// A network, its image, and its layers as the reference computes them.
struct Case {
    trunk: &'static str,
    image: Image,
    layers: Vec<Layer>,
}

fn cases() -> Vec<Case> {
    use Layer::{Convolution, Pool, Residuals};
    let image = |frames, height, width, channels, largest| Image { frames, height, width, channels, largest };
    vec![
        Case { trunk: "none", image: image(2, 3, 4, 2, 255), layers: vec![] },
        Case { trunk: "arcade", image: image(1, 10, 10, 4, 1), layers: vec![Convolution(1, 0, true)] },
        Case { trunk: "5x3/2+1", image: image(3, 8, 6, 2, 255), layers: vec![Convolution(2, 1, true)] },
        Case {
            trunk: "18x4/2,7x3,20x2+1",
            image: image(2, 14, 12, 1, 255),
            layers: vec![Convolution(2, 0, true), Convolution(1, 0, true), Convolution(1, 1, true)],
        },
        Case {
            trunk: "max2/2,6x3+2,max3/2+1",
            image: image(1, 11, 9, 3, 255),
            layers: vec![Pool(2, 2, 0), Convolution(1, 2, true), Pool(3, 2, 1)],
        },
        Case {
            trunk: "section4,section17,3x2",
            image: image(1, 9, 8, 3, 255),
            layers: vec![
                Convolution(1, 1, false),
                Pool(3, 2, 1),
                Residuals(false),
                Convolution(1, 1, false),
                Pool(3, 2, 1),
                Residuals(true),
                Convolution(1, 0, true),
            ],
        },
    ]
}

fn store(image: Image, rows: usize, actions: u32) -> Store {
    let mut stream = Stream::new(8, Purpose::Environment, 0);
    let mut observations = Observations::empty(&Space::Image(image));
    for _ in 0..rows + 3 {
        let row: Vec<f32> = (0..image.len()).map(|_| stream.below(u32::from(image.largest) + 1) as f32).collect();
        observations.push(&row);
    }
    Store::of(observations, ActionRows::Discrete((0..rows).map(|_| stream.below(actions)).collect()))
}

/// The numbers of an observation.
fn row(store: &Store, i: usize) -> Vec<f64> {
    let Observations::Bytes { rows, width } = store.observations() else { panic!("images are stored as bytes") };
    rows[i * width..(i + 1) * width].iter().map(|x| f64::from(*x)).collect()
}

fn config(case: &Case, hidden: &[usize], activation: Activation) -> NetworkConfig {
    NetworkConfig { trunk: case.trunk.parse().unwrap(), hidden: hidden.into(), activation, ..NetworkConfig::default() }
}

/// Q(s, .) of the reference.
fn q(reference: &Reference<'_>, parameters: &Parameters, row: &[f64]) -> Vec<f64> {
    reference.chain(parameters, "q", false, reference.features(parameters, "trunk", row))
}

fn close(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: expected {expected}, got {got}");
}

#[test]
fn action_values_are_those_of_the_reference() {
    for case in cases() {
        for (activation, layer_norm) in [(Activation::Relu, false), (Activation::Tanh, true)] {
            let layer_norm = layer_norm && !case.trunk.contains("section");
            let config = NetworkConfig { layer_norm, ..config(&case, &[20], activation) };
            let reference = Reference { layers: &case.layers, activation, image: case.image };
            let mut network = QNetwork::new(&config, QHead::default(), &Space::Image(case.image), &Space::Discrete(3), 3).unwrap();
            // biases are not 0, so that they matter
            let mut tensors = network.save();
            let mut stream = Stream::new(1, Purpose::Environment, 3);
            for (_, tensor) in tensors.iter_mut().filter(|(name, _)| name.ends_with("bias")) {
                *tensor = Tensor::f32(&tensor.shape.clone(), (0..tensor.shape[0]).map(|_| stream.uniform(-0.5, 0.5) as f32).collect());
            }
            network.load(&tensors).unwrap();
            let (parameters, store) = (parameters(&tensors), store(case.image, 40, 3));
            let mut values = Vec::new();
            network.q_values(&store, 1..43, &mut values);
            for (i, values) in (1..43).zip(values.chunks(3)) {
                let expected = q(&reference, &parameters, &row(&store, i));
                values.iter().zip(expected).for_each(|(q, expected)| close((*q).into(), expected, 1e-5, case.trunk));
            }
            // the same from the numbers that an environment writes
            let rows: Vec<f32> = (0..40).flat_map(|i| row(&store, i)).map(|x| x as f32).collect();
            let (mut actions, mut log_probs) = (ActionRows::Discrete(Vec::new()), vec![0.0; 40]);
            network.actor().act(&rows, None, Choice::Greedy, &mut actions, &mut log_probs);
            for i in 0..40 {
                let expected = q(&reference, &parameters, &row(&store, i));
                let ActionRows::Discrete(actions) = &actions else { unreachable!() };
                let chosen = expected[actions[i] as usize];
                assert!(expected.iter().all(|q| *q <= chosen + 1e-5), "{}: {expected:?}", case.trunk);
            }
        }
    }
}

/// The squared error to targets that depend on the decision.
struct Squared;

impl ValueObjective for Squared {
    fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation {
        (0.5 * (q.at(0) - target(index) as f32).squared()).into()
    }
}

fn target(index: usize) -> f64 {
    (index % 5) as f64 - 2.0
}

/// The same loss, and one of the policy's outputs.
struct OfAll;

impl Objective for OfAll {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        (-(target(index) as f32) * pi.log_prob - 0.1 * pi.entropy + 0.5 * (pi.value - target(index) as f32).squared()).into()
    }
}

/// Compares a gradient with central differences of `loss`: of some numbers of each tensor, and along a random direction.
fn assert_gradient(gradient: &Parameters, parameters: &Parameters, loss: impl Fn(&Parameters) -> f64, what: &str) {
    let mut stream = Stream::new(2, Purpose::Environment, 5);
    for (name, (_, numbers)) in parameters {
        let got = &gradient[name].1;
        assert_eq!(numbers.len(), got.len(), "{what}, {name}");
        let mut moved = parameters.clone();
        let mut difference = |direction: &[f64]| {
            let mut at = |step: f64| {
                let own = &mut moved.get_mut(name).unwrap().1;
                own.iter_mut().zip(numbers).zip(direction).for_each(|((own, number), d)| *own = number + step * d);
                loss(&moved)
            };
            (at(1e-5) - at(-1e-5)) / 2e-5
        };
        let all: Vec<f64> = numbers.iter().map(|_| stream.uniform(-1.0, 1.0)).collect();
        let one = |i: usize| (0..numbers.len()).map(|j| if i == j { 1.0 } else { 0.0 }).collect();
        let ones: Vec<Vec<f64>> = (0..3).map(|_| one(stream.below(numbers.len() as u32) as usize)).collect();
        for direction in ones.into_iter().chain([all]) {
            let along: f64 = got.iter().zip(&direction).map(|(g, d)| g * d).sum();
            close(along, difference(&direction), 2e-4, &format!("{what}, {name}"));
        }
    }
}

#[test]
fn gradients_of_action_values_are_those_of_central_differences() {
    for case in cases() {
        for layer_norm in [false, true] {
            let layer_norm = layer_norm && !case.trunk.contains("section");
            let config = NetworkConfig { layer_norm, ..config(&case, &[20], Activation::Tanh) };
            let reference = Reference { layers: &case.layers, activation: Activation::Tanh, image: case.image };
            let mut network = QNetwork::new(&config, QHead::default(), &Space::Image(case.image), &Space::Discrete(3), 3).unwrap();
            let store = store(case.image, 5, 3);
            let ActionRows::Discrete(actions) = store.actions.clone() else { unreachable!() };
            let (indices, weights) = ([4, 0, 2, 1], [0.3, 0.2, 0.4, 0.1]);
            network.gradient(&store, Batch::new(&indices, &weights), &Squared);
            let loss = |parameters: &Parameters| {
                let one = |(i, weight): (&u32, &f32)| {
                    let i = *i as usize;
                    let q = q(&reference, parameters, &row(&store, i))[actions[i] as usize];
                    f64::from(*weight) * 0.5 * (q - target(i)).powi(2)
                };
                indices.iter().zip(&weights).map(one).sum()
            };
            assert_gradient(&parameters(&network.gradient_tensors()), &parameters(&network.save()), loss, case.trunk);
        }
    }
}

/// The logits and the value of the reference.
fn heads(reference: &Reference<'_>, parameters: &Parameters, row: &[f64]) -> (Vec<f64>, f64) {
    let is_shared = parameters.keys().any(|name| name.starts_with("trunk."));
    let features = |name: &str| match is_shared {
        true => reference.chain(parameters, "trunk", true, reference.features(parameters, "trunk", row)),
        false => reference.features(parameters, name, row),
    };
    let logits = reference.chain(parameters, "actor", false, features("actor"));
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = largest + logits.iter().map(|z| (z - largest).exp()).sum::<f64>().ln();
    (logits.iter().map(|z| z - sum).collect(), reference.chain(parameters, "critic", false, features("critic"))[0])
}

#[test]
fn gradients_of_actors_and_critics_are_those_of_central_differences() {
    for case in cases() {
        for (hidden, shared) in [(&[18][..], true), (&[], true), (&[18], false), (&[], false)] {
            let config = NetworkConfig { shared, ..config(&case, hidden, Activation::Tanh) };
            let reference = Reference { layers: &case.layers, activation: Activation::Tanh, image: case.image };
            let mut policy = ActorCritic::new(&config, &Space::Image(case.image), &Space::Discrete(3), 3).unwrap();
            let store = store(case.image, 5, 3);
            let ActionRows::Discrete(actions) = store.actions.clone() else { unreachable!() };
            let (indices, weights) = ([4, 0, 2, 1], [0.3, 0.2, 0.4, 0.1]);
            policy.gradient(&store, Batch::new(&indices, &weights), &OfAll);
            let loss = |parameters: &Parameters| {
                let one = |(i, weight): (&u32, &f32)| {
                    let i = *i as usize;
                    let (log_probs, value) = heads(&reference, parameters, &row(&store, i));
                    let entropy = -log_probs.iter().map(|l| l.exp() * l).sum::<f64>();
                    let loss = -target(i) * log_probs[actions[i] as usize] - 0.1 * entropy + 0.5 * (value - target(i)).powi(2);
                    f64::from(*weight) * loss
                };
                indices.iter().zip(&weights).map(one).sum()
            };
            assert_gradient(&parameters(&policy.gradient_tensors()), &parameters(&policy.save()), loss, case.trunk);
        }
    }
}

/// w' F v is the sum over decisions and actions of weight x pi(a|s) x (d log pi(a|s) along v) x (d log pi(a|s) along w).
#[test]
fn products_with_the_fisher_information_are_those_of_differences() {
    for case in cases() {
        for (shared, hidden) in [(true, &[18][..]), (false, &[])] {
            let config = NetworkConfig { shared, ..config(&case, hidden, Activation::Tanh) };
            let reference = Reference { layers: &case.layers, activation: Activation::Tanh, image: case.image };
            let mut policy = ActorCritic::new(&config, &Space::Image(case.image), &Space::Discrete(3), 3).unwrap();
            // logits that differ
            let mut tensors = policy.save();
            for (_, tensor) in tensors.iter_mut().filter(|(name, _)| name.starts_with("actor")) {
                let Data::F32(data) = &mut tensor.data else { unreachable!() };
                data.iter_mut().for_each(|x| *x *= 60.0);
            }
            policy.load(&tensors).unwrap();
            let store = store(case.image, 4, 3);
            let (indices, weights) = ([3, 0, 2], [0.3, 0.2, 0.5]);
            let batch = Batch::new(&indices, &weights);
            // two directions among the parameters, the gradients of two objectives: without padding
            policy.gradient(&store, batch, &OfAll);
            let (v, names_v) = (policy.last_gradient().to_vec(), parameters(&policy.gradient_tensors()));
            policy.gradient(&store, Batch::new(&[1, 2], &[1.0, 0.7]), &OfAll);
            let (w, names_w) = (policy.last_gradient().to_vec(), parameters(&policy.gradient_tensors()));
            let mut product = Vec::new();
            policy.fisher_vector_product(&store, batch, &v, &mut product);
            let got: f64 = product.iter().zip(&w).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            // the backward pass after the product finds what it needs
            policy.gradient(&store, batch, &OfAll);
            assert!(policy.last_gradient() == v, "{}", case.trunk);

            let now = parameters(&policy.save());
            let along = |direction: &Parameters, row: &[f64]| -> Vec<f64> {
                let at = |step: f64| {
                    let mut moved = now.clone();
                    moved.iter_mut().for_each(|(name, (_, own))| own.iter_mut().zip(&direction[name].1).for_each(|(p, d)| *p += step * d));
                    heads(&reference, &moved, row).0
                };
                at(1e-5).iter().zip(at(-1e-5)).map(|(ahead, behind)| (ahead - behind) / 2e-5).collect()
            };
            let one = |(i, weight): (&u32, &f32)| {
                let row = row(&store, *i as usize);
                let log_probs = heads(&reference, &now, &row).0;
                let pairs = along(&names_v, &row).into_iter().zip(along(&names_w, &row));
                f64::from(*weight) * pairs.zip(log_probs).map(|((v, w), l)| l.exp() * v * w).sum::<f64>()
            };
            let expected: f64 = indices.iter().zip(&weights).map(one).sum();
            assert!((got - expected).abs() < 1e-3 * expected.abs(), "{}: expected {expected}, got {got}", case.trunk);
        }
    }
}

/// Everything that three updates compute.
fn history(case: &Case, rows: usize, level: Level) -> Vec<u32> {
    let store = store(case.image, rows, 3);
    let indices: Vec<u32> = (0..rows as u32).rev().collect();
    let weights: Vec<f32> = (0..rows).map(|i| if i % 11 == 5 { 0.0 } else { (1 + i % 3) as f32 / rows as f32 }).collect();
    let (batch, mut numbers, mut some) = (Batch::new(&indices, &weights), Vec::new(), Vec::new());
    let spaces = (Space::Image(case.image), Space::Discrete(3));
    for activation in [Activation::Relu, Activation::Tanh] {
        let q = NetworkConfig { layer_norm: activation == Activation::Tanh, ..config(case, &[20], activation) };
        let mut network = QNetwork::new(&q, QHead { atoms: 2, dueling: true }, &spaces.0, &spaces.1, 3).unwrap().with_level(level);
        let config = NetworkConfig { shared: true, ..config(case, &[20], activation) };
        let mut policy = ActorCritic::new(&config, &spaces.0, &spaces.1, 3).unwrap().with_level(level);
        for _ in 0..3 {
            numbers.push(network.gradient(&store, batch, &Squared).sums.loss as f32);
            numbers.extend_from_slice(network.last_gradient());
            network.apply(&STEP);
            network.q_values(&store, 0..store.rows(), &mut some);
            numbers.extend_from_slice(&some);
            numbers.push(policy.gradient(&store, batch, &OfAll).loss as f32);
            numbers.extend_from_slice(policy.last_gradient());
            let vector = policy.last_gradient().to_vec();
            policy.fisher_vector_product(&store, batch, &vector, &mut some);
            numbers.extend_from_slice(&some);
            policy.apply(&STEP);
            policy.values(&store, &mut some);
            numbers.extend_from_slice(&some);
            policy.distributions(&store, &mut some);
            numbers.extend_from_slice(&some);
        }
    }
    numbers.iter().map(|number| number.to_bits()).collect()
}

#[test]
fn every_level_and_every_number_of_threads_gives_the_same_bits() {
    for case in cases() {
        for rows in [1, 70] {
            let first = threads::with(2, || history(&case, rows, Level::Portable));
            for (level, n) in Level::available().into_iter().skip(1).flat_map(|level| [(level, 1), (level, 5)]) {
                let other = threads::with(n, || history(&case, rows, level));
                assert!(first == other, "{}, {rows} rows: {level:?} with {n} threads differs", case.trunk);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_named_in_one_line() {
    let image = Space::Image(Image { frames: 4, height: 10, width: 10, channels: 1, largest: 255 });
    let flat = Space::Box { low: vec![0.0; 400], high: vec![1.0; 400] };
    let problem = |trunk: &str, observations: &Space| {
        let config = NetworkConfig { trunk: trunk.parse().unwrap(), ..NetworkConfig::default() };
        let policy = ActorCritic::new(&config, observations, &Space::Discrete(2), 1).err().unwrap().to_string();
        let network = QNetwork::new(&config, QHead::default(), observations, &Space::Discrete(2), 1).err().unwrap().to_string();
        assert_eq!(policy, network);
        policy
    };
    assert_eq!(problem("nature", &image), "network.trunk: expected windows that fit into the image, got 64x4/2 for 1 x 1 pixels");
    assert_eq!(problem("arcade", &flat), "network.trunk: expected none, because observations are no images, got arcade");
    assert_eq!(problem("4x3,max9", &image), "network.trunk: expected windows that fit into the image, got max9 for 8 x 8 pixels");
}
