//! The memory that a network needs on the CPU, computed from its settings before anything is allocated.

use gradus_envs::Space;

use crate::cpu::{ActorCritic, Transformer};
use crate::{NetworkConfig, NetworkError, TransformerConfig};

/// The memory that a network needs on the CPU, in bytes. The numbers are a little too low rather than too high: they count only the large
/// allocations that every update makes. They are `f64`, because settings may ask for more than any integer can hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Footprint {
    /// One copy of all parameters.
    pub parameters: f64,
    /// The transposed weights that the backward pass reads.
    pub transposed: f64,
    /// The activations of a thread in an update.
    pub workspace: f64,
    /// The cached keys and values of a row while the policy acts.
    pub row: f64,
    /// Largest number of parts of a batch, each with its own gradient.
    pub(crate) most_lanes: usize,
    /// Number of decisions (for a transformer, tokens) of a batch for each such part.
    pub(crate) lane: usize,
}

impl Footprint {
    /// Returns the bytes of a network that learns from batches of `batch` decisions: the parameters, the gradient, two moments, and a
    /// gradient for each part of a batch. The activations of the update are not counted.
    pub fn learning(&self, batch: f64) -> f64 {
        let lanes = (batch / self.lane as f64).floor().min(self.most_lanes as f64);
        self.parameters * (4.0 + lanes) + self.transposed
    }
}

impl NetworkConfig {
    /// Returns the memory of this network for these spaces, or why it cannot be built.
    pub fn footprint(&self, observations: &Space, actions: &Space) -> Result<Footprint, NetworkError> {
        let (width, actions) = self.check(observations, actions)?;
        Ok(ActorCritic::footprint(self, width, actions))
    }
}

impl TransformerConfig {
    /// Returns the memory of this transformer for these spaces, or why it cannot be built. Cached keys and values are counted for texts of
    /// `tokens` tokens.
    pub fn footprint(&self, observations: &Space, actions: &Space, tokens: f64) -> Result<Footprint, NetworkError> {
        let (vocabulary, context) = self.check(observations, actions)?;
        Ok(Transformer::footprint(self, vocabulary, context, tokens))
    }
}
