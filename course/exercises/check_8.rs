//! Checks the functions of `src/lesson_8.rs`: `cargo run -- check 8` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_8.rs"]
mod lesson_8;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_8::{Answers, lesson};
    use lesson_8::*;

    gradus_course::check(lesson(Answers {
        gae,
        explained_variance,
        loss,
        loss_slopes,
        gaussian_log_prob,
    }))
}
