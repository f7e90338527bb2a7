//! Estimates from the table of results, computed once for figures and tables.

use std::collections::BTreeMap;

use super::table::{Point, Runs, Table};
use super::{Comparison, Statistic};
use crate::statistics::{
    self, Bootstrap, Estimate, Scores, ScoresError, holm, interquartile_mean, mann_whitney, mean, median, optimality_gap, paired,
    sign_flips,
};

/// Bootstrap resamples for the bands of curves and profiles, which have many points.
const BAND: usize = 2_000;
/// Bootstrap resamples for all other intervals over runs.
const INTERVAL: usize = 50_000;
/// Bootstrap resamples for intervals over runs and problems, whose cost grows with the number of problems.
const CROSSED: usize = 10_000;
/// Number of thresholds tau of a performance profile.
const TAUS: usize = 201;

/// A curve of one agent: the steps, the seconds and the estimate of each evaluation.
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

/// Options of an analysis.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) statistic: Statistic,
    /// Whether intervals over all environments also resample the environments.
    pub(super) task_bootstrap: bool,
    /// For each environment, the return below which a solved run counts as fallen.
    pub(super) fall: BTreeMap<String, f64>,
    /// Whether to omit the overall curves and the profiles, which only figures need.
    pub(super) tables_alone: bool,
}

impl Wanted {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let Comparison { statistic, task_bootstrap, fall, .. } = comparison;
        Self { statistic: *statistic, task_bootstrap: *task_bootstrap, fall: fall.clone(), tables_alone: false }
    }
}

/// A comparison of agents `x` and `y`: an estimate with its interval, the p-value of a test, and this p-value after Holm's correction for
/// all pairs of the same table.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) estimate: Estimate,
    pub(super) p: f64,
    pub(super) corrected: f64,
}

impl Pair {
    /// Returns `higher` if the interval lies above `nothing`, `lower` if it lies below, and otherwise `tie`. `nothing` is the estimate that
    /// means no difference.
    pub(super) fn verdict(&self, nothing: f64) -> &'static str {
        match self.estimate {
            Estimate { low, .. } if low > nothing => "higher",
            Estimate { high, .. } if high < nothing => "lower",
            _ => "tie",
        }
    }

    /// Whether the difference is significant at 5 % after the correction for the number of pairs.
    pub(super) fn stands(&self) -> bool {
        self.corrected <= 0.05
    }
}

/// Applies Holm's correction to the pairs of one table.
fn corrected(mut pairs: Vec<Pair>) -> Vec<Pair> {
    let all = holm(&pairs.iter().map(|pair| pair.p).collect::<Vec<_>>());
    pairs.iter_mut().zip(all).for_each(|(pair, corrected)| pair.corrected = corrected);
    pairs
}

/// When an agent's runs in one environment were solved, and which of them fell afterwards. The evaluation before training does not count.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    /// The least return of an evaluation that counts as solved.
    pub(super) at: f64,
    /// Number of runs with a solved evaluation.
    pub(super) runs: usize,
    /// Mean over the runs of the step of the first solved evaluation, if every run has a solved evaluation.
    pub(super) first: Option<Estimate>,
    /// Mean over the runs of the step of the first evaluation at which every run is solved.
    pub(super) all_from: Option<f64>,
    /// The return below which a solved run counts as fallen.
    pub(super) fall: Option<f64>,
    /// The seed of each fallen run, and its lowest return from the first solved evaluation on.
    pub(super) fallen: Vec<(u64, f64)>,
}

/// Returns the index of a run's first solved evaluation. Evaluation 0, before training, does not count.
fn first_solved(run: &Runs, at: f64) -> Option<usize> {
    (1..run.points.len()).find(|number| run.points[*number].value >= at)
}

/// Returns the step of the first solved evaluation of each run, or `None` if a run has no solved evaluation.
fn first_steps(runs: &[Runs], at: f64) -> Option<Vec<f64>> {
    runs.iter().map(|run| first_solved(run, at).map(|number| run.points[number].step)).collect()
}

impl Solved {
    fn new(runs: &[Runs], at: f64, fall: Option<f64>) -> Self {
        let first = |run: &Runs| first_solved(run, at);
        let is_solved = |number: &usize| runs.iter().all(|run| run.points[*number].value >= at);
        let all = (1..runs[0].points.len()).find(is_solved);
        let mean_step = |number: usize| runs.iter().map(|run| run.points[number].step).sum::<f64>() / runs.len() as f64;
        let lowest = |run: &Runs| {
            let after = &run.points[first(run)?..];
            let lowest = after.iter().map(|point| point.value).fold(f64::INFINITY, f64::min);
            fall.is_some_and(|fall| lowest < fall).then_some((run.seed, lowest))
        };
        let bootstrap = Bootstrap { resamples: INTERVAL, ..Bootstrap::default() };
        let scores = first_steps(runs, at).and_then(|steps| Scores::new(vec![steps]).ok());
        Self {
            at,
            first: scores.map(|scores| bootstrap.interval(&scores, mean)),
            runs: runs.iter().filter(|run| first(run).is_some()).count(),
            all_from: all.map(mean_step),
            fall,
            fallen: runs.iter().filter_map(lowest).collect(),
        }
    }
}

/// All estimates of a comparison.
pub(super) struct Analysis<'a> {
    pub(super) table: &'a Table,
    pub(super) statistic: Statistic,
    /// Curves of the returns, as `curves[environment][agent]`.
    pub(super) curves: Vec<Vec<Curve>>,
    /// Aggregates of the returns of the last evaluations, as `finals[environment][agent]`.
    pub(super) finals: Vec<Vec<Aggregates>>,
    /// Curves of the normalised scores over all environments, by agent, if there are several environments with normalised scores and
    /// equally many evaluations.
    pub(super) overall_curves: Option<Vec<Curve>>,
    /// Aggregates of the normalised final scores, by agent.
    pub(super) overall: Option<Vec<Aggregates>>,
    /// Thresholds and performance profiles, of normalised scores or of the returns of a single environment.
    pub(super) profiles: Option<(Vec<f64>, Vec<Vec<Estimate>>)>,
    /// The probability that X improves on Y, over all environments.
    pub(super) improvements: Vec<Pair>,
    /// The probability that X improves on Y, within each environment.
    pub(super) improvements_within: Vec<Vec<Pair>>,
    /// The mean difference of the final returns of runs with the same seed, for each environment and each pair of agents with the same
    /// seeds.
    pub(super) differences: Vec<Vec<Pair>>,
    /// The probability that a run of X is solved sooner than a run of Y, for each environment and each pair of agents whose runs were all
    /// solved.
    pub(super) sooner: Vec<Vec<Pair>>,
    /// When runs were solved, as `solved[environment][agent]`; `None` for an environment without a return at which it is solved.
    pub(super) solved: Vec<Option<Vec<Solved>>>,
}

impl<'a> Analysis<'a> {
    pub(super) fn new(table: &'a Table, wanted: &Wanted) -> Result<Self, ScoresError> {
        let statistic = wanted.statistic;
        let (agents, environments) = (0..table.agents.len(), 0..table.environments.len());
        let (several, scored) = (table.environments.len() > 1, table.has_scores());
        let value = |point: &Point| point.value;
        let score = |point: &Point| point.score.unwrap_or(f64::NAN);
        let finals = |agent: usize, environments: &[usize], of: fn(&Point) -> f64| scores(table, agent, environments, None, of);
        let all: Vec<usize> = environments.clone().collect();

        let curves =
            environments.clone().map(|at| agents.clone().map(|agent| curve(table, (statistic, false), agent, &[at], value)).collect());
        let tasks = wanted.task_bootstrap && several;
        let aggregated =
            environments.clone().map(|at| agents.clone().map(|agent| Ok(aggregates(&finals(agent, &[at], value)?, false))).collect());
        let overall_curves = (!wanted.tables_alone && several && scored && same_lengths(table))
            .then(|| agents.clone().map(|agent| curve(table, (statistic, tasks), agent, &all, score)).collect())
            .transpose()?;
        let overall =
            scored.then(|| agents.clone().map(|agent| Ok(aggregates(&finals(agent, &all, score)?, tasks))).collect()).transpose()?;

        let of: Option<fn(&Point) -> f64> = if scored { Some(score) } else { (!several).then_some(value) };
        let profiles = of.filter(|_| !wanted.tables_alone).map(|of| {
            let finals: Vec<Scores> = agents.clone().map(|agent| finals(agent, &all, of)).collect::<Result<_, _>>()?;
            let Some(taus) = taus(&finals, table.points().map(of), several) else { return Ok(None) };
            let bootstrap = Bootstrap { resamples: BAND, tasks, ..Bootstrap::default() };
            let profiles = finals.iter().map(|scores| bootstrap.profile(scores, &taus)).collect();
            Ok(Some((taus, profiles)))
        });
        let bootstrap = Bootstrap { resamples: INTERVAL, ..Bootstrap::default() };
        let pairs = || agents.clone().flat_map(|x| (x + 1..table.agents.len()).map(move |y| (x, y)));
        let improvements = |environments: &[usize]| -> Result<Vec<Pair>, ScoresError> {
            let bootstrap = Bootstrap { tasks: wanted.task_bootstrap && environments.len() > 1, ..bootstrap };
            let of = |(x, y): (usize, usize)| {
                let (a, b) = (finals(x, environments, value)?, finals(y, environments, value)?);
                Ok(Pair { x, y, estimate: bootstrap.improvement(&a, &b), p: mann_whitney(&a, &b), corrected: f64::NAN })
            };
            Ok(corrected(pairs().map(of).collect::<Result<_, _>>()?))
        };
        let differences = |at: usize| -> Result<Vec<Pair>, ScoresError> {
            let seeds = |agent: usize| table.runs[agent][at].iter().map(|run| run.seed).collect::<Vec<_>>();
            let of = |(x, y): (usize, usize)| {
                let (a, b) = (finals(x, &[at], value)?, finals(y, &[at], value)?);
                let estimate = match by_problem(&table.runs[x][at], &table.runs[y][at]) {
                    Some(differences) => Bootstrap { resamples: CROSSED, ..bootstrap }.crossed_mean(&differences),
                    None => bootstrap.paired_difference(&a, &b),
                };
                let p = sign_flips(&paired(&a, &b));
                Ok(Pair { x, y, estimate, p, corrected: f64::NAN })
            };
            Ok(corrected(pairs().filter(|(x, y)| seeds(*x) == seeds(*y)).map(of).collect::<Result<_, _>>()?))
        };
        let solved_at = |at: usize| gradus_envs::registry::find(&table.environments[at]).ok()?.solved_at;
        let sooner = |at: usize| -> Result<Vec<Pair>, ScoresError> {
            let Some(threshold) = solved_at(at) else { return Ok(Vec::new()) };
            // counts evaluations, because the exact step at which a run was solved is unknown; the count is negated, because fewer
            // evaluations are better
            let number = |run: &Runs| first_solved(run, threshold).map(|number| -(number as f64));
            let scores = |agent: usize| table.runs[agent][at].iter().map(number).collect::<Option<Vec<f64>>>();
            let of = |(x, y): (usize, usize)| {
                let Some((a, b)) = scores(x).zip(scores(y)) else { return Ok(None) };
                let (a, b) = (Scores::new(vec![a])?, Scores::new(vec![b])?);
                Ok(Some(Pair { x, y, estimate: bootstrap.improvement(&a, &b), p: mann_whitney(&a, &b), corrected: f64::NAN }))
            };
            let all: Vec<Option<Pair>> = pairs().map(of).collect::<Result<_, _>>()?;
            Ok(corrected(all.into_iter().flatten().collect()))
        };
        let solved = |at: usize| {
            let (environment, solved_at) = (&table.environments[at], solved_at(at)?);
            let fall = wanted.fall.get(environment).copied();
            Some(table.runs.iter().map(|runs| Solved::new(&runs[at], solved_at, fall)).collect())
        };
        Ok(Self {
            table,
            statistic,
            curves: curves.collect::<Result<_, _>>()?,
            finals: aggregated.collect::<Result<_, _>>()?,
            overall_curves,
            overall,
            profiles: profiles.transpose()?.flatten(),
            improvements: improvements(&all)?,
            improvements_within: environments.clone().map(|at| improvements(&[at])).collect::<Result<_, _>>()?,
            differences: environments.clone().map(differences).collect::<Result<_, _>>()?,
            sooner: environments.clone().map(sooner).collect::<Result<_, _>>()?,
            solved: environments.map(solved).collect(),
        })
    }
}

/// Returns the difference x - y on each problem for each pair of runs with the same seed, if all runs have the same number of problems.
pub(super) fn by_problem(x: &[Runs], y: &[Runs]) -> Option<Vec<Vec<f64>>> {
    let problems = x.first()?.problems.len();
    let have = |runs: &[Runs]| problems > 0 && runs.iter().all(|run| run.problems.len() == problems);
    let difference = |(x, y): (&Runs, &Runs)| x.problems.iter().zip(&y.problems).map(|(x, y)| x - y).collect();
    (have(x) && have(y)).then(|| x.iter().zip(y).map(difference).collect())
}

/// Whether every environment has the same number of evaluations, which overall curves need.
fn same_lengths(table: &Table) -> bool {
    let lengths: Vec<usize> = table.runs[0].iter().map(|runs| runs[0].points.len()).collect();
    lengths.iter().all(|length| *length == lengths[0])
}

/// Returns the scores of an agent at `evaluation`, or at the last evaluation if it is `None`.
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
    (statistic, tasks): (Statistic, bool),
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
    let bootstrap = Bootstrap { resamples: BAND, tasks, ..Bootstrap::default() };
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

fn aggregates(scores: &Scores, tasks: bool) -> Aggregates {
    let bootstrap = Bootstrap { resamples: INTERVAL, tasks, ..Bootstrap::default() };
    let [iqm, median, mean, gap] = bootstrap
        .intervals(scores, |scores| [interquartile_mean(scores), median(scores), statistics::mean(scores), optimality_gap(scores, 1.0)]);
    Aggregates { iqm, median, mean, gap }
}

/// Returns the thresholds of a performance profile, evenly spaced up to the highest final score. The first threshold is 0 if the lowest
/// final score is from 0 to 40 % of the highest, otherwise slightly below the lowest final score. Returns `None` if all final scores are
/// equal. Also returns `None` for a single environment whose final scores lie within a fifth of the range of all evaluations, because most
/// of the figure would be empty.
fn taus(finals: &[Scores], all: impl Iterator<Item = f64>, several: bool) -> Option<Vec<f64>> {
    let extremes = |(low, high): (f64, f64), x: f64| (low.min(x), high.max(x));
    let nothing = (f64::INFINITY, f64::NEG_INFINITY);
    let (lowest, highest) = all.fold(nothing, extremes);
    let (low, high) = finals.iter().flat_map(|scores| scores.tasks().flatten().copied()).fold(nothing, extremes);
    if !several && high - low < 0.2 * (highest - lowest) || high <= low {
        return None;
    }
    let low = if low >= 0.0 && low <= 0.4 * high { 0.0 } else { low - 0.05 * (high - low) };
    Some((0..TAUS).map(|number| low + (high - low) * number as f64 / (TAUS - 1) as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(all: &[&[f64]]) -> Vec<Runs> {
        let point = |(number, value): (usize, &f64)| Point { step: 100.0 * number as f64, value: *value, score: None, seconds: None };
        let run =
            |(seed, values): (u64, &&[f64])| Runs { seed, points: values.iter().enumerate().map(point).collect(), problems: Vec::new() };
        (1..).zip(all).map(run).collect()
    }

    /// Seed 1 is solved only before training, seed 2 falls, seed 3 dips but stays above the threshold, seed 4 is low only before it is
    /// solved.
    #[test]
    fn a_run_has_fallen_only_below_the_threshold_after_it_was_solved() {
        let table: [&[f64]; 4] =
            [&[500.0, 20.0, 30.0, 40.0], &[9.0, 480.0, 299.0, 480.0], &[9.0, 500.0, 310.0, 490.0], &[9.0, 100.0, 475.0, 475.0]];
        let solved = Solved::new(&runs(&table), 475.0, Some(300.0));
        assert_eq!((solved.runs, solved.all_from, solved.first), (3, None, None));
        assert_eq!(solved.fallen, [(2, 299.0)]);
        let others = Solved::new(&runs(&table[1..]), 475.0, Some(310.0));
        assert_eq!((others.runs, others.all_from, others.fallen), (3, Some(300.0), vec![(1, 299.0)]), "310 is not below 310");
        let unwatched = Solved::new(&runs(&table[1..]), 475.0, None);
        assert!(unwatched.fallen.is_empty());
        let first = unwatched.first.unwrap();
        assert!((first.point - 400.0 / 3.0).abs() < 1e-9 && first.low == 100.0 && first.high == 200.0, "steps 100, 100 and 200: {first:?}");
    }

    #[test]
    fn the_verdict_follows_the_interval_and_significance_the_corrected_p_value() {
        let pair = |low, high, corrected| Pair { x: 0, y: 1, estimate: Estimate { point: 0.0, low, high }, p: 0.001, corrected };
        assert_eq!((pair(0.51, 0.9, 0.04).verdict(0.5), pair(0.51, 0.9, 0.04).stands()), ("higher", true));
        assert_eq!((pair(0.1, 0.49, 0.2).verdict(0.5), pair(0.1, 0.49, 0.2).stands()), ("lower", false));
        assert_eq!(pair(0.5, 1.0, 0.9).verdict(0.5), "tie", "an interval that touches one half contains it");
        assert_eq!(pair(-2.0, -1.0, 0.9).verdict(0.0), "lower");
    }

    #[test]
    fn a_profile_is_omitted_when_final_scores_are_close_together() {
        let finals = |runs: &[f64]| vec![Scores::new(vec![runs.to_vec()]).unwrap()];
        assert_eq!(taus(&finals(&[493.0, 500.0]), [9.0, 500.0].into_iter(), false), None);
        assert_eq!(taus(&finals(&[500.0, 500.0]), [9.0, 500.0].into_iter(), true), None);
        let wide = taus(&finals(&[300.0, 500.0]), [9.0, 500.0].into_iter(), false).unwrap();
        assert_eq!((wide[0], wide[TAUS - 1]), (290.0, 500.0));
    }
}
