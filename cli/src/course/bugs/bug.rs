//! Opens bugs, and gives hints: `gradus course bug` calls this program.

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus_bugs::manage()
}
