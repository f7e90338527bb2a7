//! Figures of Sutton and Barto, "Reinforcement Learning: An Introduction", second edition, 2018.

pub(super) mod bandits;
pub(super) mod blackjack;
pub(super) mod cliff;
pub(super) mod corridor;
pub(super) mod maze;
pub(super) mod mountain_car;
pub(super) mod walks;

use crate::agents::tabular::Trajectory;
use crate::envs::random::Stream;
use crate::envs::tabular::Table;
use crate::figure::{Chart, Figure, Lines, Panel, Series, dashed, solid};
use crate::statistics::{Aggregate, Bootstrap};

use super::findings::scores;

/// Plays an episode of a process that terminates, from `start`. `choose` gives the action in a state.
fn play(table: &Table, start: usize, stream: &mut Stream, mut choose: impl FnMut(usize, &mut Stream) -> usize) -> Trajectory {
    let (mut episode, mut state) = (Trajectory::default(), start);
    loop {
        let action = choose(state, stream);
        let outcome = table.sample(state, action, stream);
        episode.states.push(state);
        episode.actions.push(action);
        episode.rewards.push(outcome.reward);
        if outcome.terminated {
            return episode;
        }
        state = outcome.next as usize;
    }
}

/// Returns the root of the mean of the squared differences.
fn root_mean_square(values: &[f64], truth: &[f64]) -> f64 {
    let squares = values.iter().zip(truth).map(|(value, truth)| (value - truth) * (value - truth));
    (squares.sum::<f64>() / truth.len() as f64).sqrt()
}

/// Returns the mean of every place over all runs.
fn mean_of(runs: &[Vec<f64>]) -> Vec<f64> {
    (0..runs[0].len()).map(|place| runs.iter().map(|run| run[place]).sum::<f64>() / runs.len() as f64).collect()
}

/// Returns a line of means over runs with 95 % intervals at each of `xs`. `runs[run][place]` is the number at `xs[place]`.
fn banded(label: impl Into<String>, colour: usize, xs: &[f64], runs: &[Vec<f64>]) -> Series {
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
fn published(label: &str, value: f64, end: f64) -> Series {
    Series { style: Some(dashed(10, 1)), ..Series::new(label, vec![(0.0, value), (end, value)]) }
}

/// Returns a panel of lines whose names are at their ends.
fn lines(title: &str, x_label: &str, y_label: &str, series: Vec<Series>) -> Panel {
    let lines = Lines { x_label: x_label.into(), y_label: y_label.into(), series, direct: true, ..Lines::default() };
    Panel { title: title.into(), chart: Chart::Lines(lines) }
}

/// Returns a figure of panels.
fn figure(title: &str, note: &str, columns: usize, panels: Vec<Panel>) -> Figure {
    Figure { title: title.into(), note: note.into(), columns, panels }
}
