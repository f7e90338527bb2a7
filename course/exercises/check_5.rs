//! Checks the functions of `src/lesson_5.rs`: `cargo run -- check 5` calls this program.

#[allow(unused_imports, unused_variables)] // of functions that are not written yet
#[path = "../lesson_5.rs"]
mod lesson_5;

use std::process::ExitCode;

fn main() -> ExitCode {
    // here, where the functions of the file cannot reach them
    use gradus_course::lesson_5::{Answers, lesson};
    use lesson_5::*;

    gradus_course::check(lesson(Answers {
        semi_gradient_td,
        dqn_targets,
        double_dqn_target,
        huber_slope,
        moved_target,
    }))
}
