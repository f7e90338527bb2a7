//! How a program reports its errors.

use std::hash::RandomState;
use std::io::{self, Write};
use std::process::{ExitCode, Termination};
use std::sync::OnceLock;

use gradus_base::panics;
use gradus_base::simd::{self, Level};

use crate::Error;

/// The name of a program with a command line of its own.
static NAME: OnceLock<String> = OnceLock::new();

/// Returns the name of the command that messages advise to type: `gradus`, or the name of the program that calls `app`.
pub fn program_name() -> &'static str {
    NAME.get().map_or("gradus", String::as_str)
}

/// Makes [`program_name`] return the name of the file `path`, which this process runs.
#[doc(hidden)] // for command lines
pub fn take_program_name(path: &std::ffi::OsStr) {
    let _ = NAME.set(std::path::Path::new(path).file_stem().unwrap_or_default().display().to_string());
}

/// The longest message, in characters.
const LONGEST: usize = 600;
/// Characters at the end of a longer message that are kept: they often say what was got.
const TAIL: usize = 150;

/// Returns a text as a terminal can show it in one line: without control characters, which names and files may contain.
///
/// ```
/// assert_eq!(gradus::plain("got \u{1b}[31mred\n"), "got \\u{1b}[31mred\\n");
/// ```
pub fn plain(text: &str) -> String {
    text.chars().flat_map(|letter| if letter.is_control() { letter.escape_default().collect() } else { vec![letter] }).collect()
}

/// Returns an error's message as one [plain] line, without the middle of a very long text.
///
/// ```
/// assert_eq!(gradus::one_line(&"x".repeat(2000)).chars().count(), 603);
/// ```
pub fn one_line(text: &str) -> String {
    let letters: Vec<char> = plain(text).chars().collect();
    if letters.len() <= LONGEST {
        return letters.into_iter().collect();
    }
    let (head, tail) = (&letters[..LONGEST - TAIL], &letters[letters.len() - TAIL..]);
    format!("{}...{}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// Runs `body`, the body of `main`, and reports errors as the command `gradus` does: one line on standard error and exit code 2.
///
/// A panic is reported in the same way, with its place in the source. The panic hook of the process is replaced, see
/// [`keep_quiet`](panics::keep_quiet); with `RUST_BACKTRACE=1` the panic and its backtrace are also printed.
///
/// ```no_run
/// use std::process::ExitCode;
/// use gradus::{Config, Run, Show};
///
/// fn main() -> ExitCode {
///     gradus::program(|| Run::create(Config::preset("ppo", "cartpole", None)?, "runs/first")?.train(Show::Progress))
/// }
/// ```
pub fn program<T: Termination>(body: impl FnOnce() -> Result<T, Error>) -> ExitCode {
    reported(body).map_or(ExitCode::from(2), Termination::report)
}

/// As [`program`], but returns the result of `body`, and `None` after an error, which has been reported.
#[doc(hidden)] // for command lines
pub fn reported<T>(body: impl FnOnce() -> Result<T, Error>) -> Option<T> {
    panics::keep_quiet();
    // hash maps need random numbers and panic without them: better at once than in the middle of a run
    let without_random_numbers =
        |_| Error::Parse { what: "random numbers".into(), expected: "some from the system".into(), got: "an error".into() };
    let prepared = panics::catch(RandomState::new).map_err(without_random_numbers);
    let unknown_level = |(expected, got)| Error::Parse { what: simd::LIMIT.into(), expected, got };
    let prepared = prepared.and_then(|_| Level::wanted().map_err(unknown_level));
    match prepared.and_then(|_| panics::catch(body).unwrap_or_else(|panic| Err(panic.into()))) {
        Ok(result) => Some(result),
        Err(error) => {
            // standard error may be closed or full
            let _ = writeln!(io::stderr(), "error: {}", one_line(&error.to_string()));
            None
        }
    }
}
