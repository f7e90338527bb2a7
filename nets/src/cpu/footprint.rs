//! The memory that a network needs on the CPU, computed from its settings before anything is allocated.

use gradus_envs::Space;

use super::{ActorCritic, QActorCritic, QNetwork, Transformer};
use crate::{NetworkConfig, NetworkError, QActorHead, QHead, TransformerConfig};

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
    /// The activations of each decision of a rollout in an update, of a network that reads whole sequences.
    pub decision: f64,
    /// Largest number of parts of a batch, each with its own gradient.
    pub(super) most_lanes: usize,
    /// Number of decisions (for a transformer, tokens) of a batch for each such part.
    pub(super) lane: usize,
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
        let (input, actions) = self.check(observations, actions)?;
        Ok(ActorCritic::footprint(self, input, actions))
    }

    /// Returns the memory of a network of action values for these spaces, or why it cannot be built.
    pub fn q_footprint(&self, head: QHead, observations: &Space, actions: &Space) -> Result<Footprint, NetworkError> {
        let (input, actions) = self.check_q(head, observations, actions)?;
        Ok(QNetwork::footprint(self, head, input, actions))
    }

    /// Returns the memory of a network of continuous actions for these spaces, or why it cannot be built.
    pub fn q_actor_footprint(&self, head: QActorHead, observations: &Space, actions: &Space) -> Result<Footprint, NetworkError> {
        let (width, scale) = self.check_q_actor(head, observations, actions)?;
        Ok(QActorCritic::footprint(self, head, width, scale))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Critic, Network, Positions};

    #[test]
    fn the_parameters_are_those_of_the_networks() {
        let numbers = |n: usize| Space::Box { low: vec![-1.0; n], high: vec![1.0; n] };
        for (hidden, shared, actions) in
            [(vec![], false, Space::Discrete(2)), (vec![40, 17], true, numbers(3)), (vec![64, 64], false, numbers(20))]
        {
            let config = NetworkConfig { hidden, shared, ..NetworkConfig::default() };
            let policy = ActorCritic::new(&config, &numbers(5), &actions, 1).unwrap();
            let footprint = config.footprint(&numbers(5), &actions).unwrap();
            assert_eq!(footprint.parameters, 4.0 * policy.parameters().len() as f64, "{config:?}");
        }
        for (critic, positions) in [(Critic::Head, Positions::Rotary), (Critic::Separate, Positions::Learned)] {
            let config = TransformerConfig { critic, positions, ..TransformerConfig::default() };
            let (texts, tokens) = (Space::Text { vocabulary: 13, context: 20 }, Space::Discrete(13));
            let policy = Transformer::new(&config, &texts, &tokens, 1).unwrap();
            let footprint = config.footprint(&texts, &tokens, 10.0).unwrap();
            assert_eq!(footprint.parameters, 4.0 * policy.parameters().len() as f64, "{config:?}");
        }
    }

    #[test]
    fn a_batch_has_a_gradient_for_each_of_its_parts() {
        let config = NetworkConfig::default();
        let footprint = config.footprint(&Space::Box { low: vec![0.0; 4], high: vec![1.0; 4] }, &Space::Discrete(2)).unwrap();
        let copies = |batch: f64| (footprint.learning(batch) - footprint.transposed) / footprint.parameters;
        // parameters, gradient and two moments; then a gradient for each 256 decisions, at most 16
        assert_eq!([1.0, 1024.0, 1e9].map(copies), [4.0, 8.0, 20.0]);
    }
}
