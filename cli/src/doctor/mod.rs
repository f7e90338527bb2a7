//! `gradus doctor`: shows the available devices, and for each failure the command that fixes it.

#[cfg(feature = "tch")]
mod torch;

use clap::Args;
use gradus::Error;
use gradus::nets::{Device, NetworkError, TorchConfig, UnknownDevice};
use gradus::{Config, envs::registry};

use crate::output::say;

/// Show libtorch, CUDA and the available devices, and for each failure the command that fixes it.
#[derive(Args)]
pub(crate) struct Doctor {
    /// Fail with exit code 2 unless this device works: cpu, torch-cpu, cuda, cuda:N or mps.
    #[arg(long)]
    device: Option<String>,
}

// Status of a device: it works; it is absent, which is not an error; it is present but fails.
const WORKS: &str = "ok";
const NONE: &str = "-";
const FAULT: &str = "FAULT";

/// What the command finds and prints.
#[derive(Default)]
struct Report {
    /// Topic and text of each line; the topic is empty if it is the same as on the line above.
    lines: Vec<(&'static str, String)>,
    devices: Vec<String>,
    /// Problems, each with the command that fixes it.
    remedies: Vec<(String, String)>,
    broken: bool,
}

impl Report {
    fn line(&mut self, topic: &'static str, text: impl Into<String>) {
        self.lines.push((topic, text.into()));
    }

    fn device(&mut self, name: &str, mark: &str, about: &str) {
        self.devices.push(format!("{name:<9}  {mark:<5}  {about}"));
        self.broken |= mark == FAULT;
    }

    fn print(&self) {
        let topics = std::iter::once("devices").chain(std::iter::repeat(""));
        let devices = topics.zip(self.devices.iter().map(String::as_str));
        for (topic, text) in self.lines.iter().map(|(topic, text)| (*topic, text.as_str())).chain(devices) {
            say(format!("{topic:<8}  {text}"));
        }
        for (what, remedy) in &self.remedies {
            say(format!("\n{what}\n  {remedy}"));
        }
    }
}

pub(crate) fn run(arguments: &Doctor) -> Result<u8, Error> {
    let requested = arguments.device.as_deref().map(str::parse).transpose();
    let requested: Option<Device> = requested.map_err(|error: UnknownDevice| NetworkError::Device(error.to_string()))?;
    let mut report = Report::default();
    report.device("cpu", WORKS, "built-in engine");
    look(&mut report);
    report.print();
    if let Some(device) = requested {
        // fails in the same way as a training would
        let config = Config::default();
        config.network.policy_on(&registry::find("cartpole")?, config.seed, device, &TorchConfig::default())?;
    }
    Ok(if report.broken && requested.is_none() { 2 } else { 0 })
}

#[cfg(feature = "tch")]
use torch::look;

#[cfg(not(feature = "tch"))]
fn look(report: &mut Report) {
    report.line("gradus", concat!(env!("CARGO_PKG_VERSION"), ", without the engine torch: the feature `tch` is off"));
    for name in ["torch-cpu", "cuda", "mps"] {
        report.device(name, NONE, "needs the feature `tch`");
    }
    let commands = "pip install torch==2.11.0\n  LIBTORCH_USE_PYTORCH=1 cargo build --features tch";
    report
        .remedies
        .push(("To build with the engine torch, in a Python virtual environment (docs/gpu.md has other ways):".into(), commands.into()));
}
