//! What tests of several crates need: temporary folders, the output of commands, and the numbers that other programs computed.
#![forbid(unsafe_code)]

pub mod command;
pub mod golden;
mod temporary;

use std::path::Path;

pub use temporary::{TempDir, tempdir};

/// Returns the root folder of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("tests/support has two parents")
}
