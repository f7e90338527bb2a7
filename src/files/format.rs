//! The numbers of the formats that are written, and what becomes of files with another number.
//!
//! | format | where its number stands | newest | what an older one means |
//! | --- | --- | --- | --- |
//! | run folder: settings, checkpoint, policy, rankings | `format` in `config.toml`, and in the copy of it that every tensor file carries | 2 | 1, without a number, is read: settings that were renamed since have their new names |
//! | comparison | `format` in `comparison.toml` | 1 | there is none; no number is 1 |
//! | recorded episodes | `format` in each line | 1 | there is none; no number is 1 |
//!
//! A larger number is that of a newer version and is refused by name. A number grows when files that an older version reads would be
//! misunderstood by it; keys that it would refuse anyway need no new number.

use toml::{Table, Value};

/// The newest format of a run folder.
pub(crate) const RUN: u64 = 2;
/// The newest format of a comparison.
pub(crate) const COMPARISON: u64 = 1;
/// The newest format of recorded episodes.
pub(crate) const EPISODES: u64 = 1;

/// Settings whose keys have changed: the old one and the new one.
const RENAMED: [(&str, &str); 1] = [("slots", "max_concurrent")];

/// The number `got`, if it is one that is read; or in one line what was expected.
pub(crate) fn check(got: Option<i64>, newest: u64) -> Result<u64, String> {
    let got = got.unwrap_or(1);
    match u64::try_from(got) {
        Ok(number) if (1..=newest).contains(&number) => Ok(number),
        Ok(number) if number > newest => Err(format!("format: expected {newest} at most, got {number}, which a newer gradus has written")),
        _ => Err(format!("format: expected 1 to {newest}, got {got}")),
    }
}

/// Takes the number of a run's settings out of `table`, and gives settings of an older format their present names.
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

/// The present name of a setting that was called `key`.
pub(crate) fn renamed(key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(old, _)| *old == key).map(|(_, new)| *new)
}
