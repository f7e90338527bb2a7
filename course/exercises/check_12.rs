//! Checks the functions of `src/lesson_12.rs`: `cargo run -- check 12` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_12.rs"]
mod lesson_12;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_12::{Answers, lesson};
    use lesson_12::*;

    gradus_course::check(lesson(Answers {
        preference_loss,
        penalised_rewards,
        best_policy,
        dpo_loss,
        best_of_n,
    }))
}
