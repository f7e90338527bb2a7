//! Text for a terminal of 80 columns, with or without colours.

use std::io::{IsTerminal, Write, stdout};

/// Columns of a line.
const WIDTH: usize = 80;

/// How text is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    has_colours: bool,
}

impl Style {
    /// Returns the style of the terminal; no colours in a file or with the variable `NO_COLOR`.
    pub(crate) fn of_terminal() -> Self {
        let is_off = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { has_colours: stdout().is_terminal() && !is_off("NO_COLOR") && !is_dumb }
    }

    /// Returns the style without colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { has_colours: false }
    }

    fn with(self, code: &str, text: &str) -> String {
        if self.has_colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with("31", text)
    }

    pub(crate) fn faint(self, text: &str) -> String {
        self.with("2", text)
    }

    /// Returns what clears the screen, if there is one.
    pub(crate) fn cleared(self) -> &'static str {
        if self.has_colours { "\u{1b}[2J\u{1b}[H" } else { "" }
    }
}

/// Prints a line at once. A reader who has gone is no error.
pub(crate) fn say(line: &str) {
    let mut out = stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
}

/// Breaks a text into lines that begin with `indent` spaces, the first of them with `first`, which is as wide. A word that is longer than a
/// line is not broken.
pub(crate) fn wrapped(first: &str, indent: usize, text: &str) -> String {
    let mut lines = vec![format!("{first:<indent$}")];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a first line");
        let is_empty = line.chars().count() <= indent;
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(" ".repeat(indent) + word);
        } else {
            *line += if is_empty { "" } else { " " };
            *line += word;
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_at_most_80_columns_wide() {
        let text = "a word and ".repeat(30);
        let shown = wrapped("  expected", 12, &text);
        assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
        assert!(shown.starts_with("  expected  a word and a word"), "{shown}");
        assert!(shown.lines().skip(1).all(|line| line.starts_with("            ") && !line.starts_with("             ")), "{shown}");
        assert_eq!(wrapped("", 2, &"x".repeat(100)), format!("  {}", "x".repeat(100)));
    }

    #[test]
    fn colours_are_left_out() {
        let style = Style::plain();
        assert_eq!((style.bold("a"), style.cleared()), ("a".into(), ""));
        assert_eq!(Style { has_colours: true }.good("a"), "\u{1b}[32ma\u{1b}[0m");
    }
}
