//! The Rust half of the Python package `gradus_rl`, the module `gradus_rl._core`. It has environments, agents and statistics as they are; what they are called in
//! Gymnasium and in Stable-Baselines3 is said in Python.

mod agent;
mod envs;
mod events;
mod figures;
mod statistics;
mod text;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The error of the library as an exception, in the same words.
fn failed(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Runs the command line with these arguments, the program's name first. Returns the exit code.
#[pyfunction]
fn run_command(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| gradus_cli::app().run_with(arguments))
}

/// What `gradus_rl` is made of.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(run_command, module)?)?;
    envs::add(module)?;
    agent::add(module)?;
    events::add(module)?;
    figures::add(module)?;
    statistics::add(module)?;
    text::add(module)
}
