//! The heads in f64, computed from their definitions.

use std::collections::BTreeMap;

use gradus_base::tensors::{Data, Tensor, Tensors};
use gradus_envs::choices;
use gradus_nets::{ActionRows, Store};

use super::Kind;

/// Named tensors in f64.
pub type Parameters = BTreeMap<String, Vec<f64>>;

pub fn parameters(tensors: &Tensors) -> Parameters {
    let number = |tensor: &Tensor| match &tensor.data {
        Data::F32(data) => data.iter().map(|x| f64::from(*x)).collect(),
        _ => panic!("parameters are f32"),
    };
    tensors.iter().map(|(name, tensor)| (name.clone(), number(tensor))).collect()
}

/// The network in f64, without tiles, padding or lanes.
pub struct Reference<'a> {
    pub kind: Kind,
    pub store: &'a Store,
    pub old: &'a [f32],
    pub reference: &'a [f32],
    /// The features in gSDE's variance, by decision; derivatives do not propagate into them.
    pub phi: Vec<Vec<f64>>,
}

impl Reference<'_> {
    /// Computes all layers of a chain. The activation follows every layer except the last; with `active`, it also follows the last layer.
    /// Returns the input and the output of the last layer.
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

    /// Returns phi, the outputs of the head, and the value.
    pub fn forward(&self, parameters: &Parameters, index: usize) -> (Vec<f64>, Vec<f64>, f64) {
        let observation = self.store.observation(index).iter().map(|x| f64::from(*x)).collect();
        let (_, features) = Self::chain(parameters, "trunk", true, observation);
        let (phi, head) = Self::chain(parameters, "actor", false, features.clone());
        (phi, head, Self::chain(parameters, "critic", false, features).1[0])
    }

    /// Returns log pi, entropy, value, KL(old || new) and KL(new || reference), from the definitions.
    pub fn outputs(&self, parameters: &Parameters, index: usize) -> [f64; 5] {
        let (_, head, value) = self.forward(parameters, index);
        let n = head.len();
        match &self.store.actions {
            ActionRows::Discrete(actions) => {
                let allowed = |j: usize| self.store.masks.as_ref().is_none_or(|masks| masks[index * n + j]);
                let (sizes, mut begin) = (self.kind.sizes(n), 0);
                let [mut log_prob, mut entropy, mut kl, mut kl_ref] = [0.0; 4];
                for (size, chosen) in sizes.iter().zip(choices(&sizes, actions[index])) {
                    let own = begin..begin + *size as usize;
                    let log_sum = own.clone().filter(|j| allowed(*j)).map(|j| head[j].exp()).sum::<f64>().ln();
                    let log_probs = own.filter(|j| allowed(*j)).map(|j| (j, head[j] - log_sum));
                    let old = |j: usize| f64::from(self.old[index * n + j]);
                    entropy += log_probs.clone().map(|(_, l)| -l * l.exp()).sum::<f64>();
                    kl += log_probs.clone().map(|(j, l)| old(j).exp() * (old(j) - l)).sum::<f64>();
                    kl_ref += log_probs.map(|(j, l)| l.exp() * (l - f64::from(self.reference[index * n + j]))).sum::<f64>();
                    log_prob += head[begin + chosen as usize] - log_sum;
                    begin += *size as usize;
                }
                [log_prob, entropy, value, kl, kl_ref]
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
