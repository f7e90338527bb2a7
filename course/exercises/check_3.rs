//! Checks the functions of `src/lesson_3.rs`: `cargo run -- check 3` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_3.rs"]
mod lesson_3;

use std::process::ExitCode;

use gradus_course::lesson_3::{Answers, lesson};
use lesson_3::*;

fn main() -> ExitCode {
    gradus_course::check(lesson(Answers {
        returns,
        first_visit,
        td_error,
        n_step_return,
        lambda_returns,
        weighted_importance,
    }))
}
