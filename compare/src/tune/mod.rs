//! Tuning: the search for good settings of an agent, and what they are worth.
//!
//! [`Tuning::read`] reads the file. [`tune`] searches with some seeds, trains the best settings and the agent's own again with *other* seeds, and writes both scores. The score
//! that a search maximises is too high, because the best of many noisy scores is a lucky one; the score with fresh seeds is not (Eimer, Lindauer & Raileanu, "Hyperparameters
//! in Reinforcement Learning and How To Tune Them", 2023).
//!
//! ```toml
//! name = "PPO on CartPole"
//! environments = ["cartpole"]
//! steps = "50k"                           # of the last rung; or one number per environment
//! score = { cartpole = [0, 500] }         # returns whose normalised scores are 0 and 1; needed if there are several environments, whose scores are averaged
//! seeds = 4                               # the seeds 1 to 4, for tuning [default: 4]
//! test_seeds = 20                         # the seeds 10001 to 10020, for the test [default: 20]; or a list of seeds
//! trials = 64                             # points that are tried
//! batch = 8                               # points that are proposed together; more do not learn from each other
//! startup = 16                            # random points at the beginning [default: two batches]
//! rungs = [{ steps = 0.25, seeds = 1 }, { steps = 0.5, seeds = 2 }, { steps = 1.0, seeds = 4 }]   # the better half of a batch goes on to the next rung
//! measure = "last"                        # of a run: its last evaluation, or the `mean` of its evaluations
//! search_seed = 1
//!
//! [[agents]]                              # one
//! agent = "ppo"
//!
//! [agents.space]                          # as of a sweep
//! "ppo.clip" = { uniform = [0.05, 0.5] }
//! learning_rate = { log_uniform = [1e-4, 1e-2] }
//! ```
//!
//! The score of a trial is the interquartile mean over the seeds, and the mean of that over the environments. A trial with a run that fails is the worst.
//!
//! Output, in one folder:
//!
//! | file | contents |
//! | --- | --- |
//! | `tuning.toml` | the file |
//! | `journal.csv` | a row for every trial at every rung, in order; rows are only appended, and are the same for any number of processes and after interruptions |
//! | `runs` | the runs, as of a comparison |
//! | `fresh` | a comparison of the three best trials and the agent's own settings with the seeds of the test |
//! | `presets/AGENT/ENVIRONMENT/tuned.toml` | the settings of the best trial, for `--config` or a folder of presets |
//! | `history`, `fresh`, `coordinates` | figures: scores over the search, both scores of the best trials, the trials of the last rung |
//! | `summary.csv`, `summary.md`, `report.html`, `SHA256SUMS` | as of a comparison |

mod file;
mod outputs;
mod search;
mod tpe;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use gradus_base::threads;
use gradus_statistics::csv::{push_row, quoted};
use toml::{Table, Value};

use super::draft::{Entry, named_settings};
use super::folder::{self, TUNINGS};
use super::run::{Job, Outcome};
use super::runner::{self, Finished, Lines, Making};
use super::sweep::Measure;
use super::sweep::space::{Settings, Space, shown};
use super::{Comparison, Execution, Failure, RESULTS, compare_what_runs, draw, enter, jobs_of, last_lock, read_table, write};
use gradus::Error;
use gradus::files::{exists, read_to_string, replace};
use gradus::run::with_steps;
use search::{Plan, Rung, Trial, best, search};

/// A tuning.
#[derive(Clone)]
pub struct Tuning {
    /// The agent with its own settings, all steps and the seeds of the test.
    default: Comparison,
    trials: Trials,
    space: Space,
    plan: Plan,
    measure: Measure,
    /// Number of seeds for tuning.
    seeds: usize,
}

/// What all trials have in common.
#[derive(Clone)]
struct Trials {
    name: Option<String>,
    environments: Vec<String>,
    evaluations: i64,
    evaluation_episodes: i64,
    score: BTreeMap<String, [f64; 2]>,
    entry: Entry,
    text: String,
    stem: String,
    dir: PathBuf,
}

/// Number of trials that are trained again with fresh seeds.
const TESTED: usize = 3;

const JOURNAL: &str = "journal.csv";

impl Tuning {
    /// The title of the report.
    pub fn name(&self) -> &str {
        &self.default.name
    }

    /// Number of trials.
    pub fn trials(&self) -> usize {
        self.plan.trials
    }

    /// The steps of a rung, as in a comparison file.
    fn steps(&self, rung: Rung) -> Value {
        let share = |steps: &u64| Value::Integer(((*steps as f64 * rung.steps).round() as i64).max(1));
        let of = self.default.environments.iter().zip(&self.default.steps).map(|(name, steps)| (name.clone(), share(steps)));
        Value::Table(of.collect::<Table>())
    }

    /// The score of a run.
    fn score(&self, environment: &str, run: &Outcome) -> f64 {
        let value = match self.measure {
            Measure::Last => run.evaluated.last().map_or(f64::NAN, |at| at.mean),
            Measure::Mean => run.evaluated[1..].iter().map(|at| at.mean).sum::<f64>() / (run.evaluated.len() - 1) as f64,
        };
        self.normalised(environment, value)
    }

    fn normalised(&self, environment: &str, value: f64) -> f64 {
        self.default.score.get(environment).map_or(value, |[low, high]| (value - low) / (high - low))
    }

    /// The name of a trial.
    fn title(number: usize) -> String {
        format!("trial {}", number + 1)
    }

    /// The head of the journal.
    fn head(&self) -> String {
        let keys: Vec<String> = self.space.0.iter().map(|dimension| quoted(&dimension.key)).collect();
        format!("trial,rung,steps,seeds,score,{}\n", keys.join(","))
    }

    fn row(&self, number: usize, rung: usize, trial: &Trial, score: f64) -> String {
        let Rung { steps, seeds } = self.plan.rungs[rung];
        let score = if score.is_finite() { score.to_string() } else { "failed".into() };
        let value_of =
            |key: &str| trial.settings.iter().find(|(name, _)| name == key).map_or_else(String::new, |(_, value)| quoted(&shown(value)));
        let values = self.space.0.iter().map(|dimension| value_of(&dimension.key));
        let mut text = String::new();
        let first = [(number + 1).to_string(), (rung + 1).to_string(), steps.to_string(), seeds.to_string(), score];
        push_row(&mut text, &first.into_iter().chain(values).collect::<Vec<_>>());
        text
    }

    /// Makes the runs of some trials at a rung. Returns their scores, minus infinity for a trial that failed.
    fn evaluate(
        &self,
        (rung, places, trials): (usize, &[usize], &[Trial]),
        runs: &Path,
        execution: &Execution,
        say: &(impl Fn(&str) + Sync),
    ) -> Result<Vec<f64>, Error> {
        let at = self.plan.rungs[rung];
        let build = |place: &usize| {
            let seeds = Value::Integer(at.seeds as i64);
            self.trials.comparison(&[(&Self::title(*place), &trials[*place].settings)], (self.steps(at), seeds), false)
        };
        // settings that do not fit together are a trial that fails
        let built: Vec<Result<Comparison, String>> = places.iter().map(build).collect();
        let mut jobs: Vec<Job> = Vec::new();
        for comparison in built.iter().flatten() {
            jobs.extend(jobs_of(comparison, execution.code)?);
        }
        let making = Making { workers: execution.jobs, stop: execution.stop, lines: Lines::EverySecond };
        let Finished { outcomes, failure, fault, .. } = runner::make(&jobs, runs, making, say)?;
        // a full disk is not a setting's score
        if let Some(fault) = fault {
            return Err(Error::folder(runs, fault));
        }
        if let Some(problem) = failure.or_else(|| built.iter().find_map(|built| built.as_ref().err().cloned())) {
            say(&format!("a trial fails: {problem}"));
        }
        let mut made = jobs.iter().zip(&outcomes);
        let scores = built.iter().map(|built| {
            let Ok(comparison) = built else { return f64::NEG_INFINITY };
            let row = |_: &String| -> Vec<Option<f64>> {
                made.by_ref().take(at.seeds).map(|(job, run)| Some(self.score(&job.environment(), run.as_ref()?))).collect()
            };
            // every run is taken, also those after one that failed
            let rows: Vec<Vec<Option<f64>>> = comparison.environments.iter().map(row).collect();
            let rows: Option<Vec<Vec<f64>>> = rows.into_iter().map(|row| row.into_iter().collect()).collect();
            let Some(rows) = rows else { return f64::NEG_INFINITY };
            let score = rows.iter().map(|row| outputs::interquartile_mean(row)).sum::<f64>() / rows.len() as f64;
            if score.is_finite() { score } else { f64::NEG_INFINITY }
        });
        Ok(scores.collect())
    }

    /// The text of the comparison with fresh seeds.
    fn fresh(&self, trials: &[Trial], places: &[usize]) -> String {
        let Trials { environments, evaluations, evaluation_episodes, score, entry, .. } = &self.trials;
        let agent = |name: String, settings: &Settings| {
            let mut table = Table::new();
            table.insert("name".into(), name.into());
            table.insert("agent".into(), entry.agent.clone().into());
            if let Some(preset) = &entry.preset {
                table.insert("preset".into(), preset.clone().into());
            }
            table.insert("settings".into(), entry.settings.clone().into());
            let mut own = Table::new();
            for (environment, config) in environments.iter().zip(self.default.agents[0].configs.values()) {
                let given = entry.over(&config.environment).cloned().unwrap_or_default();
                let mut over = Table::new();
                if let Some(preset) = given.preset {
                    over.insert("preset".into(), preset.into());
                }
                // a tuned value comes in the place of one of the file, however that is written
                let mut all = named_settings(config, &given.settings);
                all.extend(settings.iter().map(|(key, value)| (config.setting_name(key), value.clone())));
                over.insert("settings".into(), all.into());
                own.insert(environment.clone(), over.into());
            }
            table.insert("environments".into(), own.into());
            Value::Table(table)
        };
        let agents = places.iter().map(|place| agent(Self::title(*place), &trials[*place].settings));
        let agents: Vec<Value> = std::iter::once(agent("default".into(), &Settings::new())).chain(agents).collect();
        let ranges: Table = score.iter().map(|(name, range)| (name.clone(), Value::from(range.to_vec()))).collect();
        let seeds: Vec<Value> = self.default.seeds.iter().map(|seed| Value::Integer(*seed as i64)).collect();
        let mut table = Table::new();
        table.insert("name".into(), format!("{}: fresh seeds", self.default.name).into());
        table.insert("environments".into(), environments.clone().into());
        table.insert("seeds".into(), seeds.into());
        table.insert("steps".into(), self.steps(Rung { steps: 1.0, seeds: 0 }));
        table.insert("evaluations".into(), (*evaluations).into());
        table.insert("evaluation_episodes".into(), (*evaluation_episodes).into());
        table.insert("score".into(), ranges.into());
        table.insert("agents".into(), agents.into());
        toml::to_string(&table).expect("a table is TOML")
    }
}

/// Appends to the journal in `dir` what it lacks of `text`. Returns whether it had other rows, which are replaced.
fn append(dir: &Path, text: &str) -> Result<bool, Error> {
    let path = dir.join(JOURNAL);
    let known = if exists(&path)? { read_to_string(&path)? } else { String::new() };
    if known.starts_with(text) {
        return Ok(false);
    }
    let Some(rest) = text.strip_prefix(&known) else {
        replace(&path, text.as_bytes()).map_err(Error::io("write", &path))?;
        return Ok(true);
    };
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.and_then(|mut file| file.write_all(rest.as_bytes()).and_then(|()| file.sync_data())).map_err(Error::io("write", &path))?;
    Ok(false)
}

/// Searches, trains the best trials with fresh seeds, and writes all outputs into the folder `dir`. Calls `say` with lines about the runs. Returns the paths of the main
/// output files.
pub fn tune(tuning: &Tuning, dir: &Path, execution: Execution, say: impl Fn(&str) + Sync) -> Result<Vec<PathBuf>, Error> {
    let Execution { jobs, stop, show, .. } = execution;
    let (runs, first) = enter(&TUNINGS, &tuning.default, dir, &say)?;
    if first.is_some() {
        write(&dir.join(TUNINGS.file), &folder::named(&tuning.default))?;
    }

    let (mut journal, mut was_other) = (tuning.head(), false);
    let (batches, last) = (tuning.plan.trials.div_ceil(tuning.plan.batch), tuning.plan.rungs.len() - 1);
    let trials = search(&tuning.space, &tuning.plan, |rung, places, trials| {
        let scores = tuning.evaluate((rung, places, trials), &runs, &execution, &say)?;
        places.iter().zip(&scores).for_each(|(place, score)| journal += &tuning.row(*place, rung, &trials[*place], *score));
        if first.is_some() && append(dir, &journal)? && !was_other {
            was_other = true;
            say(&format!("{JOURNAL} begins anew: its rows were of other code or settings"));
        }
        if rung == last {
            let best = places.iter().zip(&scores).max_by(|a, b| a.1.total_cmp(b.1));
            let best = best.map_or_else(String::new, |(place, score)| {
                format!(", the best: {} with {}", Tuning::title(*place), outputs::short(*score))
            });
            say(&format!("batch {} of {batches}{best}", trials.len().div_ceil(tuning.plan.batch)));
        }
        Ok::<_, Error>(scores)
    })?;
    let mut winners = best(&trials, tuning.plan.rungs.len(), TESTED);
    winners.retain(|place| trials[*place].scores[last] > f64::NEG_INFINITY);
    if winners.is_empty() {
        return Err(Error::folder(&runs, "expected a trial with a score, got only trials that failed"));
    }
    let text = tuning.fresh(&trials, &winners);
    let fresh = Comparison::from_text_in(&text, ("fresh", &tuning.trials.dir)).map_err(|problem| Error::folder(dir, problem))?;
    say(&format!("{} trials and the default with {} fresh seeds", winners.len(), tuning.default.seeds.len()));
    let (_, failure) = compare_what_runs(&fresh, &dir.join("fresh"), execution, &say)?;
    if let Some(Failure { text, is_fault }) = failure {
        // a full disk is not a setting's score, nor is an environment that fails
        if is_fault {
            return Err(Error::folder(&dir.join("fresh"), text));
        }
        say(&text);
    }

    let _lock = match first {
        Some(lock) => lock,
        None => last_lock(dir, stop)?,
    };
    append(dir, &journal)?;
    let formats = folder::formats(&TUNINGS, dir);
    let table = read_table(&dir.join("fresh").join(RESULTS))?;
    let analyse = |begin: &dyn Fn(&str)| {
        begin("tables");
        let summary = outputs::Summary::new(tuning, &trials, &winners, &table);
        write(&dir.join("summary.csv"), &summary.csv())?;
        write(&dir.join("summary.md"), &summary.markdown())?;
        begin("figures");
        let figures = summary.figures();
        let mut files = draw(&figures, dir, &formats)?;
        files.extend(summary.write_presets(dir)?);
        let page = summary.page(&execution, (&figures, &dir.join("report.html")))?;
        write(&dir.join("report.html"), &page)?;
        Ok::<_, Error>((files, summary.lines()))
    };
    let (files, lines) = threads::with(jobs, || with_steps(show, analyse))?;
    write(&dir.join(folder::SUMS), &folder::sums(&TUNINGS, dir)?)?;
    lines.iter().for_each(|line| say(line));
    let tables = [JOURNAL, "summary.csv", "summary.md"].map(|name| dir.join(name));
    Ok(tables.into_iter().chain(files).chain([dir.join("report.html")]).collect())
}
