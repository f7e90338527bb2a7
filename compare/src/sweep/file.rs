//! Reads the file of a sweep, and expands it to a comparison with an agent for each point.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::{Table, Value};

use super::space::{Dimension, Domain, Settings, Space, short_keys, shown};
use super::{Design, Measure, Point, Sweep, Varied};
use crate::draft::{self, Draft, Entry, contents, read_with};
use crate::file::{Statistic, unless, within};
use gradus::Error;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "format")]
    _format: Option<i64>,
    name: Option<String>,
    environments: Vec<String>,
    seeds: Value,
    steps: Value,
    #[serde(default = "one")]
    evaluations: i64,
    #[serde(default = "twenty")]
    evaluation_episodes: i64,
    #[serde(default)]
    statistic: Statistic,
    #[serde(default)]
    score: BTreeMap<String, [f64; 2]>,
    #[serde(default)]
    design: Design,
    samples: Option<i64>,
    sampling_seed: Option<i64>,
    #[serde(default)]
    measure: Measure,
    agents: Vec<draft::Varied>,
}

fn one() -> i64 {
    1
}

fn twenty() -> i64 {
    20
}

impl Sweep {
    /// Reads the file of a sweep and builds the agent of every point once, to find invalid settings. Error messages name the file and the line or key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_as(path, true)
    }

    /// Reads the file of a sweep as a comparison whose agents are the points, which are not built yet.
    pub fn draft(path: &Path) -> Result<Draft, Error> {
        Ok(Parsed::read(path)?.draft)
    }

    fn read_as(path: &Path, tries_out: bool) -> Result<Self, Error> {
        let Parsed { draft, design, measure, agents, points } = Parsed::read(path)?;
        let comparison = draft.build(tries_out).map_err(|problem| Error::folder(path, problem))?;
        Ok(Self { comparison, design, measure, agents, points })
    }
}

/// A sweep whose points are not built yet.
struct Parsed {
    draft: Draft,
    design: Design,
    measure: Measure,
    agents: Vec<Varied>,
    points: Vec<Point>,
}

impl Parsed {
    fn read(path: &Path) -> Result<Self, Error> {
        read_with(path, "sweep", Self::parse)
    }

    fn parse(text: &str, (stem, dir): (&str, &Path)) -> Result<Self, String> {
        let table = toml::from_str::<Table>(text).unwrap_or_default();
        if let Some(key) = ["trials", "test_seeds", "rungs"].iter().find(|key| table.contains_key(**key)) {
            return Err(format!("expected a sweep, got a file with `{key}`, for `gradus tune`"));
        }
        let file: File = contents(text, dir, "a sweep")?;
        let File { design, measure, .. } = file;
        let samples = match (design, file.samples) {
            (Design::Random, None) => return Err("samples: expected the number of points of a random design, got none".into()),
            (Design::Random, Some(count)) => within("samples", count, 1, 100_000)? as usize,
            (_, Some(count)) => return Err(format!("samples: expected none unless `design = \"random\"`, got {count}")),
            (_, None) => 0,
        };
        let sampling_seed = within("sampling_seed", file.sampling_seed.unwrap_or(1), 0, u64::MAX)?;
        unless(file.sampling_seed.is_none() || design == Design::Random, "sampling_seed", "none unless `design = \"random\"`", "one")?;
        unless(!file.agents.is_empty(), "agents", "at least one", "none")?;
        let (mut agents, mut points, mut entries) = (Vec::new(), Vec::new(), Vec::new());
        let several = file.agents.len() > 1;
        for agent in file.agents {
            let (agent, space) = agent.split();
            let name = agent.name.clone().unwrap_or_else(|| agent.agent.clone());
            let within = |problem: String| format!("agent \"{name}\": {problem}");
            unless(agents.iter().all(|other: &Varied| other.name != name), "agents", "names that differ", format!("\"{name}\" twice"))?;
            let space = Space::parse(&space).map_err(within)?;
            let has_points = |dimension: &&Dimension| matches!(dimension.domain, Domain::Range { points: Some(_), .. });
            if let Some(dimension) = space.0.iter().find(has_points).filter(|_| design == Design::Random) {
                return Err(within(format!(
                    "space.{}: points: expected none, because `samples` says how many a random design has",
                    dimension.key
                )));
            }
            let chosen = match design {
                Design::Grid => space.grid(),
                Design::OneAtATime => space.one_at_a_time(),
                Design::Random => Ok(space.samples(samples, sampling_seed)),
            };
            let keys: Vec<&str> = space.0.iter().map(|dimension| dimension.key.as_str()).collect();
            let short = short_keys(&keys);
            let titled = |settings: &Settings| {
                let short = |key: &str| keys.iter().position(|other| *other == key).map_or("", |place| short[place]);
                let words: Vec<String> = settings.iter().map(|(key, value)| format!("{}={}", short(key), shown(value))).collect();
                if several { format!("{name} {}", words.join(" ")) } else { words.join(" ") }
            };
            let mut known: Vec<Settings> = Vec::new();
            for settings in chosen.map_err(within)? {
                // a small space may be sampled twice at the same point
                if known.contains(&settings) {
                    continue;
                }
                known.push(settings.clone());
                let varied = settings.iter().cloned().collect();
                entries.push(Entry { name: Some(titled(&settings)), varied, ..agent.clone() });
                points.push(Point { agent: agents.len(), settings });
            }
            agents.push(Varied { name, space });
        }
        let comparison = draft::File {
            _format: None,
            name: file.name,
            environments: file.environments,
            seeds: file.seeds,
            steps: file.steps,
            evaluations: file.evaluations,
            evaluation_episodes: file.evaluation_episodes,
            statistic: file.statistic,
            score: file.score,
            fall: BTreeMap::new(),
            task_bootstrap: false,
            x: draft::Steps::Linear,
            finding: None,
            agents: entries,
        };
        let draft = Draft { file: comparison, text: text.into(), stem: stem.into(), dir: dir.into(), is_part: false };
        Ok(Self { draft, design, measure, agents, points })
    }
}
