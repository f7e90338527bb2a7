//! What went wrong on a device: remembered instead of a panic.

use std::sync::{Arc, Mutex, PoisonError};

use tch::TchError;

use crate::Device;

/// The first thing that went wrong on a device, if anything did. Copies share it: what befalls a policy's reference befalls the training.
#[derive(Clone)]
pub(super) struct Fault {
    device: Device,
    line: Arc<Mutex<Option<String>>>,
}

impl Fault {
    /// None yet.
    pub fn none(device: Device) -> Self {
        Self { device, line: Arc::default() }
    }

    /// What `work` says. Where the device has failed, now or before, it is an empty answer.
    pub fn guard<T: Default>(&self, work: impl FnOnce() -> Result<T, TchError>) -> T {
        if self.line().is_some() {
            return T::default();
        }
        work().unwrap_or_else(|error| {
            self.note(&error);
            T::default()
        })
    }

    /// Remembers an error, unless there was one before.
    pub fn note(&self, error: &TchError) {
        let line = || format!("device {}: {}", self.device, one_line(error));
        self.line.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(line);
    }

    /// What went wrong, in one line.
    pub fn line(&self) -> Option<String> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What libtorch complains of, in one line.
pub(super) fn one_line(error: &TchError) -> String {
    said(&error.to_string())
}

/// The first line says what; what follows are C++ frames.
fn said(text: &str) -> String {
    let text = text.strip_prefix("Internal torch error:").unwrap_or(text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("an unknown error");
    let is_memory = ["out of memory", "not enough memory", "allocate memory"].iter().any(|words| line.contains(words));
    if !is_memory {
        return line.into();
    }
    let wanted = ["Tried to allocate ", "tried to allocate "].iter().find_map(|words| line.split_once(words));
    let wanted = wanted.and_then(|(_, rest)| rest.split(". ").next()).unwrap_or("what a batch needs");
    format!("expected room for {}, got none: set torch.micro_batch or lower it, envs or max_concurrent", wanted.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_lack_of_memory_says_what_helps() {
        let table = [
            (
                "Internal torch error: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.19 GiB of which\nframe #0",
                "expected room for 2.50 GiB, got none: set torch.micro_batch or lower it, envs or max_concurrent",
            ),
            (
                "Internal torch error: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to \
                 allocate 9437184 bytes. Error code 12 (Cannot allocate memory)\nframe #0",
                "expected room for 9437184 bytes, got none: set torch.micro_batch or lower it, envs or max_concurrent",
            ),
            ("Internal torch error: mat1 and mat2 shapes cannot be multiplied\nframe", "mat1 and mat2 shapes cannot be multiplied"),
        ];
        for (text, line) in table {
            assert_eq!(super::said(text), line);
        }
    }
}
