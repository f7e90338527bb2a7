//! What a tuning found: both scores of the best trials, figures, and presets.

use std::fs;
use std::path::{Path, PathBuf};

use gradus_statistics::csv::{push_row, quoted};
use gradus_statistics::table::Table;
use gradus_statistics::{Bootstrap, Estimate, Scores};

use super::search::Trial;
use super::{Measure, Tuning, write};
use crate::analysis::ENOUGH;
use crate::figures::Named;
use crate::report;
pub(super) use crate::summary::short;
use crate::summary::{Sheet, markdown, plural};
use crate::sweep::figures::{axes, places};
use crate::sweep::space::{short_keys, shown};
use crate::{Error, Execution};
use gradus::Config;
use gradus::envs::gym;
use gradus::figure::{Chart, Coordinates, Figure, Interval, Intervals, Lines, Series, solid};

/// The mean of the middle half of some scores.
pub(super) fn interquartile_mean(scores: &[f64]) -> f64 {
    Scores::new(vec![scores.to_vec()]).map_or(f64::NAN, |scores| gradus_statistics::interquartile_mean(&scores))
}

/// The score of an agent: the mean over the environments of the interquartile mean over the seeds.
fn score(scores: &Scores) -> f64 {
    scores.tasks().map(interquartile_mean).sum::<f64>() / scores.tasks().len() as f64
}

/// A trial that was trained again, or the agent with its own settings.
struct Tested {
    name: String,
    /// The settings, as they are printed.
    settings: String,
    /// The score in the search; the default has none.
    tuned: Option<f64>,
    /// The score with fresh seeds; none if a run failed.
    fresh: Option<Estimate>,
    /// The probability that a run is better than one of the default.
    better: Option<Estimate>,
}

fn interval(Estimate { point, low, high }: &Estimate) -> String {
    format!("{} [{}, {}]", short(*point), short(*low), short(*high))
}

/// The score with fresh seeds, as it is printed.
fn told(fresh: &Option<Estimate>) -> String {
    fresh.as_ref().map_or_else(|| "a run failed".into(), interval)
}

pub(super) struct Summary<'a> {
    tuning: &'a Tuning,
    trials: &'a [Trial],
    winners: &'a [usize],
    /// The winners, the best first.
    tested: Vec<Tested>,
    /// The agent's own settings.
    own: Tested,
}

impl<'a> Summary<'a> {
    /// `table` has the results with fresh seeds: of the default, and of the winners.
    pub(super) fn new(tuning: &'a Tuning, trials: &'a [Trial], winners: &'a [usize], table: &Table) -> Self {
        let last = tuning.plan.rungs.len() - 1;
        let of = |name: &str| -> Option<Scores> {
            let agent = table.agents.iter().position(|other| other == name)?;
            let run = |environment: &str, points: &[gradus_statistics::table::Point]| {
                let value = match tuning.measure {
                    Measure::Last => points.last().map_or(f64::NAN, |point| point.value),
                    Measure::Mean => points[1..].iter().map(|point| point.value).sum::<f64>() / (points.len() - 1) as f64,
                };
                tuning.normalised(environment, value)
            };
            let worlds = table.runs[agent].iter().zip(&table.environments);
            Scores::new(worlds.map(|(runs, name)| runs.iter().map(|own| run(name, &own.points)).collect()).collect()).ok()
        };
        let bootstrap = Bootstrap { resamples: 10_000, ..Bootstrap::default() };
        let default = of("default");
        let tested = |name: String, settings: String, tuned: Option<f64>| {
            let own = of(&name);
            let better =
                own.as_ref().zip(default.as_ref()).filter(|_| tuned.is_some()).map(|(own, default)| bootstrap.improvement(own, default));
            Tested { fresh: own.map(|own| bootstrap.interval(&own, score)), name, settings, tuned, better }
        };
        let mut all: Vec<Tested> = Vec::new();
        for place in winners {
            all.push(tested(Tuning::title(*place), tuning.shown(&trials[*place]), Some(trials[*place].scores[last])));
        }
        Self { tuning, trials, winners, tested: all, own: tested("default".into(), "the agent's own".into(), None) }
    }

    /// The winners and the agent's own settings.
    fn all(&self) -> impl Iterator<Item = &Tested> {
        self.tested.iter().chain([&self.own])
    }

    /// What is said at the end.
    pub(super) fn lines(&self) -> Vec<String> {
        let seeds = self.tuning.default.seeds.len();
        let mut lines = vec![format!(
            "scores with {seeds} fresh seeds, and 95 % intervals; the score of the search is that of the luckiest and too high:"
        )];
        for Tested { name, settings, tuned, fresh, better } in self.all() {
            let tuned = tuned.map_or_else(String::new, |tuned| format!(" (in the search {})", short(tuned)));
            let better = better
                .as_ref()
                .map_or_else(String::new, |better| format!(", better than the default with probability {}", interval(better)));
            lines.push(format!("  {name}: {}{tuned}{better}: {settings}", told(fresh)));
        }
        let best = &self.tested[0];
        if seeds < ENOUGH {
            lines.push(format!("with {} nothing is decided", plural(seeds, "fresh seed")));
            return lines;
        }
        let is_above = best.fresh.zip(self.own.fresh).is_some_and(|(best, own)| best.low > own.high);
        lines.push(match (is_above, best.better.is_some_and(|better| better.low > 0.5)) {
            (_, true) => format!("{} is better than the default", best.name),
            (true, false) => format!("{} has a higher score than the default", best.name),
            _ => format!("it is not shown that {} is better than the default", best.name),
        });
        lines
    }

    pub(super) fn csv(&self) -> String {
        let mut text = String::from("trial,search,fresh,low,high,better,better_low,better_high\n");
        for Tested { name, tuned, fresh, better, .. } in self.all() {
            let estimate = |estimate: &Option<Estimate>| match estimate {
                Some(Estimate { point, low, high }) => [point, low, high].map(f64::to_string),
                None => [const { String::new() }; 3],
            };
            let first = [quoted(name), tuned.map_or_else(String::new, |tuned| tuned.to_string())];
            push_row(&mut text, &[first.as_slice(), &estimate(fresh), &estimate(better)].concat());
        }
        text
    }

    fn sheets(&self) -> Vec<Sheet> {
        let row = |Tested { name, settings, tuned, fresh, better }: &Tested| {
            let tuned = tuned.map_or_else(String::new, short);
            vec![name.clone(), tuned, told(fresh), better.as_ref().map_or_else(String::new, interval), settings.clone()]
        };
        let columns = ["trial", "in the search", "fresh seeds", "P(better than the default)", "settings"].map(String::from);
        vec![Sheet {
            heading: "The best trials".into(),
            note: "The score in the search is too high, because the best of many scores was chosen by it. The score with fresh seeds, which no trial was chosen by, is not. \
                   Brackets: 95 % bootstrap intervals. The first trial is the one in the preset."
                .into(),
            columns: columns.into(),
            rows: self.all().map(row).collect(),
        }]
    }

    fn about(&self) -> String {
        let plan = &self.tuning.plan;
        let rungs: Vec<String> =
            plan.rungs.iter().map(|rung| format!("{} of the steps with {}", rung.steps, plural(rung.seeds, "seed"))).collect();
        let (environments, whole) = (
            self.tuning.default.environments.join(", "),
            self.trials.iter().filter(|trial| trial.scores.len() == plan.rungs.len()).count(),
        );
        format!(
            "{} of {} on {environments}: {} trials in batches of {}; rungs: {}; {whole} trials reached the last",
            self.tuning.space.0.len(),
            if self.tuning.space.0.len() == 1 { "setting" } else { "settings" },
            self.trials.len(),
            plan.batch,
            rungs.join(", ")
        )
        .replacen(" of setting", " setting", 1)
    }

    pub(super) fn markdown(&self) -> String {
        let head = format!("# {}\n\n{}.\n", markdown(&self.tuning.default.name), self.about());
        self.sheets().iter().fold(head, |text, sheet| text + &sheet.markdown())
    }

    pub(super) fn figures(&self) -> Vec<Named> {
        let last = self.tuning.plan.rungs.len() - 1;
        let at = |rung: usize| -> Vec<(f64, f64)> {
            let of =
                |(number, trial): (usize, &Trial)| Some(((number + 1) as f64, *trial.scores.get(rung).filter(|score| score.is_finite())?));
            self.trials.iter().enumerate().filter_map(of).collect()
        };
        let whole = at(last);
        let best: Vec<(f64, f64)> = whole
            .iter()
            .scan(f64::NEG_INFINITY, |best, (number, score)| {
                *best = best.max(*score);
                Some((*number, *best))
            })
            .collect();
        let series = vec![
            Series {
                dots: whole.clone(),
                dots_label: "trials at the last rung".into(),
                style: Some(solid(0)),
                ..Series::new("best so far", best)
            },
            Series {
                dots: (0..last).flat_map(at).collect(),
                dots_label: "trials at lower rungs".into(),
                style: Some(solid(10)),
                ..Series::new("", Vec::new())
            },
        ];
        let y_label = if self.tuning.default.score.is_empty() { "return" } else { "normalised score" };
        let lines = Lines { x_label: "trial".into(), y_label: y_label.into(), series, ..Lines::default() };
        let history = Figure {
            title: "Scores over the search".into(),
            note: "interquartile mean over the seeds of the rung".into(),
            ..Figure::of(Chart::Lines(lines))
        };
        let rows = self.all().flat_map(|Tested { name, tuned, fresh, .. }| {
            let fresh = fresh.map(|Estimate { point, low, high }| Interval {
                label: format!("{name}, fresh seeds"),
                point,
                low,
                high,
                dots: Vec::new(),
            });
            let tuned = tuned.map(|score| Interval {
                label: format!("{name}, in the search"),
                point: score,
                low: score,
                high: score,
                dots: Vec::new(),
            });
            tuned.into_iter().chain(fresh)
        });
        let chart = Intervals { x_label: y_label.into(), rows: rows.collect(), plain: true, ..Intervals::default() };
        let fresh = Figure {
            title: "What the best trials are worth".into(),
            note: format!("{} fresh seeds; bars: 95 % bootstrap intervals", self.tuning.default.seeds.len()),
            ..Figure::of(Chart::Intervals(chart))
        };
        let line = |trial: &Trial| (places(&self.tuning.space, &trial.settings), trial.scores[last]);
        let lines = self.trials.iter().filter(|trial| trial.scores.get(last).is_some_and(|score| score.is_finite())).map(line).collect();
        let all = Coordinates { axes: axes(&self.tuning.space), lines, value_label: "score".into() };
        let coordinates = Figure {
            title: "Trials of the last rung".into(),
            note: "a line for each; darker: a higher score".into(),
            ..Figure::of(Chart::Coordinates(all))
        };
        let named = |name: &'static str, figure, caption: &str| Named { name: name.into(), figure, caption: caption.into() };
        let mut figures = vec![
            named(
                "history",
                history,
                "Each batch is cut: the better half of a rung goes on to the next one, with more seeds and more steps. Later trials are proposed where earlier ones had good scores.",
            ),
            named(
                "fresh",
                fresh,
                "The score in the search is the highest of many noisy ones. How much of it is left with seeds that nothing was chosen by is what the settings are worth.",
            ),
        ];
        if self.tuning.space.0.len() > 1 {
            figures.push(named(
                "coordinates",
                coordinates,
                "Dark lines that meet at one value of a setting show that the good trials share it.",
            ));
        }
        figures
    }

    pub(super) fn page(&self, execution: &Execution, (figures, name): (&[Named], &Path)) -> Result<String, Error> {
        let tables: String = self.sheets().iter().map(report::table).collect();
        let text = report::escape(self.tuning.default.text.trim_end());
        let body = format!(
            "<h2>Numbers</h2>\n{tables}<p><a href=\"fresh/report.html\">The comparison with fresh seeds</a> has curves and tests.</p>\n<h2>Configuration</h2>\n<pre>{text}</pre>\n"
        );
        let more = report::circumstances(execution.command, None, (execution.jobs, gradus_base::threads::cores()));
        let facts: Vec<(&str, String)> = std::iter::once(("tuned", self.about())).chain(more).collect();
        report::page(&self.tuning.default.name, &facts, (figures, name), &body)
    }

    /// Writes the settings of the best trial as a preset for each environment.
    pub(super) fn write_presets(&self, dir: &Path) -> Result<Vec<PathBuf>, Error> {
        let (best, default) = (&self.tested[0], &self.own);
        let point = [(best.name.as_str(), &self.trials[self.winners[0]].settings)];
        let rung = super::Rung { steps: 1.0, seeds: 1 };
        let built = self.tuning.trials.comparison(&point, (self.tuning.steps(rung), toml::Value::Integer(1)), false);
        let built = built.map_err(|problem| Error::folder(dir, problem))?;
        let mut files = Vec::new();
        for (at, config) in &built.agents[0].configs {
            let environment = &built.environments[*at];
            let head = format!(
                "# {} of the tuning \"{}\": {}.\n# Score with {} fresh seeds: {}; the agent's own settings: {}. In the search, with seeds 1 to {}: {}.\n# gradus {}.\n",
                best.name,
                self.tuning.default.name,
                best.settings,
                self.tuning.default.seeds.len(),
                told(&best.fresh),
                told(&default.fresh),
                self.tuning.seeds,
                best.tuned.map_or_else(String::new, short),
                env!("CARGO_PKG_VERSION"),
            );
            // a folder of presets names Gymnasium's environments by their identifiers
            let name = environment.strip_prefix(gym::PREFIX).unwrap_or(environment);
            let folder = dir.join("presets").join(&config.agent).join(name.replace(['/', ':', '?'], "-"));
            fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
            let path = folder.join("tuned.toml");
            write(&path, &(head + &preset(config)))?;
            files.push(path);
        }
        Ok(files)
    }
}

/// The settings as a preset has them: without the agent, the environment and the seed.
fn preset(config: &Config) -> String {
    let mut table: toml::Table = config.to_toml().parse().expect("settings are TOML");
    ["agent", "environment", "seed"].iter().for_each(|key| drop(table.remove(*key)));
    toml::to_string(&table).expect("a table is TOML")
}

impl Tuning {
    /// The settings of a trial, as they are printed.
    fn shown(&self, trial: &Trial) -> String {
        let keys: Vec<&str> = trial.settings.iter().map(|(key, _)| key.as_str()).collect();
        let words = short_keys(&keys).into_iter().zip(&trial.settings).map(|(key, (_, value))| format!("{key}={}", shown(value)));
        words.collect::<Vec<_>>().join(" ")
    }
}
