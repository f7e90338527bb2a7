//! Compares the outputs of every head with an f64 reference, its gradient with central differences of that reference, and Fisher-vector
//! products with differences of the divergence's gradient.

mod differences;
mod fisher;
mod reference;

use std::sync::Mutex;

use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{Data, Tensor};
use gradus_envs::{Space, choices};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::loss::Output;
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Evaluation, Loss, NetworkConfig, Objective, Of, Outputs, Policy, PolicyOutput, Store,
};

const WIDTH: usize = 3;

/// A loss that is nonlinear in all outputs of the policy and differs between decisions.
fn loss(index: usize, [l, h, v, kl, kr]: [f64; 5]) -> f64 {
    let a = 0.2 + 0.1 * (index % 5) as f64;
    a * l * l + 0.15 * l * v - 0.3 * h * l + 0.2 * h * h + 0.4 * v * v + 0.7 * kl * kl + (0.5 - a) * kl * h + 0.3 * kl + (0.2 + a) * kr * kr
        - 0.1 * kr * h
        + 0.25 * kr
}

/// The same loss as an objective.
struct Curved;

impl Objective for Curved {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        let a = 0.2 + 0.1 * (index % 5) as f32;
        let Outputs { log_prob: l, entropy: h, value: v, kl_old: kl, kl_ref: kr } = pi;
        let of_two = product(0.15 * l, v) + product(-0.3 * h, l) + product((0.5 - a) * kl, h) + product(-0.1 * kr, h);
        let of_policy = a * l.squared() + 0.2 * h.squared() + 0.4 * v.squared();
        (of_two + of_policy + 0.7 * kl.squared() + 0.3 * kl + (0.2 + a) * kr.squared() + 0.25 * kr).into()
    }
}

/// Returns the product of functions of two outputs, by the product rule. It is not a formula, because a loss is a sum of functions of one
/// output each.
fn product<A: Output, B: Output>(x: Of<A>, y: Of<B>) -> Loss {
    Loss::from((x - x.value()) * y.value()) + x.value() * y
}

/// The loss KL(old || new). Its second derivative at new = old is the Fisher information.
struct Divergence;

impl Objective for Divergence {
    fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
        pi.kl_old.into()
    }
}

/// The loss KL(new || reference).
struct FromReference;

impl Objective for FromReference {
    fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
        pi.kl_ref.into()
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

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Categorical,
    Masked,
    Several,
    SeveralMasked,
    Gaussian,
    Gsde,
}

const KINDS: [Kind; 6] = [Kind::Categorical, Kind::Masked, Kind::Several, Kind::SeveralMasked, Kind::Gaussian, Kind::Gsde];

impl Kind {
    fn is_discrete(self) -> bool {
        !matches!(self, Kind::Gaussian | Kind::Gsde)
    }

    fn is_masked(self) -> bool {
        matches!(self, Kind::Masked | Kind::SeveralMasked)
    }

    /// The number of values of each choice, of `n` logits.
    fn sizes(self, n: usize) -> Vec<u32> {
        if matches!(self, Kind::Several | Kind::SeveralMasked) { vec![n as u32 - 3, 1, 2] } else { vec![n as u32] }
    }
}

struct Case {
    name: String,
    config: NetworkConfig,
    policy: ActorCritic,
    store: Store,
    indices: Vec<u32>,
    weights: Vec<f32>,
    /// Distributions of a second policy for all decisions.
    old: Vec<f32>,
    /// Distributions of a third policy for all decisions.
    reference: Vec<f32>,
}

fn uniform(stream: &mut Stream, low: f64, high: f64) -> f32 {
    stream.uniform(low, high) as f32
}

/// A network with parameters far from their initial values.
fn network(config: &NetworkConfig, actions: &Space, stream: &mut Stream) -> ActorCritic {
    let observations = Space::Box { low: vec![-2.0; WIDTH], high: vec![2.0; WIDTH] };
    let mut policy = ActorCritic::new(config, &observations, actions, 0).unwrap();
    let mut tensors = policy.save();
    for (name, Tensor { shape, data }) in &mut tensors {
        let reach = if shape.len() == 2 && name != "actor.log_std" { (2.0 / shape[1] as f64).sqrt() } else { 0.4 };
        let Data::F32(data) = data else { panic!("parameters are f32") };
        data.iter_mut().for_each(|x| *x = uniform(stream, -reach, reach));
    }
    policy.load(&tensors).unwrap();
    assert_eq!(policy.save(), tensors, "a loaded policy saves the same tensors");
    policy
}

impl Case {
    fn new(kind: Kind, hidden: &[usize], shared: bool, n: usize, rows: usize) -> Self {
        let name = format!("{kind:?}, hidden {hidden:?}, shared {shared}, {n} actions, {rows} rows");
        let stream = &mut Stream::new(1, Purpose::Environment, (rows * 100 + n * 10 + hidden.len()) as u64);
        let config =
            NetworkConfig { hidden: hidden.into(), activation: Activation::Tanh, shared, gsde: kind == Kind::Gsde, ..Default::default() };
        let space = match &kind.sizes(n)[..] {
            _ if !kind.is_discrete() => Space::Box { low: vec![-1.0; n], high: vec![1.0; n] },
            [n] => Space::Discrete(*n),
            sizes => Space::MultiDiscrete(sizes.to_vec()),
        };
        let policy = network(&config, &space, stream);
        let decisions = (2 * rows).div_ceil(3);
        let observations = (0..(decisions + 1) * WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
        let mut actions = ActionRows::empty(&space);
        actions.resize(decisions);
        match &mut actions {
            ActionRows::Discrete(actions) => actions.iter_mut().for_each(|a| *a = stream.below(space.elements().unwrap())),
            ActionRows::Continuous { rows, .. } => rows.iter_mut().for_each(|a| *a = uniform(stream, -2.0, 2.0)),
            ActionRows::OnDevice(_) => unreachable!("this engine has no device"),
        }
        let mut store = Store::new(WIDTH, observations, actions);
        if kind.is_masked() {
            // the mask allows the action taken and about half of the other actions
            let ActionRows::Discrete(actions) = &store.actions else { panic!("discrete") };
            let mut masks = Vec::new();
            for action in actions {
                for (size, chosen) in space.sizes().iter().zip(choices(space.sizes(), *action)) {
                    masks.extend((0..*size).map(|value| value == chosen || stream.below(2) == 0));
                }
            }
            store = store.with_masks(masks);
        }
        let (mut old, mut reference) = (Vec::new(), Vec::new());
        network(&config, &space, stream).distributions(&store, &mut old);
        network(&config, &space, &mut Stream::new(9, Purpose::Environment, rows as u64)).distributions(&store, &mut reference);
        assert_eq!(old.len(), decisions * policy.distribution_width());
        let indices = (0..rows).map(|_| stream.below(decisions as u32)).collect();
        let weights = (0..rows).map(|_| uniform(stream, 0.2, 1.8) / rows as f32).collect();
        Self { name, config, policy, store, indices, weights, old, reference }
    }

    /// Returns the outputs of all decisions, as an objective receives them.
    fn outputs(&mut self) -> Vec<PolicyOutput> {
        let n = self.store.actions.len();
        let recorder = Recorder(Mutex::new(vec![PolicyOutput::default(); n]));
        let (indices, weights): (Vec<u32>, Vec<f32>) = ((0..n as u32).collect(), vec![1.0; n]);
        let batch = Batch { old: Some(&self.old), reference: Some(&self.reference), ..Batch::new(&indices, &weights) };
        self.policy.evaluate(&self.store, batch, &recorder);
        recorder.0.into_inner().unwrap()
    }
}

fn cases(kind: Kind) -> Vec<Case> {
    let shapes: [(&[usize], bool, usize, usize); 6] = [
        (&[], false, 3, 7),
        (&[5], true, 2, 33),
        (&[17, 7], false, 2, 40),
        (&[7, 20], true, 17, 9),
        (&[], true, 1, 32),
        (&[4], false, 3, 1100),
    ];
    shapes
        .into_iter()
        .map(|(hidden, shared, n, rows)| {
            let more = match kind {
                Kind::Gaussian | Kind::Gsde => 0,
                Kind::Categorical | Kind::Masked => 1,
                Kind::Several | Kind::SeveralMasked => 4,
            };
            Case::new(kind, hidden, shared, n + more, rows)
        })
        .collect()
}
