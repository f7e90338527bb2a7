//! Sweeps: many settings of an agent, in some environments, with some seeds, and what they do to the score.
//!
//! [`Sweep::read`] reads the file. [`sweep`] makes the missing runs, as a comparison does, and writes tables, figures and a report.
//!
//! ```toml
//! name = "PPO's clip range and step size"
//! environments = ["cartpole"]
//! seeds = 10                              # the seeds 1 to 10; or a list of seeds
//! steps = "50k"
//! evaluations = 1                         # evenly spaced during training, and one more before it [default: 1]
//! evaluation_episodes = 20
//! score = { cartpole = [0, 500] }         # returns whose normalised scores are 0 and 1, for results over all environments
//! statistic = "iqm"                       # statistic over runs: iqm or mean
//! measure = "last"                        # of a run: its last evaluation, or the `mean` of its evaluations
//! design = "grid"                         # every combination [default], `one-at-a-time`, or `random`
//! # samples = 100                         # points of a random design, with sampling_seed = 1
//!
//! [[agents]]
//! agent = "ppo"
//! preset = "cleanrl"                      # the settings that are not varied, as in a comparison
//!
//! [agents.space]
//! "ppo.clip" = [0.1, 0.2, 0.3]                                        # a list
//! learning_rate = { log_uniform = [1e-4, 1e-2], points = 5 }          # a range; `points` are for designs that are not random
//! "optimiser.rule" = ["adam", "rmsprop"]
//! "optimiser.momentum" = { uniform = [0, 0.9], points = 3, if = { "optimiser.rule" = "rmsprop" } }
//! ```
//!
//! Ranges are `uniform`, `log_uniform`, `integers` and `log_integers`. A point of the sweep is an agent with its values; its runs have the seeds of the file.
//!
//! Output, in one folder: `sweep.toml`, `results.csv`, `timing.csv` and `runs` as of a comparison, and
//!
//! | file | contents |
//! | --- | --- |
//! | `points.csv` | the values of every point, and the statistic of its scores |
//! | `responses.csv` | the statistic at every value of every setting, over all values of the others, with 95 % intervals |
//! | `effects.csv` | how much the mean score differs between the values of a setting, beside what the seeds do |
//! | `response`, `choices`, `effects`, `heat`, `coordinates` | figures: the response to settings that are numbers and to others, effects, a map of two settings, parallel coordinates |
//! | `report.html`, `summary.md`, `SHA256SUMS` | as of a comparison |
//!
//! A run that fails, for example because its numbers become infinite, counts as the lowest score in its environment; a file that cannot be written, or an
//! environment that fails, ends the sweep.

mod effects;
pub(crate) mod figures;
mod file;
pub(crate) mod space;
mod tables;

use std::path::{Path, PathBuf};

use gradus_base::threads;
use serde::Deserialize;

use super::folder::{self, SWEEPS};
use super::run::{Job, Outcome};
use super::runner::Lines;
use super::{Comparison, Execution, Made, RESULTS, TIMING, draw, make_runs, report, results_csv, timing_csv, write};
use gradus::Error;
use gradus::run::with_steps;
use space::{Settings, Space};

/// Which points of a space are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Every combination of the values.
    #[default]
    Grid,
    /// Every value of every setting, the other settings as the agent has them.
    OneAtATime,
    /// Random points.
    Random,
}

/// The score of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Its last evaluation.
    #[default]
    Last,
    /// The mean of its evaluations, without the one before training.
    Mean,
}

/// An agent whose settings are varied.
#[derive(Clone, Debug, PartialEq)]
struct Varied {
    name: String,
    space: Space,
}

/// An agent with some values of its settings.
#[derive(Clone, Debug, PartialEq)]
struct Point {
    /// Number of the agent.
    agent: usize,
    settings: Settings,
}

/// A sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The points as a comparison: an agent for each.
    pub comparison: Comparison,
    design: Design,
    measure: Measure,
    agents: Vec<Varied>,
    points: Vec<Point>,
}

impl Sweep {
    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.comparison.agents.iter().map(|point| point.configs.len()).sum::<usize>() * self.comparison.seeds.len()
    }
}

/// The scores of a sweep.
struct Scores {
    /// For each environment, and at the end for all of them together if there are several with ranges, its title and the scores of every point, a score for each seed;
    /// `None` for a point that was not run there.
    worlds: Vec<(String, Vec<Option<Vec<f64>>>)>,
    /// For each of these, the number of runs of every point that failed.
    failed: Vec<Vec<usize>>,
}

/// The name of the environments together.
const ALL: &str = "all";

impl Scores {
    fn of(sweep: &Sweep, jobs: &[Job], outcomes: &[Option<Outcome>]) -> Self {
        let comparison = &sweep.comparison;
        let score = |outcome: &Outcome| match sweep.measure {
            Measure::Last => outcome.evaluated.last().map_or(f64::NAN, |at| at.mean),
            Measure::Mean => {
                let after = &outcome.evaluated[1..];
                after.iter().map(|at| at.mean).sum::<f64>() / after.len() as f64
            }
        };
        let mut runs = jobs.iter().zip(outcomes);
        let mut worlds: Vec<(String, Vec<Option<Vec<f64>>>)> =
            comparison.environments.iter().map(|name| (name.clone(), vec![None; sweep.points.len()])).collect();
        let mut failed = vec![vec![0; sweep.points.len()]; worlds.len()];
        // in the order of the jobs: points, their environments, seeds
        for (number, point) in comparison.agents.iter().enumerate() {
            for world in point.configs.keys() {
                let row: Vec<f64> =
                    runs.by_ref().take(comparison.seeds.len()).map(|(_, run)| run.as_ref().map_or(f64::NAN, score)).collect();
                failed[*world][number] += row.iter().filter(|score| score.is_nan()).count();
                worlds[*world].1[number] = Some(row);
            }
        }
        for (_, rows) in &mut worlds {
            let scores = rows.iter_mut().flatten().flatten();
            let mut all: Vec<&mut f64> = scores.collect();
            let lowest = all.iter().map(|score| **score).filter(|score| !score.is_nan()).fold(f64::INFINITY, f64::min);
            all.iter_mut().filter(|score| score.is_nan()).for_each(|score| **score = lowest);
            // where all runs failed there is nothing to compare
            if lowest.is_infinite() {
                rows.fill(None);
            }
        }
        if worlds.len() > 1 && !comparison.score.is_empty() {
            let of = |number: usize| -> Option<Vec<f64>> {
                let rows: Vec<Vec<f64>> = worlds
                    .iter()
                    .map(|(name, rows)| {
                        let [low, high] = comparison.score[name];
                        rows[number].as_ref().map(|row| row.iter().map(|score| (score - low) / (high - low)).collect())
                    })
                    .collect::<Option<_>>()?;
                Some((0..rows[0].len()).map(|seed| rows.iter().map(|row| row[seed]).sum::<f64>() / rows.len() as f64).collect())
            };
            let all = (0..sweep.points.len()).map(of).collect();
            worlds.push((ALL.into(), all));
            failed.push((0..sweep.points.len()).map(|number| failed.iter().map(|of_world| of_world[number]).sum()).collect());
        }
        Self { worlds, failed }
    }
}

/// Makes the missing runs and writes all outputs into the folder `dir`. Calls `say` with lines about the runs. Returns the paths of the main output files.
pub fn sweep(sweep: &Sweep, dir: &Path, execution: Execution, say: impl Fn(&str) + Sync) -> Result<Vec<PathBuf>, Error> {
    let Execution { jobs, command, show, .. } = execution;
    let comparison = &sweep.comparison;
    let Made { jobs: all, outcomes, failure, fault, _lock } = make_runs(&SWEEPS, comparison, dir, &execution, Lines::EverySecond, &say)?;
    // a full disk is not a setting's score
    if let Some(fault) = fault {
        return Err(Error::folder(&dir.join("runs"), fault));
    }
    if outcomes.iter().all(Option::is_none) {
        return Err(Error::folder(&dir.join("runs"), failure.unwrap_or_default()));
    }
    write(&dir.join(SWEEPS.file), &folder::named(comparison))?;
    let formats = folder::formats(&SWEEPS, dir);
    folder::remove_outputs(&SWEEPS, dir)?;
    let made: Vec<(&Job, &Outcome)> = all.iter().zip(&outcomes).filter_map(|(job, run)| Some((job, run.as_ref()?))).collect();
    write(&dir.join(RESULTS), &results_csv(comparison, &made))?;
    write(&dir.join(TIMING), &timing_csv(&made))?;

    let analyse = |begin: &dyn Fn(&str)| {
        begin("tables");
        let scores = Scores::of(sweep, &all, &outcomes);
        let tables = tables::Tables::new(sweep, &scores);
        write(&dir.join("points.csv"), &tables.points_csv())?;
        write(&dir.join("responses.csv"), &tables.responses_csv())?;
        write(&dir.join("effects.csv"), &tables.effects_csv())?;
        write(&dir.join("summary.md"), &tables.summary_md())?;
        begin("figures");
        let figures = figures::all(&tables);
        let files = draw(&figures, dir, &formats)?;
        let seconds = made.iter().filter_map(|(_, run)| run.evaluated.last()).map(|at| at.seconds).sum();
        let facts: Vec<(&str, String)> = std::iter::once(("swept", tables.about()))
            .chain(report::pythons(comparison))
            .chain(report::circumstances(command, Some(seconds), (jobs, threads::cores())))
            .collect();
        let page = report::page(&comparison.name, &facts, (&figures, &dir.join("report.html")), &tables.html())?;
        Ok::<_, Error>((files, page))
    };
    let (files, page) = threads::with(jobs, || with_steps(show, analyse))?;
    write(&dir.join("report.html"), &page)?;
    write(&dir.join(folder::SUMS), &folder::sums(&SWEEPS, dir)?)?;
    if let Some(failure) = failure {
        say(&format!("{failure}; runs that fail count as the lowest score"));
    }
    let tables = [RESULTS, "points.csv", "responses.csv", "effects.csv", "summary.md"].map(|name| dir.join(name));
    Ok(tables.into_iter().chain(files).chain([dir.join("report.html")]).collect())
}
