//! Checks the functions of `src/lesson_9.rs`: `cargo run -- check 9` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_9.rs"]
mod lesson_9;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_9::{Answers, lesson};
    use lesson_9::*;

    gradus_course::check(lesson(Answers {
        surrogate,
        surrogate_slope,
        kl_divergence,
        approx_kl,
        natural_step,
    }))
}
