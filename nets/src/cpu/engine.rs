//! Builds the networks of this engine.

use super::{ActorCritic, QActorCritic, QNetwork, Transformer};
use crate::engine::Spaces;
use crate::{NetworkConfig, NetworkError, Policy, QActorHead, QHead, TransformerConfig};

/// The engine `cpu`.
pub struct Engine;

impl crate::Engine for Engine {
    fn actor_critic(&self, config: &NetworkConfig, spaces: Spaces<'_>, seed: u64) -> Result<Box<dyn Policy>, NetworkError> {
        Ok(Box::new(ActorCritic::new(config, spaces.0, spaces.1, seed)?))
    }

    fn transformer(&self, config: &TransformerConfig, spaces: Spaces<'_>, seed: u64) -> Result<Box<dyn Policy>, NetworkError> {
        Ok(Box::new(Transformer::new(config, spaces.0, spaces.1, seed)?))
    }

    fn q_network(
        &self,
        config: &NetworkConfig,
        head: QHead,
        spaces: Spaces<'_>,
        seed: u64,
    ) -> Result<Box<dyn crate::QNetwork>, NetworkError> {
        Ok(Box::new(QNetwork::new(config, head, spaces.0, spaces.1, seed)?))
    }

    fn q_actor_critic(
        &self,
        config: &NetworkConfig,
        head: QActorHead,
        spaces: Spaces<'_>,
        seed: u64,
    ) -> Result<Box<dyn crate::QActorCritic>, NetworkError> {
        Ok(Box::new(QActorCritic::new(config, head, spaces.0, spaces.1, seed)?))
    }
}
