//! The command of the course: `cargo run -- list`. You write the files beside it, `lesson_1.rs` and so on.

use std::process::ExitCode;

fn main() -> ExitCode {
    gradus_course::main()
}
