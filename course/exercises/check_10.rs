//! Checks the functions of `src/lesson_10.rs`: `cargo run -- check 10` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_10.rs"]
mod lesson_10;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_10::{Answers, lesson};
    use lesson_10::*;

    gradus_course::check(lesson(Answers {
        interquartile_mean,
        bootstrap_interval,
        improvement_probability,
        holm,
        seeds_needed,
    }))
}
