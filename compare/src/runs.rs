//! Figures of run folders: returns or other metrics, over steps or seconds, with a line per run or a band per group of seeds.

use std::collections::BTreeSet;
use std::path::Path;

use gradus::agents::ConfigError;
use gradus_base::names::nearest_key;

use gradus::figure::{self, Chart, Figure, Lines, Panel, Scale, Series, Threshold, smooth_over};
use gradus::run::logs::{MetricTable, read_episodes, read_metrics, read_timing};
use gradus::run::reach;
use gradus::saved::read_config;
use gradus::{Config, Error};
use gradus_statistics::{Aggregate, Bootstrap, Scores};

/// A line has at most about this many points.
const POINTS: usize = 150;

/// Each point of a metric is the mean over a window of updates. The length of the window is the number of updates of the longest run divided by this
/// number and rounded down, but at least 1.
const WINDOW: usize = 50;

/// Bootstrap resamples for the bands.
const RESAMPLES: usize = 2_000;

/// How [`plot_runs`] draws runs that differ only in their seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seeds {
    /// Their interquartile mean, with a 95 % bootstrap interval at each point.
    #[default]
    Iqm,
    /// Their mean, with a 95 % bootstrap interval at each point.
    Mean,
    /// One line per run, all of the same colour.
    Each,
}

/// What [`plot_runs`] draws.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Columns of `metrics.csv`, one panel each; empty: the return of the episodes.
    pub metrics: Vec<String>,
    /// Names in the legend, one for each line or group of seeds, in the order of their first folders; empty: the names of the folders.
    pub labels: Vec<String>,
    /// Length of the trailing mean, in episodes or, for a metric, in updates; `None`: 100 episodes, or a fiftieth of the updates.
    pub window: Option<usize>,
    /// Whether the x axis has seconds of training instead of steps.
    pub over_seconds: bool,
    /// Whether the x axis is logarithmic.
    pub log_x: bool,
    /// The ends of the y axis; `None`: those of the lines.
    pub y_range: Option<(f64, f64)>,
    /// How runs that differ only in their seed are drawn.
    pub seeds: Seeds,
}

impl Plot {
    /// Returns what the panels draw, `None` for the return.
    fn drawn(&self) -> impl Iterator<Item = Option<&str>> {
        let of_return = self.metrics.is_empty().then_some(None);
        of_return.into_iter().chain(self.metrics.iter().map(|metric| Some(metric.as_str())))
    }
}

/// A run with its settings and its metrics.
struct Logged {
    name: String,
    config: Config,
    table: Option<MetricTable>,
    episodes: Vec<(f64, f64)>,
    /// The seconds of training at the steps of every update.
    timing: Vec<(f64, f64)>,
}

/// Draws run folders into the given files: a panel per metric and environment, and in it a line per run or a band per group of runs that differ
/// only in their seed. One run, or several with different settings, have their episodes as dots behind the curve of the return. Where a return
/// cannot be drawn, because it is infinite or too large, the line has a gap. Returns a line for each metric that a run does not have, and for each run whose end
/// ends the line of its group.
pub fn plot_runs<D: AsRef<Path>, F: AsRef<Path>>(dirs: &[D], plot: &Plot, files: &[F]) -> Result<Vec<String>, Error> {
    let mut runs = read(dirs, plot)?;
    let mut groups = groups(&runs);
    let count = groups.iter().max().map_or(0, |last| last + 1);
    let one_environment = runs.iter().all(|run| run.config.environment == runs[0].config.environment);
    if *plot == Plot::default() && count == runs.len() && one_environment {
        return gradus::run::plot(dirs, files).map(|()| Vec::new());
    }
    if plot.seeds != Seeds::Each {
        check_seeds(dirs, &runs, &groups)?;
    }
    let is_banded = plot.seeds != Seeds::Each;
    let mut empty = Vec::new();
    if is_banded {
        // a run without a point does not count among the seeds of its group
        let has_points = |run: &Logged| plot.drawn().any(|metric| !run.steps(metric).is_empty());
        let drawn: BTreeSet<usize> = runs.iter().zip(&groups).filter(|(run, _)| has_points(run)).map(|(_, group)| *group).collect();
        let (kept, without): (Vec<_>, Vec<_>) =
            runs.into_iter().zip(groups).partition(|(run, group)| has_points(run) || !drawn.contains(group));
        let what =
            if plot.metrics.is_empty() { "no episode ended".into() } else { format!("it has no value of {}", plot.metrics.join(", ")) };
        empty.extend(without.iter().map(|(run, _)| format!("{} is not drawn, because {what}", run.name)));
        (runs, groups) = kept.into_iter().unzip();
    }
    let mut labels = labels(&runs, &groups, count);
    if !plot.labels.is_empty() {
        let expected = format!("{count}, one for each of `{}`", labels.join("`, `"));
        ConfigError::unless(plot.labels.len() == count, "--label", &expected, plot.labels.len())?;
        labels.clone_from(&plot.labels);
    }
    let figure = figure(&runs, &groups, &labels, plot)?;
    files.iter().try_for_each(|file| figure::write(&figure, file.as_ref()))?;
    let lacks = |run: &Logged, metric: &String| run.table.as_ref().is_some_and(|table| !table.metrics().any(|name| name == metric));
    let missing = |run: &Logged| {
        let metrics: Vec<&str> = plot.metrics.iter().filter(|metric| lacks(run, metric)).map(String::as_str).collect();
        (!metrics.is_empty()).then(|| format!("{} has no {}", run.name, metrics.join(" and no ")))
    };
    let of_metric = |metric: Option<&str>| (0..count).filter_map(|group| cut_short(&runs, &groups, group, metric)).collect::<Vec<_>>();
    let mut cut: Vec<String> = plot.drawn().filter(|_| is_banded).flat_map(of_metric).collect();
    cut.dedup();
    Ok(runs.iter().filter_map(missing).chain(empty).chain(cut).collect())
}

/// Names the run whose line of a metric, or of the return, ends long before that of another of its group: beyond its end the group has no line.
fn cut_short(runs: &[Logged], groups: &[usize], group: usize, metric: Option<&str>) -> Option<String> {
    let of = |run: &Logged| run.steps(metric).last().copied();
    let ends = || runs.iter().zip(groups).filter(|(_, of)| **of == group).filter_map(|(run, _)| Some((of(run)?, &run.name)));
    let most = ends().map(|(end, _)| end).fold(0.0, f64::max);
    let (least, name) = ends().min_by(|a, b| a.0.total_cmp(&b.0))?;
    (least < 0.9 * most).then(|| {
        format!(
            "{name} ended at step {least} and another seed at {most}: the line of all seeds ends at step {least}; --each draws them whole"
        )
    })
}

fn read<D: AsRef<Path>>(dirs: &[D], plot: &Plot) -> Result<Vec<Logged>, Error> {
    let file_name = |dir: &Path| dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = dirs.iter().filter_map(|dir| file_name(dir.as_ref())).collect();
    names.sort();
    names.dedup();
    let are_unique = names.len() == dirs.len();
    let run = |dir: &D| {
        let dir = dir.as_ref();
        let config = read_config(dir)?;
        let name = file_name(dir).filter(|_| are_unique).unwrap_or_else(|| dir.display().to_string());
        let name = if dirs.len() == 1 { format!("{}, seed {}", config.agent, config.seed) } else { name };
        let table = if plot.metrics.is_empty() { None } else { Some(read_metrics(dir)?) };
        let episodes = if plot.metrics.is_empty() { read_episodes(dir)? } else { Vec::new() };
        let timing = if plot.over_seconds { read_timing(dir)? } else { Vec::new() };
        Ok(Logged { name, config, table, episodes, timing })
    };
    let runs: Vec<Logged> = dirs.iter().map(run).collect::<Result<_, Error>>()?;
    let mut columns: Vec<&str> = Vec::new();
    for column in runs.iter().filter_map(|run| run.table.as_ref()).flat_map(MetricTable::metrics) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    match plot.metrics.iter().find(|metric| !columns.contains(&metric.as_str())) {
        Some(unknown) => {
            // first names that have the whole word, as `train/approx_kl` has `kl`
            let has_word = |column: &&str| column.split(['/', '_']).any(|word| word == unknown);
            let mut meant: Vec<&str> = columns.iter().copied().filter(has_word).collect();
            if meant.is_empty() {
                meant.extend(nearest_key(unknown, columns.iter().copied(), '/'));
            }
            let hint = match meant.len() {
                1..=5 => format!("did you mean `{}`?", meant.join("` or `")),
                _ => "the first line of metrics.csv names all".into(),
            };
            Err(Error::Unknown { what: "metric", name: unknown.clone(), hint })
        }
        None => Ok(runs),
    }
}

/// Returns the group of every run. Runs that differ only in their seed form a group; groups are numbered in the order of their first runs.
fn groups(runs: &[Logged]) -> Vec<usize> {
    let alike = |a: &Config, b: &Config| *a == Config { seed: a.seed, ..b.clone() };
    let mut firsts: Vec<&Config> = Vec::new();
    let mut groups = Vec::new();
    for run in runs {
        let known = firsts.iter().position(|first| alike(first, &run.config));
        groups.push(known.unwrap_or(firsts.len()));
        if known.is_none() {
            firsts.push(&run.config);
        }
    }
    groups
}

/// Checks that the runs of a group have different seeds. A run that is there twice would be counted twice.
fn check_seeds<D: AsRef<Path>>(dirs: &[D], runs: &[Logged], groups: &[usize]) -> Result<(), Error> {
    for (later, run) in runs.iter().enumerate() {
        let same = |earlier: &usize| groups[*earlier] == groups[later] && runs[*earlier].config.seed == run.config.seed;
        if let Some(earlier) = (0..later).find(same) {
            let (seed, other) = (run.config.seed, dirs[earlier].as_ref().display());
            let problem = format!("expected a seed that no other run with these settings has, got seed {seed} as in {other}");
            return Err(Error::folder(dirs[later].as_ref(), problem + "; train another one with `--seed`"));
        }
    }
    Ok(())
}

fn figure(runs: &[Logged], groups: &[usize], labels: &[String], plot: &Plot) -> Result<Figure, Error> {
    let mut environments: Vec<&str> = Vec::new();
    for run in runs {
        if !environments.contains(&run.config.environment.as_str()) {
            environments.push(&run.config.environment);
        }
    }
    let title =
        |environment: &str| gradus::envs::registry::find(environment).map_or_else(|_| environment.to_owned(), |world| world.title());
    let updates = runs.iter().filter_map(|run| run.table.as_ref()).map(|table| table.rows.len()).max().unwrap_or(0);
    let window = plot.window.unwrap_or(if plot.metrics.is_empty() { figure::WINDOW } else { (updates / WINDOW).max(1) });
    let metrics: Vec<Option<&str>> = plot.drawn().collect();
    let mut panels = Vec::new();
    for metric in &metrics {
        for environment in &environments {
            let those = || runs.iter().zip(groups).filter(|(run, _)| run.config.environment == *environment);
            let lines: Vec<(usize, Vec<(f64, f64)>)> = those().map(|(run, group)| (*group, run.line(*metric, window))).collect();
            let series = match plot.seeds {
                Seeds::Each => lines.into_iter().map(|(group, points)| line(group, labels, points)).collect(),
                Seeds::Iqm | Seeds::Mean => banded(lines, labels, plot.seeds)?,
            };
            let titles = [metric.map(str::to_owned), (environments.len() > 1).then(|| title(environment))];
            let drawn = series.iter().filter_map(|series| series.points.last()).map(|(x, _)| *x).reduce(f64::max);
            let planned = those().map(|(run, _)| run.config.steps as f64).fold(0.0, f64::max);
            let counts_steps = those().all(|(run, _)| run.table.as_ref().is_none_or(MetricTable::counts_steps));
            // the last episode ends a little before the training
            let last = drawn.map(|drawn| if !plot.over_seconds && counts_steps { reach(drawn, planned) } else { drawn });
            let world = gradus::envs::registry::find(environment).ok();
            let solved_at = world.as_ref().and_then(|world| world.solved_at).filter(|_| metric.is_none());
            let solved_at = solved_at.filter(|value| plot.y_range.is_none_or(|(low, high)| low <= *value && *value <= high));
            let x_scale = if plot.log_x { Scale::Log10 } else { Scale::Linear };
            let first = |series: &Vec<Series>| {
                series.iter().filter_map(|series| series.points.iter().find(|(x, _)| *x > 0.0)).map(|(x, _)| *x).reduce(f64::min)
            };
            let from = if plot.log_x { first(&series).unwrap_or(1.0) } else { 0.0 };
            let series = if plot.log_x { series.into_iter().map(above_zero).collect() } else { series };
            let mut chart = Lines {
                x_label: match world.is_some_and(|world| world.text.is_some()) {
                    _ if plot.over_seconds => "seconds of training",
                    _ if !counts_steps => "optimiser steps",
                    true => "generated tokens",
                    false => "environment steps",
                }
                .into(),
                y_label: if metric.is_none() { "episode return".into() } else { String::new() },
                x_scale,
                x_range: last.map(|last| (from, last)),
                y_range: plot.y_range,
                threshold: solved_at.map(|value| Threshold { value, label: format!("solved at {value}").replace('-', "\u{2212}") }),
                empty: if metric.is_some() { "no values in these runs" } else { "no episode has ended yet" }.into(),
                series,
                ..Lines::default()
            };
            if metric.is_none() {
                chart.leave_out_extremes();
            }
            panels.push(Panel { title: titles.into_iter().flatten().collect::<Vec<_>>().join(", "), chart: Chart::Lines(chart) });
        }
    }
    let what = if plot.metrics.is_empty() { "episodes" } else { "updates" };
    let smoothed = (window > 1).then(|| format!("mean of the last {window} {what}"));
    let has_groups = labels.len() < runs.len();
    let is_cut =
        plot.over_seconds || metrics.iter().any(|metric| (0..labels.len()).any(|group| cut_short(runs, groups, group, *metric).is_some()));
    let end = if is_cut { " up to the end of the first run" } else { "" };
    let grouped = has_groups.then(|| match plot.seeds {
        Seeds::Iqm => format!("interquartile mean over {} with 95 % bootstrap intervals{end}", seeds(groups)),
        Seeds::Mean => format!("mean over {} with 95 % bootstrap intervals{end}", seeds(groups)),
        Seeds::Each => "one line per seed".to_owned(),
    });
    let note = grouped.into_iter().chain(smoothed).collect::<Vec<_>>().join(", ");
    let title = if environments.len() == 1 { title(environments[0]) } else { String::new() };
    Ok(Figure { title, note, columns: panels.len().min(if environments.len() > 2 { 3 } else { 2 }), panels })
}

/// Returns a line without the points that a logarithmic axis cannot show.
fn above_zero(mut series: Series) -> Series {
    series.points.retain(|(x, _)| *x > 0.0);
    series.band.retain(|(x, ..)| *x > 0.0);
    series
}

/// Returns how many seeds the groups have, such as `3 to 5 seeds`.
fn seeds(groups: &[usize]) -> String {
    let sizes = groups.iter().map(|group| groups.iter().filter(|other| *other == group).count());
    match (sizes.clone().min(), sizes.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} seeds"),
        (_, most) => format!("{} seeds", most.unwrap_or(0)),
    }
}

impl Logged {
    /// Returns the steps at which a metric has a value, or an episode ended.
    fn steps(&self, metric: Option<&str>) -> Vec<f64> {
        let of = |points: &[(f64, f64)]| points.iter().map(|(x, _)| *x).collect();
        match (metric, &self.table) {
            (Some(metric), Some(table)) => of(&table.column(metric)),
            _ => of(&self.episodes),
        }
    }

    /// Returns the points of a metric, or of the return: trailing means over `window` rows or episodes.
    fn line(&self, metric: Option<&str>, window: usize) -> Vec<(f64, f64)> {
        let mut points = match (metric, &self.table) {
            (Some(metric), Some(table)) => smooth(&table.column(metric), window),
            _ => {
                let mut points = smooth_over(&self.episodes, window);
                figure::make_gaps(&mut points);
                points
            }
        };
        if !self.timing.is_empty() {
            points.iter_mut().for_each(|(x, _)| *x = between(&self.timing, *x, true));
        }
        points
    }
}

/// Returns the y at `x` on the straight lines through `points`, whose x rise. Before the first point, the line begins at (0, 0) if `from_zero` is
/// true; otherwise, and after the last point, y is that of the nearest point.
fn between(points: &[(f64, f64)], x: f64, from_zero: bool) -> f64 {
    let after = points.partition_point(|(other, _)| *other < x);
    let Some((x1, y1)) = points.get(after) else { return points.last().map_or(0.0, |(_, y)| *y) };
    let before = if after > 0 { points.get(after - 1).copied() } else { from_zero.then_some((0.0, 0.0)) };
    match before {
        Some((x0, y0)) if *x1 > x0 => y0 + (y1 - y0) * (x - x0) / (x1 - x0),
        _ => *y1,
    }
}

/// Returns a line of a group. Groups of the same name look the same.
fn line(group: usize, labels: &[String], points: Vec<(f64, f64)>) -> Series {
    let style = labels.iter().position(|label| *label == labels[group]);
    Series { style, ..Series::new(&labels[group], points) }
}

/// Returns a line for each group: of one run as it is, of several the statistic of their values and its interval. A run's value at some x is that on the
/// straight line between its points. The line begins where every run has a point, and ends where the first run ends.
fn banded(lines: Vec<(usize, Vec<(f64, f64)>)>, labels: &[String], seeds: Seeds) -> Result<Vec<Series>, Error> {
    let mut all = Vec::new();
    for group in 0..labels.len() {
        let mut runs: Vec<Vec<(f64, f64)>> = lines.iter().filter(|(of, _)| *of == group).map(|(_, points)| points.clone()).collect();
        let is_drawn = !runs.is_empty();
        runs.retain(|points| !points.is_empty());
        if runs.len() < 2 {
            all.extend(is_drawn.then(|| line(group, labels, runs.pop().unwrap_or_default())));
            continue;
        }
        let end = |points: &Vec<(f64, f64)>| points.last().map_or(0.0, |(x, _)| *x);
        let from = runs.iter().map(|points| points[0].0).fold(f64::NEG_INFINITY, f64::max);
        let to = runs.iter().map(end).fold(f64::INFINITY, f64::min);
        let xs = (0..POINTS).map(|i| from + (to - from) * i as f64 / (POINTS - 1) as f64);
        let tables = xs.filter(|_| from <= to).filter_map(|x| {
            let values = runs.iter().map(|points| between(points, x, false)).collect();
            Scores::new(vec![values]).ok().map(|scores| (x, scores))
        });
        let tables: Vec<(f64, Scores)> = tables.collect();
        let aggregate = if seeds == Seeds::Mean { Aggregate::Mean } else { Aggregate::InterquartileMean };
        let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::default() };
        let scores: Vec<&Scores> = tables.iter().map(|(_, scores)| scores).collect();
        let estimates = bootstrap.aggregates(&scores, &[aggregate]).concat();
        let points = tables.iter().zip(&estimates).map(|((x, _), estimate)| (*x, estimate.point)).collect();
        let band = tables.iter().zip(&estimates).map(|((x, _), estimate)| (*x, estimate.low, estimate.high)).collect();
        all.push(Series { band, ..line(group, labels, points) });
    }
    Ok(all)
}

/// Returns the legend's name for every group of runs.
fn labels(runs: &[Logged], groups: &[usize], count: usize) -> Vec<String> {
    let names = |group: usize| runs.iter().zip(groups).filter(move |(_, of)| **of == group).map(|(run, _)| run.name.as_str());
    let mut labels = Vec::new();
    for group in 0..count {
        let names: Vec<&str> = names(group).collect();
        let common = match &names[..] {
            [name] => (*name).to_owned(),
            _ => format!("{} ({} seeds)", beginning(&names), names.len()),
        };
        labels.push(if labels.contains(&common) { names[0].to_owned() } else { common });
    }
    labels
}

/// Returns the common beginning of the names, without separators at its end. If the beginning ends inside a number, its digits are left
/// out. If nothing is left, returns the first name.
fn beginning<'a>(names: &[&'a str]) -> &'a str {
    let Some(first) = names.first() else { return "" };
    let same = |at: &usize| names.iter().all(|name| name.as_bytes().get(..*at) == first.as_bytes().get(..*at));
    let length = (0..=first.len()).filter(|at| first.is_char_boundary(*at)).take_while(same).last().unwrap_or(0);
    let cuts_number = names.iter().any(|name| name[length..].starts_with(|c: char| c.is_ascii_digit()));
    let common = &first[..length];
    let common = if cuts_number { common.trim_end_matches(|c: char| c.is_ascii_digit()) } else { common };
    let common = common.trim_end_matches(|c: char| !c.is_alphanumeric());
    if common.is_empty() { first } else { common }
}

/// Returns the points of a smoothed column. A point belongs to one row of the table, and is the mean of the values in that row and in up to
/// `window - 1` rows before it. If there are at most 150 rows, every row with a value has a point. Otherwise only the first row and evenly
/// spaced rows up to the last have a point.
fn smooth(column: &[(f64, f64)], window: usize) -> Vec<(f64, f64)> {
    let stride = column.len().div_ceil(POINTS).max(1);
    let point = |last: usize| {
        let values = column[(last + 1).saturating_sub(window)..=last].iter().map(|(_, y)| *y).filter(|y| y.is_finite());
        let (sum, count) = values.fold((0.0, 0.0), |(sum, count), y| (sum + y, count + 1.0));
        (column[last].0, sum / count)
    };
    // the first row and the last one have a point
    let mut rows: Vec<usize> = (0..column.len()).rev().step_by(stride).chain(std::iter::once(0)).collect();
    rows.reverse();
    rows.dedup();
    rows.retain(|row| *row < column.len() && (stride > 1 || column[*row].1.is_finite()));
    rows.into_iter().map(point).filter(|(_, y)| y.is_finite()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_means_of_the_last_rows_with_a_value() {
        let nan = f64::NAN;
        let column = [(1.0, nan), (2.0, 4.0), (3.0, nan), (4.0, 8.0), (5.0, 1.0)];
        assert_eq!(smooth(&column, 1), [(2.0, 4.0), (4.0, 8.0), (5.0, 1.0)]);
        assert_eq!(smooth(&column, 3), [(2.0, 4.0), (4.0, 6.0), (5.0, 4.5)]);
        assert!(smooth(&[], 1).is_empty() && smooth(&[(1.0, nan), (2.0, f64::INFINITY)], 2).is_empty());
        let long: Vec<(f64, f64)> = (0..5_001).map(|i| (f64::from(i), 2.0)).collect();
        let drawn = smooth(&long, 10);
        assert!((POINTS / 2..=POINTS + 1).contains(&drawn.len()) && drawn.iter().all(|(_, y)| *y == 2.0));
        assert_eq!([drawn[0], drawn[drawn.len() - 1]], [(0.0, 2.0), (5_000.0, 2.0)]);
    }

    #[test]
    fn bands_are_the_statistic_of_the_runs_and_its_interval() {
        let runs = vec![(0, vec![(0.0, 1.0), (10.0, 2.0)]), (0, vec![(5.0, 3.0), (20.0, 9.0)]), (1, vec![(0.0, 7.0)])];
        let labels = ["two".to_owned(), "one".to_owned()];
        let series = banded(runs, &labels, Seeds::Mean).unwrap();
        assert_eq!(series[1], line(1, &labels, vec![(0.0, 7.0)]), "a single run has no band");
        let (points, band) = (&series[0].points, &series[0].band);
        assert_eq!((points[0], points[POINTS - 1]), ((5.0, 2.25), (10.0, 3.5)), "where both runs have a point");
        // two runs: the smallest and the largest resample are the runs themselves
        assert_eq!((band[0], band[POINTS - 1]), ((5.0, 1.5, 3.0), (10.0, 2.0, 5.0)));
    }

    #[test]
    fn seconds_are_interpolated_between_updates() {
        let timing = [(100.0, 1.0), (200.0, 3.0)];
        assert_eq!([0.0, 50.0, 100.0, 150.0, 900.0].map(|steps| between(&timing, steps, true)), [0.0, 0.5, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn seeds_share_the_beginning_of_their_names() {
        assert_eq!(beginning(&["clip-0.2-1", "clip-0.2-2"]), "clip-0.2");
        assert_eq!(beginning(&["run-10", "run-11"]), "run");
        assert_eq!(beginning(&["a", "b"]), "a");
        assert_eq!(beginning(&["größe_a", "größe_ä"]), "größe");
    }
}
