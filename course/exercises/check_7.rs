//! Checks the functions of `src/lesson_7.rs`: `cargo run -- check 7` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_7.rs"]
mod lesson_7;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_7::{Answers, lesson};
    use lesson_7::*;

    gradus_course::check(lesson(Answers {
        visits,
        advantages,
        exact_gradient,
        bias_and_variance,
    }))
}
