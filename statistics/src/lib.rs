//! The statistics of comparisons, as in Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement learning at the edge of
//! the statistical precipice" (NeurIPS 2021, arXiv 2108.13264), and their library rliable.
//!
//! Scores form a table of runs x tasks. A point estimate from few runs is uncertain, so every aggregate has an interval. It comes from a
//! *stratified* percentile bootstrap, which resamples the runs within each task. As in rliable, tasks are resampled only on request
//! ([`Bootstrap::tasks`], rliable's `task_bootstrap`). The interval then also covers other tasks of the same kind. Unlike in rliable,
//! resampling is seeded, so results are reproducible.
//!
//! Pairs of algorithms are compared by the [`probability_of_improvement`] and its test ([`mann_whitney`]), or by the differences of
//! [`paired`] runs and their test ([`sign_flips`]). Numbers of successful runs are compared by [`fisher_exact`]. [`holm`] corrects p-values
//! for the number of tested pairs.
//!
//! | symbol | meaning |
//! | --- | --- |
//! | N | number of runs per task |
//! | M | number of tasks |
//! | x(m, n) | the score of run n on task m, normalised if there are several tasks |
//!
//! ```
//! use gradus_statistics::{Bootstrap, Scores, interquartile_mean};
//!
//! let scores = Scores::new(vec![vec![0.1, 0.7, 0.8, 0.9], vec![0.2, 0.6, 0.7, 5.0]])?;
//! assert!((interquartile_mean(&scores) - 0.7).abs() < 1e-12); // of 0.6, 0.7, 0.7, 0.8
//! let estimate = Bootstrap::default().interval(&scores, interquartile_mean);
//! assert!(estimate.low < 0.7 && estimate.high > 0.7);
//! # Ok::<(), gradus_statistics::ScoresError>(())
//! ```
#![forbid(unsafe_code)]
#![deny(clippy::print_stderr, clippy::print_stdout)] // these panic if the output cannot be written

use std::ops::Range;

mod bootstrap;
pub mod csv;
mod paired;
mod resamples;
mod significance;
pub mod table;

pub use bootstrap::{Bootstrap, Estimate, coverage, student};
pub use paired::mean_paired_difference;
pub use significance::{fisher_exact, holm, mann_whitney, paired, sign_flips, sign_flips_of_all};

/// The scores of one algorithm on one or more tasks, with the same number of runs on each task.
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    runs: usize,
    /// The scores of all runs of the first task, then of the second task, and so on.
    values: Vec<f64>,
}

/// The reason why scores cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScoresError {
    /// There are no tasks, or no runs.
    #[error("scores: expected at least one task and one run, got {tasks} tasks and {runs} runs")]
    Empty {
        /// Number of tasks.
        tasks: usize,
        /// Number of runs.
        runs: usize,
    },
    /// A task has a different number of runs than the first task.
    #[error("scores: expected {expected} runs of task {task}, as many as of task 1, got {got}")]
    Uneven {
        /// The task, counted from 1.
        task: usize,
        /// Runs of the first task.
        expected: usize,
        /// Runs of this task.
        got: usize,
    },
    /// A score is NaN or infinite.
    #[error("scores: expected finite numbers, got {value} for run {run} of task {task}")]
    NotFinite {
        /// The task, counted from 1.
        task: usize,
        /// The run, counted from 1.
        run: usize,
        /// The score.
        value: f64,
    },
}

impl Scores {
    /// Creates the scores from a table, in which `tasks[task][run]` is the score of one run.
    pub fn new(tasks: Vec<Vec<f64>>) -> Result<Self, ScoresError> {
        let runs = tasks.first().map_or(0, Vec::len);
        if runs == 0 {
            return Err(ScoresError::Empty { tasks: tasks.len(), runs });
        }
        for (number, task) in tasks.iter().enumerate() {
            if task.len() != runs {
                return Err(ScoresError::Uneven { task: number + 1, expected: runs, got: task.len() });
            }
            if let Some(run) = task.iter().position(|score| !score.is_finite()) {
                return Err(ScoresError::NotFinite { task: number + 1, run: run + 1, value: task[run] });
            }
        }
        // -0 becomes 0, so that no sum depends on the signs of zeros
        Ok(Self { runs, values: tasks.iter().flatten().map(|score| score + 0.0).collect() })
    }

    /// Returns N, the number of runs of each task.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Returns the scores of each task.
    pub fn tasks(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.runs)
    }

    /// Returns the number of tasks and the number of runs of each task.
    fn shape(&self) -> (usize, usize) {
        (self.tasks().len(), self.runs)
    }

    fn task_means(&self) -> impl Iterator<Item = f64> {
        self.tasks().map(average)
    }
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the mean over all runs and tasks.
pub fn mean(scores: &Scores) -> f64 {
    average(&scores.values)
}

/// Returns the median of the tasks' means. The mean of a task is taken over its runs.
pub fn median(scores: &Scores) -> f64 {
    median_of(scores.task_means().collect())
}

/// Returns the values in ascending order, each with its place in `values`; equal values in the order of their places. All sorts of places
/// call this function, because every `sort_by` with another closure is compiled again.
fn ascending(values: &[f64]) -> Vec<(f64, u32)> {
    let mut sorted: Vec<(f64, u32)> = values.iter().copied().zip(0..).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    sorted
}

fn median_of(mut means: Vec<f64>) -> f64 {
    means.sort_unstable_by(f64::total_cmp);
    (means[(means.len() - 1) / 2] + means[means.len() / 2]) / 2.0
}

/// Returns the interquartile mean: the mean of the middle half of all N x M scores. A quarter of the scores, rounded down, is left out at
/// either end.
pub fn interquartile_mean(scores: &Scores) -> f64 {
    let mut sorted = scores.values.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    average(&sorted[middle_of(sorted.len())])
}

/// Returns the places of the middle half of `n` sorted scores.
fn middle_of(n: usize) -> Range<usize> {
    n / 4..n - n / 4
}

/// Returns the optimality gap: `gamma` minus the mean of min(x, `gamma`) over all scores x.
pub fn optimality_gap(scores: &Scores, gamma: f64) -> f64 {
    gamma - scores.values.iter().map(|score| score.min(gamma)).sum::<f64>() / scores.values.len() as f64
}

/// Returns the probability that a run of X scores higher than a run of Y. It is the mean over the tasks of U / (N K). U is Mann and
/// Whitney's statistic, in which ties count one half, and K is the number of runs of Y.
///
/// # Panics
/// If X and Y have different numbers of tasks.
pub fn probability_of_improvement(x: &Scores, y: &Scores) -> f64 {
    assert_eq!(x.tasks().len(), y.tasks().len(), "probability of improvement: expected the same tasks");
    let task = |(x, y): (&[f64], &[f64])| {
        let mut sorted = y.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        // twice the number of lower scores, and the number of equal scores
        let doubled_wins = |x: &f64| sorted.partition_point(|y| y < x) + sorted.partition_point(|y| y <= x);
        x.iter().map(doubled_wins).sum::<usize>() as f64 / 2.0 / (x.len() * y.len()) as f64
    };
    x.tasks().zip(y.tasks()).map(task).sum::<f64>() / x.tasks().len() as f64
}

/// A statistic of the scores of one algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// The [`mean`].
    Mean,
    /// The [`median`] of the tasks' means.
    Median,
    /// The [`interquartile_mean`].
    InterquartileMean,
    /// The [`optimality_gap`] for this gamma.
    OptimalityGap(f64),
}

impl Aggregate {
    /// Returns the statistic of `scores`.
    pub fn of(self, scores: &Scores) -> f64 {
        match self {
            Self::Mean => mean(scores),
            Self::Median => median(scores),
            Self::InterquartileMean => interquartile_mean(scores),
            Self::OptimalityGap(gamma) => optimality_gap(scores, gamma),
        }
    }
}

/// Returns the performance profile: for each tau, the fraction of all scores above tau.
pub fn profile(scores: &Scores, taus: &[f64]) -> Vec<f64> {
    let mut sorted = scores.values.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let above = |tau: &f64| sorted.len() - sorted.partition_point(|score| score <= tau);
    taus.iter().map(|tau| above(tau) as f64 / sorted.len() as f64).collect()
}

/// Tests the code block of the README as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(tasks: &[&[f64]]) -> Scores {
        Scores::new(tasks.iter().map(|task| task.to_vec()).collect()).unwrap()
    }

    /// Expected values are computed by hand.
    #[test]
    fn aggregates_of_a_small_table() {
        let table = scores(&[&[0.0, 1.0], &[2.0, 4.0], &[1.0, 2.0]]);
        assert_eq!(mean(&table), 10.0 / 6.0);
        assert_eq!(median(&table), 1.5, "of 0.5, 3 and 1.5");
        assert_eq!(interquartile_mean(&table), (1.0 + 1.0 + 2.0 + 2.0) / 4.0, "6 / 4 rounded down: one is left out at either end");
        assert_eq!(optimality_gap(&table, 1.0), 1.0 - 5.0 / 6.0);
        assert_eq!(profile(&table, &[-1.0, 0.0, 1.0, 3.9, 4.0]), [1.0, 5.0 / 6.0, 0.5, 1.0 / 6.0, 0.0]);
        assert_eq!(interquartile_mean(&scores(&[&[0.0, 1.0, 2.0, 4.0], &[8.0, 16.0, 32.0, 64.0]])), 7.5, "two are left out at either end");
        assert_eq!(interquartile_mean(&scores(&[&[3.0, 9.0, 1.0]])), 13.0 / 3.0, "3 / 4 rounded down: nothing is left out");
    }

    #[test]
    fn improvement_counts_pairs() {
        let (x, y) = (scores(&[&[1.0, 3.0], &[5.0, 5.0]]), scores(&[&[2.0, 3.0, 0.0], &[5.0, 5.0, 6.0]]));
        // task 1: 1 beats 0; 3 beats 2 and 0 and ties with 3. Task 2: four ties.
        assert_eq!(probability_of_improvement(&x, &y), (3.5 / 6.0 + 2.0 / 6.0) / 2.0);
        assert_eq!(probability_of_improvement(&x, &x), 0.5);
    }

    #[test]
    fn unusable_scores_are_refused() {
        let message = |tasks: &[&[f64]]| Scores::new(tasks.iter().map(|task| task.to_vec()).collect()).unwrap_err().to_string();
        assert_eq!(message(&[]), "scores: expected at least one task and one run, got 0 tasks and 0 runs");
        assert_eq!(message(&[&[], &[]]), "scores: expected at least one task and one run, got 2 tasks and 0 runs");
        assert_eq!(message(&[&[1.0, 2.0], &[1.0]]), "scores: expected 2 runs of task 2, as many as of task 1, got 1");
        assert_eq!(message(&[&[1.0, f64::NAN]]), "scores: expected finite numbers, got NaN for run 2 of task 1");
    }
}
