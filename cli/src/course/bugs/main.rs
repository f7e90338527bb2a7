//! The agents with the bugs that you opened: none yet. `gradus course bug N` writes this file.

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus_bugs::program().run()
}
