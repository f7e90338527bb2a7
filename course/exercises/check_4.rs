//! Checks the functions of `src/lesson_4.rs`: `cargo run -- check 4` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_4.rs"]
mod lesson_4;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_4::{Answers, lesson};
    use lesson_4::*;

    gradus_course::check(lesson(Answers {
        sarsa_target,
        expected_sarsa_target,
        q_learning,
        double_q_learning,
    }))
}
