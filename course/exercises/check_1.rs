//! Checks the functions of `src/lesson_1.rs`: `cargo run -- check 1` calls this program.

#[allow(unused_variables)] // of functions that are not written yet
#[path = "../lesson_1.rs"]
mod lesson_1;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_1::{Answers, lesson};
    use lesson_1::*;

    gradus_course::check(lesson(Answers {
        sample_average,
        epsilon_greedy,
        upper_confidence_bound,
        softmax,
        gradient_bandit,
        regret,
    }))
}
