//! Reads traces from text, and writes episodes as lines of a trace.

use std::io;
use std::path::Path;

use gradus_envs::Ending;
use gradus_envs::text::json_lines;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::Error;
use crate::files::{format, read_named_to_string};

use super::{Episode, Place, RecordedAction, Start, TraceError, check_lengths, input};

/// Reads the episodes of the trace at `path`.
pub fn read(path: impl AsRef<Path>) -> Result<Vec<Episode>, TraceError> {
    let file = path.as_ref().display().to_string();
    let text = read_named_to_string(path.as_ref()).map_err(|error| {
        let error = match error {
            Error::Io { source, .. } => source,
            Error::Folder { problem, .. } => io::Error::other(problem),
            other => io::Error::other(other),
        };
        TraceError::File { file: file.clone(), error }
    })?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let episodes = lines.map(|(i, line)| parse(Place { file: file.clone(), line: i + 1 }, line)).collect::<Result<Vec<_>, _>>()?;
    match episodes.is_empty() {
        true => Err(TraceError::Empty { file }),
        false => Ok(episodes),
    }
}

/// Parses a line of a trace. Does not use serde's derive, whose errors do not name the key, row and number.
fn parse(place: Place, line: &str) -> Result<Episode, TraceError> {
    let object = json_lines::object(line).map_err(|error| {
        // Python writes NaN and Infinity, which are not JSON; serde's error "expected value" does not name them
        let rest = line.get(error.column().saturating_sub(1)..).unwrap_or_default();
        match ["NaN", "Infinity"].into_iter().find(|token| rest.starts_with(token)) {
            Some(token) => input(&place, &format!("column {}", error.column()), "a finite number", token),
            // the line number of serde_json is always 1; `place` has the line number in the file
            None => input(&place, "episode", "a JSON object", error.to_string().replace(" at line 1 column", " at column")),
        }
    })?;
    let object = &object.ok_or_else(|| input(&place, "episode", "a JSON object", shown(&line.parse().unwrap_or_default())))?;
    if let Some(number) = object.get("format") {
        let problem = |expected: &str| input(&place, "format", expected, shown(number));
        let number = number.as_i64().ok_or_else(|| problem("a whole number"))?;
        format::check(Some(number), format::EPISODES).map_err(|_| problem("1, the only format that this version reads"))?;
    }
    let key = |name: &str| object.get(name).ok_or_else(|| input(&place, name, "a value", "no such key"));
    let list = |name: &str| {
        let value = key(name)?;
        value.as_array().ok_or_else(|| input(&place, name, "an array", shown(value)))
    };
    let flag = |name: &str| {
        let value = key(name)?;
        value.as_bool().ok_or_else(|| input(&place, name, "true or false", shown(value)))
    };

    let env = key("env")?;
    let env = env.as_str().ok_or_else(|| input(&place, "env", "a name", shown(env)))?.to_string();
    let start = match object.contains_key("episode_seed") && !object.contains_key("start") {
        false => Start::State(each(list("start")?, |i, value| number(&place, &format!("start[{i}]"), value))?),
        true => Start::Seed { seed: seed(&place, "episode_seed", object)?, rng: rng(&place, object)? },
    };
    let actions: Vec<_> = each(list("actions")?, |i, value| action(&place, &format!("actions[{i}]"), value))?;
    let observations: Vec<Vec<f32>> = each(list("observations")?, |i, row| {
        let what = format!("observations[{i}]");
        let row = row.as_array().ok_or_else(|| input(&place, &what, "an array of numbers", shown(row)))?;
        each(row, |j, value| number_f32(&place, &format!("{what}[{j}]"), value))
    })?;
    let rewards: Vec<f32> = each(list("rewards")?, |i, value| number_f32(&place, &format!("rewards[{i}]"), value))?;
    let ending = Ending::new(flag("terminated")?, flag("truncated")?);
    let episode = Episode { env, start, actions, observations, rewards, ending, place: place.clone() };
    check_lengths(&episode)?;
    Ok(episode)
}

fn seed(place: &Place, name: &str, object: &Map<String, Value>) -> Result<u64, TraceError> {
    object[name].as_u64().ok_or_else(|| input(place, name, "a whole number from 0 up", shown(&object[name])))
}

fn rng(place: &Place, object: &Map<String, Value>) -> Result<Option<u64>, TraceError> {
    let keys = ["dynamics_seed", "luck_seed"]; // files of earlier versions have the second key
    keys.into_iter().find(|key| object.contains_key(*key)).map(|key| seed(place, key, object)).transpose()
}

/// Returns the JSON text of `value`, cut after 40 characters to keep errors short.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn each<T>(values: &[Value], read: impl Fn(usize, &Value) -> Result<T, TraceError>) -> Result<Vec<T>, TraceError> {
    values.iter().enumerate().map(|(i, value)| read(i, value)).collect()
}

fn number(place: &Place, what: &str, value: &Value) -> Result<f64, TraceError> {
    value.as_f64().ok_or_else(|| input(place, what, "a number", shown(value)))
}

fn number_f32(place: &Place, what: &str, value: &Value) -> Result<f32, TraceError> {
    let rounded = number(place, what, value)? as f32;
    match rounded.is_finite() {
        true => Ok(rounded),
        false => Err(input(place, what, "a finite f32 number", shown(value))),
    }
}

fn action(place: &Place, what: &str, value: &Value) -> Result<RecordedAction, TraceError> {
    if let Some(row) = value.as_array() {
        return Ok(RecordedAction::Continuous(each(row, |i, value| number_f32(place, &format!("{what}[{i}]"), value))?));
    }
    let whole = value.as_u64().and_then(|action| u32::try_from(action).ok());
    whole.map(RecordedAction::Discrete).ok_or_else(|| input(place, what, "a whole number or an array of numbers", shown(value)))
}

/// A line of the file. The fields are written in this order.
#[derive(Serialize)]
struct Line<'a> {
    format: u64,
    env: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<&'a [f64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    episode_seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dynamics_seed: Option<u64>,
    actions: &'a [RecordedAction],
    observations: &'a [Vec<f32>],
    rewards: &'a [f32],
    terminated: bool,
    truncated: bool,
}

impl Episode {
    /// Returns the episode as a line of a trace, without the line end. Numbers keep all their digits.
    pub fn to_json(&self) -> String {
        let (start, episode_seed, dynamics_seed) = match &self.start {
            Start::State(state) => (Some(state.as_slice()), None, None),
            Start::Seed { seed, rng } => (None, Some(*seed), *rng),
        };
        let Self { env, actions, observations, rewards, ending, .. } = self;
        let (terminated, truncated) = (ending.terminated(), ending.truncated());
        let line = Line {
            format: format::EPISODES,
            env,
            start,
            episode_seed,
            dynamics_seed,
            actions,
            observations,
            rewards,
            terminated,
            truncated,
        };
        serde_json::to_string(&line).expect("numbers and names are JSON")
    }
}
