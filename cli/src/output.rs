//! What the commands print.

use std::io::{self, IsTerminal, Write};

use gradus::{one_line, plain};

/// Prints a line to standard output. A closed pipe and a terminal that is gone are ignored; any other error, such as a full disk, ends the program.
pub(crate) fn say(line: impl AsRef<str>) {
    written(writeln!(std::io::stdout(), "{}", line.as_ref()));
}

/// Ends the program if standard output could not be written. A closed pipe is ignored, and so is a terminal that is gone: a program that its end does not end goes on.
pub(crate) fn written(result: io::Result<()>) {
    const EIO: i32 = 5;
    let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe || cfg!(unix) && error.raw_os_error() == Some(EIO);
    if let Err(error) = result
        && !is_gone(&error)
    {
        complain(format!("error: cannot write to standard output: {error}"));
        std::process::exit(2);
    }
}

/// Returns a word of a command line as it can be typed.
pub(crate) fn quoted(word: &str) -> String {
    if word.starts_with('-') && std::path::Path::new(word).exists() {
        return quoted(&format!("./{word}"));
    }
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

/// Returns a help text in lines of at most `width` characters, divided between words. What follows stands below the description, where the last gap of a line ends. The
/// escape sequences of styles have no width.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let shown = |text: &str| {
        let mut is_escape = false;
        let is_shown = |letter: char| match (is_escape, letter) {
            (false, '\x1b') => {
                is_escape = true;
                false
            }
            (true, 'm') => {
                is_escape = false;
                false
            }
            (is_escape, _) => !is_escape,
        };
        text.chars().map(is_shown).filter(|is_shown| *is_shown).count()
    };
    let mut all = String::new();
    for line in text.lines() {
        let body = line.trim_start();
        let start = line.len() - body.len();
        let below = body.rfind("  ").map(|gap| shown(&line[..start + gap]) + 2).filter(|below| 2 * below < width);
        let indent = below.unwrap_or(start + if start > 0 { 4 } else { 0 });
        let (mut used, mut gap) = (0, 0);
        for word in line.split(' ') {
            if word.is_empty() {
                gap += 1;
                continue;
            }
            let length = shown(word);
            if used > indent && used + gap + length > width {
                all.push_str(&format!("\n{:indent$}{word}", ""));
                used = indent + length;
            } else {
                all.push_str(&format!("{:gap$}{word}", ""));
                used += gap + length;
            }
            gap = 1;
        }
        all.push('\n');
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_divided_between_words_below_its_description() {
        let help = "About this command.\n\n      --seed <N>  Random seed, from which all else follows\n  -h, --help      Print help";
        let expected = "About this command.\n\n      --seed <N>  Random seed, from which\n                  all else follows\n  -h, --help      Print help\n";
        assert_eq!(wrapped(help, 44), expected);
        assert_eq!(wrapped(help, 80), help.to_owned() + "\n");
        // styles have no width, and a long word stays whole
        let styled = "\x1b[1m--out\x1b[0m  a /very/long/path/that/has/no/space";
        assert_eq!(wrapped(styled, 20), "\x1b[1m--out\x1b[0m  a\n       /very/long/path/that/has/no/space\n");
        assert_eq!(wrapped("", 20), "");
    }
}
