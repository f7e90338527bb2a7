//! The layers of a network and the positions of their parameters.

use std::ops::Range;

use super::layer::{Layer, padded};
use crate::network::Actions;
use crate::{ActionRows, Activation, Group, NetworkConfig};

/// Consecutive layers.
pub(super) type Chain = Vec<Layer>;

/// The distribution that the actor's last layer parameterises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// A categorical distribution. The last layer outputs its logits.
    Categorical,
    /// A diagonal Gaussian. The last layer outputs its means. The log standard deviations, one per action dimension, are the parameters at
    /// this position.
    Gaussian { log_std: usize },
    /// A diagonal Gaussian with state-dependent noise (gSDE). The parameters at this position are log standard deviations: for every input
    /// of the last layer, a row of one number per action dimension.
    Gsde { log_std: usize },
}

/// The layers of a network and the positions of their parameters.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub width: usize,
    pub actions: usize,
    pub head: Head,
    pub activation: Activation,
    /// The hidden layers that actor and critic share, each followed by the activation.
    pub trunk: Chain,
    /// The actor's own layers; the last one is its head.
    pub actor: Chain,
    /// The critic's own layers; the last one is its head.
    pub critic: Chain,
    pub parameters: usize,
}

impl Layout {
    pub fn new(config: &NetworkConfig, width: usize, actions: Actions) -> Self {
        let (n, is_gaussian) = match actions {
            Actions::Discrete(n) => (n, false),
            Actions::Continuous(n) => (n, true),
        };
        let mut layout = Layout {
            width,
            actions: n,
            head: Head::Categorical,
            activation: config.activation,
            trunk: Vec::new(),
            actor: Vec::new(),
            critic: Vec::new(),
            parameters: 0,
        };
        let hidden: Vec<usize> = std::iter::once(width).chain(config.hidden.iter().copied()).collect();
        let features = *hidden.last().unwrap_or(&width);
        if config.shared {
            layout.trunk = layout.chain(&hidden, true);
            layout.actor = layout.chain(&[features, n], config.hidden.is_empty());
        } else {
            layout.actor = layout.chain(&[&hidden[..], &[n]].concat(), true);
        }
        if is_gaussian {
            let log_std = layout.parameters;
            layout.head = if config.gsde { Head::Gsde { log_std } } else { Head::Gaussian { log_std } };
            layout.parameters += layout.log_std_rows() * padded(n);
        }
        layout.critic = if config.shared {
            layout.chain(&[features, 1], config.hidden.is_empty())
        } else {
            layout.chain(&[&hidden[..], &[1]].concat(), true)
        };
        layout
    }

    fn chain(&mut self, widths: &[usize], reads_observations: bool) -> Chain {
        let (mut chain, mut transposed) = (Vec::new(), 0);
        for (i, pair) in widths.windows(2).enumerate() {
            let mut layer = Layer { inputs: pair[0], outputs: pair[1], weights: self.parameters, bias: 0, transposed: None };
            layer.bias = layer.weights + layer.weight_len();
            self.parameters = layer.bias + padded(layer.outputs);
            let reads_activations = i > 0 || !reads_observations;
            if reads_activations && !layer.is_narrow() {
                layer.transposed = Some(transposed);
                transposed += layer.transposed_len();
            }
            chain.push(layer);
        }
        chain
    }

    pub fn chains(&self) -> [(&'static str, &Chain); 3] {
        [("trunk", &self.trunk), ("actor", &self.actor), ("critic", &self.critic)]
    }

    /// Returns the parameter groups, in order.
    pub fn groups(&self) -> Vec<Group> {
        let range = |chain: &Chain| match (chain.first(), chain.last()) {
            (Some(first), Some(last)) => first.weights..last.bias + padded(last.outputs),
            _ => 0..0,
        };
        let mut groups = self.chains().map(|(name, chain)| Group { name, range: range(chain) });
        groups[1].range.end += self.log_std_range().len(); // the log standard deviations follow the actor's head
        groups.into_iter().filter(|group| !group.range.is_empty()).collect()
    }

    /// Number of inputs of the actor's last layer.
    pub fn features(&self) -> usize {
        self.actor.last().map_or(0, |head| head.inputs)
    }

    /// Whether the actor's last layer is narrow.
    pub fn is_narrow(&self) -> bool {
        self.actor.last().is_some_and(Layer::is_narrow)
    }

    /// Position of the first of the critic's own parameters. The parameters of trunk and actor precede it.
    pub fn critic_begin(&self) -> usize {
        self.critic.first().map_or(self.parameters, |layer| layer.weights)
    }

    /// Number of rows of log standard deviations among the parameters.
    pub fn log_std_rows(&self) -> usize {
        match self.head {
            Head::Categorical => 0,
            Head::Gaussian { .. } => 1,
            Head::Gsde { .. } => self.features(),
        }
    }

    /// Range of the log standard deviations, including padding.
    pub fn log_std_range(&self) -> Range<usize> {
        match self.head {
            Head::Categorical => 0..0,
            Head::Gaussian { log_std } | Head::Gsde { log_std } => log_std..log_std + self.log_std_rows() * padded(self.actions),
        }
    }

    /// Numbers per distribution. A row holds either log-probabilities, or means and then log standard deviations.
    pub fn distribution_width(&self) -> usize {
        if self.head == Head::Categorical { self.actions } else { 2 * self.actions }
    }

    /// Panics unless the actions match the head.
    pub fn assert_actions(&self, actions: &ActionRows) {
        let fits = match actions {
            ActionRows::Discrete(_) => self.head == Head::Categorical,
            ActionRows::Continuous { width, .. } => self.head != Head::Categorical && *width == self.actions,
            ActionRows::OnDevice(_) => false,
        };
        let expected = if self.head == Head::Categorical { "discrete actions".into() } else { format!("rows of {} numbers", self.actions) };
        assert!(fits, "actions: expected {expected}, got {}", actions.kind());
    }

    /// Panics unless `masks` is `None`, or the head is categorical and `masks` allows at least one action in each of `rows` rows.
    pub fn assert_masks(&self, masks: Option<&[bool]>, rows: usize) {
        let Some(masks) = masks else { return };
        assert!(self.head == Head::Categorical, "masks: expected none for continuous actions");
        assert_eq!(masks.len(), rows * self.actions, "masks: expected {} entries for each of {rows} rows", self.actions);
        if let Some(row) = masks.chunks_exact(self.actions).position(|row| !row.contains(&true)) {
            panic!("masks: expected at least one action in every row, got none in row {row}");
        }
    }
}

/// A part of a flat vector with one number per parameter; it begins at index `begin`.
pub(super) struct Part<'a> {
    pub numbers: &'a mut [f32],
    pub begin: usize,
}

impl<'a> Part<'a> {
    /// The whole vector.
    pub fn whole(numbers: &'a mut [f32]) -> Self {
        Self { numbers, begin: 0 }
    }

    /// The numbers of a range of the flat vector.
    #[inline(always)]
    pub fn of(&mut self, range: Range<usize>) -> &mut [f32] {
        &mut self.numbers[range.start - self.begin..range.end - self.begin]
    }
}
