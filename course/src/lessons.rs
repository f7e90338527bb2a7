//! The lessons of the course.

use std::path::Path;

use crate::exercise::About;
use crate::{lesson_1, lesson_2, lesson_3};

/// An error in one line.
pub(crate) type Told<T> = Result<T, String>;

/// An error of the system in one line.
pub(crate) fn in_words<T>(result: std::io::Result<T>, action: &str, path: &Path) -> Told<T> {
    result.map_err(|error| format!("cannot {action} {}: {error}", path.display()))
}

/// Writes a file as a whole: after an error the old one is there.
pub(crate) fn replace(path: &Path, text: &str) -> Told<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let written = std::fs::write(&name, text).and_then(|()| std::fs::rename(&name, path));
    in_words(written.inspect_err(|_| _ = std::fs::remove_file(&name)), "write", path)
}

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

/// Returns what stands above each exercise of a lesson.
pub(crate) fn of_lesson(lesson: u32) -> Vec<About> {
    all().into_iter().filter(|about| about.number.split('.').next() == Some(&lesson.to_string())).collect()
}

/// Returns the lesson of a number such as `1` or `1.2`, and the exercise, if it is one.
pub(crate) fn find(number: &str) -> Told<(&'static Sheets, Option<About>)> {
    let lesson = number.split('.').next().unwrap_or_default();
    let Some(sheets) = LESSONS.iter().find(|sheets| sheets.number.to_string() == lesson) else {
        return Err(format!("expected a lesson from 1 to {}, or an exercise such as 1.2, got `{number}`", LESSONS.len()));
    };
    if lesson == number {
        return Ok((sheets, None));
    }
    let own = of_lesson(sheets.number);
    match own.iter().find(|about| about.number == number) {
        Some(about) => Ok((sheets, Some(*about))),
        None => Err(format!("expected an exercise from {lesson}.1 to {lesson}.{}, got `{number}`", own.len())),
    }
}
