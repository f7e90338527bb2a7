//! Metrics for TensorBoard.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use gradus::run::tensorboard::{EventFile, file_name};
use pyo3::prelude::*;

use crate::envs::locked;

/// A file of metrics for TensorBoard.
#[pyclass(frozen, module = "gradus_rl._core")]
pub struct EventWriter {
    inner: Mutex<EventFile<File>>,
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

#[pymethods]
impl EventWriter {
    /// Begins a file in a folder, which is made if there is none.
    #[new]
    fn new(folder: PathBuf) -> PyResult<Self> {
        std::fs::create_dir_all(&folder)?;
        // several writers may begin within a second
        let file = (0..).map(|later| folder.join(file_name(now() as u64 + later))).find(|path| !path.exists());
        let file = File::create_new(file.unwrap_or(folder))?;
        Ok(Self { inner: Mutex::new(EventFile::new(file, now())?) })
    }

    /// Writes numbers by name.
    fn write(&self, py: Python<'_>, step: u64, values: Vec<(String, f32)>) -> PyResult<()> {
        let values: Vec<(&str, f32)> = values.iter().map(|(name, value)| (&name[..], *value)).collect();
        Ok(locked(py, &self.inner).scalars(now(), step, &values)?)
    }
}

/// Adds this file's class.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<EventWriter>()
}
