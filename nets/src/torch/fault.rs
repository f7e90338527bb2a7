//! Errors of a device. They are recorded and do not panic.

use std::sync::{Arc, Mutex, PoisonError};

use tch::TchError;

use crate::Device;

/// A record of the first error of a device, if there was one. Clones share the record. The reference policy holds a clone, so its errors
/// also stop the training.
#[derive(Clone)]
pub(super) struct Fault {
    device: Device,
    line: Arc<Mutex<Option<String>>>,
}

impl Fault {
    /// Creates a record without an error.
    pub fn none(device: Device) -> Self {
        Self { device, line: Arc::default() }
    }

    /// Runs `work` and returns its result. If `work` fails, records the error and returns the default value. If an error was recorded
    /// before, returns the default value without running `work`.
    pub fn guard<T: Default>(&self, work: impl FnOnce() -> Result<T, TchError>) -> T {
        if self.line().is_some() {
            return T::default();
        }
        work().unwrap_or_else(|error| {
            self.note(&error);
            T::default()
        })
    }

    /// Records an error, unless there was one before.
    pub fn note(&self, error: &TchError) {
        let line = || format!("device {}: {}", self.device, one_line(error));
        self.line.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(line);
    }

    /// The first error in one line, if there was one.
    pub fn line(&self) -> Option<String> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns libtorch's error message in one line.
pub(super) fn one_line(error: &TchError) -> String {
    message(&error.to_string())
}

/// Returns the first line of an error's text: the message, which lines with C++ frames follow. If memory is lacking, returns a message that
/// names the settings to lower.
fn message(text: &str) -> String {
    let text = text.strip_prefix("Internal torch error:").unwrap_or(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("an unknown error");
    let is_memory = ["out of memory", "not enough memory", "allocate memory", "ALLOC_FAILED"].iter().any(|words| line.contains(words));
    if !is_memory {
        return line.into();
    }
    let wanted = ["Tried to allocate ", "tried to allocate "].iter().find_map(|words| line.split_once(words));
    let wanted = wanted.and_then(|(_, rest)| rest.split(". ").next()).unwrap_or("a batch");
    format!(
        "out of memory: {} could not be allocated; lower envs, max_concurrent or torch.micro_batch, or on texts set torch.gradient_checkpointing",
        wanted.trim_end_matches('.')
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn out_of_memory_errors_name_the_settings_to_lower() {
        let table = [
            (
                "Internal torch error: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.19 GiB of which\nframe #0",
                "out of memory: 2.50 GiB could not be allocated; lower envs, max_concurrent or torch.micro_batch, or on texts set torch.gradient_checkpointing",
            ),
            (
                "Internal torch error: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
                 allocate 9437184 bytes. Error code 12 (Cannot allocate memory)\nframe #0",
                "out of memory: 9437184 bytes could not be allocated; lower envs, max_concurrent or torch.micro_batch, or on texts set torch.gradient_checkpointing",
            ),
            (
                "Internal torch error: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\nframe",
                "out of memory: a batch could not be allocated; lower envs, max_concurrent or torch.micro_batch, or on texts set torch.gradient_checkpointing",
            ),
            ("Internal torch error: mat1 and mat2 shapes cannot be multiplied\nframe", "mat1 and mat2 shapes cannot be multiplied"),
        ];
        for (text, line) in table {
            assert_eq!(super::message(text), line);
        }
    }
}
