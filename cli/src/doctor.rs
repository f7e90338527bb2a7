//! `gradus doctor`: shows the available devices, and for each failure the command that fixes it.

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

    #[cfg(feature = "tch")]
    fn trouble(&mut self, name: &str, mark: &str, trouble: &gradus::nets::torch::Trouble) {
        self.device(name, mark, &trouble.problem);
        self.remedies.extend(trouble.remedy.clone().map(|remedy| (format!("{name}: {}", trouble.problem), remedy)));
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

#[cfg(feature = "tch")]
fn look(report: &mut Report) {
    report.line("gradus", concat!(env!("CARGO_PKG_VERSION"), ", with the engine torch"));
    look_at_libtorch(report);
    look_at_driver(report);
    look_at_devices(report);
    // comes after the tests of the devices, because the test of a GPU loads more libraries
    list_libraries(report);
}

#[cfg(feature = "tch")]
fn look_at_libtorch(report: &mut Report) {
    use gradus::nets::torch::{EXPECTED, find};
    let found = find();
    let version = found.version.as_deref().unwrap_or("an unknown version");
    let cuda = found.cuda.map_or_else(String::new, |(major, minor)| format!(", for CUDA {major}.{minor}"));
    report.line("libtorch", format!("expected {EXPECTED}, found {version}{cuda}"));
    match &found.folder {
        Some(folder) => report.line("", folder.display().to_string()),
        None => report.line("", "loaded from an unknown folder"),
    }
    let built = std::path::Path::new(option_env!("GRADUS_LIBTORCH").unwrap_or_default());
    let same = |folder: &std::path::Path| folder.canonicalize().ok() == built.canonicalize().ok();
    if found.folder.as_deref().is_some_and(|folder| !same(folder)) {
        report.line("", format!("not the libtorch that gradus was built with: {}", built.display()));
    }
}

#[cfg(feature = "tch")]
fn look_at_driver(report: &mut Report) {
    use gradus::nets::torch::{driver, surroundings};
    let module = surroundings().module.as_deref();
    let about = match driver() {
        Ok(driver) => format!("{}, for CUDA up to {}.{}", module.unwrap_or("NVIDIA's"), driver.cuda.0, driver.cuda.1),
        Err(_) => module.map_or_else(|| "no NVIDIA driver".into(), |module| format!("{module}, not working")),
    };
    report.line("driver", about);
}

/// Lists the loaded libraries by folder.
#[cfg(feature = "tch")]
fn list_libraries(report: &mut Report) {
    const WIDTH: usize = 100;
    let paths = gradus::nets::torch::libraries();
    let mut topic = "loaded";
    for of_folder in paths.chunk_by(|a, b| a.parent() == b.parent()) {
        let folder = of_folder[0].parent().unwrap_or(&of_folder[0]);
        report.line(topic, format!("from {}", folder.display()));
        topic = "";
        let mut line = String::new();
        for name in of_folder.iter().filter_map(|path| path.file_name()) {
            let name = name.to_string_lossy();
            if line.len() + name.len() > WIDTH {
                report.line("", std::mem::take(&mut line));
            }
            line += &format!("  {name}");
        }
        report.line("", line);
    }
}

#[cfg(feature = "tch")]
fn look_at_devices(report: &mut Report) {
    use gradus::nets::torch::{driver, gpus, prove};
    let show = |report: &mut Report, device: Device, about: &str| match prove(device) {
        Ok(()) => report.device(&device.to_string(), WORKS, about),
        Err(trouble) => report.trouble(&device.to_string(), FAULT, &trouble),
    };
    const RIGHT: &str = "matrix product correct";
    show(report, Device::TorchCpu, RIGHT);
    let gigabytes = |bytes: usize| bytes as f64 / f64::from(1 << 30);
    match gpus() {
        Ok(gpus) => gpus.iter().enumerate().for_each(|(number, gpu)| {
            show(report, Device::Cuda(number), &format!("{}, {:.0} GiB; {RIGHT}", gpu.name, gigabytes(gpu.memory)));
        }),
        // a missing GPU is not a fault; a GPU that the driver shows but libtorch cannot use is one
        Err(trouble) => report.trouble("cuda", if driver().is_ok() { FAULT } else { NONE }, trouble),
    }
    if cfg!(target_os = "macos") {
        show(report, Device::Mps, RIGHT);
    } else {
        report.device("mps", NONE, "Apple's GPU, macOS only");
    }
}
