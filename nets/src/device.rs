//! Engines and devices.

use gradus_base::settings;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An engine, and the device it computes on.
///
/// ```
/// use gradus_nets::Device;
///
/// assert_eq!("cuda:1".parse(), Ok(Device::Cuda(1)));
/// assert_eq!(Device::Cuda(0).to_string(), "cuda:0");
/// assert_eq!("gpu".parse::<Device>().unwrap_err().to_string(), "device: expected cpu, torch-cpu, cuda, cuda:N or mps, got gpu");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The engine [`cpu`](crate::cpu).
    #[default]
    Cpu,
    /// The engine `torch` on the CPU.
    TorchCpu,
    /// The engine `torch` on an NVIDIA GPU, by number.
    Cuda(usize),
    /// The engine `torch` on Apple's GPU.
    Mps,
}

/// The name of an unknown device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("device: expected cpu, torch-cpu, cuda, cuda:N or mps, got {0}")]
pub struct UnknownDevice(String);

impl FromStr for Device {
    type Err = UnknownDevice;

    fn from_str(name: &str) -> Result<Self, UnknownDevice> {
        let unknown = || UnknownDevice(if name.is_empty() { "nothing".into() } else { name.into() });
        match name {
            "cpu" => Ok(Device::Cpu),
            "torch-cpu" => Ok(Device::TorchCpu),
            "cuda" => Ok(Device::Cuda(0)),
            "mps" => Ok(Device::Mps),
            _ => {
                let number = name.strip_prefix("cuda:").filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
                number.and_then(|number| number.parse().ok()).filter(|number| *number < 128).map(Device::Cuda).ok_or_else(unknown)
            }
        }
    }
}

impl TryFrom<String> for Device {
    type Error = UnknownDevice;

    fn try_from(name: String) -> Result<Self, UnknownDevice> {
        name.parse()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu => f.write_str("cpu"),
            Device::TorchCpu => f.write_str("torch-cpu"),
            Device::Cuda(number) => write!(f, "cuda:{number}"),
            Device::Mps => f.write_str("mps"),
        }
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

/// Precision of products in the engine `torch`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// f32 throughout.
    #[default]
    F32,
    /// Products of f32 on CUDA's tensor cores, which use 10 bits of each mantissa.
    Tf32,
    /// A transformer's layers in bf16; parameters, norms, logits and the optimiser in f32.
    Bf16,
}

/// Where environments are stepped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Worlds {
    /// On the policy's device if it is a GPU that supports the environment, and observations are texts or there are at least 1024
    /// environments. Otherwise on the host.
    #[default]
    Auto,
    /// On the host.
    Host,
    /// On the policy's device.
    Device,
}

settings! {
    /// The settings of the engine `torch`.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TorchConfig {
        /// Precision of products: f32, tf32 (CUDA), or bf16 (a transformer's layers).
        pub precision: Precision = Precision::default(),
        /// Number of decisions computed at once (for texts: number of tokens, including padding); gradients of the parts are added. 0: all
        /// decisions.
        pub micro_batch: usize = 0,
        /// Whether the layers of a transformer are computed again in the backward pass, one after the other, instead of kept: a third more computation,
        /// and the memory of one layer (gradient checkpointing; Chen et al., arXiv 1604.06174).
        #[serde(default)]
        pub gradient_checkpointing: bool = false,
        /// Where environments are stepped and texts generated: host, device, or auto (on the device if it is a GPU that supports the
        /// environment, with texts or at least 1024 environments).
        #[serde(default)]
        pub worlds: Worlds = Worlds::default(),
    }
}
