//! Which libtorch was found, and the way to its devices.
//!
//! Linkers leave out libraries that nobody calls by name, and so a program is linked to libtorch's processor part alone. Its CUDA part
//! registers itself when it is loaded: that is done here, when the program runs, where there is one.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::raw::{self, load_library};
use crate::{Device, Precision, threads};

/// The version of libtorch that `tch` was written for.
pub const EXPECTED: &str = "2.11.0";

/// What was found on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The folder that libtorch was loaded from, where the system tells.
    pub folder: Option<PathBuf>,
    /// Its version, such as `2.11.0+cu130`, where a file beside it tells.
    pub version: Option<String>,
    /// Whether CUDA's part is loaded, or why not.
    pub cuda: Result<(), String>,
    /// How many CUDA devices there are.
    pub cuda_devices: usize,
    /// Whether there is Apple's GPU.
    pub has_mps: bool,
}

/// Looks at what was loaded, and loads CUDA's part where there is one.
pub fn find() -> &'static Finding {
    static FOUND: OnceLock<Finding> = OnceLock::new();
    FOUND.get_or_init(|| {
        let folder = loaded_from("libtorch_cpu");
        let version = folder.as_deref().and_then(version_of);
        let cuda = load_cuda(folder.as_deref());
        let cuda_devices = if cuda.is_ok() && tch::Cuda::is_available() { tch::Cuda::device_count().max(0) as usize } else { 0 };
        Finding { folder, version, cuda, cuda_devices, has_mps: tch::utils::has_mps() }
    })
}

/// The folder of a loaded library.
fn loaded_from(name: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().filter_map(|line| line.find('/').map(|at| &line[at..])).find(|path| path.contains(name))?;
    Path::new(path).parent().map(Path::to_path_buf)
}

/// The version that PyTorch's or libtorch's own files beside its libraries tell.
fn version_of(folder: &Path) -> Option<String> {
    let parent = folder.parent()?;
    let of_archive = std::fs::read_to_string(parent.join("build-version")).ok().map(|text| text.trim().to_string());
    let of_wheel = || {
        let text = std::fs::read_to_string(parent.join("version.py")).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("__version__ = "))?;
        Some(line.trim().trim_matches(['\'', '"']).to_string())
    };
    of_archive.or_else(of_wheel)
}

/// Loads libtorch's CUDA part, from beside the rest of it.
fn load_cuda(folder: Option<&Path>) -> Result<(), String> {
    let name = if cfg!(windows) { "torch_cuda.dll" } else { "libtorch_cuda.so" };
    if cfg!(target_os = "macos") {
        return Err("there is no CUDA on macOS".into());
    }
    match folder.map(|folder| folder.join(name)) {
        Some(path) if path.exists() => load_library(&path),
        Some(path) => Err(format!("this libtorch has no CUDA part: {} is missing", path.display())),
        None => load_library(Path::new(name)),
    }
}

/// Lets CUDA's tensor cores multiply f32 with 10 bits of each fraction, or forbids it, for the whole program.
pub fn allow_tf32(allowed: bool) -> Result<(), String> {
    raw::allow_tf32(allowed).map_err(|problem| format!("torch.precision: tf32 cannot be switched: {problem}"))
}

/// Parameters of a policy from which on libtorch works with several threads on the processor. Below, waiting for each other costs them more
/// than the arithmetic: a 64-64 actor-critic was eight times as fast on one thread as on two.
const MANY: usize = 1 << 20;

/// Says to libtorch how many threads it may use for a policy of so many parameters.
pub(super) fn use_threads(parameters: usize) {
    tch::set_num_threads(if parameters < MANY { 1 } else { threads::count() as i32 });
}

/// A device, ready to compute on; or why not, in one line.
pub fn open(device: Device, precision: Precision) -> Result<tch::Device, String> {
    let found = find();
    if let Some(version) = found.version.as_deref().filter(|version| version.split('+').next() != Some(EXPECTED)) {
        return Err(format!("device {device}: expected libtorch {EXPECTED}, got {version}; `gradus doctor` says from where"));
    }
    if precision == Precision::Tf32 && !matches!(device, Device::Cuda(_)) {
        return Err(format!("torch.precision: expected f32 or bf16 on {device}, got tf32, which CUDA alone has"));
    }
    match device {
        Device::Cpu => Err("device: expected one of libtorch's, got cpu".into()),
        Device::TorchCpu => Ok(tch::Device::Cpu),
        Device::Cuda(number) => match (&found.cuda, found.cuda_devices) {
            (Err(reason), _) => Err(format!("device {device}: expected CUDA, got none: {reason}; `gradus doctor` says what mends it")),
            (Ok(()), 0) => {
                Err(format!("device {device}: expected an NVIDIA GPU with its driver, got none; `gradus doctor` says what mends it"))
            }
            (Ok(()), n) if number >= n => Err(format!("device {device}: expected cuda:0 to cuda:{}, got cuda:{number}", n - 1)),
            _ => {
                allow_tf32(precision == Precision::Tf32)?;
                Ok(tch::Device::Cuda(number))
            }
        },
        Device::Mps if found.has_mps => Ok(tch::Device::Mps),
        Device::Mps => Err("device mps: expected Apple's GPU, got none".into()),
    }
}

/// Floating-point operations per second of large square products on a device: what a transformer's layers can hope for.
pub fn multiply_rate(device: Device, precision: Precision) -> Result<f64, String> {
    let on = open(device, precision)?;
    let (n, rounds) = if matches!(on, tch::Device::Cpu) { (1024_i64, 4) } else { (8192, 20) };
    let kind = if precision == Precision::Bf16 { tch::Kind::BFloat16 } else { tch::Kind::Float };
    let measure = || {
        let a = tch::Tensor::f_randn([n, n], (kind, on))?;
        let product = |rounds: usize| {
            let mut b = a.f_matmul(&a)?;
            for _ in 0..rounds {
                // smaller each time, so that nothing overflows
                b = a.f_matmul(&b.f_mul_scalar(1.0 / n as f64)?)?;
            }
            // waits for the device
            f64::try_from(b.f_norm()?)
        };
        product(2)?;
        let began = std::time::Instant::now();
        product(rounds)?;
        Ok(2.0 * (n as f64).powi(3) * (rounds + 1) as f64 / began.elapsed().as_secs_f64())
    };
    measure().map_err(|error: tch::TchError| format!("device {device}: {}", super::fault::one_line(&error)))
}
