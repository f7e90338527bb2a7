//! The lessons of the course.

use std::path::Path;

use crate::exercise::About;

/// Declares the functions of a lesson, each with its type and its exercise: the struct `Answers`, and what makes a lesson of it.
macro_rules! lesson {
    ($number:literal, $title:literal, { $($name:ident: $kind:ty = $exercise:ident,)+ }) => {
        pub(crate) const TITLE: &str = $title;

        /// The functions of a student.
        #[derive(Clone, Copy)]
        pub struct Answers {
            $(#[doc = concat!("The exercise `", stringify!($name), "`.")] pub $name: $kind,)+
        }

        /// Returns what stands above each exercise.
        pub(crate) fn abouts() -> Vec<crate::exercise::About> {
            vec![$($exercise.about),+]
        }

        /// Returns the lesson with the functions of a student.
        pub fn lesson(answers: Answers) -> crate::exercise::Lesson {
            let exercises: Vec<Box<dyn crate::exercise::Checked>> =
                vec![$(Box::new(crate::exercise::Answered { exercise: &$exercise, function: answers.$name })),+];
            crate::exercise::Lesson { number: $number, title: TITLE, exercises }
        }
    };
}
pub(crate) use lesson;

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

/// Returns the files of the lessons, the module of each of which is `$module`.
macro_rules! sheets {
    ($($number:literal $module:ident),+) => {
        &[$(Sheets {
            number: $number,
            title: crate::$module::TITLE,
            template: include_str!(concat!("../exercises/lesson_", $number, ".rs")),
            check: include_str!(concat!("../exercises/check_", $number, ".rs")),
            abouts: crate::$module::abouts,
        }),+]
    };
}

/// All lessons.
pub(crate) const LESSONS: &[Sheets] = sheets!(1 lesson_1, 2 lesson_2, 3 lesson_3, 4 lesson_4, 5 lesson_5, 6 lesson_6, 7 lesson_7, 8 lesson_8, 9 lesson_9, 10 lesson_10, 11 lesson_11, 12 lesson_12);

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
