//! The engines: what builds networks on a device.

use gradus_envs::Space;

use crate::{Device, NetworkConfig, NetworkError, Policy, QActorCritic, QActorHead, QHead, QNetwork, TorchConfig, TransformerConfig, cpu};

/// Observations and actions of an environment.
pub type Spaces<'a> = (&'a Space, &'a Space);

/// What builds networks on a device, with random initial parameters from a seed. These are the same on every device.
pub trait Engine {
    /// Builds an actor and a critic.
    fn actor_critic(&self, config: &NetworkConfig, spaces: Spaces<'_>, seed: u64) -> Result<Box<dyn Policy>, NetworkError>;

    /// Builds a transformer that reads and writes texts.
    fn transformer(&self, config: &TransformerConfig, spaces: Spaces<'_>, seed: u64) -> Result<Box<dyn Policy>, NetworkError>;

    /// Builds a network of action values.
    fn q_network(&self, config: &NetworkConfig, head: QHead, spaces: Spaces<'_>, seed: u64) -> Result<Box<dyn QNetwork>, NetworkError>;

    /// Builds an actor of continuous actions and critics.
    fn q_actor_critic(
        &self,
        config: &NetworkConfig,
        head: QActorHead,
        spaces: Spaces<'_>,
        seed: u64,
    ) -> Result<Box<dyn QActorCritic>, NetworkError>;

    /// Measures the device's peak rate in large matrix products, in floating-point operations per second; `None` if the engine computes none.
    ///
    /// # Errors
    /// If the device fails, in one line.
    fn multiply_rate(&self) -> Result<Option<f64>, String> {
        Ok(None)
    }
}

/// Returns the engine of a device. The settings of libtorch apply to all devices but the CPU.
///
/// # Errors
/// If this program was built without the engine of the device.
pub fn engine(device: Device, settings: &TorchConfig) -> Result<Box<dyn Engine>, NetworkError> {
    match device {
        Device::Cpu => Ok(Box::new(cpu::Engine)),
        #[cfg(feature = "tch")]
        _ => Ok(Box::new(crate::torch::Engine { device, settings: settings.clone() })),
        #[cfg(not(feature = "tch"))]
        _ => {
            let _ = settings;
            let problem =
                "expected cpu, because this gradus was built without the feature `tch`; `gradus doctor` shows how to build with it";
            Err(NetworkError::Device(format!("device {device}: {problem}")))
        }
    }
}
