//! The `gradus` command.
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus::app().run()
}
