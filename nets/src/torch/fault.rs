//! What went wrong on a device: remembered instead of a panic.

use std::sync::{Mutex, PoisonError};

use tch::TchError;

/// The first thing that went wrong, if anything did.
#[derive(Default)]
pub(super) struct Fault(Mutex<Option<String>>);

impl Fault {
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| one_line(error));
    }

    /// What went wrong, in one line.
    pub fn line(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What libtorch complains of, in one line.
pub(super) fn one_line(error: &TchError) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("Internal torch error:").unwrap_or(&text);
    // the first line says what; what follows are C++ frames
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("an unknown error");
    match line.to_lowercase().contains("out of memory") || line.contains("not enough memory") {
        true => format!("expected room for a batch on the device, got none: lower torch.micro_batch or envs ({line})"),
        false => line.into(),
    }
}
