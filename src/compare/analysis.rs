//! From the table to estimates: what is computed once and then both drawn and written down.

use super::Statistic;
use super::table::{Point, Table};
use crate::statistics::{self, Bootstrap, Estimate, Scores, ScoresError, interquartile_mean, mean, median, optimality_gap};

/// Resamples for the bands of curves and profiles, of which there are many.
const BAND: usize = 2_000;
/// Resamples for everything else.
const INTERVAL: usize = 50_000;
/// Places at which a profile is taken.
const TAUS: usize = 201;

/// A curve of one agent: where the evaluations lie, and the estimate at each.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) steps: Vec<f64>,
    pub(super) seconds: Option<Vec<f64>>,
    pub(super) estimates: Vec<Estimate>,
}

/// The aggregates of one agent's final scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregates {
    pub(super) iqm: Estimate,
    pub(super) median: Estimate,
    pub(super) mean: Estimate,
    pub(super) gap: Estimate,
}

/// A comparison of two agents.
#[derive(Clone, Debug)]
pub(super) struct Improvement {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) estimate: Estimate,
}

impl Improvement {
    /// What the interval allows to say.
    pub(super) fn verdict(&self) -> &'static str {
        match self.estimate {
            Estimate { low, .. } if low > 0.5 => "higher",
            Estimate { high, .. } if high < 0.5 => "lower",
            _ => "tie: the interval holds 0.5",
        }
    }
}

/// All estimates of a comparison.
pub(super) struct Analysis<'a> {
    pub(super) table: &'a Table,
    pub(super) statistic: Statistic,
    /// `curves[environment][agent]`, of the returns.
    pub(super) curves: Vec<Vec<Curve>>,
    /// `finals[environment][agent]`, of the returns of the last evaluations.
    pub(super) finals: Vec<Vec<Aggregates>>,
    /// Of the normalised scores over all environments, where there are several and they are normalised.
    pub(super) overall_curves: Option<Vec<Curve>>,
    /// Of the normalised final scores, by agent.
    pub(super) overall: Option<Vec<Aggregates>>,
    /// What profiles are of: normalised scores, or the returns of a single environment.
    pub(super) profiles: Option<(Vec<f64>, Vec<Vec<Estimate>>)>,
    pub(super) improvements: Vec<Improvement>,
}

impl<'a> Analysis<'a> {
    pub(super) fn new(table: &'a Table, statistic: Statistic) -> Result<Self, ScoresError> {
        let (agents, environments) = (0..table.agents.len(), 0..table.environments.len());
        let (several, scored) = (table.environments.len() > 1, table.has_scores());
        let value = |point: &Point| point.value;
        let score = |point: &Point| point.score.unwrap_or(f64::NAN);
        let finals = |agent: usize, environments: &[usize], of: fn(&Point) -> f64| scores(table, agent, environments, None, of);
        let all: Vec<usize> = environments.clone().collect();

        let curves = environments.clone().map(|at| agents.clone().map(|agent| curve(table, statistic, agent, &[at], value)).collect());
        let aggregated = environments.clone().map(|at| agents.clone().map(|agent| Ok(aggregates(&finals(agent, &[at], value)?))).collect());
        let overall_curves = (several && scored && same_lengths(table))
            .then(|| agents.clone().map(|agent| curve(table, statistic, agent, &all, score)).collect())
            .transpose()?;
        let overall = scored.then(|| agents.clone().map(|agent| Ok(aggregates(&finals(agent, &all, score)?))).collect()).transpose()?;

        let of: Option<fn(&Point) -> f64> = if scored { Some(score) } else { (!several).then_some(value) };
        let profiles = of.map(|of| {
            let finals: Vec<Scores> = agents.clone().map(|agent| finals(agent, &all, of)).collect::<Result<_, _>>()?;
            let taus = taus(&finals, table.points().map(of));
            let bootstrap = Bootstrap { resamples: BAND, ..Bootstrap::default() };
            Ok((taus.clone(), finals.iter().map(|scores| bootstrap.profile(scores, &taus)).collect()))
        });
        let improvement = |x: usize, y: usize| {
            let bootstrap = Bootstrap { resamples: INTERVAL, ..Bootstrap::default() };
            let estimate = bootstrap.improvement(&finals(x, &all, value)?, &finals(y, &all, value)?);
            Ok(Improvement { x, y, estimate })
        };
        let pairs = agents.clone().flat_map(|x| (x + 1..table.agents.len()).map(move |y| (x, y)));
        Ok(Self {
            table,
            statistic,
            curves: curves.collect::<Result<_, _>>()?,
            finals: aggregated.collect::<Result<_, _>>()?,
            overall_curves,
            overall,
            profiles: profiles.transpose()?,
            improvements: pairs.map(|(x, y)| improvement(x, y)).collect::<Result<_, _>>()?,
        })
    }
}

/// Whether every environment has the same number of evaluations, so that they can be put together one by one.
fn same_lengths(table: &Table) -> bool {
    let lengths: Vec<usize> = table.runs[0].iter().map(|runs| runs[0].points.len()).collect();
    lengths.iter().all(|length| *length == lengths[0])
}

/// The scores of an agent at one evaluation, or at the last one.
fn scores(
    table: &Table,
    agent: usize,
    environments: &[usize],
    evaluation: Option<usize>,
    of: impl Fn(&Point) -> f64,
) -> Result<Scores, ScoresError> {
    let point = |points: &[Point]| of(&points[evaluation.unwrap_or(points.len() - 1)]);
    Scores::new(environments.iter().map(|at| table.runs[agent][*at].iter().map(|run| point(&run.points)).collect()).collect())
}

fn curve(
    table: &Table,
    statistic: Statistic,
    agent: usize,
    environments: &[usize],
    of: impl Fn(&Point) -> f64 + Copy,
) -> Result<Curve, ScoresError> {
    let evaluations = 0..table.runs[agent][environments[0]][0].points.len();
    let points: Vec<Scores> =
        evaluations.clone().map(|evaluation| scores(table, agent, environments, Some(evaluation), of)).collect::<Result<_, _>>()?;
    let average = |evaluation: usize, of: &dyn Fn(&Point) -> f64| {
        let runs = environments.iter().flat_map(|at| &table.runs[agent][*at]);
        let all: Vec<f64> = runs.map(|run| of(&run.points[evaluation])).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let bootstrap = Bootstrap { resamples: BAND, ..Bootstrap::default() };
    Ok(Curve {
        steps: evaluations.clone().map(|evaluation| average(evaluation, &|point| point.step)).collect(),
        seconds: table.has_seconds().then(|| evaluations.map(|at| average(at, &|point| point.seconds.unwrap_or(0.0))).collect()),
        estimates: bootstrap.curve(
            &points,
            match statistic {
                Statistic::Iqm => interquartile_mean,
                Statistic::Mean => mean,
            },
        ),
    })
}

fn aggregates(scores: &Scores) -> Aggregates {
    let bootstrap = Bootstrap { resamples: INTERVAL, ..Bootstrap::default() };
    let [iqm, median, mean, gap] = bootstrap
        .intervals(scores, |scores| [interquartile_mean(scores), median(scores), statistics::mean(scores), optimality_gap(scores, 1.0)]);
    Aggregates { iqm, median, mean, gap }
}

/// Evenly spread from a little below the lowest final score to the highest, and over no less than a fifth of what the evaluations passed
/// through.
fn taus(finals: &[Scores], all: impl Iterator<Item = f64>) -> Vec<f64> {
    let extremes = |(low, high): (f64, f64), x: f64| (low.min(x), high.max(x));
    let nothing = (f64::INFINITY, f64::NEG_INFINITY);
    let (lowest, highest) = all.fold(nothing, extremes);
    let (low, high) = finals.iter().flat_map(|scores| scores.tasks().flatten().copied()).fold(nothing, extremes);
    let span = if highest > lowest { highest - lowest } else { low.abs().max(1.0) };
    let low = if low >= 0.0 && low <= 0.4 * high { 0.0 } else { (low - 0.05 * (high - low)).min(high - 0.2 * span) };
    (0..TAUS).map(|number| low + (high - low) * number as f64 / (TAUS - 1) as f64).collect()
}
