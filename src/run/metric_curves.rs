//! Curves of the columns of `metrics.csv`, for `gradus plot --metric`.

use std::path::Path;

use gradus_envs::names::hint;

use super::logs::{MetricTable, read_metrics};
use crate::figure::{self, Chart, Figure, Lines, Panel, Series};
use crate::saved::read_config;
use crate::{Config, Error};

/// A line has at most about this many points.
const POINTS: usize = 150;

/// Each point is the mean over a window of updates. The length of the window is the number of updates of the longest run divided by this
/// number and rounded down, but at least 1.
const WINDOW: usize = 50;

/// A run with its settings and its table.
struct Logged {
    name: String,
    config: Config,
    table: MetricTable,
}

/// Draws columns of `metrics.csv` of run folders into the given files: a panel per column and a line per run. Runs that differ only in
/// their seed have the same colour and share a name in the legend.
pub fn plot_metrics<D: AsRef<Path>, F: AsRef<Path>>(dirs: &[D], metrics: &[String], files: &[F]) -> Result<(), Error> {
    let runs = read(dirs)?;
    let mut columns: Vec<&str> = Vec::new();
    for column in runs.iter().flat_map(|run| run.table.metrics()) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    if let Some(unknown) = metrics.iter().find(|metric| !columns.contains(&metric.as_str())) {
        return Err(Error::Unknown { what: "metric", name: unknown.clone(), hint: hint(unknown, &columns) });
    }
    let figure = figure(&runs, metrics);
    files.iter().try_for_each(|file| Ok(figure::write(&figure, file.as_ref())?))
}

fn read<D: AsRef<Path>>(dirs: &[D]) -> Result<Vec<Logged>, Error> {
    let file_name = |dir: &Path| dir.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut names: Vec<String> = dirs.iter().filter_map(|dir| file_name(dir.as_ref())).collect();
    names.sort();
    names.dedup();
    let are_unique = names.len() == dirs.len();
    let run = |dir: &D| {
        let dir = dir.as_ref();
        let (config, table) = (read_config(dir)?, read_metrics(dir)?);
        let name = file_name(dir).filter(|_| are_unique).unwrap_or_else(|| dir.display().to_string());
        let name = if dirs.len() == 1 { format!("{}, seed {}", config.agent, config.seed) } else { name };
        Ok(Logged { name, config, table })
    };
    dirs.iter().map(run).collect()
}

fn figure(runs: &[Logged], metrics: &[String]) -> Figure {
    // runs that differ only in their seed form a group; groups are numbered in the order of their first runs
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
    let labels = labels(runs, &groups, firsts.len());

    let updates = runs.iter().map(|run| run.table.rows.len()).max().unwrap_or(0);
    let window = (updates / WINDOW).max(1);
    let is_text = |run: &Logged| gradus_envs::registry::find(&run.config.environment).is_ok_and(|world| world.text.is_some());
    let x_label = match runs.iter().all(|run| run.table.counts_steps()) {
        true if runs.iter().all(is_text) => "generated tokens",
        true => "environment steps",
        false => "optimiser steps",
    };
    let panel = |metric: &String| {
        let line = |(run, group): (&Logged, &usize)| {
            let points = smooth(&run.table.column(metric), window);
            Series { style: Some(*group), ..Series::new(&labels[*group], points) }
        };
        let series: Vec<Series> = runs.iter().zip(&groups).map(line).collect();
        let last = series.iter().filter_map(|series| series.points.last()).map(|(x, _)| *x).reduce(f64::max);
        let lines = Lines {
            x_label: x_label.into(),
            x_range: last.map(|last| (0.0, last)),
            empty: "no values in these runs".into(),
            series,
            ..Lines::default()
        };
        Panel { title: metric.clone(), chart: Chart::Lines(lines) }
    };
    let mut titles: Vec<String> = Vec::new();
    for run in runs {
        let title = gradus_envs::registry::find(&run.config.environment).map(|world| world.title().to_owned());
        let title = title.unwrap_or_else(|_| run.config.environment.clone());
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let note = match (groups.len() > firsts.len(), window) {
        (false, 1) => String::new(),
        (false, _) => format!("mean of the last {window} updates"),
        (true, 1) => "one line per seed".into(),
        (true, _) => format!("one line per seed, mean of the last {window} updates"),
    };
    Figure { title: titles.join(", "), note, columns: metrics.len().min(2), panels: metrics.iter().map(panel).collect() }
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
    fn seeds_share_the_beginning_of_their_names() {
        assert_eq!(beginning(&["clip-0.2-1", "clip-0.2-2"]), "clip-0.2");
        assert_eq!(beginning(&["run-10", "run-11"]), "run");
        assert_eq!(beginning(&["a", "b"]), "a");
        assert_eq!(beginning(&["größe_a", "größe_ä"]), "größe");
    }
}
