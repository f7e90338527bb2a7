//! Files with one JSON object per line (JSON Lines). Errors name the line and are one line themselves.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_core::de::{Error, MapAccess, Visitor};
use serde_core::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::EnvError;
use gradus_base::files::MARK;

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
        let text = if number == 1 { text.trim_start_matches(MARK) } else { &text };
        if text.trim().is_empty() {
            continue;
        }
        let fields = object(text).map_err(|error| at(number, not_json(&error)))?;
        let Some(fields) = fields else {
            return Err(at(number, format!("expected an object in braces, got `{}`", short(text))));
        };
        each(number, text, fields).map_err(|what| at(number, what))?;
    }
    Ok(())
}

/// Parses the object in a text; `None` if the text is another value. An object that has a key twice is an error, because readers differ in which of the two
/// they take.
///
/// ```
/// use gradus_envs::text::json_lines::object;
/// assert_eq!(object(r#"{"a": 1}"#)?.map(|fields| fields.len()), Some(1));
/// assert!(object("[1]")?.is_none());
/// assert_eq!(object(r#"{"a": 1, "a": 2}"#).unwrap_err().to_string(), "the key `a` occurs twice at line 1 column 12");
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn object(text: &str) -> Result<Option<Map<String, Value>>, serde_json::Error> {
    if !text.trim_start().starts_with('{') {
        return text.parse::<Value>().map(|_| None);
    }
    serde_json::from_str(text).map(|Fields(fields)| Some(fields))
}

/// The fields of an object, each once.
struct Fields(Map<String, Value>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Unique;
        impl<'de> Visitor<'de> for Unique {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Fields, A::Error> {
                let mut fields = Map::new();
                while let Some(key) = access.next_key::<String>()? {
                    if fields.contains_key(&key) {
                        return Err(A::Error::custom(format_args!("the key `{}` occurs twice", short(&key))));
                    }
                    fields.insert(key, access.next_value()?);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Unique)
    }
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
