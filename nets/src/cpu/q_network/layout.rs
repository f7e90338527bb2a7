//! The layers of a network of action values.

use super::super::perceptron::Perceptron;
use super::super::weights::{Named, Visit};
use crate::network::Input;
use crate::{Group, NetworkConfig, QHead};

/// The layers of a network and its outputs.
#[derive(Clone, Debug)]
pub(super) struct QLayout {
    pub perceptron: Perceptron,
    pub actions: usize,
    pub head: QHead,
    /// The output layers: of Q, or of V and A.
    pub outputs: Vec<usize>,
}

impl QLayout {
    pub fn new(config: &NetworkConfig, head: QHead, input: Input, actions: usize) -> Self {
        let mut perceptron = Perceptron::new(config.activation, input.width, 0);
        let seen = perceptron.see(config, "trunk", input.image);
        let q = actions * head.atoms;
        let outputs = if head.dueling {
            // V and A have the last hidden layer for themselves
            let (own, shared) = config.hidden.split_last().map_or((None, &[][..]), |(own, shared)| (Some(*own), shared));
            let trunk = perceptron.chain(config, "trunk", seen, (shared, true), None);
            let value = perceptron.chain(config, "value", trunk, (own.as_slice(), false), Some(head.atoms));
            let advantage = perceptron.chain(config, "advantage", trunk, (own.as_slice(), false), Some(q));
            [value, advantage].into_iter().flatten().collect()
        } else {
            perceptron.chain(config, "q", seen, (&config.hidden, true), Some(q)).into_iter().collect()
        };
        Self { perceptron, actions, head, outputs }
    }

    /// Numbers per observation.
    pub fn width(&self) -> usize {
        self.perceptron.width
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.perceptron.range.end
    }

    /// The parameter groups: one, with all parameters.
    pub fn groups(&self) -> Vec<Group> {
        vec![Group { name: "q", range: self.perceptron.range.clone() }]
    }

    /// Numbers per observation that the network outputs.
    pub fn q_width(&self) -> usize {
        self.actions * self.head.atoms
    }
}

impl Named for QLayout {
    fn for_each_tensor(&self, visit: Visit<'_>) {
        self.perceptron.for_each_tensor(visit);
    }
}
