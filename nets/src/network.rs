//! What a network looks like.

use gradus_envs::Space;
use serde::{Deserialize, Serialize};

/// The function between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// tanh x.
    Tanh,
    /// max(0, x).
    Relu,
}

/// The text of this file, from which the command line takes what each setting means.
pub const NETWORK_SOURCE: &str = include_str!("network.rs");

/// A multilayer perceptron for the actor and one for the critic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkConfig {
    /// Widths of the hidden layers, in order; may be empty.
    pub hidden: Vec<usize>,
    /// The function between layers: tanh or relu.
    pub activation: Activation,
    /// Whether actor and critic share the hidden layers.
    pub shared: bool,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self { hidden: vec![64, 64], activation: Activation::Tanh, shared: false }
    }
}

/// A network that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A hidden layer of width 0, or a very wide one.
    #[error("network.hidden: expected widths from 1 to 65536, got {0}")]
    Width(usize),
    /// So many parameters that no memory holds them.
    #[error("network.hidden: expected at most 2^28 weights in all, got {0}")]
    Size(usize),
    /// The head is categorical.
    #[error("the policy's head is categorical: expected discrete actions, got {0}")]
    Actions(String),
    /// Observations that are not rows of numbers.
    #[error("the network reads rows of numbers: expected a box of observations, got {0}")]
    Observations(String),
}

impl NetworkConfig {
    /// The widths of observations and of the head, or why there can be no such network.
    pub(crate) fn check(&self, observations: &Space, actions: &Space) -> Result<(usize, usize), NetworkError> {
        if let Some(width) = self.hidden.iter().find(|width| !(1..=65_536).contains(*width)) {
            return Err(NetworkError::Width(*width));
        }
        let weights = self.hidden.windows(2).fold(0_usize, |sum, pair| sum.saturating_add(pair[0] * pair[1]));
        if weights > 1 << 28 {
            return Err(NetworkError::Size(weights));
        }
        match (observations, actions) {
            (Space::Box { low, .. }, Space::Discrete(n)) if *n > 0 && !low.is_empty() => Ok((low.len(), *n as usize)),
            (Space::Box { low, .. }, _) if !low.is_empty() => Err(NetworkError::Actions(actions.to_string())),
            _ => Err(NetworkError::Observations(observations.to_string())),
        }
    }
}
