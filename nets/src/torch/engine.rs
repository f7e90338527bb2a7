//! Builds the networks of this engine.

use super::{ActorCritic, QActorCritic, QNetwork, Transformer};
use crate::engine::Spaces;
use crate::{Device, NetworkConfig, NetworkError, Policy, QActorHead, QHead, TorchConfig, TransformerConfig};

/// The engine `torch` on one of its devices.
pub struct Engine {
    /// The device.
    pub device: Device,
    /// The settings of libtorch.
    pub settings: TorchConfig,
}

impl crate::Engine for Engine {
    fn actor_critic(&self, config: &NetworkConfig, spaces: Spaces<'_>, seed: u64) -> Result<Box<dyn Policy>, NetworkError> {
        Ok(Box::new(ActorCritic::new((config, &self.settings), spaces, seed, self.device)?))
    }

    fn transformer(&self, config: &TransformerConfig, spaces: Spaces<'_>, seed: u64) -> Result<Box<dyn Policy>, NetworkError> {
        Ok(Box::new(Transformer::new((config, &self.settings), spaces, seed, self.device)?))
    }

    fn q_network(
        &self,
        config: &NetworkConfig,
        head: QHead,
        spaces: Spaces<'_>,
        seed: u64,
    ) -> Result<Box<dyn crate::QNetwork>, NetworkError> {
        Ok(Box::new(QNetwork::new((config, &self.settings), head, spaces, seed, self.device)?))
    }

    fn q_actor_critic(
        &self,
        config: &NetworkConfig,
        head: QActorHead,
        spaces: Spaces<'_>,
        seed: u64,
    ) -> Result<Box<dyn crate::QActorCritic>, NetworkError> {
        Ok(Box::new(QActorCritic::new((config, &self.settings), head, spaces, seed, self.device)?))
    }

    fn multiply_rate(&self) -> Result<Option<f64>, String> {
        super::multiply_rate(self.device, self.settings.precision).map(Some)
    }
}
