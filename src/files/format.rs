//! Version numbers of the file formats, and how files with another number are read.
//!
//! | format | where the number is stored | newest | older numbers |
//! | --- | --- | --- | --- |
//! | run folder: settings, checkpoint, policy, rankings | `format` in `config.toml`, and in its copy in every tensor file | 2 | 1, which has no stored number; such files are read, and renamed settings get their new names |
//! | comparison | `format` in `comparison.toml` | 1 | none; a missing number means 1 |
//! | recorded episodes | `format` in each line | 1 | none; a missing number means 1 |
//!
//! A file with a larger number was written by a newer version, and reading it is an error. Increase a number if older versions would
//! misread new files. A new key needs no new number if older versions reject it as unknown.

use toml::{Table, Value};

/// The newest format of a run folder.
pub(crate) const RUN: u64 = 2;
/// The newest format of a comparison.
pub const COMPARISON: u64 = 1;
/// The newest format of recorded episodes.
pub(crate) const EPISODES: u64 = 1;

/// Renamed settings: the old and the new key.
const RENAMED: [(&str, &str); 1] = [("slots", "max_concurrent")];

/// Returns the format number `got`, or 1 if it is `None`. Returns a one-line error if the number is not supported.
pub fn check(got: Option<i64>, newest: u64) -> Result<u64, String> {
    let got = got.unwrap_or(1);
    match u64::try_from(got) {
        Ok(number) if (1..=newest).contains(&number) => Ok(number),
        Ok(number) if number > newest => Err(format!("format: expected {newest} at most, got {number}, written by a newer gradus")),
        _ => Err(format!("format: expected 1 to {newest}, got {got}")),
    }
}

/// Removes the format number from the settings of a run, and renames the settings of an older format.
pub(crate) fn settings(table: &mut Table) -> Result<(), String> {
    let number = match table.remove("format") {
        None => None,
        Some(Value::Integer(number)) => Some(number),
        Some(other) => return Err(format!("format: expected a whole number, got {other}")),
    };
    if check(number, RUN)? == 1 {
        for (old, new) in RENAMED {
            if let Some(value) = table.remove(old) {
                table.entry(new).or_insert(value);
            }
        }
    }
    Ok(())
}

/// Returns the current name of the renamed setting whose old name is `key`.
pub(crate) fn renamed(key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| *old == key).map(|(_, new)| *new)
}
