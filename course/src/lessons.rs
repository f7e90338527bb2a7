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

/// The files of a lesson or of a homework.
#[derive(Debug)]
pub(crate) struct Sheets {
    /// Number of the lesson; that of a homework is `h1`.
    pub(crate) number: &'static str,
    /// Its title.
    pub(crate) title: &'static str,
    /// The file that a student edits.
    pub(crate) template: &'static str,
    /// The program that checks it.
    pub(crate) check: &'static str,
    /// What stands above each exercise.
    abouts: fn() -> Vec<About>,
}

/// Returns whether a number such as `h1` or `h1.2` is of a homework.
pub(crate) fn is_homework(number: &str) -> bool {
    number.starts_with('h')
}

/// Returns the number of the lesson or homework of an exercise: `1` for `1.2`.
pub(crate) fn lesson_of(number: &str) -> &str {
    number.split('.').next().unwrap_or_default()
}

/// Returns the name of the page of a lesson or homework, and of its program: `lesson-1`, `homework-1`.
pub(crate) fn page_of(number: &str) -> String {
    let lesson = lesson_of(number);
    lesson.strip_prefix('h').map_or_else(|| format!("lesson-{lesson}"), |homework| format!("homework-{homework}"))
}

/// Returns the name of the file of a lesson or homework, without its ending: `lesson_1`, `homework_1`.
pub(crate) fn file_of(number: &str) -> String {
    page_of(number).replace('-', "_")
}

/// Returns the files of the lessons or homeworks, the module of each of which is `$module`.
macro_rules! sheets {
    ($($number:literal $module:ident $file:literal),+) => {
        &[$(Sheets {
            number: $number,
            title: crate::$module::TITLE,
            template: include_str!(concat!("../exercises/", $file, ".rs")),
            check: include_str!(concat!("../exercises/check_", $number, ".rs")),
            abouts: crate::$module::abouts,
        }),+]
    };
}

/// All lessons.
pub(crate) const LESSONS: &[Sheets] = sheets!(
    "1" lesson_1 "lesson_1", "2" lesson_2 "lesson_2", "3" lesson_3 "lesson_3", "4" lesson_4 "lesson_4", "5" lesson_5 "lesson_5",
    "6" lesson_6 "lesson_6", "7" lesson_7 "lesson_7", "8" lesson_8 "lesson_8", "9" lesson_9 "lesson_9", "10" lesson_10 "lesson_10",
    "11" lesson_11 "lesson_11", "12" lesson_12 "lesson_12"
);

/// All homeworks.
pub(crate) const HOMEWORKS: &[Sheets] = sheets!("h1" homework_1 "homework_1", "h2" homework_2 "homework_2", "h3" homework_3 "homework_3");

/// Returns what stands above each exercise of all lessons.
pub(crate) fn all() -> Vec<About> {
    LESSONS.iter().flat_map(|sheets| (sheets.abouts)()).collect()
}

/// Returns what stands above each exercise of a lesson or homework.
pub(crate) fn of_lesson(number: &str) -> Vec<About> {
    let sheets = LESSONS.iter().chain(HOMEWORKS).find(|sheets| sheets.number == number);
    sheets.map_or_else(Vec::new, |sheets| (sheets.abouts)())
}

/// Returns the lesson or homework of a number such as `1`, `1.2` or `h1`, and the exercise, if it is one.
pub(crate) fn find(number: &str) -> Told<(&'static Sheets, Option<About>)> {
    let lesson = lesson_of(number);
    let Some(sheets) = LESSONS.iter().chain(HOMEWORKS).find(|sheets| sheets.number == lesson) else {
        let (lessons, homeworks) = (LESSONS.len(), HOMEWORKS.len());
        return Err(format!(
            "expected a lesson from 1 to {lessons}, a homework from h1 to h{homeworks}, or an exercise such as 1.2, got `{number}`"
        ));
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
