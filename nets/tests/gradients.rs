//! The gradient of the actor-critic against central differences of a reference in f64, which knows nothing of tiles, padding or lanes.

use std::sync::Mutex;

use gradus_envs::Space;
use gradus_envs::random::{Purpose, Stream};
use gradus_nets::cpu::ActorCritic;
use gradus_nets::tensors::{Data, Tensor, Tensors};
use gradus_nets::{
    ActionRows, Activation, Batch, Behaviour, Choice, DIAGNOSTICS, LossGrad, Moves, Network, NetworkConfig, Objective, Policy,
    PolicyOutput, Store, Sums,
};

const WIDTH: usize = 3;

/// A loss that bends in all that the policy says, mixes it, and differs from decision to decision.
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
    fn decision(&self, index: usize, now: PolicyOutput) -> LossGrad {
        let [a, b, c, d, target] = Self::coefficients(index);
        let [l, h, v] = [now.log_prob, now.entropy, now.value].map(f64::from);
        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[..4].copy_from_slice(&[now.log_prob, now.entropy, now.value, 1.0]);
        LossGrad {
            loss: Self::loss(index, [l, h, v]) as f32,
            derivative: PolicyOutput {
                log_prob: (2.0 * a * l + b * v + 0.3 * h) as f32,
                entropy: (3.0 * c * h * h + 0.3 * l) as f32,
                value: (b * l + 2.0 * d * (v - target)) as f32,
                ..PolicyOutput::default()
            },
            diagnostics,
        }
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

/// What the policy says of the store's decisions, as an objective sees it.
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

/// A network far from its start: biases of 0 and a head near 0 would hide mistakes.
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
    assert_eq!(policy.save(), tensors, "what is loaded is saved");
    policy
}

/// So many decisions, and two rows behind them that nobody acted on.
fn store(decisions: usize, actions: usize, stream: &mut Stream) -> Store {
    let observations = (0..(decisions + 2) * WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
    Store::new(WIDTH, observations, ActionRows::Discrete((0..decisions).map(|_| stream.below(actions as u32)).collect()))
}

/// Indices in no order, some of them twice, and weights that differ.
fn batch(rows: usize, decisions: usize, stream: &mut Stream) -> (Vec<u32>, Vec<f32>) {
    let indices = (0..rows).map(|_| stream.below(decisions as u32)).collect();
    (indices, (0..rows).map(|_| uniform(stream, 0.2, 1.8) / rows as f32).collect())
}

/// Numbers by unit, then by row.
type Columns = Vec<Vec<f64>>;

/// A dense layer in f64.
struct Dense {
    name: String,
    inputs: usize,
    weights: Vec<f64>,
    biases: Vec<f64>,
}

impl Dense {
    fn sum(&self, x: &Columns, unit: usize) -> Vec<f64> {
        let mut z = vec![self.biases[unit]; x[0].len()];
        for (x, w) in x.iter().zip(&self.weights[unit * self.inputs..]) {
            z.iter_mut().zip(x).for_each(|(z, x)| *z += w * x);
        }
        z
    }

    fn sums(&self, x: &Columns) -> Columns {
        (0..self.biases.len()).map(|unit| self.sum(x, unit)).collect()
    }
}

/// A chain of layers, and what goes into each and comes out of it before the activation.
struct Chain {
    layers: Vec<Dense>,
    inputs: Vec<Columns>,
    sums: Vec<Columns>,
}

/// The actor-critic in f64, built from nothing but the saved tensors, with the batch that it judges.
struct Reference {
    activation: Activation,
    /// Trunk, actor, critic.
    chains: [Chain; 3],
    decisions: Vec<(usize, usize, f64)>,
}

const TRUNK: usize = 0;
const ACTOR: usize = 1;
const CRITIC: usize = 2;

impl Reference {
    fn new(activation: Activation, tensors: &Tensors, store: &Store, indices: &[u32], weights: &[f32]) -> Self {
        let ActionRows::Discrete(actions) = &store.actions else { panic!("expected discrete actions") };
        let number = |name: &str| match &tensors[name].data {
            Data::F32(data) => data.iter().map(|x| f64::from(*x)).collect(),
            _ => panic!("{name}: expected f32"),
        };
        let chain = |name: &str| {
            let names = (0..).step_by(2).map(|i| format!("{name}.{i}")).take_while(|name| tensors.contains_key(&format!("{name}.weight")));
            let layers = names.map(|name| {
                let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
                Dense { inputs: tensors[&weight].shape[1], weights: number(&weight), biases: number(&bias), name }
            });
            Chain { layers: layers.collect(), inputs: Vec::new(), sums: Vec::new() }
        };
        let mut reference = Self {
            activation,
            chains: ["trunk", "actor", "critic"].map(chain),
            decisions: indices.iter().zip(weights).map(|(i, w)| (*i as usize, actions[*i as usize] as usize, f64::from(*w))).collect(),
        };
        let column = |unit: usize| indices.iter().map(|i| f64::from(store.observation(*i as usize)[unit])).collect();
        let mut features: Columns = (0..WIDTH).map(column).collect();
        for which in [TRUNK, ACTOR, CRITIC] {
            let mut x = features.clone();
            for layer in 0..reference.chains[which].layers.len() {
                let z = reference.chains[which].layers[layer].sums(&x);
                let chain = &mut reference.chains[which];
                chain.inputs.push(x);
                chain.sums.push(z.clone());
                x = reference.activate(z);
            }
            if which == TRUNK {
                features = x;
            }
        }
        reference
    }

    fn activate(&self, mut z: Columns) -> Columns {
        for z in z.iter_mut().flatten() {
            *z = match self.activation {
                Activation::Tanh => z.tanh(),
                Activation::Relu => z.max(0.0),
            };
        }
        z
    }

    /// What a chain puts out, when the sums of layer number `layer` are `z`.
    fn rest(&self, which: usize, layer: usize, z: Columns) -> Columns {
        let later = &self.chains[which].layers[layer + 1..];
        let z = later.iter().fold(z, |z, layer| layer.sums(&self.activate(z)));
        if which == TRUNK { self.activate(z) } else { z }
    }

    fn whole(&self, which: usize, features: &Columns) -> Columns {
        self.rest(which, 0, self.chains[which].layers[0].sums(features))
    }

    /// log pi(a|s) and the entropy of each row.
    fn outputs(&self, logits: &Columns) -> Vec<[f64; 2]> {
        let row = |(row, (_, action, _)): (usize, &(usize, usize, f64))| {
            let log_sum = logits.iter().map(|z| z[row].exp()).sum::<f64>().ln();
            let entropy = -logits.iter().map(|z| (z[row] - log_sum).exp() * (z[row] - log_sum)).sum::<f64>();
            [logits[*action][row] - log_sum, entropy]
        };
        self.decisions.iter().enumerate().map(row).collect()
    }

    fn loss(&self, of_actor: &[[f64; 2]], values: &[f64]) -> f64 {
        let rows = self.decisions.iter().zip(of_actor).zip(values);
        rows.map(|(((index, _, weight), [l, h]), v)| weight * Curved::loss(*index, [*l, *h, *v])).sum()
    }

    /// The loss, and its derivative with respect to every parameter by central differences.
    fn differences(&mut self) -> (f64, Vec<(String, Vec<f64>)>) {
        let last = |which: usize| self.chains[which].sums.last().unwrap();
        let (of_actor, values) = (self.outputs(last(ACTOR)), last(CRITIC)[0].clone());
        let loss = self.loss(&of_actor, &values);
        let mut gradients = Vec::new();
        for which in [TRUNK, ACTOR, CRITIC] {
            for layer in 0..self.chains[which].layers.len() {
                let Dense { name, weights, biases, inputs } = &self.chains[which].layers[layer];
                let (name, inputs, lengths) = (name.clone(), *inputs, [weights.len(), biases.len()]);
                for (kind, length) in ["weight", "bias"].into_iter().zip(lengths) {
                    let mut gradient = vec![0.0; length];
                    for (i, derivative) in gradient.iter_mut().enumerate() {
                        let unit = if kind == "weight" { i / inputs } else { i };
                        let mut moved = |by: f64| {
                            let dense = &mut self.chains[which].layers[layer];
                            let parameter = if kind == "weight" { &mut dense.weights[i] } else { &mut dense.biases[i] };
                            let before = std::mem::replace(parameter, *parameter + by);
                            // one parameter moves one unit of its layer
                            let mut z = self.chains[which].sums[layer].clone();
                            z[unit] = self.chains[which].layers[layer].sum(&self.chains[which].inputs[layer], unit);
                            let out = self.rest(which, layer, z);
                            let loss = match which {
                                TRUNK => self.loss(&self.outputs(&self.whole(ACTOR, &out)), &self.whole(CRITIC, &out)[0]),
                                ACTOR => self.loss(&self.outputs(&out), &values),
                                _ => self.loss(&of_actor, &out[0]),
                            };
                            let dense = &mut self.chains[which].layers[layer];
                            *(if kind == "weight" { &mut dense.weights[i] } else { &mut dense.biases[i] }) = before;
                            loss
                        };
                        *derivative = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                    }
                    gradients.push((format!("{name}.{kind}"), gradient));
                }
            }
        }
        (loss, gradients)
    }

    /// How near to its kink a hidden unit comes: a central difference across a kink is no derivative.
    fn distance_to_a_kink(&self) -> f64 {
        let [trunk, actor, critic] = &self.chains;
        // every layer of a trunk is hidden; of actor and critic all but the last
        let heads = [actor, critic].into_iter().flat_map(|chain| &chain.sums[..chain.sums.len() - 1]);
        trunk.sums.iter().chain(heads).flatten().flatten().fold(f64::INFINITY, |nearest, z| nearest.min(z.abs()))
    }
}

/// The step of the central differences; it costs about 1e-10 in either direction, truncation and rounding.
const STEP: f64 = 1e-6;

/// By how much a derivative may miss, as a share of the largest of its tensor, or of a twentieth of the largest of all where terms of
/// that size cancel. f32 costs a few 1e-7; the worst seen here is 1.6e-6.
const TOLERANCE: f64 = 4e-6;

fn largest_of<'a>(numbers: impl Iterator<Item = &'a f64>) -> f64 {
    numbers.fold(0.0, |largest, x| largest.max(x.abs()))
}

fn check(shared: bool, activation: Activation, hidden: &[usize], actions: usize, rows: usize) {
    let case = format!("{activation:?}, shared {shared}, hidden {hidden:?}, {actions} actions, {rows} rows");
    let stream = &mut Stream::new(3, Purpose::Environment, (rows * 1000 + actions * 10 + hidden.len()) as u64);
    let config = NetworkConfig { hidden: hidden.to_vec(), activation, shared, ..Default::default() };
    let mut policy = network(&config, actions, stream);
    let decisions = (2 * rows).div_ceil(3);
    let store = store(decisions, actions, stream);
    let (indices, weights) = batch(rows, decisions, stream);
    let batch = Batch::new(&indices, &weights);

    let sums = policy.gradient(&store, batch, &Curved);
    let mut reference = Reference::new(activation, &policy.save(), &store, &indices, &weights);
    if activation == Activation::Relu {
        let distance = reference.distance_to_a_kink();
        assert!(distance > 1e-5, "{case}: {distance} from a kink, choose another seed");
    }
    let (loss, differences) = reference.differences();
    assert!((sums.loss - loss).abs() < 2e-6 * (1.0 + loss.abs()), "{case}: loss {} instead of {loss}", sums.loss);
    let total: f64 = weights.iter().map(|w| f64::from(*w)).sum();
    assert!((sums.diagnostics[3] - total).abs() < 1e-9, "{case}: diagnostics are summed with the weights");

    let gradients = policy.gradient_tensors();
    assert_eq!(gradients.len(), differences.len(), "{case}: number of tensors");
    let mut squares = 0.0;
    let mut worst = (0.0, String::new());
    let of_all = largest_of(differences.iter().flat_map(|(_, expected)| expected));
    for (name, expected) in differences {
        let Data::F32(got) = &gradients[&name].data else { panic!("gradients are f32") };
        assert_eq!(got.len(), expected.len(), "{case}: {name}");
        let largest = largest_of(expected.iter()).max(of_all / 20.0);
        for (got, expected) in got.iter().zip(&expected) {
            let error = (f64::from(*got) - expected).abs() / largest;
            if error.is_nan() || error > worst.0 {
                worst = (error, format!("{name}: {got} instead of {expected}"));
            }
        }
        squares += expected.iter().map(|x| x * x).sum::<f64>();
    }
    println!("{case}: worst {:.1e}", worst.0);
    assert!(worst.0 <= TOLERANCE, "{case}: {} ({:.1e})", worst.1, worst.0);
    let norm = f64::from(policy.gradient_norm());
    assert!((norm - squares.sqrt()).abs() < 2e-6 * norm, "{case}: norm {norm} instead of {}", squares.sqrt());

    let evaluated = policy.evaluate(&store, batch, &Curved);
    assert_eq!(evaluated, sums, "{case}: evaluate and gradient differ");
}

/// Every shape of hidden layers, with numbers of actions and of rows that go round at different speeds, so that most pairs meet.
fn check_shapes(shared: bool, activation: Activation, start: usize) {
    let shapes: [&[usize]; 6] = [&[], &[5], &[16], &[17, 33], &[64, 64], &[130]];
    for (i, hidden) in shapes.into_iter().enumerate() {
        for turn in 0..if hidden == [64, 64] { 1 } else { 2 } {
            let i = start + i + 7 * turn;
            check(shared, activation, hidden, [3, 40, 2][i % 3], [33, 1, 100, 32, 31][i % 5]);
        }
    }
}

#[test]
fn separate_tanh_networks_have_the_gradient_of_central_differences() {
    check_shapes(false, Activation::Tanh, 0);
}

#[test]
fn separate_relu_networks_have_the_gradient_of_central_differences() {
    check_shapes(false, Activation::Relu, 1);
}

#[test]
fn shared_tanh_networks_have_the_gradient_of_central_differences() {
    check_shapes(true, Activation::Tanh, 2);
}

#[test]
fn shared_relu_networks_have_the_gradient_of_central_differences() {
    check_shapes(true, Activation::Relu, 3);
}

/// Large batches give a lane several tiles, whose gradients it must add up.
#[test]
fn a_batch_of_many_tiles_has_the_gradient_of_central_differences() {
    check(true, Activation::Tanh, &[17], 3, 1200);
    check(false, Activation::Relu, &[5], 2, 700);
}

/// Small, but with every kind of layer: wide and narrow, first, middle and head.
fn small_networks() -> [(NetworkConfig, usize); 4] {
    let config = |hidden: &[usize], activation, shared| NetworkConfig { hidden: hidden.into(), activation, shared, ..Default::default() };
    [
        (config(&[20, 7], Activation::Tanh, false), 3),
        (config(&[5, 17], Activation::Relu, true), 40),
        (config(&[], Activation::Tanh, false), 2),
        (config(&[], Activation::Tanh, true), 17),
    ]
}

#[test]
fn the_parts_of_a_batch_add_up_to_the_whole() {
    for (config, actions) in small_networks() {
        let stream = &mut Stream::new(4, Purpose::Environment, 0);
        let mut policy = network(&config, actions, stream);
        let store = store(900, actions, stream);
        let (indices, weights) = batch(1300, 900, stream);
        let mut part = |range: std::ops::Range<usize>| {
            let batch = Batch::new(&indices[range.clone()], &weights[range]);
            (policy.gradient(&store, batch, &Curved), policy.last_gradient().to_vec())
        };
        let (whole, gradient) = part(0..1300);
        let largest = gradient.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
        for cut in [0, 1, 32, 477, 1300] {
            let ((mut sums, first), (rest, second)) = (part(0..cut), part(cut..1300));
            sums.add(&rest);
            assert!((sums.loss - whole.loss).abs() < 1e-12, "cut at {cut}: {} instead of {}", sums.loss, whole.loss);
            for ((a, b), whole) in first.iter().zip(&second).zip(&gradient) {
                assert!((a + b - whole).abs() < 2e-6 * largest, "cut at {cut}: {a} + {b} instead of {whole}");
            }
        }
    }
}

#[test]
fn an_empty_batch_has_no_loss_and_no_gradient() {
    let (config, actions) = small_networks()[0].clone();
    let stream = &mut Stream::new(4, Purpose::Environment, 1);
    let mut policy = network(&config, actions, stream);
    let store = store(3, actions, stream);
    policy.gradient(&store, Batch::new(&[0, 1], &[1.0, 1.0]), &Curved);
    assert!(policy.gradient_norm() > 0.0);
    assert_eq!(policy.gradient(&store, Batch::new(&[], &[]), &Curved), Sums::default());
    assert_eq!((policy.gradient_norm(), policy.last_gradient().iter().all(|g| *g == 0.0)), (0.0, true));
}

/// A loss of the value alone, which may say so.
struct OfValues {
    says_so: bool,
}

impl Objective for OfValues {
    fn decision(&self, index: usize, now: PolicyOutput) -> LossGrad {
        let error = now.value - 0.1 * (index % 7) as f32;
        LossGrad { loss: 0.5 * error * error, derivative: PolicyOutput { value: error, ..PolicyOutput::default() }, ..LossGrad::default() }
    }

    fn moves(&self) -> Moves {
        if self.says_so { Moves::Critic } else { Moves::All }
    }
}

/// Who says that the value is all that counts gets the same numbers, before and after others that look at everything.
#[test]
fn an_objective_of_values_alone_has_the_same_numbers() {
    // one whose second layers are wide, too, so that there are transposed copies of its weights
    let wide = (NetworkConfig { hidden: vec![20, 24], ..NetworkConfig::default() }, 3);
    for (config, actions) in small_networks().into_iter().chain([wide]) {
        for rows in [1, 64, 100, 1300] {
            let numbers = |says_so: bool| {
                let stream = &mut Stream::new(8, Purpose::Environment, 0);
                let mut policy = network(&config, actions, stream);
                let store = store(900, actions, stream);
                let (indices, weights) = batch(rows, 900, stream);
                let batch = Batch::new(&indices, &weights);
                let mut numbers = Vec::new();
                let of_values = OfValues { says_so };
                for objective in [&Curved as &dyn Objective, &of_values, &Curved, &of_values] {
                    let moved: Vec<f32> = policy.parameters().iter().map(|x| 0.9 * x).collect();
                    policy.set_parameters(&moved);
                    for _ in 0..2 {
                        let sums = policy.gradient(&store, batch, objective);
                        numbers.push((sums, policy.gradient_norm(), policy.last_gradient().to_vec()));
                        numbers.push((policy.evaluate(&store, batch, objective), 0.0, Vec::new()));
                    }
                    // the copies of parameters that have not moved since
                    numbers.push((policy.gradient(&store, batch, &Curved), policy.gradient_norm(), policy.last_gradient().to_vec()));
                }
                numbers
            };
            assert!(numbers(true) == numbers(false), "{rows} rows");
        }
    }
}

#[test]
fn values_are_those_that_the_objective_sees() {
    for (config, actions) in small_networks() {
        for decisions in [1, 31, 33, 600] {
            let stream = &mut Stream::new(5, Purpose::Environment, 0);
            let mut policy = network(&config, actions, stream);
            let store = store(decisions, actions, stream);
            let mut values = vec![f32::NAN; 7];
            policy.values(&store, &mut values);
            assert_eq!(values.len(), store.rows(), "one value per row, those included that nobody acted on");
            for (i, (value, seen)) in values.iter().zip(outputs(&mut policy, &store)).enumerate() {
                assert_eq!(value.to_bits(), seen.value.to_bits(), "row {i} of {decisions}");
            }
            // the rows behind the decisions have the value of the same observation among the decisions
            let n = store.rows();
            let behind = (n - 2..n).flat_map(|row| store.observation(row).to_vec()).collect();
            let moved = Store::new(WIDTH, behind, ActionRows::Discrete(vec![0; 2]));
            let seen: Vec<u32> = outputs(&mut policy, &moved).iter().map(|output| output.value.to_bits()).collect();
            assert_eq!(seen, [values[n - 2].to_bits(), values[n - 1].to_bits()]);
        }
    }
}

/// Actions and log-probabilities of all rows, acted on in groups of the given size.
fn act(policy: &ActorCritic, observations: &[f32], sampled: bool, group: usize) -> (Vec<u32>, Vec<f32>) {
    let rows = observations.len() / WIDTH;
    let mut streams: Vec<Stream> = (0..rows as u64).map(|row| Stream::new(9, Purpose::Action, row)).collect();
    let (mut actions, mut log_probs) = (Vec::new(), Vec::new());
    let mut actor = policy.actor();
    for (observations, streams) in observations.chunks(group * WIDTH).zip(streams.chunks_mut(group)) {
        let (mut chosen, mut log_prob) = (ActionRows::Discrete(vec![0; 3]), vec![f32::NAN; streams.len()]);
        let choice = if sampled { Choice::Sample(streams) } else { Choice::Greedy };
        actor.act(observations, None, choice, &mut chosen, &mut log_prob);
        let ActionRows::Discrete(chosen) = chosen else { panic!("expected discrete actions") };
        actions.extend(chosen);
        log_probs.extend(log_prob);
    }
    (actions, log_probs)
}

#[test]
fn the_ratio_of_an_action_just_taken_is_exactly_1_however_rows_were_grouped() {
    for (config, n_actions) in small_networks() {
        let stream = &mut Stream::new(6, Purpose::Environment, 0);
        let mut policy = network(&config, n_actions, stream);
        let observations: Vec<f32> = (0..100 * WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
        for sampled in [false, true] {
            let (actions, log_probs) = act(&policy, &observations, sampled, 100);
            let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
            for group in [1, 7, 32, 33] {
                let (same_actions, same_log_probs) = act(&policy, &observations, sampled, group);
                assert_eq!((&actions, bits(&log_probs)), (&same_actions, bits(&same_log_probs)), "groups of {group}, sampled {sampled}");
            }
            assert!(actions.iter().any(|a| *a != actions[0]), "{config:?}: always the same action proves little");
            let store = Store::new(WIDTH, observations.clone(), ActionRows::Discrete(actions));
            let seen: Vec<f32> = outputs(&mut policy, &store).iter().map(|output| output.log_prob).collect();
            assert_eq!(bits(&log_probs), bits(&seen), "sampled {sampled}");
        }
    }
}

#[test]
fn greedy_takes_the_most_probable_action_and_sampling_each_as_often_as_it_is_probable() {
    let (config, n_actions) = small_networks()[0].clone();
    let stream = &mut Stream::new(7, Purpose::Environment, 0);
    let mut policy = network(&config, n_actions, stream);
    let observation: Vec<f32> = (0..WIDTH).map(|_| uniform(stream, -2.0, 2.0)).collect();
    let all = Store::new(WIDTH, observation.repeat(n_actions), ActionRows::Discrete((0..n_actions as u32).collect()));
    let probabilities: Vec<f64> = outputs(&mut policy, &all).iter().map(|output| f64::from(output.log_prob).exp()).collect();
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{probabilities:?}");
    let (greedy, _) = act(&policy, &observation, false, 1);
    assert!(probabilities.iter().all(|p| *p <= probabilities[greedy[0] as usize]), "{greedy:?} of {probabilities:?}");

    const N: usize = 20_000;
    let (actions, _) = act(&policy, &observation.repeat(N), true, 1000);
    for (action, p) in probabilities.iter().enumerate() {
        let count = actions.iter().filter(|a| **a as usize == action).count() as f64;
        let deviation = (count - N as f64 * p) / (N as f64 * p * (1.0 - p)).sqrt();
        assert!(deviation.abs() < 4.0, "action {action}: {count} of {N} at probability {p}");
    }
}
