//! What the commands print.

use std::io::{self, IsTerminal, Write};

use gradus::{one_line, plain};

/// Prints a line to standard output. A closed pipe is ignored; any other error, such as a full disk, ends the program.
pub(crate) fn say(line: impl AsRef<str>) {
    written(writeln!(std::io::stdout(), "{}", line.as_ref()));
}

/// Ends the program if standard output could not be written. A closed pipe is ignored.
pub(crate) fn written(result: io::Result<()>) {
    if let Err(error) = result
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        complain(format!("error: cannot write to standard output: {error}"));
        std::process::exit(2);
    }
}

/// Returns a word of a command line as it can be typed.
pub(crate) fn quoted(word: &str) -> String {
    if word.is_empty() || !word.chars().all(|letter| letter.is_alphanumeric() || "-_./=:,@%+".contains(letter)) {
        format!("'{}'", word.replace('\'', "'\\''"))
    } else {
        word.into()
    }
}

/// Prints a line to standard error. Errors are ignored, because there is no other place to report them.
pub(crate) fn complain(line: impl AsRef<str>) {
    let _ = writeln!(io::stderr(), "{}", plain(line.as_ref()));
}

/// Prints a warning.
pub(crate) fn warn(text: &str) {
    complain(format!("warning: {}", one_line(text)));
}

/// Prints a sentence: in lines of at most 80 characters on a terminal, and else in one line, so that programs can read it.
pub(crate) fn say_sentence(text: &str) {
    if io::stdout().is_terminal() { say_wrapped("", text) } else { say(text) }
}

/// Prints a text after `start`, in lines of at most 80 characters. Further lines are indented by the length of `start`.
pub(crate) fn say_wrapped(start: &str, text: &str) {
    let indent = start.len();
    let (mut line, mut is_empty) = (start.to_owned(), true);
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > 80 {
            say(&line);
            (line, is_empty) = (" ".repeat(indent), true);
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    say(line.trim_end());
}
