//! What libtorch, the driver and the devices say.

use std::path::Path;

use gradus::nets::Device;
use gradus::nets::torch::{EXPECTED, Trouble, driver, find, gpus, libraries, prove, surroundings};

use super::{FAULT, NONE, Report, WORKS};

impl Report {
    fn trouble(&mut self, name: &str, mark: &str, trouble: &Trouble) {
        self.device(name, mark, &trouble.problem);
        self.remedies.extend(trouble.remedy.clone().map(|remedy| (format!("{name}: {}", trouble.problem), remedy)));
    }
}

pub(super) fn look(report: &mut Report) {
    report.line("gradus", concat!(env!("CARGO_PKG_VERSION"), ", with the engine torch"));
    look_at_libtorch(report);
    look_at_driver(report);
    look_at_devices(report);
    // comes after the tests of the devices, because the test of a GPU loads more libraries
    list_libraries(report);
}

fn look_at_libtorch(report: &mut Report) {
    let found = find();
    let version = found.version.as_deref().unwrap_or("an unknown version");
    let cuda = found.cuda.map_or_else(String::new, |(major, minor)| format!(", for CUDA {major}.{minor}"));
    report.line("libtorch", format!("expected {EXPECTED}, found {version}{cuda}"));
    match &found.folder {
        Some(folder) => report.line("", folder.display().to_string()),
        None => report.line("", "loaded from an unknown folder"),
    }
    let built = Path::new(option_env!("GRADUS_LIBTORCH").unwrap_or_default());
    let same = |folder: &Path| folder.canonicalize().ok() == built.canonicalize().ok();
    if found.folder.as_deref().is_some_and(|folder| !same(folder)) {
        report.line("", format!("not the libtorch that gradus was built with: {}", built.display()));
    }
}

fn look_at_driver(report: &mut Report) {
    let module = surroundings().module.as_deref();
    let about = match driver() {
        Ok(driver) => format!("{}, for CUDA up to {}.{}", module.unwrap_or("NVIDIA's"), driver.cuda.0, driver.cuda.1),
        Err(_) => module.map_or_else(|| "no NVIDIA driver".into(), |module| format!("{module}, not working")),
    };
    report.line("driver", about);
}

/// Lists the loaded libraries by folder.
fn list_libraries(report: &mut Report) {
    const WIDTH: usize = 100;
    let paths = libraries();
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

fn look_at_devices(report: &mut Report) {
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
