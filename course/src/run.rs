//! The program of a lesson: checks the functions of a student and says what it found.

use std::process::{ExitCode, ExitStatus};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::command::part;
use crate::confine::confine;
use crate::exercise::{About, Lesson, Verdict};
use crate::lessons::{file_of, is_homework, lesson_of, of_lesson, page_of};
use crate::sheet;
use crate::terminal::{Style, say, wrapped};

/// Seed of the inputs outside of grading.
pub(crate) const SEED: u64 = 1;

/// Longest time for one exercise.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// Exit code of a program in which a function did not return in time.
pub(crate) const TOO_SLOW: u8 = 3;

/// Exit code of a program whose function is right: not 0, which a function that ends the program may give.
pub(crate) const RIGHT: u8 = 10;

/// Exit code of a program whose function is still the one of the template.
pub(crate) const OPEN: u8 = 4;

/// The command of the course in messages: as the user calls it.
pub(crate) fn command() -> String {
    std::env::var("GRADUS_COURSE").unwrap_or_else(|_| "cargo run --".into())
}

/// Checks one function of a lesson, the number of whose exercise is the argument of the process, and prints what was found, except with
/// `--quiet`. The exit code is 10 if the function is right, 1 if it is wrong, 3 if it does not return, and 4 if it is not written
/// yet.
pub fn check(lesson: Lesson) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(exercise) = lesson.exercises.iter().find(|exercise| Some(exercise.about().number) == arguments.first().map(String::as_str))
    else {
        eprintln!(
            "error: expected the number of an exercise of lesson {}; `{} check {}` calls this program",
            lesson.number,
            command(),
            lesson.number
        );
        return ExitCode::from(2);
    };
    let (style, about, is_quiet) = (Style::of_terminal(), exercise.about(), arguments.iter().any(|word| word == "--quiet"));
    let tell = move |text: String| {
        if !is_quiet {
            say(&text);
        }
    };
    let (verdict, helpers) = in_time(
        move || tell(too_slow(about, style)),
        || {
            let verdict = if is_homework(about.number) { exercise.examples() } else { exercise.verdict(SEED) };
            (verdict.clone(), if matches!(verdict, Verdict::Wrong { .. }) { wrong_helpers(about, &lesson) } else { Vec::new() })
        },
    );
    tell(told(about, &verdict, &helpers, style));
    match verdict {
        Verdict::Right => ExitCode::from(RIGHT),
        Verdict::NotWritten => ExitCode::from(OPEN),
        Verdict::Wrong { .. } => ExitCode::FAILURE,
    }
}

/// What is said of a function that is right.
pub(crate) const RIGHT_WORD: &str = "right";

/// As [`check`], for grading. The arguments are the number of the exercise and the seed; standard input has a word that begins each line which
/// this program itself prints, so that a function that prints cannot give itself a mark. Before the function is called, the process is confined.
pub fn check_graded(lesson: Lesson) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut word = String::new();
    let is_read = std::io::stdin().read_line(&mut word).is_ok();
    let exercise = lesson.exercises.iter().find(|exercise| Some(exercise.about().number) == arguments.first().map(String::as_str));
    let seed = arguments.get(1).and_then(|seed| seed.parse().ok());
    let (Some(exercise), Some(seed), true) = (exercise, seed, is_read) else { return ExitCode::from(2) };
    let word = word.trim().to_owned();
    say(&format!("\n{word}{}", json!({ "isolated": confine() })));
    let late = {
        let word = word.clone();
        move || {
            let says = format!("has not returned within {} seconds: {}", LIMIT.as_secs(), sheet::now());
            say(&format!("\n{word}{}", json!({ "right": false, "says": says })));
        }
    };
    let (is_right, says) = match in_time(late, || exercise.verdict(seed)) {
        Verdict::Right => (true, RIGHT_WORD.into()),
        Verdict::NotWritten => (false, "not written".into()),
        Verdict::Wrong { place, values: [expected, got], mistake, everywhere } => {
            let here = if everywhere { "" } else { "here " };
            let named = mistake.map(|[says, _]| format!("{NAMED}{here}if {says}")).unwrap_or_default();
            (false, format!("{place}: expected {expected}, got {got}{named}"))
        }
    };
    say(&format!("\n{word}{}", json!({ "right": is_right, "says": says })));
    ExitCode::SUCCESS
}

/// Runs `work` without the messages of panics. If it does not return in time, calls `late` and ends the program.
pub(crate) fn in_time<T>(late: impl FnOnce() + Send + 'static, work: impl FnOnce() -> T) -> T {
    std::panic::set_hook(Box::new(|_| ()));
    let (done, is_done) = mpsc::channel::<()>();
    thread::spawn(move || {
        if is_done.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            late();
            std::process::exit(TOO_SLOW.into());
        }
    });
    let result = work();
    drop(done);
    let _ = std::panic::take_hook();
    result
}

fn too_slow(about: About, style: Style) -> String {
    let told = format!("{}\n{}", headline(about, &style.bad("does not return"), style), wrapped("", INDENT, &sheet::now()));
    format!("{told}\n{}", wrapped("", INDENT, &format!("This call has not returned within {} seconds.", LIMIT.as_secs())))
}

/// Returns what is said about a function that ended its process.
pub(crate) fn crashed(about: About, status: &ExitStatus, style: Style) -> String {
    let why = "The function ended the program: a recursion without an end, more memory than there is, or a call of exit?";
    format!("{}\n{}", headline(about, &style.bad("crashed"), style), wrapped("", INDENT, &format!("{why} ({status})")))
}

/// What stands before the name of a mistake in a grade.
pub(crate) const NAMED: &str = "; this is what one gets ";

/// A function of another exercise that a student's function calls.
struct Called {
    about: About,
    /// Whether it is still the one of the template.
    is_open: bool,
}

/// Returns the text of an exercise in the student's file; empty if it cannot be read.
fn source(about: About) -> String {
    let text = std::fs::read_to_string(format!("src/{}.rs", file_of(about.number))).unwrap_or_default();
    part(&text, about.number).map_or_else(String::new, |place| text[place].to_owned())
}

fn is_open(about: About) -> bool {
    source(about).contains("todo!()")
}

/// Returns the exercises of the same lesson whose functions the student's function calls, and which are wrong.
fn wrong_helpers(about: About, lesson: &Lesson) -> Vec<About> {
    let is_wrong = |called: &Called| {
        let own = lesson.exercises.iter().find(|exercise| exercise.about().number == called.about.number);
        own.is_some_and(|exercise| exercise.verdict(SEED) != Verdict::Right)
    };
    called(about).into_iter().filter(is_wrong).map(|called| called.about).collect()
}

/// Returns the exercises of the same lesson whose functions the student's function calls.
fn called(about: About) -> Vec<Called> {
    let own: String = source(about).lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let others = of_lesson(lesson_of(about.number)).into_iter().filter(|other| other.name != about.name);
    let is_called = |other: &About| {
        own.match_indices(&format!("{}(", other.name))
            .any(|(at, _)| !own[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_'))
    };
    others.filter(is_called).map(|other| Called { about: other, is_open: is_open(other) }).collect()
}

/// Columns before what is said about an exercise.
const INDENT: usize = 7;

fn headline(about: About, verdict: &str, style: Style) -> String {
    format!("  {}  {:<24} {verdict}", style.bold(about.number), about.name)
}

/// Returns what the checks of an exercise found, in words.
pub(crate) fn told(about: About, verdict: &Verdict, helpers: &[About], style: Style) -> String {
    match verdict {
        Verdict::Right => headline(about, &style.good("right"), style),
        Verdict::NotWritten => match called(about).into_iter().find(|called| called.is_open) {
            Some(Called { about: other, .. }) if !is_open(about) => {
                let waits = format!("waits for {} ({}), which it calls and which is not written yet", other.name, other.number);
                format!("{}\n{}", headline(about, &style.faint("not yet"), style), wrapped("", INDENT, &format!("It {waits}.")))
            }
            _ => headline(about, &style.faint("not written yet"), style),
        },
        Verdict::Wrong { place, values: [expected, got], mistake, everywhere } => {
            let page = page_of(about.number);
            let mut lines = vec![headline(about, &style.bad("wrong"), style)];
            lines.push(wrapped("", INDENT, place));
            lines.push(wrapped("       expected", INDENT + 10, &expected.to_string()));
            lines.push(wrapped("       got", INDENT + 10, &got.to_string()));
            if let Some([says, section]) = mistake {
                let here = if *everywhere { "" } else { "here " };
                lines.push(wrapped("", INDENT, &format!("This is what one gets {here}if {says}.")));
                lines.push(wrapped("", INDENT, &format!("Read: gradus guide {page}#{section}")));
            }
            for helper in helpers {
                let advice = format!("It calls {} ({}), which is not right yet: mend that first.", helper.name, helper.number);
                lines.push(wrapped("", INDENT, &advice));
            }
            if mistake.is_none() {
                lines.push(wrapped("", INDENT, &format!("Read: gradus guide {page}#{}", about.section)));
            }
            lines.join("\n")
        }
    }
}
