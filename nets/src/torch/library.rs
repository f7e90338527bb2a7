//! The devices of libtorch.

use super::cuda::gpus;
use super::fault::one_line;
use super::found::find;
use super::parameters::{to_device, to_host};
use super::raw;
use super::trouble::{self, Trouble};
use crate::{Device, Precision};
use gradus_base::threads;

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
        // numbers of this size neither grow nor vanish in the products
        let a = tch::Tensor::f_randn([n, n], (kind, on))?.f_mul_scalar(1.0 / (n as f64).sqrt())?;
        let product = |rounds: usize| {
            let mut b = a.f_matmul(&a)?;
            for _ in 0..rounds {
                b = a.f_matmul(&b)?;
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
    fn libtorchs_cpu_computes() {
        // this needs no GPU, only the expected version of libtorch
        assert_eq!(prove(Device::TorchCpu), Ok(()));
        assert_eq!(prove(Device::Cpu).unwrap_err().problem, "expected a device of libtorch, got cpu");
    }
}
