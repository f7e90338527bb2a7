//! Every head's outputs and gradient against central differences of a reference in f64, and Fisher-vector products against differences
//! of the gradient of the divergence.

use std::collections::BTreeMap;
use std::sync::Mutex;

use gradus_envs::Space;
use gradus_envs::random::{Purpose, Stream};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::tensors::{Data, Tensor, Tensors};
use gradus_nets::{ActionRows, Activation, Batch, Behaviour, LossGrad, Network, NetworkConfig, Objective, Policy, PolicyOutput, Store};

const WIDTH: usize = 3;

/// A loss that bends in all that the policy says and differs from decision to decision.
fn loss(index: usize, [l, h, v, kl, kr]: [f64; 5]) -> f64 {
    let a = 0.2 + 0.1 * (index % 5) as f64;
    a * l * l + 0.15 * l * v - 0.3 * h * l + 0.2 * h * h + 0.4 * v * v + 0.7 * kl * kl + (0.5 - a) * kl * h + 0.3 * kl + (0.2 + a) * kr * kr
        - 0.1 * kr * h
        + 0.25 * kr
}

/// By central differences of that: the objective's own derivatives are not what is tested here.
struct Curved;

impl Objective for Curved {
    fn decision(&self, index: usize, now: PolicyOutput) -> LossGrad {
        let now = [now.log_prob, now.entropy, now.value, now.kl_old, now.kl_ref].map(f64::from);
        let slope = |i: usize| {
            let at = |by: f64| {
                let mut moved = now;
                moved[i] += by;
                loss(index, moved)
            };
            ((at(1e-3) - at(-1e-3)) / 2e-3) as f32
        };
        let derivative = PolicyOutput { log_prob: slope(0), entropy: slope(1), value: slope(2), kl_old: slope(3), kl_ref: slope(4) };
        LossGrad { loss: loss(index, now) as f32, derivative, ..Default::default() }
    }
}

/// Only the divergence, whose second derivative is the Fisher information.
struct Divergence;

impl Objective for Divergence {
    fn decision(&self, _: usize, now: PolicyOutput) -> LossGrad {
        LossGrad { loss: now.kl_old, derivative: PolicyOutput { kl_old: 1.0, ..Default::default() }, ..Default::default() }
    }
}

/// Only the divergence from the reference.
struct FromReference;

impl Objective for FromReference {
    fn decision(&self, _: usize, now: PolicyOutput) -> LossGrad {
        LossGrad { loss: now.kl_ref, derivative: PolicyOutput { kl_ref: 1.0, ..Default::default() }, ..Default::default() }
    }
}

/// Writes down what the policy says of each decision.
struct Recorder(Mutex<Vec<PolicyOutput>>);

impl Objective for Recorder {
    fn decision(&self, index: usize, now: PolicyOutput) -> LossGrad {
        self.0.lock().unwrap()[index] = now;
        LossGrad::default()
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Categorical,
    Masked,
    Gaussian,
    Gsde,
}

const KINDS: [Kind; 4] = [Kind::Categorical, Kind::Masked, Kind::Gaussian, Kind::Gsde];

struct Case {
    name: String,
    config: NetworkConfig,
    policy: ActorCritic,
    store: Store,
    indices: Vec<u32>,
    weights: Vec<f32>,
    /// What another policy says of all decisions, and a third.
    old: Vec<f32>,
    reference: Vec<f32>,
}

fn uniform(stream: &mut Stream, low: f64, high: f64) -> f32 {
    stream.uniform(low, high) as f32
}

/// A network far from its start.
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
    assert_eq!(policy.save(), tensors, "what is loaded is saved");
    policy
}

impl Case {
    fn new(kind: Kind, hidden: &[usize], shared: bool, n: usize, rows: usize) -> Self {
        let name = format!("{kind:?}, hidden {hidden:?}, shared {shared}, {n} actions, {rows} rows");
        let stream = &mut Stream::new(1, Purpose::Environment, (rows * 100 + n * 10 + hidden.len()) as u64);
        let config =
            NetworkConfig { hidden: hidden.into(), activation: Activation::Tanh, shared, gsde: kind == Kind::Gsde, ..Default::default() };
        let is_discrete = matches!(kind, Kind::Categorical | Kind::Masked);
        let space = if is_discrete { Space::Discrete(n as u32) } else { Space::Box { low: vec![-1.0; n], high: vec![1.0; n] } };
        let policy = network(&config, &space, stream);
        let decisions = (2 * rows).div_ceil(3);
        let observations = (0..(decisions + 1) * WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
        let mut actions = ActionRows::empty(&space);
        actions.resize(decisions);
        match &mut actions {
            ActionRows::Discrete(actions) => actions.iter_mut().for_each(|a| *a = stream.below(n as u32)),
            ActionRows::Continuous { rows, .. } => rows.iter_mut().for_each(|a| *a = uniform(stream, -2.0, 2.0)),
            ActionRows::OnDevice(_) => unreachable!("this engine has no device"),
        }
        let mut store = Store::new(WIDTH, observations, actions);
        if kind == Kind::Masked {
            // what was taken was allowed, and about half of the rest
            let ActionRows::Discrete(actions) = &store.actions else { panic!("discrete") };
            let masks = (0..decisions * n).map(|i| actions[i / n] as usize == i % n || stream.below(2) == 0).collect();
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

    /// Outputs of all decisions, as an objective sees them.
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
            Case::new(kind, hidden, shared, n + usize::from(matches!(kind, Kind::Categorical | Kind::Masked)), rows)
        })
        .collect()
}

/// Named tensors in f64.
type Parameters = BTreeMap<String, Vec<f64>>;

fn parameters(tensors: &Tensors) -> Parameters {
    let number = |tensor: &Tensor| match &tensor.data {
        Data::F32(data) => data.iter().map(|x| f64::from(*x)).collect(),
        _ => panic!("parameters are f32"),
    };
    tensors.iter().map(|(name, tensor)| (name.clone(), number(tensor))).collect()
}

/// The network in f64, without tiles, padding or lanes.
struct Reference<'a> {
    kind: Kind,
    store: &'a Store,
    old: &'a [f32],
    reference: &'a [f32],
    /// The features that gSDE's variance is made of, by decision: its derivatives do not go into them.
    phi: Vec<Vec<f64>>,
}

impl Reference<'_> {
    /// Through all layers of a chain; the activation follows every one of them but the last, and that too when `active`. Returns what
    /// the last layer read, and what came out.
    fn chain(parameters: &Parameters, name: &str, active: bool, mut x: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
        let mut read = x.clone();
        for i in (0..).step_by(2) {
            let Some(biases) = parameters.get(&format!("{name}.{i}.bias")) else { break };
            let weights = &parameters[&format!("{name}.{i}.weight")];
            if i > 0 && !active {
                x.iter_mut().for_each(|x| *x = x.tanh());
            }
            read = x.clone();
            x = biases.iter().zip(weights.chunks(x.len())).map(|(b, w)| b + w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>()).collect();
            if active {
                x.iter_mut().for_each(|x| *x = x.tanh());
            }
        }
        (read, x)
    }

    /// phi and the numbers of the head, and the value.
    fn forward(&self, parameters: &Parameters, index: usize) -> (Vec<f64>, Vec<f64>, f64) {
        let observation = self.store.observation(index).iter().map(|x| f64::from(*x)).collect();
        let (_, features) = Self::chain(parameters, "trunk", true, observation);
        let (phi, head) = Self::chain(parameters, "actor", false, features.clone());
        (phi, head, Self::chain(parameters, "critic", false, features).1[0])
    }

    /// log pi, entropy, value, KL(old || new) and KL(new || reference), from the definitions.
    fn outputs(&self, parameters: &Parameters, index: usize) -> [f64; 5] {
        let (_, head, value) = self.forward(parameters, index);
        let n = head.len();
        match &self.store.actions {
            ActionRows::Discrete(actions) => {
                let allowed = |j: usize| self.store.masks.as_ref().is_none_or(|masks| masks[index * n + j]);
                let log_sum = (0..n).filter(|j| allowed(*j)).map(|j| head[j].exp()).sum::<f64>().ln();
                let log_probs = (0..n).filter(|j| allowed(*j)).map(|j| (j, head[j] - log_sum));
                let entropy = log_probs.clone().map(|(_, l)| -l * l.exp()).sum();
                let old = |j: usize| f64::from(self.old[index * n + j]);
                let kl = log_probs.clone().map(|(j, l)| old(j).exp() * (old(j) - l)).sum();
                let kl_ref = log_probs.map(|(j, l)| l.exp() * (l - f64::from(self.reference[index * n + j]))).sum();
                [head[actions[index] as usize] - log_sum, entropy, value, kl, kl_ref]
            }
            ActionRows::OnDevice(_) => unreachable!("this engine has no device"),
            ActionRows::Continuous { rows, width } => {
                let log_std = &parameters["actor.log_std"];
                let [mut log_prob, mut entropy, mut kl, mut kl_ref] = [0.0; 4];
                for k in 0..n {
                    let variance: f64 = match self.kind {
                        Kind::Gsde => {
                            1e-6 + self.phi[index]
                                .iter()
                                .enumerate()
                                .map(|(j, phi)| phi * phi * (2.0 * log_std[j * n + k]).exp())
                                .sum::<f64>()
                        }
                        _ => (2.0 * log_std[k]).exp(),
                    };
                    let a = f64::from(rows[index * width + k]);
                    let two_pi = std::f64::consts::TAU;
                    log_prob -= (a - head[k]).powi(2) / (2.0 * variance) + 0.5 * (two_pi * variance).ln();
                    entropy += 0.5 * (two_pi * std::f64::consts::E * variance).ln();
                    let said = |of: &[f32]| (f64::from(of[index * 2 * n + k]), (2.0 * f64::from(of[index * 2 * n + n + k])).exp());
                    let divergence = |p: (f64, f64), q: (f64, f64)| 0.5 * ((q.1 / p.1).ln() + (p.1 + (p.0 - q.0).powi(2)) / q.1 - 1.0);
                    kl += divergence(said(self.old), (head[k], variance));
                    kl_ref += divergence((head[k], variance), said(self.reference));
                }
                [log_prob, entropy, value, kl, kl_ref]
            }
        }
    }
}

#[test]
fn outputs_are_those_of_the_definitions() {
    for kind in KINDS {
        for mut case in cases(kind) {
            let outputs = case.outputs();
            let mut log_probs = vec![f32::NAN; 3];
            case.policy.log_probs(&case.store, &mut log_probs);
            let bits = |numbers: Vec<f32>| numbers.into_iter().map(f32::to_bits).collect::<Vec<_>>();
            assert_eq!(bits(log_probs), bits(outputs.iter().map(|output| output.log_prob).collect()), "{}: log_probs", case.name);
            let parameters = parameters(&case.policy.save());
            let mut reference = Reference { kind, store: &case.store, old: &case.old, reference: &case.reference, phi: Vec::new() };
            reference.phi = (0..outputs.len()).map(|i| reference.forward(&parameters, i).0).collect();
            for (i, output) in outputs.iter().enumerate() {
                let expected = reference.outputs(&parameters, i);
                for (got, expected) in
                    [output.log_prob, output.entropy, output.value, output.kl_old, output.kl_ref].into_iter().zip(expected)
                {
                    let error = (f64::from(got) - expected).abs() / (1.0 + expected.abs());
                    assert!(error < 2e-6, "{}, decision {i}: {output:?}, {got} instead of {expected}", case.name);
                }
            }
        }
    }
}

/// The step of the central differences, and by how much a derivative may miss as a share of the largest of all.
const STEP: f64 = 1e-6;
const TOLERANCE: f64 = 2e-6;

#[test]
fn every_head_has_the_gradient_of_central_differences() {
    for kind in KINDS {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, old, reference: other, .. } = case;
            let batch = Batch { old: Some(&old), reference: Some(&other), ..Batch::new(&indices, &weights) };
            let sums = policy.gradient(&store, batch, &Curved);
            let gradients = parameters(&policy.gradient_tensors());
            let mut parameters = parameters(&policy.save());
            let mut reference = Reference { kind, store: &store, old: &old, reference: &other, phi: Vec::new() };
            reference.phi = (0..store.actions.len()).map(|i| reference.forward(&parameters, i).0).collect();
            let total = |parameters: &Parameters| {
                let of_all: Vec<f64> = (0..store.actions.len()).map(|i| loss(i, reference.outputs(parameters, i))).collect();
                indices.iter().zip(&weights).map(|(i, w)| f64::from(*w) * of_all[*i as usize]).sum::<f64>()
            };
            let expected = total(&parameters);
            assert!((sums.loss - expected).abs() < 2e-6 * (1.0 + expected.abs()), "{name}: loss {} instead of {expected}", sums.loss);

            let names: Vec<String> = parameters.keys().cloned().collect();
            assert_eq!(names, gradients.keys().cloned().collect::<Vec<_>>(), "{name}");
            let largest = gradients.values().flatten().fold(0.0_f64, |largest, g| largest.max(g.abs()));
            let mut worst = (0.0, String::new());
            for tensor in names {
                for i in 0..parameters[&tensor].len() {
                    let before = parameters[&tensor][i];
                    let mut at = |by: f64| {
                        parameters.get_mut(&tensor).unwrap()[i] = before + by;
                        total(&parameters)
                    };
                    let expected = (at(STEP) - at(-STEP)) / (2.0 * STEP);
                    at(0.0);
                    let got = gradients[&tensor][i];
                    let error = (got - expected).abs() / largest;
                    if error.is_nan() || error > worst.0 {
                        worst = (error, format!("{tensor}[{i}]: {got} instead of {expected}"));
                    }
                }
            }
            println!("{:.1e} {name}", worst.0);
            assert!(worst.0 <= TOLERANCE, "{name}: {} ({:.1e})", worst.1, worst.0);
            assert_eq!(policy.evaluate(&store, batch, &Curved), sums, "{name}: evaluate and gradient differ");
        }
    }
}

#[test]
fn the_divergence_from_itself_is_exactly_0_and_so_is_its_gradient() {
    for kind in KINDS {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, mut old, .. } = case;
            policy.distributions(&store, &mut old);
            for objective in [&Divergence as &dyn Objective, &FromReference] {
                let batch = Batch { old: Some(&old), reference: Some(&old), ..Batch::new(&indices, &weights) };
                assert_eq!(policy.gradient(&store, batch, objective).loss, 0.0, "{name}");
                assert!(policy.last_gradient().iter().all(|g| *g == 0.0), "{name}");
            }
        }
    }
}

/// A direction in the space of the parameters that leaves the padding at 0.
fn direction(policy: &mut ActorCritic, stream: &mut Stream) -> Vec<f32> {
    let start = policy.save();
    let mut tensors = start.clone();
    for tensor in tensors.values_mut() {
        let Data::F32(data) = &mut tensor.data else { panic!("parameters are f32") };
        data.iter_mut().for_each(|x| *x = uniform(stream, -1.0, 1.0));
    }
    policy.load(&tensors).unwrap();
    let direction = policy.parameters().to_vec();
    policy.load(&start).unwrap();
    direction
}

#[test]
fn fisher_vector_products_are_differences_of_the_divergences_gradient() {
    for kind in [Kind::Categorical, Kind::Masked, Kind::Gaussian] {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, mut old, .. } = case;
            policy.distributions(&store, &mut old);
            let batch = Batch { old: Some(&old), ..Batch::new(&indices, &weights) };
            let stream = &mut Stream::new(2, Purpose::Environment, 0);
            let v = direction(&mut policy, stream);
            let start = policy.parameters().to_vec();
            // the lanes hold a gradient of something else, and so does the product
            policy.gradient(&store, batch, &Curved);
            let (gradient, norm) = (policy.last_gradient().to_vec(), policy.gradient_norm());
            let mut product = vec![f32::NAN; 5];
            policy.fisher_vector_product(&store, batch, &v, &mut product);
            assert_eq!((policy.last_gradient(), policy.gradient_norm()), (&gradient[..], norm), "{name}: the gradient is still there");

            let mut at = |step: f32| {
                let moved: Vec<f32> = start.iter().zip(&v).map(|(p, v)| p + step * v).collect();
                policy.set_parameters(&moved);
                policy.gradient(&store, batch, &Divergence);
                policy.last_gradient().to_vec()
            };
            // fourth order: (8 (g(h) - g(-h)) - (g(2h) - g(-2h))) / 12h
            let h = 0.01;
            let [far_below, below, above, far_above] = [-2.0 * h, -h, h, 2.0 * h].map(&mut at);
            let largest = product.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
            let mut worst = 0.0_f32;
            for i in 0..product.len() {
                let expected = (8.0 * (above[i] - below[i]) - (far_above[i] - far_below[i])) / (12.0 * h);
                worst = worst.max((product[i] - expected).abs() / largest);
            }
            println!("{worst:.1e} {name}");
            assert!(largest > 0.0 && worst < 2e-4, "{name}: {worst:.1e}");
            assert!(policy.supports_fisher());
        }
    }
    assert!(!cases(Kind::Gsde)[0].policy.supports_fisher());
}

/// u' F v = v' F u, and v' F v is no less than 0.
#[test]
fn the_fisher_information_is_symmetric_and_positive_and_leaves_the_critic_alone() {
    for kind in [Kind::Categorical, Kind::Masked, Kind::Gaussian] {
        for case in cases(kind) {
            let Case { name, mut policy, store, indices, weights, .. } = case;
            let batch = Batch::new(&indices, &weights);
            let stream = &mut Stream::new(3, Purpose::Environment, 0);
            let (u, v) = (direction(&mut policy, stream), direction(&mut policy, stream));
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
            let (mut of_u, mut of_v) = (Vec::new(), Vec::new());
            policy.fisher_vector_product(&store, batch, &u, &mut of_u);
            policy.fisher_vector_product(&store, batch, &v, &mut of_v);
            let (a, b, positive) = (dot(&u, &of_v), dot(&v, &of_u), dot(&v, &of_v));
            assert!((a - b).abs() < 1e-6 * positive && positive > 0.0, "{name}: {a}, {b}, {positive}");
            let critic = policy.groups().pop().unwrap();
            assert_eq!(critic.name, "critic");
            assert!(of_v[critic.range].iter().all(|x| *x == 0.0), "{name}");
            policy.fisher_vector_product(&store, Batch::new(&[], &[]), &u, &mut of_u);
            assert!(of_u.len() == of_v.len() && of_u.iter().all(|x| *x == 0.0), "{name}: an empty batch");
        }
    }
}

/// In a network of which the engine keeps a transposed copy.
#[test]
fn set_parameters_is_as_good_as_load() {
    for kind in KINDS {
        let Case { mut policy, store, indices, weights, config, .. } = cases(kind).swap_remove(3);
        assert_eq!(config.gsde, kind == Kind::Gsde);
        let mut loaded = cases(kind).swap_remove(3).policy;
        let v = direction(&mut policy, &mut Stream::new(4, Purpose::Environment, 0));
        policy.set_parameters(&v);
        loaded.load(&policy.save()).unwrap();
        policy.gradient(&store, Batch::new(&indices, &weights), &Curved);
        loaded.gradient(&store, Batch::new(&indices, &weights), &Curved);
        assert_eq!((policy.parameters(), policy.last_gradient()), (loaded.parameters(), loaded.last_gradient()), "{kind:?}");
    }
}
