//! Networks with a recurrent cell: their outputs and their gradient through time against a reference in f64, the same numbers step by step as
//! in sequences, the same bits at every level and for any number of threads, and what is refused.

mod reference;
mod values;

use gradus_base::random::{Purpose, Stream};
use gradus_base::simd::Level;
use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_base::threads;
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Cell, Choice, Evaluation, Network, NetworkConfig, Objective, Outputs, Policy, Sequence,
    Sequences, Store,
};

use reference::Reference;

const WIDTH: usize = 3;

fn observations() -> Space {
    Space::Box { low: vec![-2.0; WIDTH], high: vec![2.0; WIDTH] }
}

fn config(cell: Cell, hidden: &[usize], shared: bool, cell_width: usize) -> NetworkConfig {
    NetworkConfig { hidden: hidden.into(), shared, cell, cell_width, ..NetworkConfig::default() }
}

/// Networks of both cells, separate and shared, with and without hidden layers, whose gates have padding or not.
fn configs() -> Vec<NetworkConfig> {
    let relu = |config| NetworkConfig { activation: Activation::Relu, ..config };
    vec![
        config(Cell::Gru, &[5], false, 4),
        config(Cell::Lstm, &[], false, 3),
        config(Cell::Gru, &[18], true, 16),
        relu(config(Cell::Lstm, &[6, 20], true, 17)),
    ]
}

/// A network whose parameters are far from their initial values: biases of 0 would hide errors.
fn network(config: &NetworkConfig, actions: &Space) -> ActorCritic {
    let mut policy = ActorCritic::new(config, &observations(), actions, 1).unwrap();
    policy.load(&random(policy.save())).unwrap();
    policy
}

fn random(mut tensors: Tensors) -> Tensors {
    let mut stream = Stream::new(2, Purpose::Environment, 0);
    for Tensor { data, .. } in tensors.values_mut() {
        if let Data::F32(numbers) = data {
            numbers.iter_mut().for_each(|x| *x = stream.uniform(-0.7, 0.7) as f32);
        }
    }
    tensors
}

/// Sequences of these lengths, every second one with a successor, and the memories at their beginning.
fn store(memory: usize, lengths: &[usize], actions: &Space) -> Store {
    let mut stream = Stream::new(3, Purpose::Environment, 0);
    let n: usize = lengths.iter().sum();
    let (mut list, mut begin, mut rows) = (Vec::new(), 0, n);
    for (i, length) in lengths.iter().enumerate() {
        let successor = i.is_multiple_of(2).then_some(rows);
        rows += usize::from(successor.is_some());
        list.push(Sequence { decisions: begin..begin + length, successor });
        begin += length;
    }
    let numbers = |stream: &mut Stream, n: usize| (0..n).map(|_| stream.uniform(-1.0, 1.0) as f32).collect::<Vec<f32>>();
    let (seen, memory) = (numbers(&mut stream, rows * WIDTH), numbers(&mut stream, lengths.len() * memory));
    let taken = match actions {
        Space::Discrete(count) => ActionRows::Discrete((0..n).map(|_| stream.below(*count)).collect()),
        _ => ActionRows::Continuous { rows: numbers(&mut stream, n * actions.width()), width: actions.width() },
    };
    Store::new(WIDTH, seen, taken).with_sequences(Sequences { list, memory })
}

/// A loss that is nonlinear in all outputs and differs between decisions.
struct Curved;

impl Objective for Curved {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        let [a, b, c, target] = coefficients(index).map(|x| x as f32);
        let loss = a * pi.log_prob.squared() + b * pi.entropy.squared() + c * (pi.value - target).squared();
        loss.into()
    }
}

fn coefficients(index: usize) -> [f64; 4] {
    let cycle = |n: usize| (index % n) as f64;
    [0.2 + 0.1 * cycle(5), 0.1 * cycle(4) - 0.2, 0.25 + 0.125 * cycle(2), cycle(7) - 3.0]
}

const LENGTHS: [usize; 5] = [3, 1, 6, 4, 2];

fn close(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((got - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: expected {expected}, got {got}");
}

#[test]
fn outputs_are_those_of_the_reference() {
    let actions = Space::Discrete(3);
    for config in configs() {
        let mut policy = network(&config, &actions);
        let store = store(policy.memory_width(), &LENGTHS, &actions);
        let tensors = policy.save();
        let reference = Reference::new(&config, &tensors);
        let (mut values, mut distributions) = (Vec::new(), Vec::new());
        policy.values(&store, &mut values);
        policy.distributions(&store, &mut distributions);
        assert_eq!((values.len(), distributions.len()), (store.rows(), 16 * 3));
        let sequences = store.sequences.as_ref().unwrap();
        for (i, sequence) in sequences.list.iter().enumerate() {
            let mut memory: Vec<f64> = sequences.memory(i).iter().map(|x| f64::from(*x)).collect();
            for row in sequence.decisions.clone().chain(sequence.successor) {
                let (logits, value) = reference.step(store.observation(row), &mut memory);
                close(values[row].into(), value, 1e-5, "value");
                if row < 16 {
                    let log_sum = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
                    let pairs = distributions[3 * row..3 * row + 3].iter().zip(&logits);
                    pairs.for_each(|(got, logit)| close((*got).into(), logit - log_sum, 1e-5, "log-probability"));
                }
            }
        }
    }
}

/// The gradient flows back through all steps of a sequence, and not into the memory at its beginning.
#[test]
fn the_gradient_is_that_of_central_differences_through_time() {
    for (actions, config) in [(Space::Discrete(3), configs()), (Space::Box { low: vec![-1.0; 2], high: vec![1.0; 2] }, configs())]
        .into_iter()
        .flat_map(|(actions, configs)| configs.into_iter().map(move |config| (actions.clone(), config)))
    {
        let mut policy = network(&config, &actions);
        let store = store(policy.memory_width(), &LENGTHS, &actions);
        let indices: Vec<u32> = (4..14).chain(0..3).collect(); // sequences 2, 3 and 0
        let weights: Vec<f32> = (0..indices.len()).map(|i| 0.05 + 0.01 * i as f32).collect();
        policy.gradient(&store, Batch::new(&indices, &weights), &Curved);
        let (gradient, tensors) = (policy.gradient_tensors(), policy.save());
        let loss = |tensors: &Tensors| {
            let reference = Reference::new(&config, tensors);
            let sequences = store.sequences.as_ref().unwrap();
            let (mut loss, mut place) = (0.0, 0);
            for number in sequences.of_decisions(&indices) {
                let mut memory: Vec<f64> = sequences.memory(number).iter().map(|x| f64::from(*x)).collect();
                for row in sequences.list[number].decisions.clone() {
                    let (numbers, value) = reference.step(store.observation(row), &mut memory);
                    let [log_prob, entropy] = reference.of_action(&numbers, &store.actions, row);
                    let [a, b, c, target] = coefficients(row);
                    loss += f64::from(weights[place]) * (a * log_prob * log_prob + b * entropy * entropy + c * (value - target).powi(2));
                    place += 1;
                }
            }
            loss
        };
        check_gradient(&format!("{config:?}"), &tensors, &gradient, loss);
    }
}

/// Compares some numbers of each tensor of a gradient with central differences of the loss.
fn check_gradient(what: &str, tensors: &Tensors, gradient: &Tensors, loss: impl Fn(&Tensors) -> f64) {
    let mut stream = Stream::new(5, Purpose::Environment, 0);
    for (name, tensor) in tensors {
        let Data::F32(numbers) = &tensor.data else { unreachable!() };
        let Data::F32(own) = &gradient[name].data else { unreachable!() };
        for _ in 0..numbers.len().min(20) {
            let i = stream.below(numbers.len() as u32) as usize;
            let moved = |by: f32| {
                let mut moved = tensors.clone();
                let Some(Tensor { data: Data::F32(numbers), .. }) = moved.get_mut(name) else { unreachable!() };
                numbers[i] += by;
                let x = f64::from(numbers[i]);
                (loss(&moved), x)
            };
            let ((above, x), (below, y)) = (moved(0.00001), moved(-0.00001));
            close(own[i].into(), (above - below) / (x - y), 1e-4, &format!("{what}: {name}[{i}]"));
        }
    }
}

/// What an actor computes step by step, with its own memory, is what the sequences give, bit for bit.
#[test]
fn acting_gives_the_numbers_of_the_sequences() {
    let actions = Space::Discrete(3);
    for config in configs() {
        let mut policy = network(&config, &actions);
        let (steps, envs) = (9, 70);
        let mut stream = Stream::new(9, Purpose::Environment, 0);
        let rows: Vec<f32> = (0..(steps + 1) * envs * WIDTH).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
        let (mut chosen, mut log_probs) = (Vec::new(), Vec::new());
        let mut streams: Vec<Stream> = (0..envs).map(|env| Stream::new(6, Purpose::Action, env as u64)).collect();
        {
            let mut actor = policy.actor();
            for step in 0..steps {
                let (mut actions, mut own) = (ActionRows::Discrete(Vec::new()), vec![0.0; envs]);
                let seen = &rows[step * envs * WIDTH..(step + 1) * envs * WIDTH];
                actor.act(seen, None, Choice::Sample(&mut streams), &mut actions, &mut own);
                let ActionRows::Discrete(actions) = actions else { unreachable!() };
                chosen.push(actions);
                log_probs.push(own);
            }
            assert_eq!(actor.memory().map(|memory| memory.len()), Some(envs * policy.memory_width()));
        }
        // by environment, then by time
        let places = || (0..envs).flat_map(|env| (0..steps).map(move |step| (env, step)));
        let observation = |(env, step): (usize, usize)| &rows[(step * envs + env) * WIDTH..(step * envs + env + 1) * WIDTH];
        let seen = places().flat_map(|place| observation(place).to_vec()).collect();
        let list = (0..envs).map(|env| Sequence { decisions: env * steps..(env + 1) * steps, successor: None }).collect();
        let sequences = Sequences { list, memory: vec![0.0; envs * policy.memory_width()] };
        let taken = ActionRows::Discrete(places().map(|(env, step)| chosen[step][env]).collect());
        let store = Store::new(WIDTH, seen, taken).with_sequences(sequences);
        let mut recomputed = Vec::new();
        policy.log_probs(&store, &mut recomputed);
        for ((env, step), recomputed) in places().zip(&recomputed) {
            assert!((recomputed - log_probs[step][env]).abs() < 1e-6, "{recomputed} {}", log_probs[step][env]);
        }
    }
}

#[test]
fn bits_depend_neither_on_the_level_nor_on_the_threads() {
    let actions = Space::Discrete(3);
    let lengths: Vec<usize> = (0..40).map(|i| 1 + i * 7 % 13).collect();
    for config in configs() {
        let compute = |level: Level, count: usize| {
            threads::with(count, || {
                let mut policy = network(&config, &actions).with_level(level);
                let store = store(policy.memory_width(), &lengths, &actions);
                let n = store.actions.len();
                let indices: Vec<u32> = (0..n as u32).collect();
                policy.gradient(&store, Batch::new(&indices, &vec![1.0 / n as f32; n]), &Curved);
                let mut values = Vec::new();
                policy.values(&store, &mut values);
                (policy.last_gradient().to_vec(), values)
            })
        };
        let expected = compute(Level::best(), 1);
        for count in [2, 5] {
            assert!(compute(Level::best(), count) == expected, "{count} threads");
        }
        for level in Level::available() {
            assert!(compute(level, 2) == expected, "{level:?}");
        }
    }
}

/// Padding, in the gates too, and its gradient stay 0.
#[test]
fn padding_stays_zero() {
    let actions = Space::Discrete(3);
    for config in configs() {
        let mut policy = network(&config, &actions);
        let store = store(policy.memory_width(), &LENGTHS, &actions);
        let indices: Vec<u32> = (0..16).collect();
        policy.gradient(&store, Batch::new(&indices, &[0.1; 16]), &Curved);
        let named: usize = policy.save().values().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
        let not_zero = policy.last_gradient().iter().filter(|x| **x != 0.0).count();
        assert!(not_zero <= named && not_zero > named / 2, "{not_zero} of {named}");
    }
}

#[test]
#[should_panic(expected = "batch: expected whole sequences, got a part of one")]
fn a_part_of_a_sequence_is_refused() {
    let mut policy = network(&configs()[0], &Space::Discrete(3));
    let store = store(policy.memory_width(), &LENGTHS, &Space::Discrete(3));
    policy.evaluate(&store, Batch::new(&[0, 1], &[1.0; 2]), &Curved);
}

/// As PyTorch's `orthogonal_` of a whole matrix of gates: its columns are orthonormal. The biases are 0, but for the gate that keeps what is remembered: the second one, z
/// or f, in PyTorch's order.
#[test]
fn cells_begin_orthogonal_and_keep_what_the_bias_says() {
    for (cell, gates) in [(Cell::Gru, 3), (Cell::Lstm, 4)] {
        let config = NetworkConfig { orthogonal: true, cell_bias: 3.0, ..config(cell, &[], false, 8) };
        let tensors = ActorCritic::new(&config, &observations(), &Space::Discrete(2), 1).unwrap().save();
        let numbers = |name: &str| match &tensors[name].data {
            Data::F32(numbers) => numbers.clone(),
            _ => unreachable!(),
        };
        for (name, columns) in [("actor.cell.weight_ih", WIDTH), ("critic.cell.weight_hh", 8)] {
            let weights = numbers(name);
            assert_eq!(weights.len(), gates * 8 * columns);
            for (i, j) in (0..columns).flat_map(|i| (0..=i).map(move |j| (i, j))) {
                let product: f32 = weights.chunks(columns).map(|row| row[i] * row[j]).sum();
                close(product.into(), f64::from(u8::from(i == j)), 1e-5, name);
            }
        }
        let mut kept = vec![0.0; gates * 8];
        kept[8..16].fill(3.0);
        assert_eq!(numbers("actor.cell.bias_hh"), kept, "{cell}");
        assert_eq!(numbers("actor.cell.bias_ih"), vec![0.0; gates * 8], "{cell}");
    }
}

#[test]
fn settings_that_do_not_fit_are_named() {
    let message = |config: NetworkConfig| ActorCritic::new(&config, &observations(), &Space::Discrete(2), 1).err().unwrap().to_string();
    assert_eq!(message(config(Cell::Gru, &[4], false, 0)), "network.cell_width: expected a width from 1 to 65536, got 0");
    let wide = message(config(Cell::Lstm, &[4], false, 65_536));
    assert!(wide.starts_with("network.cell_width: expected at most 2^28 weights"), "{wide}");
    let wide = message(config(Cell::Lstm, &[65_536, 65_536], false, 4));
    assert!(wide.starts_with("network.hidden: expected at most 2^28 weights"), "{wide}");
    assert!(!network(&configs()[0], &Space::Discrete(3)).supports_fisher());
}
