//! Compares the gradient of the actor-critic with central differences of an f64 reference without tiles, padding or lanes.

mod acting;
mod differences;
mod parts;
mod reference;

use std::sync::Mutex;

use gradus_base::random::Stream;
use gradus_base::tensors::{Data, Tensor};
use gradus_envs::Space;
use gradus_nets::cpu::ActorCritic;
use gradus_nets::loss::Output;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Evaluation, Loss, NetworkConfig, Objective, Of, Outputs, Policy, PolicyOutput, Store,
};

const WIDTH: usize = 3;

/// A loss that is nonlinear in all outputs of the policy, mixes them, and differs between decisions.
struct Curved;

impl Curved {
    fn coefficients(index: usize) -> [f64; 5] {
        let cycle = |n: usize| (index % n) as f64;
        [0.2 + 0.1 * cycle(5), 0.15 * (cycle(3) - 1.0), 0.1 * cycle(4) - 0.2, 0.25 + 0.125 * cycle(2), cycle(7) - 3.0]
    }

    fn loss(index: usize, [l, h, v]: [f64; 3]) -> f64 {
        let [a, b, c, d, target] = Self::coefficients(index);
        a * l * l + b * l * v + c * h * h * h + 0.3 * h * l + d * (v - target) * (v - target)
    }
}

impl Objective for Curved {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        let [a, b, c, d, target] = Self::coefficients(index).map(|x| x as f32);
        let Outputs { log_prob: l, entropy: h, value: v, .. } = pi;
        let of_two = product(b * l, v) + product(0.3 * h, l);
        let loss = a * l.squared() + of_two + c * h * h.squared() + d * (v - target).squared();
        loss.with_diagnostics([l.value(), h.value(), v.value(), 1.0])
    }
}

/// Returns the product of functions of two outputs, by the product rule. It is not a formula, because a loss is a sum of functions of one
/// output each.
fn product<A: Output, B: Output>(x: Of<A>, y: Of<B>) -> Loss {
    Loss::from((x - x.value()) * y.value()) + x.value() * y
}

/// Records the policy's output for each decision.
struct Recorder(Mutex<Vec<PolicyOutput>>);

impl Objective for Recorder {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        self.0.lock().unwrap()[index] = PolicyOutput::from(pi);
        Evaluation::default()
    }
}

/// Returns the policy's outputs for the store's decisions, as an objective receives them.
fn outputs(policy: &mut ActorCritic, store: &Store) -> Vec<PolicyOutput> {
    let n = store.actions.len();
    let recorder = Recorder(Mutex::new(vec![PolicyOutput::default(); n]));
    let indices: Vec<u32> = (0..n as u32).collect();
    policy.gradient(store, Batch::new(&indices, &vec![1.0; n]), &recorder);
    recorder.0.into_inner().unwrap()
}

fn uniform(stream: &mut Stream, low: f64, high: f64) -> f32 {
    stream.uniform(low, high) as f32
}

/// A network with parameters far from their initial values: biases of 0 and a head near 0 would hide errors.
fn network(config: &NetworkConfig, actions: usize, stream: &mut Stream) -> ActorCritic {
    let observations = Space::Box { low: vec![-2.0; WIDTH], high: vec![2.0; WIDTH] };
    let mut policy = ActorCritic::new(config, &observations, &Space::Discrete(actions as u32), 0).unwrap();
    let mut tensors = policy.save();
    for Tensor { shape, data } in tensors.values_mut() {
        let reach = if shape.len() == 2 { (3.0 / shape[1] as f64).sqrt() } else { 0.3 };
        let Data::F32(data) = data else { panic!("parameters are f32") };
        data.iter_mut().for_each(|x| *x = uniform(stream, -reach, reach));
    }
    policy.load(&tensors).unwrap();
    assert_eq!(policy.save(), tensors, "a loaded policy saves the same tensors");
    policy
}

/// A store with this number of decisions, followed by two rows without actions.
fn store(decisions: usize, actions: usize, stream: &mut Stream) -> Store {
    let observations = (0..(decisions + 2) * WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
    Store::new(WIDTH, observations, ActionRows::Discrete((0..decisions).map(|_| stream.below(actions as u32)).collect()))
}

/// Unordered indices, which may occur more than once, with different weights.
fn batch(rows: usize, decisions: usize, stream: &mut Stream) -> (Vec<u32>, Vec<f32>) {
    let indices = (0..rows).map(|_| stream.below(decisions as u32)).collect();
    (indices, (0..rows).map(|_| uniform(stream, 0.2, 1.8) / rows as f32).collect())
}

/// Small networks with every kind of layer: wide and narrow; first, middle and head.
fn small_networks() -> [(NetworkConfig, usize); 4] {
    let config = |hidden: &[usize], activation, shared| NetworkConfig { hidden: hidden.into(), activation, shared, ..Default::default() };
    [
        (config(&[20, 7], Activation::Tanh, false), 3),
        (config(&[5, 17], Activation::Relu, true), 40),
        (config(&[], Activation::Tanh, false), 2),
        (config(&[], Activation::Tanh, true), 17),
    ]
}
