//! Bad input gives exit code 2, and one line that names the input, what was expected and what was given. No file is lost or half-written.

mod checkpoints;
mod commands;
mod devices;
mod folders;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(unix)]
mod outputs;
mod settings;
mod texts;
#[cfg(not(feature = "tch"))]
mod without_tch;

use std::path::Path;
use std::process::{Command, Output};

fn gradus(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

/// Trains a short run to the end.
fn short_run(dir: &Path) {
    let output = gradus(dir, &["train", "ppo", "cartpole", "--preset", "cleanrl", "--steps", "2k", "--out", "run", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Trains a short run on texts to the end.
fn short_text_run(dir: &Path) {
    let arguments = ["train", "grpo", "target-sum", "--steps", "100", "--set", "transformer.layers=1", "--out", "run", "--quiet"];
    let output = gradus(dir, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
