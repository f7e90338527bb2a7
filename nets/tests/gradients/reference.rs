//! The actor-critic in f64, and the derivative of its loss by central differences.

use gradus_base::tensors::{Data, Tensors};
use gradus_nets::{ActionRows, Activation, Store};

use super::{Curved, WIDTH};

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

/// A chain of layers, with the inputs and the preactivations of each layer.
struct Chain {
    layers: Vec<Dense>,
    inputs: Vec<Columns>,
    sums: Vec<Columns>,
}

/// The actor-critic in f64, built from the saved tensors, with the batch that it evaluates.
pub struct Reference {
    activation: Activation,
    /// Trunk, actor, critic.
    chains: [Chain; 3],
    decisions: Vec<(usize, usize, f64)>,
}

const TRUNK: usize = 0;
const ACTOR: usize = 1;
const CRITIC: usize = 2;

impl Reference {
    pub fn new(activation: Activation, tensors: &Tensors, store: &Store, indices: &[u32], weights: &[f32]) -> Self {
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

    /// Returns the output of a chain, given the preactivations `z` of layer number `layer`.
    fn rest(&self, which: usize, layer: usize, z: Columns) -> Columns {
        let later = &self.chains[which].layers[layer + 1..];
        let z = later.iter().fold(z, |z, layer| layer.sums(&self.activate(z)));
        if which == TRUNK { self.activate(z) } else { z }
    }

    fn whole(&self, which: usize, features: &Columns) -> Columns {
        self.rest(which, 0, self.chains[which].layers[0].sums(features))
    }

    /// Returns log pi(a|s) and the entropy of each row.
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

    /// Returns the loss, and its derivative with respect to every parameter by central differences.
    pub fn differences(&mut self) -> (f64, Vec<(String, Vec<f64>)>) {
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
                            // one parameter changes one unit of its layer
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

    /// Returns the smallest distance of a preactivation to the activation's kink. A central difference across a kink is not a derivative.
    pub fn distance_to_a_kink(&self) -> f64 {
        let [trunk, actor, critic] = &self.chains;
        // the hidden layers are all layers of the trunk, and all but the last of the actor and of the critic
        let heads = [actor, critic].into_iter().flat_map(|chain| &chain.sums[..chain.sums.len() - 1]);
        trunk.sums.iter().chain(heads).flatten().flatten().fold(f64::INFINITY, |nearest, z| nearest.min(z.abs()))
    }
}

/// Step of the central differences. Their errors from truncation and from rounding are about 1e-10.
const STEP: f64 = 1e-6;
