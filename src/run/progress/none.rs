//! What stands for progress bars in a build without the feature `cli`: nothing is shown.

use super::Show;

pub(crate) struct Progress;

impl Progress {
    pub fn new(_: Show, _: bool, _: u64, _: u64) -> Self {
        Self
    }

    pub fn update(&self, _: u64, _: Option<String>, _: f64) {}

    pub fn finish(&self) {}
}

/// Calls `work` with a function that would show the steps of an analysis.
pub fn with_steps<T>(_: Show, work: impl FnOnce(&dyn Fn(&str)) -> T) -> T {
    work(&|_| {})
}
