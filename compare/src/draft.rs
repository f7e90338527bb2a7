//! The contents of the file of a comparison, before its agents are built, and what the files of all kinds of studies have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gradus_base::names;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::file::{Comparison, Statistic, environments, played, seeds};
use gradus::config::inputs;
use gradus::envs::registry;
use gradus::files::{format, read_named_to_string};
use gradus::{Config, Error};

/// Reads the file of a study: `parse` gets its text, its name without the ending, and its folder. Errors name the file.
pub(super) fn read_with<T>(path: &Path, usual: &str, parse: impl FnOnce(&str, (&str, &Path)) -> Result<T, String>) -> Result<T, Error> {
    let text = read_named_to_string(path)?;
    let stem = path.file_stem().map_or_else(|| usual.into(), |stem| stem.to_string_lossy());
    let dir = path.parent().unwrap_or(Path::new(""));
    parse(&text, (&stem, dir)).map_err(|problem| Error::folder(path, problem))
}

/// Parses the text of the file of a study in the folder `dir`. `what` is what is expected, such as "a comparison".
pub(super) fn contents<T: DeserializeOwned>(text: &str, dir: &Path, what: &str) -> Result<T, String> {
    // checks the format first, because a newer file may have keys that are unknown to this version
    let mut table = toml::from_str::<Table>(text).unwrap_or_default();
    if table.get("agent").is_some_and(Value::is_array) && !table.contains_key("agents") {
        return Err("unknown key `agent`; did you mean `[[agents]]`?".into());
    }
    if table.contains_key("agent") && !table.contains_key("agents") {
        return Err(format!("expected {what}, with `environments` and `[[agents]]`, got the settings of a run"));
    }
    format::check(table.get("format").and_then(Value::as_integer), format::COMPARISON)?;
    let file = toml::from_str(text).map_err(|error| toml_problem(text, &error))?;
    match inputs::resolve(&mut table, dir) {
        true => table.try_into().map_err(|error: toml::de::Error| toml_problem(text, &error)),
        false => Ok(file),
    }
}

/// The contents of a comparison file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// Format number, checked before the file is parsed.
    #[serde(default, rename = "format")]
    pub(super) _format: Option<i64>,
    pub(super) name: Option<String>,
    pub(super) environments: Vec<String>,
    pub(super) seeds: Value,
    pub(super) steps: Value,
    #[serde(default = "twenty")]
    pub(super) evaluations: i64,
    #[serde(default = "twenty")]
    pub(super) evaluation_episodes: i64,
    #[serde(default)]
    pub(super) statistic: Statistic,
    #[serde(default)]
    pub(super) score: BTreeMap<String, [f64; 2]>,
    #[serde(default)]
    pub(super) fall: BTreeMap<String, f64>,
    #[serde(default)]
    pub(super) task_bootstrap: bool,
    #[serde(default)]
    pub(super) x: Steps,
    pub(super) finding: Option<String>,
    pub(super) agents: Vec<Entry>,
}

/// The axis of steps of the curves.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Steps {
    #[default]
    Linear,
    Log,
}

fn twenty() -> i64 {
    20
}

/// An agent of a comparison file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    pub(super) name: Option<String>,
    pub(super) agent: String,
    pub(super) preset: Option<String>,
    pub(super) steps: Option<Value>,
    pub(super) only: Option<Vec<String>>,
    #[serde(default)]
    pub(super) settings: Table,
    #[serde(default)]
    pub(super) environments: BTreeMap<String, Override>,
    /// Settings of one point of a study, applied last.
    #[serde(skip)]
    pub(super) varied: Table,
}

impl Entry {
    /// Returns what the agent has only in the environment of this name, however the file spells it.
    pub(super) fn over(&self, environment: &str) -> Option<&Override> {
        let is_meant = |key: &str| registry::find(key).is_ok_and(|world| world.name == environment);
        self.environments.iter().find(|(key, _)| is_meant(key)).map(|(_, over)| over)
    }
}

/// Returns settings of a file with one key for each, `section.name`.
pub(super) fn named_settings(config: &Config, settings: &Table) -> Table {
    let mut named = Table::new();
    for (key, value) in settings {
        match value {
            Value::Table(section) => named.extend(section.iter().map(|(name, value)| (format!("{key}.{name}"), value.clone()))),
            value => _ = named.insert(config.setting_name(key), value.clone()),
        }
    }
    named
}

/// What an agent has in one environment only.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Override {
    pub(super) preset: Option<String>,
    #[serde(default)]
    pub(super) settings: Table,
}

/// An agent whose settings are varied.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Varied {
    name: Option<String>,
    agent: String,
    preset: Option<String>,
    steps: Option<Value>,
    only: Option<Vec<String>>,
    #[serde(default)]
    settings: Table,
    #[serde(default)]
    environments: BTreeMap<String, Override>,
    space: Table,
}

impl Varied {
    /// Returns the agent without values of its space, and the space.
    pub(super) fn split(self) -> (Entry, Table) {
        let Self { name, agent, preset, steps, only, settings, environments, space } = self;
        (Entry { name, agent, preset, steps, only, settings, environments, varied: Table::new() }, space)
    }
}

/// The contents of a comparison's file, whose agents are not built yet.
pub struct Draft {
    pub(super) file: File,
    /// The text of the file.
    pub(super) text: String,
    /// The comparison's name, if the file has none.
    pub(super) stem: String,
    /// The folder of the file.
    pub(super) dir: PathBuf,
    /// Whether agents have been left out.
    pub(super) is_part: bool,
}

impl Draft {
    /// Reads a comparison file. Error messages name the file and the line or key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        read_with(path, "comparison", Self::parse)
    }

    pub(super) fn parse(text: &str, (stem, dir): (&str, &Path)) -> Result<Self, String> {
        let agents = toml::from_str::<Table>(text).unwrap_or_default().remove("agents");
        let has_space = |agents: &Vec<Value>| agents.iter().any(|agent| agent.get("space").is_some());
        if agents.as_ref().and_then(Value::as_array).is_some_and(has_space) {
            return Err("expected a comparison, got a file with `agents.space`, for `gradus sweep` or `gradus tune`".into());
        }
        let file = contents(text, dir, "a comparison")?;
        Ok(Self { file, text: text.into(), stem: stem.into(), dir: dir.into(), is_part: false })
    }

    /// Builds the configurations of all agents, and with `tries_out` also the agents.
    pub(super) fn build(self, tries_out: bool) -> Result<Comparison, String> {
        Comparison::build(self, tries_out)
    }

    /// The number of runs of each agent of the file: environments x seeds.
    fn runs_of_each(&self) -> Result<Vec<usize>, String> {
        let (environments, seeds) = (environments(&self.file.environments)?, seeds(&self.file.seeds)?.len());
        let runs = |entry: &Entry| {
            let name = entry.name.as_ref().unwrap_or(&entry.agent);
            Ok(seeds * played(&environments, name, entry)?.into_iter().filter(|played| *played).count())
        };
        self.file.agents.iter().map(runs).collect()
    }

    /// The number of runs.
    pub fn runs(&self) -> Result<usize, String> {
        Ok(self.runs_of_each()?.iter().sum())
    }

    /// Builds the agents that the runs in `wanted` have, given by their places among all runs in ascending order. Returns the places of these runs among those of the result.
    pub(super) fn part(mut self, wanted: &[usize]) -> Result<(Comparison, Vec<usize>), String> {
        let (mut first, mut kept, mut places) = (0, 0, Vec::new());
        let mut left = wanted.iter().peekable();
        let counts = self.runs_of_each()?;
        let all = std::mem::take(&mut self.file.agents);
        for (entry, count) in all.into_iter().zip(counts) {
            let before = places.len();
            while let Some(place) = left.next_if(|place| **place < first + count) {
                places.push(kept + place - first);
            }
            if places.len() > before {
                self.file.agents.push(entry);
                kept += count;
            }
            first += count;
        }
        Ok((Draft { is_part: true, ..self }.build(false)?, places))
    }
}

/// Formats the parser's error in one line, with the line number and the nearest valid key.
fn toml_problem(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
    let place = line.map_or_else(String::new, |line| format!("line {line}: "));
    let message = error.message().replace('\n', " ");
    let key = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    match key {
        Some((key, rest)) => {
            let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
            format!("{place}unknown key `{key}`; {}", names::hint(key, &known))
        }
        None if message.starts_with("invalid type") => {
            // the parser's words for types are Rust's
            let (_, types) = message.split_once(": ").unwrap_or_default();
            let (got, expected) = types.split_once(", expected ").unwrap_or(("", types));
            let in_toml = |name: &str| {
                name.replace("struct Entry", "tables [[agents]], such as one with `agent = \"ppo\"`")
                    .replace("struct Step", "tables, such as { steps = 0.5, seeds = 2 }")
                    .replace("a boolean", "true or false")
                    .replace("a sequence", "a list")
                    .replace("a map", "a table")
                    .replace("map", "a table")
            };
            let key = error.span().map(|span| text[..span.start.min(text.len())].rsplit('\n').next().unwrap_or_default());
            let key = key.and_then(|line| line.split_once('=')).map_or_else(String::new, |(key, _)| format!("{}: ", key.trim()));
            format!("{place}{key}expected {}, got {}", in_toml(expected), in_toml(got))
        }
        None => format!("{place}{}", message.replace("missing field", "missing key")),
    }
}
