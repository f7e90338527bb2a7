//! Configuration of multilayer perceptrons.

use crate::choices::Choices;
use crate::trunk::{Step, Window};
use crate::{ActionScale, QActor, QActorHead, QHead, Trunk};
use gradus_base::range::{OutOfRange, from};
use gradus_base::{Settings, settings};
use gradus_envs::{Image, Space};
use serde::{Deserialize, Serialize};

/// The activation function of the hidden layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// tanh x.
    Tanh,
    /// max(0, x).
    Relu,
}

/// The recurrent cell after the hidden layers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cell {
    /// No cell: the network remembers nothing.
    #[default]
    None,
    /// A gated recurrent unit (Cho et al., arXiv 1406.1078), in PyTorch's form.
    Gru,
    /// A long short-term memory (Hochreiter and Schmidhuber, 1997), with a forget gate (Gers, Schmidhuber and Cummins, 2000).
    Lstm,
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cell::None => "none",
            Cell::Gru => "gru",
            Cell::Lstm => "lstm",
        })
    }
}

impl Cell {
    /// Number of gates, each with its own weights.
    pub(crate) fn gates(self) -> usize {
        match self {
            Cell::None => 0,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }

    /// Number of vectors that a cell keeps from one step to the next: h and, in an LSTM, c.
    pub(crate) fn vectors(self) -> usize {
        match self {
            Cell::None => 0,
            Cell::Gru => 1,
            Cell::Lstm => 2,
        }
    }
}

settings! {
    /// A multilayer perceptron for the actor and one for the critic.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct NetworkConfig {
        /// The convolutional layers through which images are seen: none, nature, impala-small, arcade, or a list such as
        /// 32x8/4,64x4/2,64x3; the hidden layers follow.
        #[serde(default)]
        pub trunk: Trunk = Trunk::none(),
        /// Widths of the hidden layers, in order; may be empty.
        pub hidden: Vec<usize> = vec![64, 64],
        /// The recurrent cell after the hidden layers, which remembers earlier observations of an episode: none, gru or lstm.
        #[serde(default)]
        pub cell: Cell = Cell::None,
        /// Number of units of the recurrent cell.
        #[serde(default = "cell_width")]
        pub cell_width: usize = 64,
        /// Initial bias of the gate that keeps what a recurrent cell remembers: a GRU's update gate, an LSTM's forget gate. With 0 the cell at first
        /// forgets half of it at each step.
        #[serde(default)]
        pub cell_bias: f32 = 0.0 => from(-20.0).to(20.0),
        /// Largest number of steps through which gradients of a recurrent cell flow back; 0: to the first step of the episode in the rollout.
        #[serde(default)]
        pub sequence_length: usize = 0,
        /// Activation function of the hidden layers: tanh or relu.
        pub activation: Activation = Activation::Tanh,
        /// Whether actor and critic share the convolutional and the hidden layers.
        pub shared: bool = false,
        /// Whether weights are initialised orthogonally and biases to 0; if not, both are initialised as in PyTorch's linear layers.
        pub orthogonal: bool = true,
        /// Whether each hidden layer normalises its outputs before the activation; for networks of action values, and those of SAC, TD3 and DDPG.
        #[serde(default)]
        pub layer_norm: bool = false,
        /// Initial log standard deviations of a Gaussian head; unused for discrete actions.
        pub log_std_init: f32 = 0.0 => from(-20.0).to(20.0),
        /// Whether continuous actions use state-dependent noise (gSDE).
        pub gsde: bool = false,
        /// Number of steps between two draws of the gSDE noise; 0 draws it once per rollout.
        pub gsde_sample_every: usize = 0,
    }
}

fn cell_width() -> usize {
    64
}

/// A network that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A hidden layer of width 0, or one that is too wide.
    #[error("network.hidden: expected widths from 1 to 65536, got {0}")]
    Width(usize),
    /// A recurrent cell of width 0, or one that is too wide.
    #[error("network.cell_width: expected a width from 1 to 65536, got {0}")]
    CellWidth(usize),
    /// Too many weights between the observations and the actions.
    #[error("{setting}: expected at most 2^28 weights in the actor or the action values, network.trunk included, got {weights}")]
    Size {
        /// The setting that most of the weights follow from.
        setting: &'static str,
        /// The number of weights.
        weights: usize,
    },
    /// Convolutional layers of observations that are no images.
    #[error("network.trunk: expected none, because observations are no images, got {0}")]
    NoImage(Trunk),
    /// A window of a convolutional layer that is larger than the image.
    #[error("network.trunk: expected windows that fit into the image, got {layer} for {height} x {width} pixels")]
    Window {
        /// The layer.
        layer: String,
        /// Rows of pixels that it reads.
        height: usize,
        /// Pixels of a row.
        width: usize,
    },
    /// A setting whose number is out of range.
    #[error(transparent)]
    Range(OutOfRange),
    /// Layer normalisation in a network of an actor and a critic of observations.
    #[error(
        "network.layer_norm: expected false, because only networks of action values, and those of SAC, TD3 and DDPG, have it, got true"
    )]
    LayerNorm,
    /// A setting that a network of action values does not have.
    #[error("network.{0}: expected false, because a network of action values has one head, got true")]
    NotOfQ(&'static str),
    /// Actions without a value each.
    #[error("a network of action values needs discrete actions, got {0}")]
    NotDiscrete(String),
    /// A network of continuous actions whose layers are shared.
    #[error("network.shared: expected false, because each critic of actions is a network of its own, got true")]
    SharedCritics,
    /// A recurrent cell of a network whose decisions are read one by one.
    #[error("network.cell: expected none, because actors with critics of actions have no memory, got {0}")]
    CriticsCell(Cell),
    /// gSDE of an actor without noise.
    #[error("network.gsde: expected false, because the actor is deterministic, got true")]
    DeterministicGsde,
    /// Actions that are not a box with finite bounds.
    #[error("an actor of scaled actions needs a box with finite bounds, got {0}")]
    NotBounded(String),
    /// gSDE whose noise depends on pixels.
    #[error("network.hidden: expected a layer after those of network.trunk, because network.gsde is true, got none")]
    GsdeOfPixels,
    /// gSDE with discrete actions.
    #[error("network.gsde: expected a box of actions, got {0}")]
    Gsde(String),
    /// An action space without a matching head.
    #[error("the policy's head is categorical or Gaussian: expected at least one action or dimension, got {0}")]
    Actions(String),
    /// A transformer setting that is out of range.
    #[error("transformer.{key}: expected {expected}, got {got}")]
    Transformer {
        /// Name of the setting.
        key: &'static str,
        /// The values allowed.
        expected: String,
        /// The value given.
        got: String,
    },
    /// Observations that are not texts.
    #[error("a transformer reads texts: expected observations of tokens, got {0}")]
    Texts(String),
    /// Actions that are not the tokens of the texts.
    #[error("a transformer writes texts: expected one action per token, got {0}")]
    Tokens(String),
    /// The device is missing, or this build lacks its engine.
    #[error("{0}")]
    Device(String),
    /// Observations that are not rows of numbers.
    #[error("the network reads rows of numbers: expected a box of observations, got {0}")]
    Observations(String),
}

/// What a network reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    /// Numbers of an observation.
    pub width: usize,
    /// The image that it is, if it is one.
    pub image: Option<Image>,
}

/// The actor's action space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Actions {
    /// The choices of an action.
    Discrete(Choices),
    /// Number of dimensions.
    Continuous(usize),
}

impl NetworkConfig {
    /// Returns what the network reads and the actor's action space, or why the network cannot be built.
    pub(crate) fn check(&self, observations: &Space, actions: &Space) -> Result<(Input, Actions), NetworkError> {
        let outputs = if actions.sizes().is_empty() { actions.width() } else { actions.mask_width() };
        let input = self.check_layers(observations, outputs)?;
        if self.layer_norm {
            return Err(NetworkError::LayerNorm);
        }
        self.check_ranges("network").map_err(NetworkError::Range)?;
        match actions {
            Space::Box { .. } if self.gsde && !self.trunk.is_none() && self.hidden.is_empty() => Err(NetworkError::GsdeOfPixels),
            Space::Discrete(_) | Space::MultiDiscrete(_) if self.gsde => Err(NetworkError::Gsde(actions.to_string())),
            Space::Discrete(_) | Space::MultiDiscrete(_) if actions.check("").is_ok() => {
                Ok((input, Actions::Discrete(Choices::of(actions.sizes()))))
            }
            Space::Box { low, .. } if !low.is_empty() => Ok((input, Actions::Continuous(low.len()))),
            _ => Err(NetworkError::Actions(actions.to_string())),
        }
    }

    /// Returns what the network reads and the number of actions, or why a network of action values cannot be built.
    pub(crate) fn check_q(&self, head: QHead, observations: &Space, actions: &Space) -> Result<(Input, usize), NetworkError> {
        let n = match actions {
            Space::Discrete(n) if *n > 0 => *n as usize,
            _ => return Err(NetworkError::NotDiscrete(actions.to_string())),
        };
        if let Some((key, _)) = [("shared", self.shared), ("gsde", self.gsde)].into_iter().find(|(_, is_on)| *is_on) {
            return Err(NetworkError::NotOfQ(key));
        }
        self.check_ranges("network").map_err(NetworkError::Range)?;
        Ok((self.check_layers(observations, n.saturating_mul(head.atoms))?, n))
    }

    /// Returns the observations' width and the bounds of the actions, or why a network of continuous actions cannot be built.
    pub(crate) fn check_q_actor(
        &self,
        head: QActorHead,
        observations: &Space,
        actions: &Space,
    ) -> Result<(usize, ActionScale), NetworkError> {
        let scale = ActionScale::of(actions).ok_or_else(|| NetworkError::NotBounded(actions.to_string()))?;
        if let Space::Image(_) = observations {
            return Err(NetworkError::Observations(observations.to_string()));
        }
        if self.shared {
            return Err(NetworkError::SharedCritics);
        }
        if self.cell != Cell::None {
            return Err(NetworkError::CriticsCell(self.cell));
        }
        if self.gsde && head.actor == QActor::Deterministic {
            return Err(NetworkError::DeterministicGsde);
        }
        self.check_ranges("network").map_err(NetworkError::Range)?;
        Ok((self.check_layers(observations, 2 * scale.width())?.width, scale))
    }

    /// Checks the layers of a network with this many outputs. Returns what it reads.
    fn check_layers(&self, observations: &Space, outputs: usize) -> Result<Input, NetworkError> {
        if let Some(width) = self.hidden.iter().find(|width| !(1..=65_536).contains(*width)) {
            return Err(NetworkError::Width(*width));
        }
        if self.cell != Cell::None && !(1..=65_536).contains(&self.cell_width) {
            return Err(NetworkError::CellWidth(self.cell_width));
        }
        let (features, convolutional) = match observations {
            Space::Image(image) => self.trunk.seen(*image)?,
            _ if !self.trunk.is_none() => return Err(NetworkError::NoImage(self.trunk.clone())),
            _ => (observations.width(), 0),
        };
        let gates = self.cell.gates().saturating_mul(self.cell_width);
        let read = self.hidden.last().copied().unwrap_or(features);
        let of_cell = gates.saturating_mul(read.saturating_add(self.cell_width));
        let of_head = if gates > 0 { self.cell_width } else { read }.saturating_mul(outputs);
        let widths = [&[features], &self.hidden[..]].concat();
        let hidden = widths.windows(2).fold(convolutional, |sum, pair| sum.saturating_add(pair[0].saturating_mul(pair[1])));
        let weights = hidden.saturating_add(of_cell).saturating_add(of_head);
        if weights > 1 << 28 {
            let setting = if of_cell > weights / 2 { "network.cell_width" } else { "network.hidden" };
            return Err(NetworkError::Size { setting, weights });
        }
        match observations {
            Space::Box { low, .. } if !low.is_empty() => Ok(Input { width: low.len(), image: None }),
            Space::Image(image) => Ok(Input { width: image.len(), image: Some(*image) }),
            _ => Err(NetworkError::Observations(observations.to_string())),
        }
    }
}

impl Trunk {
    /// Returns the numbers that the hidden layers read, and the weights of the convolutional layers, or which of them does not fit.
    fn seen(&self, image: Image) -> Result<(usize, usize), NetworkError> {
        let Image { mut height, mut width, .. } = image;
        let (mut channels, mut weights) = (image.planes(), 0_usize);
        let mut look = |layer: String, window: Window, channels: usize| {
            let error = || NetworkError::Window { layer: layer.clone(), height, width };
            let most = usize::from(u16::MAX);
            let rows = window.outputs(height).filter(|rows| *rows <= most).ok_or_else(error)?;
            let columns = window.outputs(width).filter(|columns| *columns <= most).ok_or_else(error)?;
            (height, width) = (rows, columns);
            Ok::<usize, NetworkError>(channels * window.size * window.size)
        };
        for step in self.steps() {
            match step {
                Step::Convolve { filters, window, .. } => {
                    weights = weights.saturating_add(look(format!("{filters}x{window}"), window, channels)?.saturating_mul(filters));
                    channels = filters;
                }
                Step::Pool(window) => _ = look(format!("max{window}"), window, 0)?,
                Step::Activate | Step::Keep | Step::Add => {}
            }
        }
        Ok((height * width * channels, weights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_that_do_not_fit_are_named_in_one_line() {
        let config = NetworkConfig::default();
        let numbers = |n: usize| Space::Box { low: vec![-1.0; n], high: vec![1.0; n] };
        let three = Input { width: 3, image: None };
        let message = |config: &NetworkConfig, observations: &Space, actions: &Space| {
            config.check(observations, actions).map_err(|error| error.to_string())
        };
        assert_eq!(message(&config, &numbers(3), &Space::Discrete(2)), Ok((three, Actions::Discrete(Choices::of(&[2])))));
        assert_eq!(message(&config, &numbers(3), &numbers(1)), Ok((three, Actions::Continuous(1))));
        let gsde = NetworkConfig { gsde: true, ..config.clone() };
        let wide = NetworkConfig { log_std_init: f32::NAN, ..config.clone() };
        let table = [
            (
                &config,
                Space::Discrete(4),
                Space::Discrete(2),
                "the network reads rows of numbers: expected a box of observations, got Discrete(4), that is 0 to 3",
            ),
            (
                &config,
                numbers(1),
                Space::Discrete(0),
                "the policy's head is categorical or Gaussian: expected at least one action or dimension, got Discrete(0), that is nothing",
            ),
            (
                &config,
                numbers(1),
                numbers(0),
                "the policy's head is categorical or Gaussian: expected at least one action or dimension, got Box(0 dimensions, low [], high [])",
            ),
            (&gsde, numbers(1), Space::Discrete(2), "network.gsde: expected a box of actions, got Discrete(2), that is 0 to 1"),
            (&wide, numbers(1), Space::Discrete(2), "network.log_std_init: expected a number from -20 to 20, got NaN"),
        ];
        for (config, observations, actions, expected) in table {
            assert_eq!(message(config, &observations, &actions), Err(expected.into()));
        }
    }
}
