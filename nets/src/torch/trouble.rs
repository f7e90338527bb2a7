//! Problems with libtorch or a GPU, and their fixes.

use std::path::Path;

use super::found::EXPECTED;

/// A problem and its fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What was expected and what was found, in one line.
    pub problem: String,
    /// The command that fixes the problem or reports more about it, if such a command is known.
    pub remedy: Option<String>,
}

/// Evidence of NVIDIA GPUs on a machine, collected without loading their driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// Whether an NVIDIA GPU is on the PCI bus.
    pub gpu: bool,
    /// The version of the driver's kernel module, such as `580.82.07`, if it is loaded.
    pub module: Option<String>,
    /// Whether the program runs in a container.
    pub container: bool,
    /// `CUDA_VISIBLE_DEVICES`, if it is set.
    pub visible: Option<String>,
}

/// The command that reinstalls the PyTorch version of this engine.
pub(super) fn reinstall() -> String {
    // on Windows the default index has PyTorch without CUDA
    let index = if cfg!(windows) { " --index-url https://download.pytorch.org/whl/cu130" } else { "" };
    format!("pip install --force-reinstall torch=={EXPECTED}{index}")
}

/// The command that reinstalls the same PyTorch version for an older CUDA, which older drivers and GPUs need.
pub(super) fn reinstall_for_older() -> String {
    format!("pip install --force-reinstall torch=={EXPECTED} --index-url https://download.pytorch.org/whl/cu126")
}

/// Checks that the version of libtorch is the expected one. `searched` lists the folders that the loader searches first.
pub(super) fn version(version: &str, folder: &Path, searched: Option<&str>) -> Result<(), Trouble> {
    if version.split('+').next() == Some(EXPECTED) {
        return Ok(());
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    let same = |searched: &Path| real(searched) == real(folder);
    let was_told = searched.is_some_and(|folders| std::env::split_paths(folders).any(|searched| same(&searched)));
    let variable = if cfg!(target_os = "macos") { "DYLD_LIBRARY_PATH" } else { "LD_LIBRARY_PATH" };
    Err(Trouble {
        problem: format!("expected libtorch {EXPECTED}, got {version} from {}", folder.display()),
        remedy: Some(if was_told { format!("unset {variable}") } else { reinstall() }),
    })
}

/// The problem that NVIDIA's driver cannot be loaded; `reason` is the loader's message.
pub(super) fn no_driver(reason: &str, around: &Surroundings) -> Trouble {
    let problem = match around.gpu || around.module.is_some() {
        true => format!("expected NVIDIA's driver, got none: {reason}"),
        false => "expected an NVIDIA GPU with its driver, got none".into(),
    };
    let remedy = match around {
        Surroundings { container: true, gpu, module, .. } if *gpu || module.is_some() => Some("docker run --gpus all ..."),
        Surroundings { gpu: true, .. } => Some("sudo apt install nvidia-driver-580"),
        _ => None,
    };
    Trouble { problem, remedy: remedy.map(Into::into) }
}

/// The problem that NVIDIA's driver does not start; `code` is its CUDA error.
pub(super) fn driver_refuses(code: i32, around: &Surroundings) -> Trouble {
    let (reason, remedy) = match code {
        100 if around.visible.is_some() => ("it finds no GPU", "unset CUDA_VISIBLE_DEVICES"),
        100 => ("it finds no GPU", "nvidia-smi"),
        // the fabric manager, a service for the switches between GPUs, is not running
        802 => ("it is not ready yet", "sudo systemctl start nvidia-fabricmanager"),
        803 => ("it was updated while its old kernel module is loaded", "sudo reboot"),
        // the loader finds CUDA's forward-compatibility library, which is for servers only, before the driver's own
        804 => ("another libcuda hides the driver's own", "unset LD_LIBRARY_PATH"),
        // after the system was suspended, the driver's memory manager may not resume
        999 => ("no reason given", "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"),
        _ => ("no reason given", "nvidia-smi"),
    };
    Trouble { problem: format!("expected NVIDIA's driver to start, got CUDA error {code}: {reason}"), remedy: Some(remedy.into()) }
}

/// Checks that a driver supports the CUDA version `libtorch` for which libtorch was built. `driver` is the newest CUDA version that the
/// driver supports. Its major version must be at least that of `libtorch`.
pub(super) fn driver_age(driver: (u32, u32), libtorch: Option<(u32, u32)>) -> Result<(), Trouble> {
    let Some(libtorch) = libtorch.filter(|libtorch| driver.0 < libtorch.0) else { return Ok(()) };
    let remedy = if driver.0 == 12 { reinstall_for_older() } else { "sudo apt install nvidia-driver-580".into() };
    let problem = format!("expected a driver for CUDA {}.{}, got one for CUDA up to {}.{}", libtorch.0, libtorch.1, driver.0, driver.1);
    Err(Trouble { problem, remedy: Some(remedy) })
}

/// The problem that a device fails to compute.
pub(super) fn at_work(error: String) -> Trouble {
    // the library has no kernels for this GPU, which is too old or too new
    let old = error.contains("no kernel image");
    Trouble {
        problem: format!("expected the product of two matrices, got: {error}"),
        remedy: Some(if old { reinstall_for_older() } else { "nvidia-smi".into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_version_is_named_with_its_folder() {
        let folder = Path::new("/opt/torch/lib");
        assert_eq!(version("2.11.0", folder, None), Ok(()));
        assert_eq!(version("2.11.0+cu130", folder, Some("/opt/torch/lib")), Ok(()));
        for wrong in ["2.10.0+cu130", "2.11.1", "2.11.0a0", "2.11", ""] {
            let trouble = version(wrong, folder, Some("/usr/lib:/opt/other/lib")).unwrap_err();
            assert_eq!(trouble.problem, format!("expected libtorch 2.11.0, got {wrong} from /opt/torch/lib"));
            assert_eq!(trouble.remedy, Some(reinstall()));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_wrong_version_on_the_library_path_is_not_reinstalled() {
        let trouble = version("2.10.0", Path::new("/opt/torch/lib"), Some("/usr/lib:/opt/torch/lib")).unwrap_err();
        assert_eq!(trouble.remedy.as_deref(), Some("unset LD_LIBRARY_PATH"));
    }

    #[test]
    fn without_a_gpu_there_is_no_remedy() {
        let reason = "libcuda.so.1: cannot open shared object file";
        let on = |gpu, container| no_driver(reason, &Surroundings { gpu, container, ..Surroundings::default() });
        assert_eq!(on(false, false), Trouble { problem: "expected an NVIDIA GPU with its driver, got none".into(), remedy: None });
        assert_eq!(on(false, true).remedy, None);
        assert_eq!(on(true, false).remedy.as_deref(), Some("sudo apt install nvidia-driver-580"));
        assert_eq!(on(true, true).remedy.as_deref(), Some("docker run --gpus all ..."));
        assert_eq!(on(true, true).problem, format!("expected NVIDIA's driver, got none: {reason}"));
        // a container in which only the host's kernel module is visible
        let module = Surroundings { module: Some("580.82.07".into()), container: true, ..Surroundings::default() };
        assert_eq!(no_driver(reason, &module).remedy.as_deref(), Some("docker run --gpus all ..."));
    }

    #[test]
    fn the_remedy_for_a_hidden_gpu_is_to_unset_the_variable() {
        let hidden = Surroundings { gpu: true, visible: Some(String::new()), ..Surroundings::default() };
        assert_eq!(driver_refuses(100, &hidden).remedy.as_deref(), Some("unset CUDA_VISIBLE_DEVICES"));
        assert_eq!(driver_refuses(100, &Surroundings::default()).remedy.as_deref(), Some("nvidia-smi"));
        assert_eq!(driver_refuses(803, &hidden).remedy.as_deref(), Some("sudo reboot"));
    }

    #[test]
    fn a_driver_supports_every_cuda_of_its_major_version() {
        for (driver, libtorch) in [((13, 0), (13, 0)), ((13, 0), (13, 2)), ((13, 1), (12, 6)), ((12, 0), (12, 8))] {
            assert_eq!(driver_age(driver, Some(libtorch)), Ok(()), "{driver:?} {libtorch:?}");
        }
        assert_eq!(driver_age((12, 4), None), Ok(()));
        let trouble = driver_age((12, 4), Some((13, 0))).unwrap_err();
        assert_eq!(trouble.problem, "expected a driver for CUDA 13.0, got one for CUDA up to 12.4");
        assert!(trouble.remedy.unwrap().ends_with("/cu126"));
        assert_eq!(driver_age((11, 8), Some((12, 6))).unwrap_err().remedy.as_deref(), Some("sudo apt install nvidia-driver-580"));
    }
}
