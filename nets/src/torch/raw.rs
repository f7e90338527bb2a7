//! What cannot be said without `unsafe`: tensors that several threads read, and libraries that are loaded when the program runs.
#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};
use std::path::Path;

use tch::Tensor;

/// A tensor that several threads may read at once.
pub(super) struct Shared(Tensor);

// SAFETY: a `Tensor` is a pointer to a C++ object whose reference count is atomic. Through a shared reference this crate only reads it: views
// and products of it, which libtorch allows from many threads at once; it is changed in place through `&mut` alone.
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

/// Lets CUDA multiply f32 by its tensor cores, or forbids it. libtorch's C++ interface has a function for that which `tch` does not pass on.
#[cfg(target_os = "linux")]
pub(super) fn allow_tf32(allowed: bool) -> Result<(), String> {
    use std::ffi::c_void;
    let library = libloading::os::unix::Library::this();
    // SAFETY: `at::Context& at::globalContext()` and `void at::Context::setAllowTF32CuBLAS(bool)`: a reference and `this` are pointers, and
    // both functions are part of the libtorch that this program is linked to
    unsafe {
        let missing = |error: libloading::Error| error.to_string();
        let context = library.get::<unsafe extern "C" fn() -> *mut c_void>(b"_ZN2at13globalContextEv\0").map_err(missing)?;
        let allow = library.get::<unsafe extern "C" fn(*mut c_void, bool)>(b"_ZN2at7Context18setAllowTF32CuBLASEb\0").map_err(missing)?;
        allow(context(), allowed);
    }
    Ok(())
}

/// Elsewhere there is no CUDA, or no such name.
#[cfg(not(target_os = "linux"))]
pub(super) fn allow_tf32(allowed: bool) -> Result<(), String> {
    if allowed { Err("it can be allowed on Linux only".into()) } else { Ok(()) }
}

/// Loads a library for good, so that its initialisers register what they have and others find its symbols; an error is one line.
pub(super) fn load_library(name: &Path) -> Result<(), String> {
    let one_line = |error: libloading::Error| {
        let source = std::error::Error::source(&error).map(|source| source.to_string());
        source.unwrap_or_else(|| error.to_string()).replace('\n', " ")
    };
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
        let library = unsafe { libloading::Library::new(name) }.map_err(one_line)?;
        std::mem::forget(library);
    }
    Ok(())
}
