//! The policy network: the section `[network]` or the section `[transformer]` of the configuration.

use gradus_envs::text::TextWorld;
use gradus_envs::{EnvSpec, Space};
use gradus_nets::cpu::{self, ActorCritic, Transformer};
use gradus_nets::{Device, NetworkConfig, NetworkError, Policy, QActorCritic, QActorHead, QHead, QNetwork, TorchConfig, TransformerConfig};
use serde::{Deserialize, Serialize};

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
        if is_text(world) { TransformerConfig::default().into() } else { NetworkConfig::default().into() }
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
        let (observations, actions) = (env.observation_space(), env.action_space());
        match (self, device) {
            (Network::Perceptron(config), Device::Cpu) => Ok(Box::new(ActorCritic::new(config, &observations, &actions, seed)?)),
            (Network::Transformer(config), Device::Cpu) => Ok(Box::new(Transformer::new(config, &observations, &actions, seed)?)),
            _ => self.on_torch((&observations, &actions), seed, device, torch),
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
        match device {
            Device::Cpu => Ok(Box::new(cpu::QNetwork::new(config, head, &observations, &actions, seed)?)),
            _ => q_on_torch(config, head, (&observations, &actions), (seed, device), torch),
        }
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
        match device {
            Device::Cpu => Ok(Box::new(cpu::QActorCritic::new(config, head, &observations, &actions, seed)?)),
            _ => q_actor_on_torch(config, head, (&observations, &actions), (seed, device), torch),
        }
    }

    #[cfg(feature = "tch")]
    fn on_torch(
        &self,
        spaces: (&Space, &Space),
        seed: u64,
        device: Device,
        settings: &TorchConfig,
    ) -> Result<Box<dyn Policy>, NetworkError> {
        use gradus_nets::torch;
        match self {
            Network::Perceptron(config) => Ok(Box::new(torch::ActorCritic::new((config, settings), spaces, seed, device)?)),
            Network::Transformer(config) => Ok(Box::new(torch::Transformer::new((config, settings), spaces, seed, device)?)),
        }
    }

    #[cfg(not(feature = "tch"))]
    fn on_torch(&self, _: (&Space, &Space), _: u64, device: Device, _: &TorchConfig) -> Result<Box<dyn Policy>, NetworkError> {
        Err(without_tch(device))
    }
}

#[cfg(feature = "tch")]
fn q_on_torch(
    config: &NetworkConfig,
    head: QHead,
    spaces: (&Space, &Space),
    (seed, device): (u64, Device),
    settings: &TorchConfig,
) -> Result<Box<dyn QNetwork>, NetworkError> {
    Ok(Box::new(gradus_nets::torch::QNetwork::new((config, settings), head, spaces, seed, device)?))
}

#[cfg(not(feature = "tch"))]
fn q_on_torch(
    _: &NetworkConfig,
    _: QHead,
    _: (&Space, &Space),
    (_, device): (u64, Device),
    _: &TorchConfig,
) -> Result<Box<dyn QNetwork>, NetworkError> {
    Err(without_tch(device))
}

#[cfg(feature = "tch")]
fn q_actor_on_torch(
    config: &NetworkConfig,
    head: QActorHead,
    spaces: (&Space, &Space),
    (seed, device): (u64, Device),
    settings: &TorchConfig,
) -> Result<Box<dyn QActorCritic>, NetworkError> {
    Ok(Box::new(gradus_nets::torch::QActorCritic::new((config, settings), head, spaces, seed, device)?))
}

#[cfg(not(feature = "tch"))]
fn q_actor_on_torch(
    _: &NetworkConfig,
    _: QActorHead,
    _: (&Space, &Space),
    (_, device): (u64, Device),
    _: &TorchConfig,
) -> Result<Box<dyn QActorCritic>, NetworkError> {
    Err(without_tch(device))
}

#[cfg(not(feature = "tch"))]
fn without_tch(device: Device) -> NetworkError {
    let problem = "expected cpu, because this gradus was built without the feature `tch`; `gradus doctor` shows how to build with it";
    NetworkError::Device(format!("device {device}: {problem}"))
}
