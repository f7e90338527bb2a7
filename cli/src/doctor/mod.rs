//! `gradus doctor`: shows the available devices, and for each failure the command that fixes it.

#[cfg(feature = "tch")]
mod torch;

use clap::Args;
use gradus::envs::{gym, registry};
use gradus::nets::{Device, NetworkError, TorchConfig, UnknownDevice};
use gradus::{Config, Error};

use crate::output::say;

/// Show libtorch, CUDA, the available devices and Python, and for each failure the command that fixes it. With --python, exit code 2 unless
/// that interpreter has Gymnasium.
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

/// What Gymnasium's groups of environments need.
const PACKAGES: [(&str, &str, &str); 4] = [
    ("box2d", "gymnasium[box2d]", "LunarLander, BipedalWalker, CarRacing"),
    ("mujoco", "gymnasium[mujoco]", "HalfCheetah, Hopper, Ant"),
    ("ale-py", "gymnasium[atari]", "Atari"),
    ("minigrid", "minigrid", "MiniGrid, BabyAI"),
];

/// Looks at the Python interpreter for `gym:` environments. Returns whether it has Gymnasium.
fn look_at_python(report: &mut Report) -> bool {
    let python = gym::python();
    let names: Vec<&str> = ["gymnasium", "numpy"].into_iter().chain(PACKAGES.map(|(name, ..)| name)).collect();
    match gym::look_at(&python, &names) {
        Ok((executable, versions)) => {
            let shown = versions.iter().filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)));
            report.line("python", format!("{executable}: {}", shown.collect::<Vec<_>>().join(", ")));
            for (name, wanted, worlds) in PACKAGES {
                if versions.iter().any(|(package, version)| package == name && version.is_none()) {
                    report.remedies.push((format!("For {worlds}:"), format!("{executable} -m pip install \"{wanted}\"")));
                }
            }
            true
        }
        Err(problem) => {
            // what is missing, and the line of pip that installs it
            let (problem, command) = match problem.rsplit_once(": ") {
                Some((problem, command)) if command.contains(" -m pip ") => (problem, Some(command)),
                _ => (&problem[..], None),
            };
            report.line("python", format!("{}: {problem}", python.display()));
            if let Some(command) = command {
                report.remedies.push(("For environments of Gymnasium, gym:ID:".into(), command.into()));
            }
            false
        }
    }
}

pub(crate) fn run(arguments: &Doctor, is_python_wanted: bool) -> Result<u8, Error> {
    let requested = arguments.device.as_deref().map(str::parse).transpose();
    let requested: Option<Device> = requested.map_err(|error: UnknownDevice| NetworkError::Device(error.to_string()))?;
    let mut report = Report::default();
    report.device("cpu", WORKS, "built-in engine");
    look(&mut report);
    let has_python = look_at_python(&mut report);
    report.print();
    if let Some(device) = requested {
        // fails in the same way as a training would
        let config = Config::default();
        config.network.policy_on(&registry::find("cartpole")?, config.seed, device, &TorchConfig::default())?;
    }
    Ok(if (report.broken && requested.is_none()) || (is_python_wanted && !has_python) { 2 } else { 0 })
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
