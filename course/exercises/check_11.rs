//! Checks the functions of `src/lesson_11.rs`: `cargo run -- check 11` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_11.rs"]
mod lesson_11;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_11::{Answers, lesson};
    use lesson_11::*;

    gradus_course::check(lesson(Answers {
        token_log_prob,
        completion_log_prob,
        group_advantages,
        grpo_objective,
        token_advantages,
    }))
}
