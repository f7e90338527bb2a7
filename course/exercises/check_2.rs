//! Checks the functions of `src/lesson_2.rs`: `cargo run -- check 2` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_2.rs"]
mod lesson_2;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_2::{Answers, lesson};
    use lesson_2::*;

    gradus_course::check(lesson(Answers {
        discounted_return,
        action_value,
        evaluation_sweep,
        greedy_action,
        value_iteration,
    }))
}
