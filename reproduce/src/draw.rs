//! Parts of the figures.

use gradus::figure::{Chart, Figure, Interval, Intervals, Lines, Panel, Series, dashed, solid};
use gradus_compare::statistics::{Aggregate, Bootstrap, Estimate};

use super::findings::scores;

/// Returns the mean of every place over all runs.
pub(super) fn mean_of(runs: &[Vec<f64>]) -> Vec<f64> {
    (0..runs[0].len()).map(|place| runs.iter().map(|run| run[place]).sum::<f64>() / runs.len() as f64).collect()
}

/// Returns a line of means over runs with 95 % intervals at each of `xs`. `runs[run][place]` is the number at `xs[place]`.
pub(super) fn banded(label: impl Into<String>, colour: usize, xs: &[f64], runs: &[Vec<f64>]) -> Series {
    let tables: Vec<_> = (0..xs.len()).map(|place| scores(&runs.iter().map(|run| run[place]).collect::<Vec<_>>())).collect();
    let bootstrap = Bootstrap { resamples: 2_000, ..Bootstrap::default() };
    let estimates = bootstrap.aggregates(&tables.iter().collect::<Vec<_>>(), &[Aggregate::Mean]).concat();
    Series {
        style: Some(solid(colour)),
        points: xs.iter().zip(&estimates).map(|(x, estimate)| (*x, estimate.point)).collect(),
        band: xs.iter().zip(&estimates).map(|(x, estimate)| (*x, estimate.low, estimate.high)).collect(),
        ..Series::new(label, Vec::new())
    }
}

/// Returns a published number as a dashed grey line from 0 to `end`.
pub(super) fn published(label: &str, value: f64, end: f64) -> Series {
    Series { style: Some(dashed(10, 1)), ..Series::new(label, vec![(0.0, value), (end, value)]) }
}

/// Returns a panel of lines whose names are at their ends.
pub(super) fn lines(title: &str, x_label: &str, y_label: &str, series: Vec<Series>) -> Panel {
    let lines = Lines { x_label: x_label.into(), y_label: y_label.into(), series, direct: true, ..Lines::default() };
    Panel { title: title.into(), chart: Chart::Lines(lines) }
}

/// Returns a figure of panels.
pub(super) fn figure(title: &str, note: &str, columns: usize, panels: Vec<Panel>) -> Figure {
    Figure { title: title.into(), note: note.into(), columns, panels }
}

/// Returns a panel of intervals, one row each, all of one colour.
pub(super) fn intervals(title: &str, x_label: &str, rows: Vec<(String, Estimate)>) -> Panel {
    let row = |(label, Estimate { point, low, high }): (String, Estimate)| Interval { label, point, low, high, dots: Vec::new() };
    let chart = Intervals { x_label: x_label.into(), rows: rows.into_iter().map(row).collect(), plain: true, ..Intervals::default() };
    Panel { title: title.into(), chart: Chart::Intervals(chart) }
}
