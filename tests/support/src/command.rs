//! Helpers for the tests of the command line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Returns the one line of the error of a command that must fail with exit code 2.
pub fn error_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert_eq!(text.lines().count(), 1, "expected one line: {text}");
    as_on_unix(text.trim_end().strip_prefix("error: ").expect("an error begins with `error: `"))
}

/// Replaces Windows' separators and messages by those of Unix, which the tests expect.
fn as_on_unix(text: &str) -> String {
    if cfg!(windows) {
        return text.replace('\\', "/").replace("The system cannot find the file specified.", "No such file or directory");
    }
    text.to_owned()
}

/// Returns all files of a folder, including hidden files, with their contents.
pub fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .flat_map(|path| if path.is_dir() { contents(&path) } else { vec![(path.clone(), fs::read(path).unwrap())] })
        .collect();
    found.sort();
    found
}
