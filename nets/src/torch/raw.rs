//! The `unsafe` code of this engine: tensors shared between threads, and libraries loaded at run time.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ops::{Deref, DerefMut};
use std::path::Path;

use libloading::Library;
use tch::Tensor;

/// A GPU, as the driver reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// Its memory in bytes.
    pub memory: usize,
}

/// NVIDIA's driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Driver {
    /// The newest version of CUDA that it supports.
    pub cuda: (u32, u32),
    /// The GPUs, in the order of `cuda:0`, `cuda:1`, ...
    pub gpus: Vec<Gpu>,
}

/// A tensor that several threads may read at once.
pub(super) struct Shared(Tensor);

// SAFETY: a `Tensor` is a pointer to a C++ object with an atomic reference count. Through a shared reference this crate only makes views of
// the tensor and computes new tensors from it, which libtorch allows from many threads at once. It is changed in place only through `&mut`.
unsafe impl Sync for Shared {}

impl From<Tensor> for Shared {
    fn from(tensor: Tensor) -> Self {
        Self(tensor)
    }
}

impl Deref for Shared {
    type Target = Tensor;

    fn deref(&self) -> &Tensor {
        &self.0
    }
}

impl DerefMut for Shared {
    fn deref_mut(&mut self) -> &mut Tensor {
        &mut self.0
    }
}

/// Returns the numbers of a contiguous f32 tensor on the host.
///
/// # Panics
/// If it is another tensor.
pub(super) fn numbers_mut(tensor: &mut Tensor) -> &mut [f32] {
    assert!(tensor.is_contiguous() && tensor.kind() == tch::Kind::Float && tensor.device() == tch::Device::Cpu, "expected f32 on the host");
    // SAFETY: the tensor has this many f32, one after the other, and stays borrowed as long as the slice; no other tensor that shares its
    // memory is used meanwhile, because its only owner is `parameters::staged`
    unsafe { std::slice::from_raw_parts_mut(tensor.data_ptr().cast(), tensor.numel()) }
}

/// Allows or forbids products and convolutions of f32 on CUDA's tensor cores, and lets cuDNN use only algorithms that repeat their results. `tch` does not expose libtorch's C++
/// functions for this.
#[cfg(target_os = "linux")]
pub(super) fn allow_tf32(allowed: bool) -> Result<(), String> {
    use std::ffi::c_void;
    let library = libloading::os::unix::Library::this();
    // SAFETY: `at::Context& at::globalContext()`, and functions `void at::Context::...(bool)`: a reference and `this` are pointers, and
    // all of them are part of the libtorch that this program is linked to
    unsafe {
        let missing = |error: libloading::Error| error.to_string();
        let context = library.get::<unsafe extern "C-unwind" fn() -> *mut c_void>(b"_ZN2at13globalContextEv\0").map_err(missing)?;
        let set = |name: &[u8], value: bool| {
            let function = library.get::<unsafe extern "C-unwind" fn(*mut c_void, bool)>(name).map_err(missing)?;
            function(context(), value);
            Ok::<(), String>(())
        };
        set(b"_ZN2at7Context18setAllowTF32CuBLASEb\0", allowed)?;
        set(b"_ZN2at7Context17setAllowTF32CuDNNEb\0", allowed)?;
        set(b"_ZN2at7Context21setDeterministicCuDNNEb\0", true)?;
    }
    Ok(())
}

/// Fails if `allowed` is true, because systems other than Linux have no CUDA or do not export libtorch's function.
#[cfg(not(target_os = "linux"))]
pub(super) fn allow_tf32(allowed: bool) -> Result<(), String> {
    if allowed { Err("it can be set on Linux only".into()) } else { Ok(()) }
}

/// A stream of CUDA, as libtorch passes it: `c10::cuda::CUDAStream`.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
#[repr(C)]
struct Stream {
    device: [i8; 2],
    id: i64,
}

/// Identifies memory of a graph: `c10::cuda::MempoolId_t`.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
#[repr(C)]
struct Pool(u64, u64);

/// Functions of libtorch 2.11 for CUDA graphs, which `tch` does not expose.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy)]
struct Functions {
    construct: unsafe extern "C-unwind" fn(*mut u64, bool),
    destroy: unsafe extern "C-unwind" fn(*mut u64),
    begin: unsafe extern "C-unwind" fn(*mut u64, Pool, c_int),
    end: unsafe extern "C-unwind" fn(*mut u64),
    replay: unsafe extern "C-unwind" fn(*mut u64),
    pool: unsafe extern "C-unwind" fn(*const u64) -> Pool,
    stream_from_pool: unsafe extern "C-unwind" fn(bool, i8) -> Stream,
    current_stream: unsafe extern "C-unwind" fn(i8) -> Stream,
    set_stream: unsafe extern "C-unwind" fn(Stream),
    wait: unsafe extern "C-unwind" fn(*const Stream),
    current_device: unsafe extern "C-unwind" fn() -> i8,
    /// Leaves a GPU that this process has not used untouched.
    set_device: unsafe extern "C-unwind" fn(i8) -> c_int,
}

#[cfg(target_os = "linux")]
impl Functions {
    fn load() -> Result<Self, libloading::Error> {
        let library = libloading::os::unix::Library::this();
        // SAFETY: the symbols are functions of libtorch 2.11, whose version has been checked, with these signatures: a reference and `this` are
        // pointers, and both structures are passed as their two words
        unsafe {
            Ok(Self {
                construct: *library.get(b"_ZN2at4cuda9CUDAGraphC1Eb\0")?,
                destroy: *library.get(b"_ZN2at4cuda9CUDAGraphD1Ev\0")?,
                begin: *library.get(b"_ZN2at4cuda9CUDAGraph13capture_beginESt4pairIyyE21cudaStreamCaptureMode\0")?,
                end: *library.get(b"_ZN2at4cuda9CUDAGraph11capture_endEv\0")?,
                replay: *library.get(b"_ZN2at4cuda9CUDAGraph6replayEv\0")?,
                pool: *library.get(b"_ZN2at4cuda9CUDAGraph4poolEv\0")?,
                stream_from_pool: *library.get(b"_ZN3c104cuda17getStreamFromPoolEba\0")?,
                current_stream: *library.get(b"_ZN3c104cuda20getCurrentCUDAStreamEa\0")?,
                set_stream: *library.get(b"_ZN3c104cuda20setCurrentCUDAStreamENS0_10CUDAStreamE\0")?,
                wait: *library.get(b"_ZNK3c104cuda10CUDAStream11synchronizeEv\0")?,
                current_device: *library.get(b"_ZN3c104cuda14current_deviceEv\0")?,
                set_device: *library.get(b"_ZN3c104cuda14MaybeSetDeviceEa\0")?,
            })
        }
    }
}

/// Launches of kernels that were recorded once and can be repeated at once, with the same tensors: a CUDA graph.
#[cfg(target_os = "linux")]
pub(super) struct Graph {
    /// The C++ object, which has 104 bytes in libtorch 2.11.
    object: Box<[u64; 64]>,
    /// The stream on which it is launched, and that on which it was recorded.
    stream: Stream,
    recorded_on: Stream,
    functions: Functions,
}

#[cfg(target_os = "linux")]
impl Graph {
    /// Whether this libtorch has all that is needed; otherwise launches are not recorded.
    pub fn is_supported() -> bool {
        Functions::load().is_ok()
    }

    /// Records what `work` launches on GPU number `gpu`, without running it. `work` must not wait for the device. The tensors that it creates keep
    /// their memory as long as the graph; every replay overwrites them. With `last`, an earlier graph on the same GPU that is not replayed any more, they use its memory again: libtorch
    /// gives the memory of a graph that is gone to no other. An error is one line.
    pub fn record<T>(gpu: usize, last: Option<&Self>, work: impl FnOnce() -> Result<T, tch::TchError>) -> Result<(Self, T), tch::TchError> {
        let functions = Functions::load().map_err(|error| tch::TchError::Torch(one_line(error)))?;
        let gpu = gpu as i8;
        // SAFETY: the object is constructed in memory that is large enough and does not move, and is destroyed once. The stream is the
        // caller's again before anything else is launched.
        unsafe {
            let f = functions;
            // a recording begins on the current stream of the current device
            let (other, before) = ((f.current_device)(), (f.current_stream)(gpu));
            let mut object = Box::new([0; 64]);
            (f.set_device)(gpu);
            (f.construct)(object.as_mut_ptr(), false);
            // libtorch finds free memory of a pool by the stream, too
            let recorded_on = last.map_or_else(|| (f.stream_from_pool)(false, gpu), |last| last.recorded_on);
            (f.set_stream)(recorded_on);
            let from = last.map_or(Pool(0, 0), |last| (f.pool)(last.object.as_ptr()));
            // mode 1: only this thread must not wait for the device
            (f.begin)(object.as_mut_ptr(), from, 1);
            let made = work();
            if made.is_ok() {
                (f.end)(object.as_mut_ptr());
            }
            (f.set_stream)(before);
            (f.set_device)(other);
            match made {
                Ok(made) => Ok((Self { object, stream: before, recorded_on, functions }, made)),
                Err(error) => {
                    // the end of a recording that failed raises a C++ exception; the run ends with the error of `work`
                    std::mem::forget(object);
                    Err(error)
                }
            }
        }
    }

    /// Launches everything again.
    pub fn replay(&mut self) {
        // SAFETY: the object was constructed, and its recording has ended
        unsafe { (self.functions.replay)(self.object.as_mut_ptr()) }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the object was constructed and is not used again; the stream's launches, which may use its memory, are waited for. A device cannot
        // be waited for instead while another thread records
        unsafe {
            (self.functions.wait)(&self.stream);
            (self.functions.destroy)(self.object.as_mut_ptr());
        }
    }
}

/// Systems other than Linux have no CUDA, or other names of libtorch's functions.
#[cfg(not(target_os = "linux"))]
pub(super) struct Graph(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl Graph {
    pub fn is_supported() -> bool {
        false
    }

    pub fn record<T>(_: usize, _: Option<&Self>, _: impl FnOnce() -> Result<T, tch::TchError>) -> Result<(Self, T), tch::TchError> {
        Err(tch::TchError::Torch("graphs can be recorded on Linux only".into()))
    }

    pub fn replay(&mut self) {
        match self.0 {}
    }
}

/// Returns the loader's message in one line.
fn one_line(error: libloading::Error) -> String {
    let source = std::error::Error::source(&error).map(|source| source.to_string());
    source.unwrap_or_else(|| error.to_string()).replace('\n', " ")
}

/// Loads a library permanently, so that its initialisers run and other libraries find its symbols; an error is one line.
pub(super) fn load_library(name: &Path) -> Result<(), String> {
    #[cfg(unix)]
    {
        use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
        // SAFETY: these are PyTorch's own libraries, whose initialisers may run at any time before the first tensor is on a GPU; they stay
        // loaded until the program ends
        let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) }.map_err(one_line)?;
        std::mem::forget(library);
    }
    #[cfg(not(unix))]
    {
        // SAFETY: as above
        let library = unsafe { Library::new(name) }.map_err(one_line)?;
        std::mem::forget(library);
    }
    Ok(())
}

/// The reason why NVIDIA's driver cannot be queried.
pub(super) enum NoDriver {
    /// It cannot be loaded; contains the loader's message.
    Missing(String),
    /// It returns this CUDA error.
    Refuses(c_int),
}

/// Queries NVIDIA's driver for the newest version of CUDA that it supports and for its GPUs.
pub(super) fn driver_says() -> Result<Driver, NoDriver> {
    let missing = |error| NoDriver::Missing(one_line(error));
    let done = |code: c_int| if code == 0 { Ok(()) } else { Err(NoDriver::Refuses(code)) };
    // SAFETY: this is NVIDIA's driver, whose initialisers may run at any time, and which libtorch loads later as well
    let library = unsafe { Library::new(if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" }) }.map_err(missing)?;
    // SAFETY: the signatures are those of CUDA's driver interface, the same since CUDA 3.2; every pointer points to a variable, or to a
    // buffer passed with its length, that outlives the call; a name ends with a zero
    unsafe {
        let init = library.get::<unsafe extern "system" fn(c_uint) -> c_int>(b"cuInit\0").map_err(missing)?;
        let version = library.get::<unsafe extern "system" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion\0").map_err(missing)?;
        let count = library.get::<unsafe extern "system" fn(*mut c_int) -> c_int>(b"cuDeviceGetCount\0").map_err(missing)?;
        let device = library.get::<unsafe extern "system" fn(*mut c_int, c_int) -> c_int>(b"cuDeviceGet\0").map_err(missing)?;
        let name = library.get::<unsafe extern "system" fn(*mut c_char, c_int, c_int) -> c_int>(b"cuDeviceGetName\0").map_err(missing)?;
        let memory = library.get::<unsafe extern "system" fn(*mut usize, c_int) -> c_int>(b"cuDeviceTotalMem_v2\0").map_err(missing)?;
        done(init(0))?;
        let (mut cuda, mut n) = (0, 0);
        done(version(&mut cuda))?;
        done(count(&mut n))?;
        let mut gpus = Vec::new();
        for number in 0..n {
            let (mut handle, mut text, mut bytes) = (0, [0 as c_char; 256], 0_usize);
            done(device(&mut handle, number))?;
            done(name(text.as_mut_ptr(), text.len() as c_int - 1, handle))?;
            done(memory(&mut bytes, handle))?;
            gpus.push(Gpu { name: CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned(), memory: bytes });
        }
        // the driver starts threads, so it must stay loaded
        std::mem::forget(library);
        Ok(Driver { cuda: (cuda as u32 / 1000, cuda as u32 % 1000 / 10), gpus })
    }
}
