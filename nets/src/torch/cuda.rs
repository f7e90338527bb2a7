//! NVIDIA's GPUs. The driver is queried first, because its error code tells the cause if there is no device; libtorch does not report the
//! cause. Then libtorch's CUDA library is loaded.
//!
//! Linkers drop libraries without referenced symbols, so a program is linked only to libtorch's CPU library. This module loads the CUDA
//! library when a GPU is requested. The library registers itself when it is loaded.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use super::found::find;
use super::raw::{Driver, Gpu, NoDriver, driver_says, load_library};
use super::trouble::{Surroundings, Trouble, driver_age, driver_refuses, no_driver, reinstall};

/// Returns NVIDIA's driver and its GPUs, or the problem if there are none.
pub fn driver() -> Result<&'static Driver, &'static Trouble> {
    static FOUND: OnceLock<Result<Driver, Trouble>> = OnceLock::new();
    let look = || match driver_says() {
        Ok(driver) => Ok(driver),
        Err(NoDriver::Missing(reason)) => Err(no_driver(&reason, surroundings())),
        Err(NoDriver::Refuses(code)) => Err(driver_refuses(code, surroundings())),
    };
    FOUND.get_or_init(look).as_ref()
}

/// Returns the GPUs that libtorch can use; the first call loads its CUDA library.
pub fn gpus() -> Result<&'static [Gpu], &'static Trouble> {
    static FOUND: OnceLock<Result<Vec<Gpu>, Trouble>> = OnceLock::new();
    let load = || {
        let driver = driver().map_err(Clone::clone)?;
        let found = find();
        driver_age(driver.cuda, found.cuda)?;
        load_cuda(found.folder.as_deref())?;
        let count = if tch::Cuda::is_available() { tch::Cuda::device_count().max(0) as usize } else { 0 };
        if count == 0 {
            let problem = format!("expected libtorch to see the driver's GPUs ({}), got none", driver.gpus.len());
            return Err(Trouble { problem, remedy: Some(reinstall()) });
        }
        Ok(driver.gpus.iter().take(count).cloned().collect())
    };
    FOUND.get_or_init(load).as_deref()
}

/// Loads libtorch's CUDA library from the folder of its other libraries, or, without a `folder`, from the system's search path.
fn load_cuda(folder: Option<&Path>) -> Result<(), Trouble> {
    let name = if cfg!(windows) { "torch_cuda.dll" } else { "libtorch_cuda.so" };
    let path = folder.map_or_else(|| name.into(), |folder| folder.join(name));
    let problem = match load_library(&path) {
        Ok(()) => return Ok(()),
        Err(_) if folder.is_some() && !path.exists() => {
            format!("expected a libtorch with CUDA, got one without: {} is missing", path.display())
        }
        Err(reason) => format!("expected {name} to load, got: {reason}"),
    };
    Err(Trouble { problem, remedy: Some(reinstall()) })
}

/// Collects evidence of NVIDIA GPUs on this machine without loading their driver.
pub fn surroundings() -> &'static Surroundings {
    static FOUND: OnceLock<Surroundings> = OnceLock::new();
    FOUND.get_or_init(|| Surroundings {
        gpu: fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten().any(|device| is_gpu(&device.path())),
        module: fs::read_to_string("/proc/driver/nvidia/version").ok().and_then(|text| version_in(&text)),
        container: ["/.dockerenv", "/run/.containerenv"].iter().any(|mark| Path::new(mark).exists()),
        visible: std::env::var("CUDA_VISIBLE_DEVICES").ok(),
    })
}

/// Whether a PCI device is a display or computing device of NVIDIA.
fn is_gpu(device: &Path) -> bool {
    let says = |file: &str, begin: &str| fs::read_to_string(device.join(file)).is_ok_and(|text| text.starts_with(begin));
    says("vendor", "0x10de") && says("class", "0x03")
}

/// Returns the first word that is a version, such as `580.82.07`.
fn version_in(text: &str) -> Option<String> {
    let is_version = |word: &&str| word.contains('.') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.split_whitespace().find(is_version).map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_version_is_found_in_both_formats() {
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023\nGCC version:  gcc 12.3.0\n";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.07  Release Build  (dvs-builder@U22)  Wed Aug 27\n";
        assert_eq!(version_in(closed).as_deref(), Some("535.129.03"));
        assert_eq!(version_in(open).as_deref(), Some("580.82.07"));
        assert_eq!(version_in("nvidia.ko of version 580.82.07").as_deref(), Some("580.82.07"));
        assert_eq!(version_in("NVRM version: none"), None);
    }

    #[test]
    fn only_display_devices_of_nvidia_are_gpus() {
        let bus = std::env::temp_dir().join(format!("gradus-bus-{}", std::process::id()));
        for (name, vendor, class, expected) in [
            ("display", "0x10de\n", "0x030000\n", true),
            ("computing", "0x10de\n", "0x030200\n", true),
            ("sound", "0x10de\n", "0x040300\n", false),
            ("other", "0x1002\n", "0x030000\n", false),
        ] {
            let device = bus.join(name);
            fs::create_dir_all(&device).unwrap();
            fs::write(device.join("vendor"), vendor).unwrap();
            fs::write(device.join("class"), class).unwrap();
            assert_eq!(is_gpu(&device), expected, "{name}");
        }
        fs::remove_dir_all(&bus).unwrap();
        assert!(!is_gpu(&bus));
    }
}
