//! The lessons of the course.

use crate::exercise::About;
use crate::{lesson_1, lesson_2, lesson_3};

/// The files of a lesson.
#[derive(Debug)]
pub(crate) struct Sheets {
    /// Number of the lesson.
    pub(crate) number: u32,
    /// Its title.
    pub(crate) title: &'static str,
    /// The file that a student edits.
    pub(crate) template: &'static str,
    /// The program that checks it.
    pub(crate) check: &'static str,
    /// What stands above each exercise.
    abouts: fn() -> Vec<About>,
}

/// All lessons.
pub(crate) const LESSONS: &[Sheets] = &[
    Sheets {
        number: 1,
        title: lesson_1::TITLE,
        template: include_str!("../exercises/lesson_1.rs"),
        check: include_str!("../exercises/check_1.rs"),
        abouts: lesson_1::abouts,
    },
    Sheets {
        number: 2,
        title: lesson_2::TITLE,
        template: include_str!("../exercises/lesson_2.rs"),
        check: include_str!("../exercises/check_2.rs"),
        abouts: lesson_2::abouts,
    },
    Sheets {
        number: 3,
        title: lesson_3::TITLE,
        template: include_str!("../exercises/lesson_3.rs"),
        check: include_str!("../exercises/check_3.rs"),
        abouts: lesson_3::abouts,
    },
];

/// Returns what stands above each exercise of all lessons.
pub(crate) fn all() -> Vec<About> {
    LESSONS.iter().flat_map(|sheets| (sheets.abouts)()).collect()
}
