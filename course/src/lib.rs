//! A course in reinforcement learning whose exercises check themselves.
//!
//! A student writes functions; a check calls each of them with inputs whose results are known, from a table that was computed by hand, from
//! differences, or from a run of the right function, and says where it was wrong. Where it returned what a well-known mistake returns, the
//! check names the mistake and the section to read.

mod command;
mod confine;
mod exercise;
mod grade;
pub mod homework_1;
pub mod homework_2;
pub mod homework_3;
mod inputs;
pub mod lesson_1;
pub mod lesson_10;
pub mod lesson_11;
pub mod lesson_12;
pub mod lesson_2;
pub mod lesson_3;
pub mod lesson_4;
pub mod lesson_5;
pub mod lesson_6;
pub mod lesson_7;
pub mod lesson_8;
pub mod lesson_9;
mod lessons;
mod run;
mod sheet;
mod step;
mod terminal;
mod worlds;

pub use command::main;
pub use exercise::{About, Check, Checked, Exercise, Lesson, Mistake, Trial, Verdict};
pub use gradus_envs::tabular::{Outcome, Table};
pub use run::{check, check_graded};
pub use sheet::{Entry, Sheet, Value};
pub use step::{End, Step};
