//! Reads the file of a tuning.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use toml::Value;

use super::search::{Plan, Rung};
use super::{Trials, Tuning};
use crate::draft::{self, Draft, Entry, contents, read_with};
use crate::file::{self, Comparison, Statistic, unless, within};
use crate::sweep::Measure;
use crate::sweep::space::{Settings, Space};
use gradus::Error;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "format")]
    _format: Option<i64>,
    name: Option<String>,
    environments: Vec<String>,
    #[serde(default = "four")]
    seeds: i64,
    test_seeds: Option<Value>,
    steps: Value,
    #[serde(default = "one")]
    evaluations: i64,
    #[serde(default = "twenty")]
    evaluation_episodes: i64,
    #[serde(default)]
    score: BTreeMap<String, [f64; 2]>,
    #[serde(default)]
    measure: Measure,
    #[serde(default = "sixty_four")]
    trials: i64,
    #[serde(default = "eight")]
    batch: i64,
    startup: Option<i64>,
    rungs: Option<Vec<Step>>,
    #[serde(default = "one")]
    search_seed: i64,
    agents: Vec<draft::Varied>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    steps: f64,
    seeds: i64,
}

fn one() -> i64 {
    1
}

fn four() -> i64 {
    4
}

fn eight() -> i64 {
    8
}

fn twenty() -> i64 {
    20
}

fn sixty_four() -> i64 {
    64
}

/// The first seed of the test, if the file does not name any: tuning has none of them, nor had the choice of the presets (results/defaults).
const FIRST_TEST_SEED: u64 = 10_001;

impl Tuning {
    /// Reads the file of a tuning, and builds the agent with the first and the last value of every setting, to find invalid settings. Error messages name the file and the
    /// line or key.
    pub fn read(path: &Path) -> Result<Self, Error> {
        read_with(path, "tuning", Self::parse)
    }

    fn parse(text: &str, (stem, dir): (&str, &Path)) -> Result<Self, String> {
        let mut file: File = contents(text, dir, "a tuning")?;
        unless(file.agents.len() == 1, "agents", "one, whose settings are tuned", file.agents.len())?;
        let (entry, space) = file.agents.remove(0).split();
        let name = entry.name.clone().unwrap_or_else(|| entry.agent.clone());
        unless(entry.steps.is_none() && entry.only.is_none(), "agents", "neither `steps` nor `only` in a tuning", "one of them")?;
        let space = Space::parse(&space).map_err(|problem| format!("agent \"{name}\": {problem}"))?;
        let plan = plan(&file)?;
        let test_seeds: Vec<u64> = match file.test_seeds {
            None => (FIRST_TEST_SEED..FIRST_TEST_SEED + 20).collect(),
            Some(Value::Integer(count)) => (FIRST_TEST_SEED..FIRST_TEST_SEED + within("test_seeds", count, 2, 100_000)?).collect(),
            Some(list) => file::seeds(&list).map_err(|problem| format!("test_{problem}"))?,
        };
        if let Some(seed) = test_seeds.iter().find(|seed| (1..=file.seeds as u64).contains(seed)) {
            return Err(format!("test_seeds: expected seeds that tuning does not use, which has 1 to {}, got {seed}", file.seeds));
        }
        let several = file.environments.len() > 1;
        unless(!several || !file.score.is_empty(), "score", "a range for every environment, because their scores are averaged", "none")?;
        let trials = Trials {
            name: file.name,
            environments: file.environments,
            evaluations: file.evaluations,
            evaluation_episodes: file.evaluation_episodes,
            score: file.score,
            entry,
            text: text.into(),
            stem: stem.into(),
            dir: dir.into(),
        };
        let seeds = Value::Array(test_seeds.iter().map(|seed| Value::Integer(*seed as i64)).collect());
        let default = trials.comparison(&[("default", &Settings::new())], (file.steps.clone(), seeds), true)?;
        let config = default.agents[0].configs.values().next().expect("an agent plays somewhere");
        let mut varied = BTreeSet::new();
        for dimension in space.0.iter().filter(|dimension| dimension.condition.is_none()) {
            let name = config.setting_name(&dimension.key);
            unless(varied.insert(name.clone()), "space", "each setting once", format!("`{name}` twice"))?;
        }
        // the first and the last value of every setting
        for dimension in space.0.iter().filter(|dimension| dimension.condition.is_none()) {
            for unit in [0.0, 1.0] {
                let point = vec![(dimension.key.clone(), dimension.domain.at(unit))];
                let title = format!("{name} {}={}", dimension.key, crate::sweep::space::shown(&point[0].1));
                trials.comparison(&[(&title, &point)], (file.steps.clone(), Value::Integer(1)), true)?;
            }
        }
        let tuning = Self { default, trials, space, plan, measure: file.measure, seeds: file.seeds as usize };
        // the first rung has the fewest steps
        let first = tuning.plan.rungs[0];
        if !varied.iter().any(|name| name.ends_with(".learning_starts")) {
            let built = tuning.trials.comparison(&[("default", &Settings::new())], (tuning.steps(first), Value::Integer(1)), false);
            built.map_err(|problem| format!("rungs: with {} of the steps: {problem}", first.steps))?;
        }
        Ok(tuning)
    }
}

fn plan(file: &File) -> Result<Plan, String> {
    let seeds = within("seeds", file.seeds, 1, 1000)? as usize;
    let trials = within("trials", file.trials, 2, 100_000)? as usize;
    let batch = within("batch", file.batch, 1, 10_000)? as usize;
    let startup = within("startup", file.startup.unwrap_or(2 * file.batch), 0, 100_000)? as usize;
    let rungs: Vec<Rung> = match &file.rungs {
        None => vec![Rung { steps: 0.25, seeds: 1 }, Rung { steps: 0.5, seeds: seeds.div_ceil(2) }, Rung { steps: 1.0, seeds }],
        Some(given) => {
            let rung = |step: &Step| {
                let is_share = step.steps > 0.0 && step.steps <= 1.0;
                unless(is_share, "rungs: steps", "a share of the steps, above 0 and at most 1", step.steps)?;
                Ok(Rung { steps: step.steps, seeds: within("rungs: seeds", step.seeds, 1, seeds as u64)? as usize })
            };
            given.iter().map(rung).collect::<Result<_, String>>()?
        }
    };
    let grows = rungs.windows(2).all(|pair| pair[0].steps <= pair[1].steps && pair[0].seeds <= pair[1].seeds);
    unless(grows, "rungs", "no rung with fewer steps or seeds than the one before", "one")?;
    let is_whole = rungs.last() == Some(&Rung { steps: 1.0, seeds });
    unless(is_whole, "rungs", &format!("a last rung with `steps = 1.0` and all {seeds} seeds"), "none")?;
    Ok(Plan { trials, batch, startup, rungs, seed: within("search_seed", file.search_seed, 0, u64::MAX)? })
}

impl Trials {
    /// A comparison of the agent with some points, by their names. `steps` and `seeds` are as in a comparison file.
    pub(super) fn comparison(
        &self,
        points: &[(&str, &Settings)],
        (steps, seeds): (Value, Value),
        tries_out: bool,
    ) -> Result<Comparison, String> {
        let entry = |(name, settings): &(&str, &Settings)| Entry {
            name: Some((*name).to_owned()),
            varied: settings.iter().cloned().collect(),
            ..self.entry.clone()
        };
        let file = draft::File {
            _format: None,
            name: self.name.clone(),
            environments: self.environments.clone(),
            seeds,
            steps,
            evaluations: self.evaluations,
            evaluation_episodes: self.evaluation_episodes,
            statistic: Statistic::Iqm,
            score: self.score.clone(),
            fall: BTreeMap::new(),
            task_bootstrap: false,
            x: draft::Steps::Linear,
            finding: None,
            agents: points.iter().map(entry).collect(),
        };
        Draft { file, text: self.text.clone(), stem: self.stem.clone(), dir: self.dir.clone(), is_part: false }.build(tries_out)
    }
}
