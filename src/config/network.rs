//! The policy network: the section `[network]` or the section `[transformer]` of the configuration.

use gradus_envs::text::TextWorld;
use gradus_envs::{EnvSpec, Space};
use gradus_nets::{
    Device, NetworkConfig, NetworkError, Policy, QActorCritic, QActorHead, QHead, QNetwork, TorchConfig, TransformerConfig, engine,
};
use serde::{Deserialize, Serialize};

use super::language;
use crate::Error;

/// The network of the policy with its settings: the section `[network]`, or `[transformer]` if observations are texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Network {
    /// Multilayer perceptrons.
    #[serde(rename = "network")]
    Perceptron(NetworkConfig),
    /// A causal transformer.
    #[serde(rename = "transformer")]
    Transformer(TransformerConfig),
}

impl Default for Network {
    fn default() -> Self {
        NetworkConfig::default().into()
    }
}

impl From<NetworkConfig> for Network {
    fn from(config: NetworkConfig) -> Self {
        Network::Perceptron(config)
    }
}

impl From<TransformerConfig> for Network {
    fn from(config: TransformerConfig) -> Self {
        Network::Transformer(config)
    }
}

/// Whether observations are texts.
pub(crate) fn is_text(world: &EnvSpec) -> bool {
    matches!(world.env().observation_space(), Space::Text { .. })
}

/// Returns the text task of `world`. For other environments, the error message names `what`, which requires a text task.
pub(crate) fn of_text<'a>(what: &str, world: &'a EnvSpec) -> Result<&'a TextWorld, Error> {
    let got = || format!("`{}`", world.name);
    world.text.as_ref().ok_or_else(|| Error::Parse { what: what.into(), expected: "a text task".into(), got: got() })
}

impl Network {
    /// Returns the kind of network that fits the observations of `world`, with default settings.
    pub fn of(world: &EnvSpec) -> Self {
        match is_text(world) {
            true => language::transformer(world).unwrap_or_default().into(),
            false => NetworkConfig::default().into(),
        }
    }

    /// Returns the name of the configuration section.
    pub fn name(&self) -> &'static str {
        match self {
            Network::Perceptron(_) => "network",
            Network::Transformer(_) => "transformer",
        }
    }

    /// Builds a policy for `world` on the built-in CPU engine, with random initial parameters from `seed`.
    pub fn policy(&self, world: &EnvSpec, seed: u64) -> Result<Box<dyn Policy>, NetworkError> {
        self.policy_on(world, seed, Device::Cpu, &TorchConfig::default())
    }

    /// Same as [`policy`](Network::policy), but on `device`. The initial parameters are the same on every device.
    pub fn policy_on(&self, world: &EnvSpec, seed: u64, device: Device, torch: &TorchConfig) -> Result<Box<dyn Policy>, NetworkError> {
        let env = world.env();
        let spaces = (&env.observation_space(), &env.action_space());
        let engine = engine(device, torch)?;
        match self {
            Network::Perceptron(config) => engine.actor_critic(config, spaces, seed),
            Network::Transformer(config) => engine.transformer(config, spaces, seed),
        }
    }

    /// Builds a network of action values for `world` on a device, with random initial parameters from a seed.
    pub fn q_network(
        &self,
        head: QHead,
        world: &EnvSpec,
        (seed, device): (u64, Device),
        torch: &TorchConfig,
    ) -> Result<Box<dyn QNetwork>, NetworkError> {
        let env = world.env();
        let (observations, actions) = (env.observation_space(), env.action_space());
        let Network::Perceptron(config) = self else { return Err(NetworkError::Observations(observations.to_string())) };
        engine(device, torch)?.q_network(config, head, (&observations, &actions), seed)
    }

    /// Builds an actor of continuous actions and critics for `world` on a device, with random initial parameters from a seed.
    pub fn q_actor_critic(
        &self,
        head: QActorHead,
        world: &EnvSpec,
        (seed, device): (u64, Device),
        torch: &TorchConfig,
    ) -> Result<Box<dyn QActorCritic>, NetworkError> {
        let env = world.env();
        let (observations, actions) = (env.observation_space(), env.action_space());
        let Network::Perceptron(config) = self else { return Err(NetworkError::Observations(observations.to_string())) };
        engine(device, torch)?.q_actor_critic(config, head, (&observations, &actions), seed)
    }
}
