//! Reads and checks the file that describes a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};

use gradus::envs::registry;
use serde::Deserialize;
use toml::{Table, Value};

use super::draft::{Draft, Entry, Override, Steps};
use gradus::config::{MOST, inputs, parse_steps};
use gradus::{Config, Error, Trainer};

/// The statistic over runs that the curves show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The interquartile mean.
    #[default]
    Iqm,
    /// The mean.
    Mean,
}

/// One agent of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Name in tables and figures.
    pub name: String,
    /// The configuration for each of the agent's environments, by the environment's place in the comparison; the seed is set for each run.
    pub configs: BTreeMap<usize, Config>,
}

/// A comparison: agents x environments x seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Title of the report.
    pub name: String,
    /// Text of the comparison file.
    pub text: String,
    /// The environments, by their names in Gradus. The path of one from a file is relative to the folder of the comparison file.
    pub environments: Vec<String>,
    /// The folder of the comparison file.
    pub(super) folder: PathBuf,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// Evaluations of a run of `steps` steps, not counting the one before training. Agents with other numbers of steps are evaluated at the
    /// same intervals.
    pub evaluations: u64,
    /// Training steps in each environment, for agents without their own number.
    pub steps: Vec<u64>,
    /// Episodes per evaluation.
    pub episodes: usize,
    /// The statistic over runs that the curves show.
    pub statistic: Statistic,
    /// For each environment, the returns whose normalised scores are 0 and 1. Given for all environments or for none.
    pub score: BTreeMap<String, [f64; 2]>,
    /// For each environment, the return below which a solved run counts as fallen.
    pub fall: BTreeMap<String, f64>,
    /// Whether intervals over all environments resample the environments as well as the runs.
    pub task_bootstrap: bool,
    /// Whether the curves have a logarithmic axis of steps.
    pub log_steps: bool,
    /// Title of the figure of the curves, in the place of the usual one.
    pub finding: Option<String>,
    /// The agents.
    pub agents: Vec<Contender>,
}

/// Settings that a comparison sets for all its runs.
const COMMON: [&str; 7] = ["agent", "environment", "steps", "seed", "evaluate_every", "evaluate_episodes", "stop_at"];

impl Comparison {
    /// Reads a comparison file and builds every agent once, to find invalid settings. Error messages name the file and the line or key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_as(path, true)
    }

    /// As [`read`](Comparison::read), from the text of a file. The comparison is called `name` if the text has no name.
    pub fn from_text(text: &str, name: &str) -> Result<Self, String> {
        Self::parse(text, name, true)
    }

    /// As [`from_text`](Comparison::from_text), for the text of a file in a folder.
    pub(super) fn from_text_in(text: &str, (name, dir): (&str, &Path)) -> Result<Self, String> {
        Draft::parse(text, (name, dir))?.build(true)
    }

    /// Reads a comparison file. With `tries_out`, also builds every agent, which fails if the settings name a folder that does not exist.
    pub(super) fn read_as(path: &Path, tries_out: bool) -> Result<Self, Error> {
        Draft::read(path)?.build(tries_out).map_err(|problem| Error::folder(path, problem))
    }

    /// Parses the text of a comparison file. `stem` is the comparison's name if the text has none.
    fn parse(text: &str, stem: &str, tries_out: bool) -> Result<Self, String> {
        Draft::parse(text, (stem, Path::new("")))?.build(tries_out)
    }

    pub(super) fn build(Draft { file, text, stem, dir, is_part }: Draft, tries_out: bool) -> Result<Self, String> {
        let dir = dir.as_path();
        let environments = environments(&file.environments)?;
        let score: BTreeMap<_, _> = file
            .score
            .iter()
            .map(|(key, range)| Ok((environment_key("score", key, &environments)?, *range)))
            .collect::<Result<_, String>>()?;
        for (environment, [low, high]) in &score {
            let is_range = low.is_finite() && high.is_finite() && low < high;
            unless(is_range, &format!("score.{environment}"), "two numbers, the second above the first", format!("[{low}, {high}]"))?;
        }
        if let Some(environment) = environments.iter().find(|name| !score.is_empty() && !score.contains_key(*name)) {
            return Err(format!("score: expected a range for every environment or for none, got none for {environment}"));
        }
        // the default threshold is a score of 0.6
        let mut fall: BTreeMap<String, f64> = score.iter().map(|(name, [low, high])| (name.clone(), low + 0.6 * (high - low))).collect();
        let solved_at = |name: &str| registry::find(name).ok().and_then(|world| world.solved_at).unwrap_or(f64::INFINITY);
        fall.retain(|name, value| *value < solved_at(name));
        for (key, value) in &file.fall {
            unless(value.is_finite(), &format!("fall.{key}"), "a finite return", value)?;
            let name = environment_key("fall", key, &environments)?;
            unless(
                *value < solved_at(&name),
                &format!("fall.{key}"),
                &format!("a return below {}, at which the environment is solved", solved_at(&name)),
                value,
            )?;
            fall.insert(name, *value);
        }
        for (what, text) in [("name", &file.name), ("finding", &file.finding)] {
            let is_line = text.as_ref().is_none_or(|text| !text.chars().any(char::is_control));
            unless(is_line, what, "a text in one line", format!("{:?}", text.as_deref().unwrap_or_default()))?;
        }
        let evaluations = within("evaluations", file.evaluations, 1, 10_000)?;
        let mut comparison = Self {
            name: file.name.unwrap_or(stem),
            text,
            seeds: seeds(&file.seeds)?,
            evaluations,
            steps: Vec::new(),
            episodes: within("evaluation_episodes", file.evaluation_episodes, 1, MOST as u64)? as usize,
            statistic: file.statistic,
            score,
            fall,
            task_bootstrap: file.task_bootstrap,
            log_steps: file.x == Steps::Log,
            finding: file.finding,
            agents: Vec::new(),
            environments,
            folder: dir.into(),
        };
        let missing = |name: &String| Err(format!("steps: expected a number for {name}, got none"));
        let steps: Vec<u64> = comparison
            .given_steps("steps", &file.steps)?
            .into_iter()
            .zip(&comparison.environments)
            .map(|(steps, name)| steps.map_or_else(|| missing(name), Ok))
            .collect::<Result<_, _>>()?;
        if let Some((environment, few)) = comparison.environments.iter().zip(&steps).find(|(_, steps)| **steps < evaluations) {
            return Err(format!("evaluations: expected at most the number of steps, got {evaluations} for {few} steps on {environment}"));
        }
        comparison.steps = steps;
        unless(!file.agents.is_empty(), "agents", "at least one", "none")?;
        for entry in file.agents {
            let name = entry.name.clone().unwrap_or_else(|| entry.agent.clone());
            let is_line = !name.is_empty() && name.trim() == name && !name.chars().any(char::is_control);
            unless(is_line, "agents.name", "a name in one line, without blanks around it", format!("{name:?}"))?;
            if comparison.agents.iter().any(|other| other.name == name) {
                return Err(format!("agents: expected names that differ, got \"{name}\" twice"));
            }
            let played = played(&comparison.environments, &name, &entry)?;
            let steps = comparison.steps_of(&name, entry.steps.as_ref(), &played)?;
            let configs = comparison.configs(&name, &entry, (&played, &steps), tries_out)?;
            comparison.agents.push(Contender { name, configs });
        }
        let is_played = |at: &usize| comparison.agents.iter().any(|agent| agent.configs.contains_key(at));
        if let Some(at) = (0..comparison.environments.len()).find(|at| !is_part && !is_played(at)) {
            return Err(format!("agents: expected an agent on {}, got none", comparison.environments[at]));
        }
        // from here on, names do not depend on the current folder
        let seen = |name: &String| inputs::environment_from(name, dir);
        comparison.environments = comparison.environments.iter().map(seen).collect();
        comparison.score = comparison.score.iter().map(|(name, range)| (seen(name), *range)).collect();
        comparison.fall = comparison.fall.iter().map(|(name, value)| (seen(name), *value)).collect();
        Ok(comparison)
    }

    /// Returns the number of training steps for each environment that has one in `value`: one number for all environments, or a table.
    fn given_steps(&self, what: &str, value: &Value) -> Result<Vec<Option<u64>>, String> {
        match value {
            Value::Table(table) => {
                let given: BTreeMap<String, u64> = table
                    .iter()
                    .map(|(key, value)| Ok((environment_key(what, key, &self.environments)?, count_of_steps(what, value)?)))
                    .collect::<Result<_, String>>()?;
                Ok(self.environments.iter().map(|name| given.get(name).copied()).collect())
            }
            value => Ok(vec![Some(count_of_steps(what, value)?); self.environments.len()]),
        }
    }

    /// Returns the number of training steps of the agent `name` for each environment, with `own` where it is given. Its evaluations must be
    /// at the steps of the other agents' evaluations.
    fn steps_of(&self, name: &str, own: Option<&Value>, played: &[bool]) -> Result<Vec<u64>, String> {
        let Some(own) = own else { return Ok(self.steps.clone()) };
        let what = format!("agent \"{name}\": steps");
        let given = self.given_steps(&what, own)?;
        let steps =
            given.into_iter().zip(&self.steps).zip(self.environments.iter().zip(played)).map(|((own, all), (environment, played))| {
                let steps = own.filter(|_| *played).unwrap_or(*all);
                let is_whole = (u128::from(steps) * u128::from(self.evaluations)).is_multiple_of(u128::from(*all));
                let apart = *all as f64 / self.evaluations as f64;
                unless(is_whole, &what, &format!("a multiple of {apart}, the steps between two evaluations on {environment}"), steps)?;
                Ok(steps)
            });
        steps.collect()
    }

    /// Returns the number of evaluations of a run of `steps` steps in environment `at`, not counting the one before training.
    pub fn evaluations_of(&self, at: usize, steps: u64) -> u64 {
        (u128::from(steps) * u128::from(self.evaluations) / u128::from(self.steps[at])) as u64
    }

    /// Returns the configuration of one agent for each of its environments.
    fn configs(
        &self,
        name: &str,
        entry: &Entry,
        (played, steps): (&[bool], &[u64]),
        tries_out: bool,
    ) -> Result<BTreeMap<usize, Config>, String> {
        let is_played = |environment: &String| self.environments.iter().zip(played).any(|(other, played)| *played && other == environment);
        let mut overrides: BTreeMap<String, Override> = BTreeMap::new();
        for (key, value) in &entry.environments {
            let what = format!("agent \"{name}\": environments");
            let key = environment_key(&what, key, &self.environments)?;
            unless(is_played(&key), &what, "environments of `only`", &key)?;
            unless(!overrides.contains_key(&key), &what, "each environment once", format!("{key} twice"))?;
            overrides.insert(key, value.clone());
        }
        let resolve = |environment: &String, steps: u64| {
            let over = overrides.get(environment).cloned().unwrap_or_default();
            let config = Config::preset(&entry.agent, environment, over.preset.as_deref().or(entry.preset.as_deref()))?;
            // ignores a preset's steps and early stopping, because all runs of an agent on an environment have the same number of steps
            let config = Config { steps, seed: self.seeds[0], evaluate_every: 0, stop_at: f64::INFINITY, ..config };
            let layers = [&entry.settings, &over.settings, &entry.varied];
            let config = layers.into_iter().try_fold(config, with_settings)?;
            // finds invalid combinations of settings before the first run
            if tries_out {
                Trainer::new(config.clone())?;
            }
            // a run without an update has nothing to compare
            if config.starts_after_the_end().is_some() {
                return Err(Error::Parse {
                    what: format!("{}.learning_starts", config.agent),
                    expected: format!("below the {steps} steps of a run, or there is no update"),
                    got: config.starts_after_the_end().unwrap_or_default().to_string(),
                });
            }
            Ok(config)
        };
        let all = self.environments.iter().zip(steps).enumerate().filter(|(_, (environment, _))| is_played(environment));
        all.map(|(at, (environment, steps))| {
            let config = resolve(environment, *steps).map_err(|error: Error| format!("agent \"{name}\" on {environment}: {error}"))?;
            Ok((at, config))
        })
        .collect()
    }
}

/// Returns whether an agent is run in each environment.
pub(super) fn played(environments: &[String], name: &str, entry: &Entry) -> Result<Vec<bool>, String> {
    let Some(only) = &entry.only else { return Ok(vec![true; environments.len()]) };
    let what = format!("agent \"{name}\": only");
    unless(!only.is_empty(), &what, "at least one environment", "none")?;
    let only: Vec<String> = only.iter().map(|key| environment_key(&what, key, environments)).collect::<Result<_, _>>()?;
    Ok(environments.iter().map(|environment| only.contains(environment)).collect())
}

fn with_settings(config: Config, settings: &Table) -> Result<Config, Error> {
    if let Some(key) = settings.keys().find(|key| COMMON.contains(&key.as_str())) {
        let expected = "settings that the comparison does not set for all runs".to_string();
        return Err(Error::Parse { what: "settings".into(), expected, got: format!("`{key}`") });
    }
    // a key without a section is one of the agent, or the only one of its name, as for --set
    let mut named = Table::new();
    for (key, value) in settings {
        let name = if value.is_table() || key.contains('.') { key.clone() } else { config.setting_name(key) };
        if named.insert(name.clone(), value.clone()).is_some() {
            return Err(Error::Parse { what: "settings".into(), expected: "each setting once".into(), got: format!("`{name}` twice") });
        }
    }
    config.with_toml(&toml::to_string(&named).expect("a table is TOML"))
}

pub(super) fn unless(holds: bool, what: &str, expected: &str, got: impl Display) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what}: expected {expected}, got {got}")) }
}

pub(super) fn within(what: &str, number: i64, least: u64, most: u64) -> Result<u64, String> {
    let fits = u64::try_from(number).ok().filter(|number| (least..=most).contains(number));
    fits.ok_or_else(|| format!("{what}: expected {least} to {most}, got {number}"))
}

pub(super) fn environments(given: &[String]) -> Result<Vec<String>, String> {
    unless(!given.is_empty(), "environments", "at least one", "an empty list")?;
    let mut known: Vec<String> = Vec::new();
    for name in given {
        unless(!name.chars().any(char::is_control), "environments", "names in one line", format!("{name:?}"))?;
        let world = registry::find(name).map_err(|error| format!("environments: {error}"))?;
        unless(!known.contains(&world.name), "environments", "each environment once", format!("{} twice", world.name))?;
        known.push(world.name);
    }
    Ok(known)
}

/// Returns the Gradus name of the environment `key`, which must be one of the comparison's environments.
fn environment_key(what: &str, key: &str, environments: &[String]) -> Result<String, String> {
    let name = registry::find(key).map_err(|error| format!("{what}: {error}"))?.name;
    let named: Vec<&str> = environments.iter().map(String::as_str).collect();
    unless(named.contains(&name.as_str()), what, &format!("environments of this comparison ({})", named.join(", ")), &name)?;
    Ok(name)
}

pub(super) fn seeds(value: &Value) -> Result<Vec<u64>, String> {
    const MOST_SEEDS: u64 = 100_000;
    match value {
        Value::Integer(count) => Ok((1..=within("seeds", *count, 1, MOST_SEEDS)?).collect()),
        Value::Array(list) => {
            unless(!list.is_empty(), "seeds", "at least one", "an empty list")?;
            let seed = |value: &Value| value.as_integer().and_then(|seed| u64::try_from(seed).ok());
            let all: Vec<u64> = list
                .iter()
                .map(|value| seed(value).ok_or(format!("seeds: expected whole numbers from 0 up, got {value}")))
                .collect::<Result<_, _>>()?;
            let mut seen = BTreeSet::new();
            let twice = all.iter().find(|seed| !seen.insert(**seed));
            twice.map_or(Ok(()), |seed| unless(false, "seeds", "each seed once", format!("{seed} twice")))?;
            Ok(all)
        }
        other => Err(format!("seeds: expected a number of seeds or a list of them, got {other}")),
    }
}

fn count_of_steps(what: &str, value: &Value) -> Result<u64, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    parse_steps(&text).map_err(|problem| format!("{what}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "environments = [\"CartPole-v1\"]\nseeds = 3\nsteps = \"20k\"\n[[agents]]\nagent = \"ppo\"\n";

    #[test]
    fn a_file_is_resolved_to_configurations() {
        let more = "score = { cartpole = [0, 500] }\n[[agents]]\nname = \"A\"\nagent = \"ppo\"\npreset = \"cleanrl\"\nsettings = { \"ppo.clip\" = 0.3 }\n\
                    environments.cartpole = { settings = { ppo = { epochs = 3 } } }\n";
        let text = format!("{}{more}", PLAIN.replace("[[agents]]\nagent = \"ppo\"\n", ""));
        let comparison = Comparison::parse(&text, "stem", true).unwrap();
        assert_eq!((comparison.name.as_str(), comparison.seeds.as_slice()), ("stem", [1, 2, 3].as_slice()));
        assert_eq!(
            (comparison.environments.as_slice(), comparison.evaluations, comparison.episodes),
            (["cartpole".to_string()].as_slice(), 20, 20)
        );
        let config = &comparison.agents[0].configs[&0];
        let cleanrl = Config::preset("ppo", "cartpole", Some("cleanrl")).unwrap();
        let expected = cleanrl.with_setting("ppo.clip=0.3").and_then(|config| config.with_setting("ppo.epochs=3")).unwrap();
        assert_eq!(*config, Config { steps: 20_000, ..expected });
        // the default preset stops early; a comparison does not
        let plain = Comparison::parse(PLAIN, "stem", true).unwrap();
        let fewer = Comparison::parse(&format!("{PLAIN}steps = \"5k\"\n[[agents]]\nagent = \"a2c\"\n"), "stem", true).unwrap();
        let evaluations = |agent: usize| fewer.evaluations_of(0, fewer.agents[agent].configs[&0].steps);
        assert_eq!(([0, 1].map(|agent| fewer.agents[agent].configs[&0].steps), [0, 1].map(evaluations)), ([5_000, 20_000], [5, 20]));
        assert_eq!((plain.agents[0].configs[&0].stop_at, plain.agents[0].configs[&0].evaluate_every), (f64::INFINITY, 0));
    }

    #[test]
    fn errors_are_one_line_with_their_place() {
        let problem = |from: &str, to: &str| {
            assert!(PLAIN.contains(from));
            Comparison::parse(&PLAIN.replacen(from, to, 1), "stem", true).unwrap_err()
        };
        let agent = "[[agents]]\nagent = \"ppo\"\n";
        for (from, to, expected) in [
            ("seeds = 3", "seeds = 0", "seeds: expected 1 to 100000, got 0"),
            ("seeds = 3", "seeds = -3", "seeds: expected 1 to 100000, got -3"),
            ("seeds = 3", "seeds = []", "seeds: expected at least one, got an empty list"),
            ("seeds = 3", "seeds = [1, 1]", "seeds: expected each seed once, got 1 twice"),
            ("seeds = 3", "seeds = [1.5]", "seeds: expected whole numbers from 0 up, got 1.5"),
            ("seeds = 3", "seeds = \"three\"", "seeds: expected a number of seeds or a list of them, got \"three\""),
            ("seeds = 3", "seed = 3", "line 2: unknown key `seed`; did you mean `seeds`?"),
            ("seeds = 3\n", "", "line 1: missing key `seeds`"),
            ("seeds = 3", "seeds = = 3", "line 2: extra `=`, expected nothing"),
            ("seeds = 3", "seeds = 3\nevaluations = 0", "evaluations: expected 1 to 10000, got 0"),
            ("seeds = 3", "seeds = 3\nevaluation_episodes = 0", "evaluation_episodes: expected 1 to 16777216, got 0"),
            ("seeds = 3", "seeds = 3\nstatistic = \"median\"", "line 3: unknown variant `median`, expected `iqm` or `mean`"),
            (
                "seeds = 3",
                "seeds = 3\nscore = { cartpole = [5, 5] }",
                "score.cartpole: expected two numbers, the second above the first, got [5, 5]",
            ),
            ("seeds = 3", "seeds = 3\nfall = { cartpole = nan }", "fall.cartpole: expected a finite return, got NaN"),
            (
                "seeds = 3",
                "seeds = 3\nfall = { cartpole = 480 }",
                "fall.cartpole: expected a return below 475, at which the environment is solved, got 480",
            ),
            ("seeds = 3", "seeds = 3\nfall = { acrobot = 1 }", "fall: expected environments of this comparison (cartpole), got acrobot"),
            ("seeds = 3", "seeds = 3\ntask_bootstrap = 1", "line 3: task_bootstrap: expected true or false, got integer `1`"),
            ("seeds = 3", "seeds = 3\nscore = { cartpol = [0, 5] }", "score: unknown environment `cartpol`; did you mean `cartpole`?"),
            ("\"20k\"", "\"twenty\"", "steps: expected a number of steps above 0, such as 5000, 500k or 2m, got twenty"),
            ("\"20k\"", "0", "steps: expected a number of steps above 0, such as 5000, 500k or 2m, got 0"),
            ("\"20k\"", "10", "evaluations: expected at most the number of steps, got 20 for 10 steps on cartpole"),
            ("\"20k\"", "{}", "steps: expected a number for cartpole, got none"),
            ("[\"CartPole-v1\"]", "[]", "environments: expected at least one, got an empty list"),
            ("[\"CartPole-v1\"]", "[\"cartpol\"]", "environments: unknown environment `cartpol`; did you mean `cartpole`?"),
            ("[\"CartPole-v1\"]", "[\"cartpole\", \"CartPole-v1\"]", "environments: expected each environment once, got cartpole twice"),
            (agent, "agents = []\n", "agents: expected at least one, got none"),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsteps = 5500",
                "agent \"ppo\": steps: expected a multiple of 1000, the steps between two evaluations on cartpole, got 5500",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsteps = { acrobot = 5000 }",
                "agent \"ppo\": steps: expected environments of this comparison (cartpole), got acrobot",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsteps = \"many\"",
                "agent \"ppo\": steps: expected a number of steps above 0, such as 5000, 500k or 2m, got many",
            ),
            (agent, &agent.repeat(2), "agents: expected names that differ, got \"ppo\" twice"),
            ("agent = \"ppo\"", "agent = \"pbo\"", "agent \"pbo\" on cartpole: unknown agent `pbo`; did you mean `ppo`?"),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nname = \"\"",
                "agents.name: expected a name in one line, without blanks around it, got \"\"",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\npreset = \"cleanr\"",
                "agent \"ppo\" on cartpole: unknown preset `cleanr`; did you mean `cleanrl`?",
            ),
            ("agent = \"ppo\"", "agent = \"ppo\"\nsetings = {}", "line 6: unknown key `setings`; did you mean `settings`?"),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsettings = { \"ppo.clib\" = 1 }",
                "agent \"ppo\" on cartpole: unknown setting `ppo.clib`; did you mean `ppo.clip`?",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsettings = { clip = 0.1, \"ppo.clip\" = 0.2 }",
                "agent \"ppo\" on cartpole: settings: expected each setting once, got `ppo.clip` twice",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsettings = { ppo = { clip = 0.1 }, \"ppo.clip\" = 0.2 }",
                "agent \"ppo\" on cartpole: settings: expected each setting once, got `ppo.clip` twice",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsettings = { seed = 1 }",
                "agent \"ppo\" on cartpole: settings: expected settings that the comparison does not set for all runs, got `seed`",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nsettings = { \"ppo.epochs\" = 0 }",
                "agent \"ppo\" on cartpole: ppo.epochs: expected at least 1, got 0",
            ),
            (
                "agent = \"ppo\"",
                "agent = \"ppo\"\nenvironments.acrobot = {}",
                "agent \"ppo\": environments: expected environments of this comparison (cartpole), got acrobot",
            ),
        ] {
            assert_eq!(problem(from, to), expected);
        }
    }
}
