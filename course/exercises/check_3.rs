//! Checks the functions of `src/lesson_3.rs`: `cargo run -- check 3` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_3.rs"]
mod lesson_3;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_3::{Answers, lesson};
    use lesson_3::*;

    gradus_course::check(lesson(Answers {
        returns,
        first_visit,
        td_error,
        n_step_return,
        lambda_returns,
        weighted_importance,
    }))
}
