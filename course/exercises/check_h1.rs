//! Checks the functions of `src/homework_1.rs`: `cargo run -- check h1` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../homework_1.rs"]
mod homework_1;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::homework_1::{Answers, lesson};
    use homework_1::*;

    gradus_course::check(lesson(Answers {
        gaussian_posterior,
        kl_ucb,
        policy_iteration,
        td_lambda,
    }))
}
