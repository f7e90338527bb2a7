//! The `gradus` command.
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

mod commands;
mod explain;
mod pages;
mod probe;
mod reproduce;
#[cfg(test)]
mod temporary;

use std::process::ExitCode;

// With the feature `app` the commands are a part of the library, too. They find these names at the root of either crate.
use gradus::*;

fn main() -> ExitCode {
    commands::main(Ok(()), Ok(()))
}
