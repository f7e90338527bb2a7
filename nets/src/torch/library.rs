//! The loaded libtorch and its devices.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::cuda::gpus;
use super::fault::one_line;
use super::parameters::{to_device, to_host};
use super::raw;
use super::trouble::{self, Trouble};
use crate::{Device, Precision};
use gradus_base::threads;

/// The version of libtorch that `tch` supports.
pub const EXPECTED: &str = "2.11.0";

/// The libtorch that this program has loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The folder from which it was loaded, if the system reports it.
    pub folder: Option<PathBuf>,
    /// Its version, such as `2.11.0+cu130`, if a file of the installation contains it.
    pub version: Option<String>,
    /// The version of CUDA for which it was built, if `version` includes it.
    pub cuda: Option<(u32, u32)>,
}

/// Returns the folder and the version of the loaded libtorch.
pub fn find() -> &'static Finding {
    static FOUND: OnceLock<Finding> = OnceLock::new();
    FOUND.get_or_init(|| {
        let loaded = libraries().into_iter().find(|path| name_of(path).starts_with("libtorch_cpu."));
        let folder = loaded.and_then(|path| Some(path.parent()?.to_path_buf()));
        let version = folder.as_deref().and_then(version_of);
        let cuda = version.as_deref().and_then(cuda_of);
        Finding { folder, version, cuda }
    })
}

/// Returns the loaded libraries of libtorch and CUDA; empty if the system does not list loaded libraries.
pub fn libraries() -> Vec<PathBuf> {
    libraries_in(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
}

/// Returns the libraries of libtorch and CUDA in a list of all mapped files.
fn libraries_in(maps: &str) -> Vec<PathBuf> {
    const CUDA: [&str; 11] = ["cuda", "cudnn", "cupti", "cublas", "cufft", "cufile", "curand", "cusolver", "cusparse", "nccl", "nv"];
    let is_ours = |name: &str| {
        let Some(name) = name.strip_prefix("lib") else { return false };
        ["torch", "c10", "gomp"].iter().chain(&CUDA).any(|begin| name.starts_with(begin))
    };
    let paths = maps.lines().filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let mut found: Vec<_> = paths.filter(|path| is_ours(name_of(path))).map(Path::to_path_buf).collect();
    found.sort();
    found.dedup();
    found
}

/// Returns the name of a file.
fn name_of(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Reads the version from a file of PyTorch's wheel or of libtorch's archive. The file is in the parent folder of the libraries' folder.
fn version_of(folder: &Path) -> Option<String> {
    let parent = folder.parent()?;
    let of_archive = fs::read_to_string(parent.join("build-version")).ok().map(|text| text.trim().to_string());
    let of_wheel = || {
        let text = fs::read_to_string(parent.join("version.py")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("__version__ = "))?;
        Some(line.trim().trim_matches(['\'', '"']).to_string())
    };
    of_archive.or_else(of_wheel)
}

/// Returns the version of CUDA in libtorch's version: 13.0 in `2.11.0+cu130`.
fn cuda_of(version: &str) -> Option<(u32, u32)> {
    let digits = version.split_once("+cu")?.1;
    let (major, minor) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Allows or forbids TF32 for the whole program. With TF32, products of f32 matrices are computed on CUDA's tensor cores, which use 10 bits
/// of each mantissa.
pub fn allow_tf32(allowed: bool) -> Result<(), String> {
    raw::allow_tf32(allowed).map_err(|problem| format!("torch.precision: cannot set tf32: {problem}"))
}

/// Parameters times rows at which libtorch starts to use several threads on the CPU. For less work, synchronisation costs more than the
/// arithmetic: a 64-64 actor-critic with minibatches of 128 was eight times as fast on one thread as on two. For more work, two threads
/// were up to twice as fast as one: 1.4 times with 0.1 million parameters and 5600 tokens, 1.7 times with 0.8 million parameters and 256
/// tokens.
const MANY: usize = 1 << 27;

/// Sets the number of libtorch's threads for a pass over `rows` rows.
pub(super) fn use_threads(parameters: usize, rows: usize) {
    tch::set_num_threads(if parameters.saturating_mul(rows) < MANY { 1 } else { threads::count() as i32 });
}

/// Checks a device and returns it. Allows or forbids TF32 if the device is a CUDA GPU. An error is one line.
pub fn open(device: Device, precision: Precision) -> Result<tch::Device, String> {
    if precision == Precision::Tf32 && !matches!(device, Device::Cuda(_)) {
        return Err(format!("torch.precision: expected f32 or bf16 on {device}, got tf32, which needs CUDA"));
    }
    let on = ready(device).map_err(|trouble| {
        let advice = if trouble.remedy.is_some() { "; run `gradus doctor` for the fix" } else { "" };
        format!("device {device}: {}{advice}", trouble.problem)
    })?;
    if on.is_cuda() {
        allow_tf32(precision == Precision::Tf32)?;
    }
    Ok(on)
}

/// Returns a device after checking libtorch's version and that the device exists.
fn ready(device: Device) -> Result<tch::Device, Trouble> {
    let found = find();
    if let (Some(version), Some(folder)) = (&found.version, &found.folder) {
        trouble::version(version, folder, std::env::var("LD_LIBRARY_PATH").ok().as_deref())?;
    }
    let none = |problem: String| Err(Trouble { problem, remedy: None });
    match device {
        Device::Cpu => none("expected a device of libtorch, got cpu".into()),
        Device::TorchCpu => Ok(tch::Device::Cpu),
        Device::Cuda(number) => match gpus().map_err(Clone::clone)?.len() {
            1 if number > 0 => none(format!("expected cuda:0, got cuda:{number}")),
            n if number >= n => none(format!("expected cuda:0 to cuda:{}, got cuda:{number}", n - 1)),
            _ => Ok(tch::Device::Cuda(number)),
        },
        Device::Mps if tch::utils::has_mps() => Ok(tch::Device::Mps),
        Device::Mps => none("expected Apple's GPU, got none".into()),
    }
}

/// Checks that a device computes: it multiplies two matrices of whole numbers, and the product must be exact.
pub fn prove(device: Device) -> Result<(), Trouble> {
    let on = ready(device)?;
    const N: usize = 64;
    let a: Vec<f32> = (0..N * N).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
    let b: Vec<f32> = (0..N * N).map(|i| (i * 5 % 13) as f32 - 6.0).collect();
    let on_host: Vec<f32> = (0..N * N).map(|i| (0..N).map(|k| a[i / N * N + k] * b[k * N + i % N]).sum()).collect();
    let matrix = |numbers: &[f32]| to_device(numbers, on)?.f_view([N as i64, N as i64]);
    let product = || to_host(&matrix(&a)?.f_matmul(&matrix(&b)?)?);
    let product = product().map_err(|error| trouble::at_work(one_line(&error)))?;
    if product != on_host {
        return Err(trouble::at_work("a result that differs from the CPU's".into()));
    }
    Ok(())
}

/// Measures the floating-point operations per second of products of large square matrices on a device. The layers of a
/// transformer cannot exceed this rate.
pub fn multiply_rate(device: Device, precision: Precision) -> Result<f64, String> {
    let on = open(device, precision)?;
    let (n, rounds) = if matches!(on, tch::Device::Cpu) { (1024_i64, 4) } else { (8192, 20) };
    let kind = if precision == Precision::Bf16 { tch::Kind::BFloat16 } else { tch::Kind::Float };
    let measure = || {
        let a = tch::Tensor::f_randn([n, n], (kind, on))?;
        let product = |rounds: usize| {
            let mut b = a.f_matmul(&a)?;
            for _ in 0..rounds {
                // the factor 1/n prevents an overflow
                b = a.f_matmul(&b.f_mul_scalar(1.0 / n as f64)?)?;
            }
            // this waits for the device
            f64::try_from(b.f_norm()?)
        };
        product(2)?;
        let began = std::time::Instant::now();
        product(rounds)?;
        Ok(2.0 * (n as f64).powi(3) * (rounds + 1) as f64 / began.elapsed().as_secs_f64())
    };
    measure().map_err(|error: tch::TchError| format!("device {device}: {}", super::fault::one_line(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cuda_version_is_read_from_libtorchs_version() {
        assert_eq!(cuda_of("2.11.0+cu130"), Some((13, 0)));
        assert_eq!(cuda_of("2.11.0+cu126"), Some((12, 6)));
        for without in ["2.11.0", "2.11.0+cpu", "2.11.0+cu", "2.11.0+cux", "2.11.0+rocm6.3"] {
            assert_eq!(cuda_of(without), None, "{without}");
        }
    }

    #[test]
    fn every_mapped_library_is_listed_once() {
        let maps = "\
7f00-7f01 r--p 00000000 fe:00 11 /a b/torch/lib/libtorch_cpu.so
7f01-7f02 r-xp 00001000 fe:00 11 /a b/torch/lib/libtorch_cpu.so
7f02-7f03 r--p 00000000 fe:00 12 /usr/lib/libcuda.so.580.82.07
7f03-7f04 r--p 00000000 fe:00 13 /usr/lib/libcurl.so.4
7f04-7f05 rw-p 00000000 00:00 0 [heap]
7f05-7f06 r-xp 00000000 fe:00 14 /usr/lib/libc.so.6
7f06-7f07 rw-p 00000000 00:00 0
";
        assert_eq!(libraries_in(maps), ["/a b/torch/lib/libtorch_cpu.so", "/usr/lib/libcuda.so.580.82.07"].map(PathBuf::from));
    }

    #[test]
    fn a_version_is_read_from_a_wheel_or_an_archive() {
        let root = std::env::temp_dir().join(format!("gradus-libtorch-{}", std::process::id()));
        let lib = root.join("lib");
        fs::create_dir_all(&lib).unwrap();
        assert_eq!(version_of(&lib), None);
        fs::write(root.join("version.py"), "from typing import Optional\n\n__version__ = '2.11.0+cu130'\ndebug = False\n").unwrap();
        assert_eq!(version_of(&lib).as_deref(), Some("2.11.0+cu130"));
        fs::write(root.join("build-version"), "2.10.0+cpu\n").unwrap();
        assert_eq!(version_of(&lib).as_deref(), Some("2.10.0+cpu"));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn libtorchs_cpu_computes() {
        // this needs no GPU, only the expected version of libtorch
        assert_eq!(prove(Device::TorchCpu), Ok(()));
        assert_eq!(prove(Device::Cpu).unwrap_err().problem, "expected a device of libtorch, got cpu");
    }
}
