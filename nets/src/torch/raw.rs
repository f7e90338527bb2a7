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
