//! Checks the functions of `src/lesson_6.rs`: `cargo run -- check 6` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_6.rs"]
mod lesson_6;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_6::{Answers, lesson};
    use lesson_6::*;

    gradus_course::check(lesson(Answers {
        log_softmax_gradient,
        returns_to_go,
        policy_gradient,
        leave_one_out,
        whitened,
        entropy_gradient,
    }))
}
