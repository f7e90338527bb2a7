//! Parsers of arguments that several commands have.

use gradus::Error;
use gradus::agents::ConfigError;
use gradus::config::parse_steps;
use gradus::nets::{Device, NetworkError, UnknownDevice, threads};

/// Parses a whole number of at least `least`.
pub(crate) fn number(what: &str, text: &str, least: u64) -> Result<u64, Error> {
    number_within(what, text, least, i64::MAX as u64)
}

/// Parses a whole number from `least` to `most`, such as 5000 or 5k.
pub(crate) fn number_within(what: &str, text: &str, least: u64, most: u64) -> Result<u64, Error> {
    let number = text.parse().ok().or_else(|| parse_steps(text).ok());
    let too_large = text.len() > 15 || number.is_some_and(|n| n > most);
    let upper = if too_large { format!("to {most}") } else { "up".into() };
    let parsed = number.filter(|n| (least..=most).contains(n));
    parsed.ok_or_else(|| Error::Parse { what: what.into(), expected: format!("a whole number from {least} {upper}"), got: text.into() })
}

/// Parses the name of a device.
pub(crate) fn device(name: &str) -> Result<Device, Error> {
    Ok(name.parse().map_err(|error: UnknownDevice| NetworkError::Device(error.to_string()))?)
}

/// Runs `work` on `count` threads; if `count` is `None`, on one thread per core.
pub(crate) fn on_threads<T>(count: Option<&str>, work: impl FnOnce() -> T) -> Result<T, Error> {
    let count = count.map(|text| number("--threads", text, 1)).transpose()?.unwrap_or(threads::cores() as u64);
    ConfigError::unless(count <= 256, "--threads", "1 to 256", count)?;
    Ok(threads::with(count as usize, work))
}
