//! `gradus check`: checks an environment, or replays recorded episodes in it.

use std::path::PathBuf;

use gradus::envs::checker::{Severity, Topic, check_world};
use gradus::envs::registry;
use gradus::evaluate::trace;
use gradus::{Error, program_name};

use crate::output::say;

pub(crate) fn check(env: &str) -> Result<u8, Error> {
    // an exercise of the course, typed without `course`
    if env.parse::<f32>().is_ok() && registry::find(env).is_err() {
        let expected =
            format!("an environment, such as cartpole; the exercises of the course are checked by `{} course check {env}`", program_name());
        return Err(Error::Parse { what: "check".into(), expected, got: env.into() });
    }
    let world = registry::find(env)?;
    let findings = check_world(&world);
    let mut passed = 0;
    for topic in Topic::ALL {
        let found: Vec<_> = findings.iter().filter(|finding| finding.topic == topic).collect();
        let is_unchecked = topic != Topic::Spaces && findings.iter().any(|finding| finding.topic == Topic::Spaces);
        if found.is_empty() {
            say(format!("{}  {topic}", if is_unchecked { "-    " } else { "ok   " }));
        }
        for finding in &found {
            let mark = match finding.severity {
                Severity::Fault => "FAULT",
                Severity::Note => "note ",
                Severity::Skipped => "-    ",
            };
            say(format!("{mark}  {finding}"));
        }
        passed += usize::from(!is_unchecked && found.iter().all(|finding| finding.severity == Severity::Note));
    }
    say(format!("{}: {passed} of {} topics passed", world.title(), Topic::ALL.len()));
    Ok(u8::from(findings.iter().any(|finding| finding.severity == Severity::Fault)))
}

pub(crate) fn replay(env: &str, path: &PathBuf) -> Result<u8, Error> {
    let report = trace::check_file(&registry::find(env)?, path)?;
    for episode in &report.episodes {
        if let Some(difference) = &episode.difference {
            say(format!("line {} ({} steps): {difference}", episode.line, episode.steps));
        }
    }
    let (agreeing, all) = (report.agreeing(), report.episodes.len());
    say(format!("{agreeing} of {all} episodes agree"));
    Ok(u8::from(agreeing < all))
}
