//! The machine and date of a comparison, for the report.

use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the processor's name, or its architecture if the system does not report a name.
pub(super) fn processor() -> String {
    let linux = || {
        let text = fs::read_to_string("/proc/cpuinfo").ok()?;
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let macos = || {
        let output = Command::new("sysctl").args(["-n", "machdep.cpu.brand_string"]).output().ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (cfg!(target_os = "macos") && !name.is_empty()).then_some(name)
    };
    let windows = || std::env::var("PROCESSOR_IDENTIFIER").ok();
    linux().or_else(macos).or_else(windows).unwrap_or_else(|| std::env::consts::ARCH.into())
}

/// Returns the operating system's name and architecture.
pub(super) fn system() -> String {
    let pretty = || {
        let text = fs::read_to_string("/etc/os-release").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
        Some(line.trim_matches('"').to_owned())
    };
    let name = pretty().unwrap_or_else(|| std::env::consts::OS.into());
    format!("{name}, {}", std::env::consts::ARCH)
}

/// Returns the current date and time, such as 2026-03-01 17:05 UTC.
pub(super) fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    date(seconds)
}

/// Formats seconds since 1970 as a date and time.
fn date(seconds: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut day, mut year) = (seconds / 86_400, 1970);
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= lengths[month] {
        day -= lengths[month];
        month += 1;
    }
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}-{:02}-{:02} {hour:02}:{minute:02} UTC", month + 1, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_the_calendar() {
        // the expected texts are from `date -u -d @SECONDS`
        for (seconds, expected) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_208_000, "2024-02-29 12:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), expected);
        }
        assert!(!processor().is_empty() && !system().is_empty());
    }
}
