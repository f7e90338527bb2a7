//! Networks of action values with a recurrent cell.

use gradus_nets::cpu::QNetwork;
use gradus_nets::{QHead, QNetwork as _, QValues, ValueObjective};

use super::*;

/// Half the squared error to targets that depend on the decision.
struct Squared;

fn target(index: usize) -> f64 {
    (index % 5) as f64 - 2.0
}

impl ValueObjective for Squared {
    fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation {
        let error = q.at(0) - target(index) as f32;
        Evaluation::from(0.5 * error.squared()).with_error(error.value())
    }
}

/// Networks, and the parts whose layers the reference goes through: one that remembers, then the outputs.
fn networks() -> Vec<(NetworkConfig, QHead)> {
    let normal = |config| NetworkConfig { layer_norm: true, ..config };
    let dueling = QHead { dueling: true, ..QHead::default() };
    vec![
        (config(Cell::Gru, &[5], false, 4), QHead::default()),
        (config(Cell::Lstm, &[20], false, 17), QHead::default()),
        (config(Cell::Lstm, &[6, 7], false, 16), dueling),
        (normal(config(Cell::Gru, &[6], false, 16)), QHead::default()),
    ]
}

fn randomised(config: &NetworkConfig, head: QHead) -> QNetwork {
    let mut network = QNetwork::new(config, head, &observations(), &Space::Discrete(3), 1).unwrap();
    network.load(&random(network.save())).unwrap();
    network
}

#[test]
fn values_and_gradient_are_those_of_the_reference() {
    for (config, head) in networks() {
        let mut network = randomised(&config, head);
        let store = store(network.memory_width(), &LENGTHS, &Space::Discrete(3));
        let ActionRows::Discrete(taken) = &store.actions else { unreachable!() };
        let sequences = store.sequences.as_ref().unwrap();
        let mut values = Vec::new();
        network.q_values(&store, 0..store.rows(), &mut values);
        let tensors = network.save();
        let reference = Reference::new(&config, &tensors);
        for (i, sequence) in sequences.list.iter().enumerate() {
            let mut memory: Vec<f64> = sequences.memory(i).iter().map(|x| f64::from(*x)).collect();
            for row in sequence.decisions.clone().chain(sequence.successor) {
                let q = reference.values(head.dueling, store.observation(row), &mut memory);
                values[3 * row..3 * row + 3].iter().zip(q).for_each(|(got, q)| close((*got).into(), q, 1e-5, "value"));
            }
        }
        let mut some = Vec::new();
        network.q_values(&store, 5..12, &mut some);
        assert_eq!(some, values[15..36]);

        let indices: Vec<u32> = (4..14).chain(0..3).collect(); // sequences 2, 3 and 0
        let weights: Vec<f32> = (0..indices.len()).map(|i| 0.05 + 0.01 * i as f32).collect();
        let evaluated = network.gradient(&store, Batch::new(&indices, &weights), &Squared);
        let error = |index: &u32| f64::from(values[3 * *index as usize + taken[*index as usize] as usize]) - target(*index as usize);
        evaluated.errors.iter().zip(&indices).for_each(|(got, index)| close((*got).into(), error(index), 1e-5, "error"));
        let loss = |tensors: &Tensors| {
            let (reference, mut loss, mut place) = (Reference::new(&config, tensors), 0.0, 0);
            for number in sequences.of_decisions(&indices) {
                let mut memory: Vec<f64> = sequences.memory(number).iter().map(|x| f64::from(*x)).collect();
                for row in sequences.list[number].decisions.clone() {
                    let q = reference.values(head.dueling, store.observation(row), &mut memory)[taken[row] as usize];
                    loss += f64::from(weights[place]) * 0.5 * (q - target(row)).powi(2);
                    place += 1;
                }
            }
            loss
        };
        check_gradient(&format!("{config:?}"), &tensors, &network.gradient_tensors(), loss);
    }
}

#[test]
fn acting_gives_the_values_of_the_sequences() {
    for (config, head) in networks() {
        let mut network = randomised(&config, head);
        let (steps, envs) = (5, 40);
        let mut stream = Stream::new(9, Purpose::Environment, 0);
        let rows: Vec<f32> = (0..steps * envs * WIDTH).map(|_| stream.uniform(-1.0, 1.0) as f32).collect();
        let mut chosen = Vec::new();
        {
            let mut actor = network.actor();
            for step in 0..steps {
                let (mut actions, mut log_probs) = (ActionRows::Discrete(Vec::new()), vec![0.0; envs]);
                actor.act(&rows[step * envs * WIDTH..(step + 1) * envs * WIDTH], None, Choice::Greedy, &mut actions, &mut log_probs);
                chosen.push(actions);
            }
        }
        let observation = |env: usize, step: usize| rows[(step * envs + env) * WIDTH..(step * envs + env + 1) * WIDTH].to_vec();
        let seen = (0..envs).flat_map(|env| (0..steps).flat_map(move |step| observation(env, step))).collect();
        let list = (0..envs).map(|env| Sequence { decisions: env * steps..(env + 1) * steps, successor: None }).collect();
        let sequences = Sequences { list, memory: vec![0.0; envs * network.memory_width()] };
        let store = Store::new(WIDTH, seen, ActionRows::Discrete(vec![0; envs * steps])).with_sequences(sequences);
        let mut values = Vec::new();
        network.q_values(&store, 0..envs * steps, &mut values);
        for (row, q) in values.chunks(3).enumerate() {
            let ActionRows::Discrete(actions) = &chosen[row % steps] else { unreachable!() };
            let best = q.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert!(q[actions[row / steps] as usize] > best - 1e-6, "{config:?}: {q:?}");
        }
    }
}
