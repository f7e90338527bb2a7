//! The program `gradus`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus_cli::app().run()
}
