//! The layers of an actor and a critic, and the positions of their parameters.

use std::ops::Range;

use super::layer::padded;
use super::perceptron::Perceptron;
use crate::choices::Choices;
use crate::network::{Actions, Input};
use crate::{ActionRows, Group, NetworkConfig};

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
    pub perceptron: Perceptron,
    /// Width of the actor's last layer: the logits of all choices, or the dimensions.
    pub actions: usize,
    /// The choices of discrete actions.
    pub choices: Choices,
    pub head: Head,
    /// The hidden layers that actor and critic share.
    pub trunk: Range<usize>,
    /// The actor's own layers; the last one is its head.
    pub actor: Range<usize>,
    /// The critic's own layers; the last one is its head.
    pub critic: Range<usize>,
    /// How many numbers the transposed weights of the trunk, the actor and the critic are.
    pub transposed: [usize; 3],
}

impl Layout {
    pub fn new(config: &NetworkConfig, input: Input, actions: Actions) -> Self {
        let (n, choices) = match actions {
            Actions::Discrete(choices) => (choices.logits(), choices),
            Actions::Continuous(n) => (n, Choices::of(&[])),
        };
        let is_gaussian = choices.parts().is_empty();
        let mut perceptron = Perceptron::new(config.activation, input.width, 0);
        let (shared, own) = if config.shared { (&config.hidden[..], &[][..]) } else { (&[][..], &config.hidden[..]) };
        let features = if config.shared { perceptron.see(config, "trunk", input.image) } else { None };
        let features = perceptron.chain(config, "trunk", features, (shared, config.shared), None);
        let trunk = 0..perceptron.layers.len();
        let of_actor = if config.shared { features } else { perceptron.see(config, "actor", input.image) };
        perceptron.chain(config, "actor", of_actor, (own, !config.shared), Some(n));
        let actor = trunk.end..perceptron.layers.len();
        let log_std = perceptron.range.end;
        let head = match (is_gaussian, config.gsde) {
            (false, _) => Head::Categorical,
            (true, false) => Head::Gaussian { log_std },
            (true, true) => Head::Gsde { log_std },
        };
        let mut layout = Self { perceptron, actions: n, choices, head, trunk, actor, critic: 0..0, transposed: [0; 3] };
        layout.perceptron.range.end += layout.log_std_rows() * padded(n);
        let of_critic = if config.shared { features } else { layout.perceptron.see(config, "critic", input.image) };
        layout.perceptron.chain(config, "critic", of_critic, (own, !config.shared), Some(1));
        layout.critic = layout.actor.end..layout.perceptron.layers.len();
        layout.transposed = layout.parts().map(|(_, layers)| layout.perceptron.keep_transposed(layers));
        layout
    }

    /// The parts of the network: their names and their layers.
    pub fn parts(&self) -> [(&'static str, Range<usize>); 3] {
        [("trunk", self.trunk.clone()), ("actor", self.actor.clone()), ("critic", self.critic.clone())]
    }

    /// Numbers per observation.
    pub fn width(&self) -> usize {
        self.perceptron.width
    }

    /// Number of parameters.
    pub fn parameters(&self) -> usize {
        self.perceptron.range.end
    }

    /// The actor's last layer.
    pub fn actor_head(&self) -> usize {
        self.actor.end - 1
    }

    /// The critic's last layer.
    pub fn critic_head(&self) -> usize {
        self.critic.end - 1
    }

    /// Returns the parameter groups, in order.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups = self.parts().map(|(name, layers)| Group { name, range: self.perceptron.parameters_of(layers) });
        groups[1].range.end += self.log_std_range().len(); // the log standard deviations follow the actor's head
        groups.into_iter().filter(|group| !group.range.is_empty()).collect()
    }

    /// Number of inputs of the actor's last layer.
    pub fn features(&self) -> usize {
        self.perceptron.layers[self.actor_head()].layer.inputs
    }

    /// The distance between the features of two rows.
    pub fn feature_stride(&self) -> usize {
        self.perceptron.layers[self.actor_head()].layer.x_stride
    }

    /// Whether the actor's last layer is narrow and a discrete action is one choice. Then rows are computed sixteen at a time.
    pub fn is_narrow(&self) -> bool {
        self.choices.is_one() && self.perceptron.layers[self.actor_head()].layer.is_narrow()
    }

    /// Position of the first of the critic's own parameters. The parameters of trunk and actor precede it.
    pub fn critic_begin(&self) -> usize {
        self.perceptron.layers[self.critic.start].layer.weights
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
        if let Some(row) = masks.chunks_exact(self.actions).position(|row| !self.choices.are_possible(row)) {
            panic!("masks: expected at least one action in every row, got none in row {row}");
        }
    }
}
