//! Files with one JSON object per line (JSON Lines). Errors name the line and are one line themselves.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Map, Value};

use crate::EnvError;

/// Maximum length of a line, in bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// Reads the file `path` with `read`. The error names the file.
pub fn open<T>(path: &Path, read: impl FnOnce(BufReader<File>) -> Result<T, EnvError>) -> Result<T, EnvError> {
    let file = File::open(path).map_err(|error| EnvError::Text(format!("cannot read {}: {error}", path.display())))?;
    read(BufReader::new(file)).map_err(|error| match error {
        EnvError::Text(what) => EnvError::Text(format!("{}: {what}", path.display())),
        error => error,
    })
}

/// Receives the number, the text and the object of a line. Returns what is wrong with the line.
pub type EachLine<'a> = dyn FnMut(usize, &str, Map<String, Value>) -> Result<(), String> + 'a;

/// Calls `each` with the number, the text and the object of every line that is not blank.
pub fn objects(mut lines: impl BufRead, each: &mut EachLine<'_>) -> Result<(), EnvError> {
    for number in 1.. {
        let Some(text) = next_line(&mut lines).map_err(|what| at(number, what))? else { break };
        let text = text.trim_start_matches('\u{feff}'); // the byte order mark of some editors
        if text.trim().is_empty() {
            continue;
        }
        let value: Value = text.parse().map_err(|error| at(number, not_json(&error)))?;
        let Value::Object(fields) = value else {
            return Err(at(number, format!("expected an object in braces, got `{}`", short(text))));
        };
        each(number, text, fields).map_err(|what| at(number, what))?;
    }
    Ok(())
}

/// Adds the number of the line to an error.
pub fn at(number: usize, what: String) -> EnvError {
    EnvError::Text(format!("line {number}: {what}"))
}

/// Returns a text, or its beginning if it is long, in one line.
pub fn short(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut shown: String = text.trim().chars().take(LONGEST).collect();
    if text.trim().chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown.replace(['\n', '\r'], " ")
}

fn not_json(error: &serde_json::Error) -> String {
    format!("expected JSON, got an error at column {}: {}", error.column(), error.to_string().replace('\n', " "))
}

/// Reads a line, without reading more than the longest allowed line into memory. Returns `None` at the end of the file.
fn next_line(lines: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let n = lines.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut bytes).map_err(|error| error.to_string())?;
    if n as u64 > LONGEST_LINE {
        return Err(format!("expected at most {LONGEST_LINE} bytes, got more"));
    }
    if n == 0 {
        return Ok(None);
    }
    String::from_utf8(bytes).map(Some).map_err(|_| "expected UTF-8, got other bytes".into())
}

/// Returns an error unless every key is one of `keys`.
pub fn known(fields: &Map<String, Value>, keys: &[&str]) -> Result<(), String> {
    match fields.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("expected the keys {}, got `{}`", keys.join(", "), short(key))),
        None => Ok(()),
    }
}
