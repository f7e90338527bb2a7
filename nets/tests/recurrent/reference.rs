//! A recurrent network in f64, step by step, from the names of its tensors.

use gradus_base::tensors::{Data, Tensors};
use gradus_nets::{ActionRows, Activation, Cell, NetworkConfig};

pub struct Reference<'a> {
    config: &'a NetworkConfig,
    tensors: &'a Tensors,
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl<'a> Reference<'a> {
    pub fn new(config: &'a NetworkConfig, tensors: &'a Tensors) -> Self {
        Self { config, tensors }
    }

    fn numbers(&self, name: &str) -> &'a [f32] {
        match &self.tensors.get(name).unwrap_or_else(|| panic!("{name}: expected one of {:?}", self.tensors.keys())).data {
            Data::F32(numbers) => numbers,
            _ => panic!("{name}: expected numbers"),
        }
    }

    /// W x + b.
    fn linear(&self, weight: &str, bias: &str, x: &[f64]) -> Vec<f64> {
        let rows = self.numbers(weight).chunks_exact(x.len());
        let dot = |row: &[f32]| row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
        rows.zip(self.numbers(bias)).map(|(row, bias)| dot(row) + f64::from(*bias)).collect()
    }

    fn layer(&self, name: &str, x: &[f64]) -> Vec<f64> {
        self.linear(&format!("{name}.weight"), &format!("{name}.bias"), x)
    }

    /// Layers between the numbers of two hidden layers in their names.
    fn distance(&self) -> usize {
        if self.config.layer_norm { 3 } else { 2 }
    }

    /// Some hidden layers.
    fn hidden(&self, part: &str, layers: usize, x: &[f64]) -> Vec<f64> {
        let mut x = x.to_vec();
        for number in (0..layers).map(|layer| layer * self.distance()) {
            let activation = |x: f64| if self.config.activation == Activation::Relu { x.max(0.0) } else { x.tanh() };
            x = self.layer(&format!("{part}.{number}"), &x);
            if self.config.layer_norm {
                let mean = x.iter().sum::<f64>() / x.len() as f64;
                let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
                let [gains, shifts] = ["weight", "bias"].map(|own| self.numbers(&format!("{part}.{}.{own}", number + 1)));
                let pairs = x.iter_mut().zip(gains.iter().zip(shifts));
                pairs.for_each(|(x, (gain, shift))| *x = (*x - mean) / (variance + 1e-5).sqrt() * f64::from(*gain) + f64::from(*shift));
            }
            x = x.into_iter().map(activation).collect();
        }
        x
    }

    /// Some hidden layers and the cell of a part of the network.
    fn features(&self, part: &str, layers: usize, x: &[f64], memory: &mut [f64]) -> Vec<f64> {
        let x = self.hidden(part, layers, x);
        let n = self.config.cell_width;
        let (h, c) = memory.split_at_mut(n);
        let of_x = self.linear(&format!("{part}.cell.weight_ih"), &format!("{part}.cell.bias_ih"), &x);
        let of_h = self.linear(&format!("{part}.cell.weight_hh"), &format!("{part}.cell.bias_hh"), h);
        let sum = |gate: usize, k: usize| of_x[gate * n + k] + of_h[gate * n + k];
        for k in 0..n {
            if self.config.cell == Cell::Gru {
                let (r, z) = (sigmoid(sum(0, k)), sigmoid(sum(1, k)));
                let new = (of_x[2 * n + k] + r * of_h[2 * n + k]).tanh();
                h[k] = (1.0 - z) * new + z * h[k];
            } else {
                c[k] = sigmoid(sum(1, k)) * c[k] + sigmoid(sum(0, k)) * sum(2, k).tanh();
                h[k] = sigmoid(sum(3, k)) * c[k].tanh();
            }
        }
        h.to_vec()
    }

    /// Returns what the actor's head computes, and the value. The memory becomes that after the step.
    pub fn step(&self, observation: &[f32], memory: &mut [f64]) -> (Vec<f64>, f64) {
        let x: Vec<f64> = observation.iter().map(|x| f64::from(*x)).collect();
        let layers = self.config.hidden.len();
        let head = layers * self.distance();
        if self.config.shared {
            let features = self.features("trunk", layers, &x, memory);
            return (self.layer("actor.0", &features), self.layer("critic.0", &features)[0]);
        }
        let (of_actor, of_critic) = memory.split_at_mut(memory.len() / 2);
        let actor = self.features("actor", layers, &x, of_actor);
        let critic = self.features("critic", layers, &x, of_critic);
        (self.layer(&format!("actor.{head}"), &actor), self.layer(&format!("critic.{head}"), &critic)[0])
    }

    /// Returns Q of every action. The memory becomes that after the step.
    pub fn values(&self, is_dueling: bool, observation: &[f32], memory: &mut [f64]) -> Vec<f64> {
        let x: Vec<f64> = observation.iter().map(|x| f64::from(*x)).collect();
        let layers = self.config.hidden.len();
        if !is_dueling {
            let features = self.features("q", layers, &x, memory);
            return self.layer(&format!("q.{}", layers * self.distance()), &features);
        }
        // the outputs have the last hidden layer for themselves
        let features = self.features("trunk", layers - 1, &x, memory);
        let [value, advantages] =
            ["value", "advantage"].map(|part| self.layer(&format!("{part}.{}", self.distance()), &self.hidden(part, 1, &features)));
        let mean = advantages.iter().sum::<f64>() / advantages.len() as f64;
        advantages.iter().map(|advantage| value[0] + advantage - mean).collect()
    }

    /// log pi(a|s) and the entropy, given what the head computes.
    pub fn of_action(&self, numbers: &[f64], actions: &ActionRows, row: usize) -> [f64; 2] {
        match actions {
            ActionRows::Discrete(actions) => {
                let log_sum = numbers.iter().map(|x| x.exp()).sum::<f64>().ln();
                let logs: Vec<f64> = numbers.iter().map(|x| x - log_sum).collect();
                [logs[actions[row] as usize], -logs.iter().map(|log| log.exp() * log).sum::<f64>()]
            }
            ActionRows::Continuous { rows, width } => {
                let log_stds = self.numbers("actor.log_std");
                let half = 0.5 * (2.0 * std::f64::consts::PI).ln();
                let (mut log_prob, mut entropy) = (0.0, 0.0);
                for k in 0..*width {
                    let log_std = f64::from(log_stds[k]);
                    let z = (f64::from(rows[row * width + k]) - numbers[k]) / log_std.exp();
                    log_prob -= 0.5 * z * z + log_std + half;
                    entropy += 0.5 + half + log_std;
                }
                [log_prob, entropy]
            }
            ActionRows::OnDevice(_) => unreachable!("actions on the host"),
        }
    }
}
