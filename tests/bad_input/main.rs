//! Bad input: one clear line that names the thing, what was expected and what was got; exit code 2; nothing lost, nothing half-written.

mod checkpoints;
mod commands;
#[path = "../common/mod.rs"]
mod common;
mod devices;
mod folders;
mod settings;
mod texts;
#[cfg(not(feature = "tch"))]
mod without_tch;

use std::path::Path;
use std::process::{Command, Output};

fn gradus(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

/// A short finished run.
fn short_run(dir: &Path) {
    let output = gradus(dir, &["train", "ppo", "cartpole", "--preset", "cleanrl", "--steps", "2k", "--out", "run", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A short finished run on text.
fn short_text_run(dir: &Path) {
    let arguments = ["train", "grpo", "target-sum", "--steps", "100", "--set", "transformer.layers=1", "--out", "run", "--quiet"];
    let output = gradus(dir, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
