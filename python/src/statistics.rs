//! Statistics of comparisons.

use gradus_statistics::{Aggregate, Bootstrap, Estimate, Scores};
use pyo3::prelude::*;

use crate::failed;

fn scores(tasks: Vec<Vec<f64>>) -> PyResult<Scores> {
    Scores::new(tasks).map_err(failed)
}

fn finite(name: &str, number: f64) -> PyResult<()> {
    if number.is_finite() { Ok(()) } else { Err(failed(format!("{name}: expected a finite number, got {number}"))) }
}

fn aggregate(name: &str, gamma: f64) -> PyResult<Aggregate> {
    finite("gamma", gamma)?;
    Ok(match name {
        "mean" => Aggregate::Mean,
        "median" => Aggregate::Median,
        "interquartile_mean" => Aggregate::InterquartileMean,
        "optimality_gap" => Aggregate::OptimalityGap(gamma),
        other => return Err(failed(format!("statistic: expected mean, median, interquartile_mean or optimality_gap, got {other}"))),
    })
}

fn bootstrap(resamples: usize, level: f64, seed: u64) -> PyResult<Bootstrap> {
    if resamples == 0 {
        return Err(failed("resamples: expected at least 1, got 0"));
    }
    if !(level > 0.0 && level < 1.0) {
        return Err(failed(format!("level: expected a number between 0 and 1, got {level}")));
    }
    Ok(Bootstrap { resamples, level, seed, ..Bootstrap::default() })
}

fn triple(estimate: Estimate) -> (f64, f64, f64) {
    (estimate.point, estimate.low, estimate.high)
}

/// A statistic of `tasks[task][run]`, and the ends of its interval.
#[pyfunction]
#[pyo3(signature = (tasks, statistic, gamma, resamples, level, seed))]
fn interval(
    py: Python<'_>,
    tasks: Vec<Vec<f64>>,
    statistic: &str,
    gamma: f64,
    resamples: usize,
    level: f64,
    seed: u64,
) -> PyResult<(f64, f64, f64)> {
    let (scores, aggregate) = (scores(tasks)?, aggregate(statistic, gamma)?);
    let bootstrap = bootstrap(resamples, level, seed)?;
    Ok(triple(py.detach(|| bootstrap.aggregates(&[&scores], &[aggregate])[0][0])))
}

/// The probability that a run of x is better than one of y, and the ends of its interval.
#[pyfunction]
fn improvement(py: Python<'_>, x: Vec<Vec<f64>>, y: Vec<Vec<f64>>, resamples: usize, level: f64, seed: u64) -> PyResult<(f64, f64, f64)> {
    let (x, y) = (scores(x)?, scores(y)?);
    if x.tasks().len() != y.tasks().len() {
        return Err(failed(format!("scores: expected {} tasks in both tables, got {}", x.tasks().len(), y.tasks().len())));
    }
    let bootstrap = bootstrap(resamples, level, seed)?;
    Ok(triple(py.detach(|| bootstrap.improvement(&x, &y))))
}

/// The share of runs whose score is above each of `taus`, and the ends of its interval.
#[pyfunction]
fn profile(
    py: Python<'_>,
    tasks: Vec<Vec<f64>>,
    taus: Vec<f64>,
    resamples: usize,
    level: f64,
    seed: u64,
) -> PyResult<Vec<(f64, f64, f64)>> {
    let scores = scores(tasks)?;
    taus.iter().try_for_each(|tau| finite("taus", *tau))?;
    let bootstrap = bootstrap(resamples, level, seed)?;
    Ok(py.detach(|| bootstrap.profile(&scores, &taus)).into_iter().map(triple).collect())
}

/// Adds this file's functions.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(interval, module)?)?;
    module.add_function(wrap_pyfunction!(improvement, module)?)?;
    module.add_function(wrap_pyfunction!(profile, module)?)
}
