//! Estimates from the table of results, computed once for figures and tables.

use std::collections::BTreeMap;
use std::ops::Range;

use gradus_base::threads;

use super::{Comparison, Contender, Statistic};
use gradus::Config;
use gradus_statistics::table::{Point, Runs, Table};
use gradus_statistics::{Aggregate, Bootstrap, Estimate, Scores, ScoresError, holm, mann_whitney, paired, sign_flips_of_all};

/// Runs of an agent from which intervals and tests say something: with three, the least p-value of a test is 0.1.
pub(super) const ENOUGH: usize = 4;

/// Bootstrap resamples for the bands of curves and profiles, which have many points.
const BAND: usize = 2_000;
/// Bootstrap resamples for all other intervals over runs.
const INTERVAL: usize = 50_000;
/// Bootstrap resamples for intervals over runs and problems, whose cost grows with the number of problems.
const CROSSED: usize = 10_000;
/// Number of thresholds tau of a performance profile.
const TAUS: usize = 201;

/// Something of each agent that has runs in an environment, by the agent's place in the table.
pub(super) type ByAgent<T> = BTreeMap<usize, T>;

/// A curve of one agent: the steps, the seconds and the estimate of each of its evaluations.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) steps: Vec<f64>,
    pub(super) seconds: Option<Vec<f64>>,
    pub(super) estimates: Vec<Estimate>,
}

/// The aggregates of one agent's final returns or normalised scores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregates {
    pub(super) iqm: Estimate,
    pub(super) mean: Estimate,
    /// The median of the environments' means and the optimality gap, only of normalised scores.
    pub(super) of_scores: Option<[Estimate; 2]>,
}

/// The parts of an analysis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Parts {
    #[default]
    All,
    /// Everything except curves and profiles.
    Tables,
    /// Everything except p-values, differences, solved runs and comparisons within one of several environments.
    Figures,
}

/// Options of an analysis.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) statistic: Statistic,
    /// Whether intervals over all environments also resample the environments.
    pub(super) task_bootstrap: bool,
    /// For each environment, the return below which a solved run counts as fallen.
    pub(super) fall: BTreeMap<String, f64>,
    /// The steps that each agent was meant to have in each environment, if this is known.
    pub(super) planned: BTreeMap<(String, String), u64>,
    pub(super) parts: Parts,
    /// Whether the axis of steps is logarithmic.
    pub(super) log_steps: bool,
    /// Title of the figure of the curves.
    pub(super) finding: Option<String>,
}

impl Wanted {
    pub(super) fn of(comparison: &Comparison) -> Self {
        let Comparison { statistic, task_bootstrap, fall, .. } = comparison;
        let of_agent = |agent: &Contender| {
            let of = |(at, config): (&usize, &Config)| ((agent.name.clone(), comparison.environments[*at].clone()), config.steps);
            agent.configs.iter().map(of).collect::<Vec<_>>()
        };
        let planned = comparison.agents.iter().flat_map(of_agent).collect();
        let (log_steps, finding) = (comparison.log_steps, comparison.finding.clone());
        Self { statistic: *statistic, task_bootstrap: *task_bootstrap, fall: fall.clone(), planned, parts: Parts::All, log_steps, finding }
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
    /// Returns `higher` if the interval lies above `nothing`, `lower` if it lies below, `tie` if it contains `nothing` and lies within `margin` of it, and otherwise
    /// `undecided`. `nothing` is the estimate that means no difference.
    pub(super) fn verdict(&self, nothing: f64, margin: f64) -> &'static str {
        let Estimate { low, high, .. } = self.estimate;
        match () {
            () if low > nothing => "higher",
            () if high < nothing => "lower",
            () if low >= nothing - margin && high <= nothing + margin => "tie",
            () => "undecided",
        }
    }

    /// Whether the difference is significant at 5 % after the correction for the number of pairs.
    pub(super) fn stands(&self) -> bool {
        self.corrected <= 0.05
    }
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
    /// `first` is left out.
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
        Self {
            at,
            first: None,
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
    pub(super) log_steps: bool,
    pub(super) finding: Option<String>,
    /// What the reader of a table must know of its steps, for each environment.
    pub(super) caveats: Vec<String>,
    /// Curves of the returns in each environment; empty if only tables are wanted.
    pub(super) curves: Vec<ByAgent<Curve>>,
    /// Aggregates of the returns of the last evaluations that all agents have, in each environment.
    pub(super) finals: Vec<ByAgent<Aggregates>>,
    /// For each environment in which some agents have more steps than others: the aggregates of the returns after each agent's own steps.
    pub(super) own_finals: Vec<Option<ByAgent<Aggregates>>>,
    /// Curves of the normalised scores over all environments, of the agents that have runs in all of them, if there are several environments with normalised scores and
    /// each agent has equally many evaluations in all of them.
    pub(super) overall_curves: Option<ByAgent<Curve>>,
    /// Aggregates of the normalised final scores, of the agents that have runs in every environment.
    pub(super) overall: Option<ByAgent<Aggregates>>,
    /// Thresholds and performance profiles, of normalised scores or of the returns of a single environment, of the agents that have runs in every environment.
    pub(super) profiles: Option<(Vec<f64>, ByAgent<Vec<Estimate>>)>,
    /// The probability that X improves on Y, over all environments, for agents that have runs in every environment.
    pub(super) improvements: Vec<Pair>,
    /// The probability that X improves on Y, within each environment.
    pub(super) improvements_within: Vec<Vec<Pair>>,
    /// The mean difference of the final returns of runs with the same seed, for each environment and each pair of agents with the same
    /// seeds.
    pub(super) differences: Vec<Vec<Pair>>,
    /// The probability that a run of X is solved sooner than a run of Y, for each environment and each pair of agents whose runs were all
    /// solved.
    pub(super) sooner: Vec<Vec<Pair>>,
    /// When runs were solved; `None` for an environment without a return at which it is solved.
    pub(super) solved: Vec<Option<ByAgent<Solved>>>,
}

impl<'a> Analysis<'a> {
    /// Computes all estimates. Calls `begin` with the name of each step.
    pub(super) fn new(table: &'a Table, wanted: &Wanted, begin: &dyn Fn(&str)) -> Result<Self, ScoresError> {
        let Wanted { statistic, parts, .. } = *wanted;
        let (for_tables, for_figures) = (parts != Parts::Figures, parts != Parts::Tables);
        let (environments, everywhere) = (0..table.environments.len(), table.agents_everywhere());
        let (several, scored) = (table.environments.len() > 1, table.has_scores());
        let value = |point: &Point| point.value;
        let score = |point: &Point| point.score.unwrap_or(f64::NAN);
        let finals = |agents: &[usize], environments: &[usize], of: fn(&Point) -> f64| -> Result<Vec<Scores>, ScoresError> {
            agents.iter().map(|agent| scores(table, *agent, environments, None, of)).collect()
        };
        let all: Vec<usize> = environments.clone().collect();
        let tasks = wanted.task_bootstrap && several;
        let bootstrap = Bootstrap { resamples: INTERVAL, ..Bootstrap::default() };

        let curves = environments.clone().filter(|_| for_figures).map(|at| {
            begin(&format!("curves on {}", table.environments[at]));
            curves(table, statistic, false, (&table.agents_in(at), &[at]), value)
        });
        let curves = curves.collect::<Result<_, _>>()?;
        begin("curves over all environments");
        let has_overall_curves = for_figures && several && scored && same_lengths(table) && !everywhere.is_empty();
        let overall_curves = has_overall_curves.then(|| self::curves(table, statistic, tasks, (&everywhere, &all), score)).transpose()?;

        begin("final returns");
        // environment and agent of each list of final returns; those of one environment are next to each other
        let played: Vec<(usize, usize)> =
            environments.clone().flat_map(|at| table.agents_in(at).into_iter().map(move |agent| (at, agent))).collect();
        let final_returns: Vec<Scores> =
            played.iter().map(|(at, agent)| scores(table, *agent, &[*at], None, value)).collect::<Result<_, _>>()?;
        let final_returns: Vec<&Scores> = final_returns.iter().collect();
        let averages = |of_agent: &Vec<Estimate>| Aggregates { iqm: of_agent[0], mean: of_agent[1], of_scores: None };
        let estimates = bootstrap.aggregates(&final_returns, &[Aggregate::InterquartileMean, Aggregate::Mean]);
        let mut aggregated = vec![ByAgent::new(); environments.len()];
        for ((at, agent), of_agent) in played.iter().zip(&estimates) {
            aggregated[*at].insert(*agent, averages(of_agent));
        }

        let own = |at: usize| -> Result<Option<ByAgent<Aggregates>>, ScoresError> {
            if !table.has_budgets(at) || !for_tables {
                return Ok(None);
            }
            let agents = table.agents_in(at);
            let last = |agent: usize| Some(table.runs[agent][at][0].points.len() - 1);
            let finals: Vec<Scores> =
                agents.iter().map(|agent| scores(table, *agent, &[at], last(*agent), value)).collect::<Result<_, _>>()?;
            let estimates = bootstrap.aggregates(&finals.iter().collect::<Vec<_>>(), &[Aggregate::InterquartileMean, Aggregate::Mean]);
            Ok(Some(agents.into_iter().zip(estimates.iter().map(averages)).collect()))
        };
        let own_finals = environments.clone().map(own).collect::<Result<_, _>>()?;

        begin("final scores over all environments");
        let of: Option<fn(&Point) -> f64> = if scored { Some(score) } else { (!several).then_some(value) };
        let final_scores = of.filter(|_| !everywhere.is_empty()).map(|of| finals(&everywhere, &all, of)).transpose()?;
        let overall = final_scores.as_ref().filter(|_| scored).map(|finals| {
            let wanted = [Aggregate::InterquartileMean, Aggregate::Mean, Aggregate::Median, Aggregate::OptimalityGap(1.0)];
            let estimates = Bootstrap { tasks, ..bootstrap }.aggregates(&finals.iter().collect::<Vec<_>>(), &wanted);
            let of_agent = |of: &Vec<Estimate>| Aggregates { iqm: of[0], mean: of[1], of_scores: Some([of[2], of[3]]) };
            everywhere.iter().copied().zip(estimates.iter().map(of_agent)).collect()
        });
        let profiles = of.zip(final_scores.as_ref()).filter(|_| for_figures).and_then(|(of, finals)| {
            let taus = taus(finals, table.points().map(of), several)?;
            let bootstrap = Bootstrap { resamples: BAND, tasks, ..bootstrap };
            let profiles = bootstrap.profiles(&finals.iter().collect::<Vec<_>>(), &taus);
            Some((taus, everywhere.iter().copied().zip(profiles).collect()))
        });

        // the probability that X improves on Y, for lists of pairs of `tables`; p-values are corrected within each list
        let improvements = |tables: &[&Scores], lists: &[Vec<(usize, usize)>], tasks: bool| -> Vec<Vec<Pair>> {
            let p = |_, (x, y): &mut (usize, usize)| if for_tables { mann_whitney(tables[*x], tables[*y]) } else { f64::NAN };
            let p_values = threads::with_default(|| threads::map(&mut lists.concat(), p));
            tested(lists, Bootstrap { tasks, ..bootstrap }.improvements(tables, &lists.concat()), p_values)
        };
        begin("probability of improvement over all environments");
        let over_all = finals(&everywhere, &all, value)?;
        let over_all = improvements(&over_all.iter().collect::<Vec<_>>(), &[pairs_of(0..everywhere.len())], tasks).concat();
        let over_all = with_agents(over_all, |place| everywhere[place]);

        let agents_of = |pairs: Vec<Pair>| with_agents(pairs, |place| played[place].1);
        let pairs_in = |at: usize| {
            let first = played.partition_point(|(environment, _)| *environment < at);
            pairs_of(first..played.partition_point(|(environment, _)| *environment <= at))
        };
        let within: Vec<Vec<Pair>> = match (several, for_tables) {
            (false, _) => vec![over_all.clone()],
            (true, false) => Vec::new(),
            (true, true) => {
                begin("probability of improvement within environments");
                let lists: Vec<_> = environments.clone().map(pairs_in).collect();
                improvements(&final_returns, &lists, false).into_iter().map(agents_of).collect()
            }
        };

        begin("paired differences");
        let runs = |place: usize| &table.runs[played[place].1][played[place].0];
        let seeds = |place: usize| runs(place).iter().map(|run| run.seed);
        let have_same_seeds = |(x, y): &(usize, usize)| seeds(*x).eq(seeds(*y));
        let lists: Vec<Vec<(usize, usize)>> =
            environments.clone().filter(|_| for_tables).map(|at| pairs_in(at).into_iter().filter(have_same_seeds).collect()).collect();
        let paired_by_seed = lists.concat();
        // problems are known only of the last evaluation, which is not that of equal steps where agents have different numbers of them
        let problems = |pair: &(usize, usize)| by_problem(runs(pair.0), runs(pair.1)).filter(|_| !table.has_budgets(played[pair.0].0));
        let without_problems: Vec<(usize, usize)> = paired_by_seed.iter().copied().filter(|pair| problems(pair).is_none()).collect();
        let mut over_runs = bootstrap.paired_differences(&final_returns, &without_problems).into_iter();
        let estimate = |pair: &(usize, usize)| match problems(pair) {
            Some(differences) => Some(Bootstrap { resamples: CROSSED, ..bootstrap }.crossed_mean(&differences)),
            None => over_runs.next(),
        };
        let estimates = paired_by_seed.iter().filter_map(estimate).collect();
        let differences: Vec<Vec<f64>> = paired_by_seed.iter().map(|(x, y)| paired(final_returns[*x], final_returns[*y])).collect();
        let p_values = sign_flips_of_all(&differences.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let differences = tested(&lists, estimates, p_values).into_iter().map(agents_of).collect();

        begin("solved runs");
        let solved_at = |at: usize| gradus::envs::registry::find(&table.environments[at]).ok()?.solved_at;
        let thresholds: Vec<Option<f64>> = environments.clone().map(|at| solved_at(at).filter(|_| for_tables)).collect();
        // counts evaluations, because the exact step at which a run was solved is unknown; the count is negated, because fewer evaluations
        // are better
        let number = |run: &Runs, at: f64| first_solved(run, at).map(|number| -(number as f64));
        let (mut numbers, mut lists) = (Vec::new(), Vec::new());
        for (at, threshold) in thresholds.iter().enumerate() {
            let first = numbers.len();
            for (agent, threshold) in table.agents_in(at).into_iter().zip(threshold.iter().cycle()) {
                let of_runs = table.runs[agent][at].iter().map(|run| number(run, *threshold)).collect::<Option<Vec<f64>>>();
                if let Some(of_runs) = of_runs {
                    numbers.push((agent, Scores::new(vec![of_runs])?));
                }
            }
            lists.push(pairs_of(first..numbers.len()));
        }
        let sooner = improvements(&numbers.iter().map(|(_, numbers)| numbers).collect::<Vec<_>>(), &lists, false);
        let sooner = sooner.into_iter().map(|pairs| with_agents(pairs, |place| numbers[place].0)).collect();
        let solved = solved(table, wanted, &thresholds)?;
        let caveats = environments.clone().map(|at| caveats(table, wanted, at)).collect();
        Ok(Self {
            table,
            statistic,
            log_steps: wanted.log_steps,
            finding: wanted.finding.clone(),
            caveats,
            curves,
            finals: aggregated,
            own_finals,
            overall_curves,
            overall,
            profiles,
            improvements: over_all,
            improvements_within: within,
            differences,
            sooner,
            solved,
        })
    }
}

/// Returns all pairs of two different places, the earlier one first.
fn pairs_of(places: Range<usize>) -> Vec<(usize, usize)> {
    let end = places.end;
    places.flat_map(|x| (x + 1..end).map(move |y| (x, y))).collect()
}

/// Returns pairs of agents from pairs of places in a list.
fn with_agents(pairs: Vec<Pair>, agent: impl Fn(usize) -> usize) -> Vec<Pair> {
    pairs.into_iter().map(|pair| Pair { x: agent(pair.x), y: agent(pair.y), ..pair }).collect()
}

/// Names the agents that used more steps than they were meant to, the runs that ended early, and evaluations that repeat the one before.
fn caveats(table: &Table, wanted: &Wanted, at: usize) -> String {
    let environment = &table.environments[at];
    let mut text = String::new();
    for agent in table.agents_in(at) {
        let (name, runs) = (&table.agents[agent], &table.runs[agent][at]);
        let last = |run: &Runs| run.points.last().map_or(0.0, |point| point.step);
        let most = runs.iter().map(last).fold(0.0, f64::max);
        let planned = wanted.planned.get(&(name.clone(), environment.clone())).map(|steps| *steps as f64);
        let goal = planned.unwrap_or(most);
        if let Some(planned) = planned.filter(|planned| most > 1.05 * planned) {
            text.push_str(&format!(" {name} used {most:.0} steps of {planned:.0}, because a rollout is long."));
        }
        let early: Vec<String> =
            runs.iter().filter(|run| last(run) < 0.9 * goal).map(|run| format!("seed {} at {:.0}", run.seed, last(run))).collect();
        if !early.is_empty() {
            text.push_str(&format!(" Runs of {name} ended early: {} of {goal:.0} steps.", early.join(", ")));
        }
        let repeats = |run: &Runs| run.points.windows(2).filter(|pair| pair[0].step == pair[1].step).count();
        let repeated = runs.iter().map(repeats).max().unwrap_or(0);
        if repeated > 0 {
            let all = runs[0].points.len() - 1;
            text.push_str(&format!(
                " {repeated} of {all} evaluations of {name} repeat the one before, because an iteration of its training is longer than the steps between them."
            ));
        }
    }
    text
}

/// Returns when the runs of each environment with a threshold were solved, by agent.
fn solved(table: &Table, wanted: &Wanted, thresholds: &[Option<f64>]) -> Result<Vec<Option<ByAgent<Solved>>>, ScoresError> {
    let mut all: Vec<Option<ByAgent<Solved>>> = Vec::new();
    let (mut places, mut steps) = (Vec::new(), Vec::new());
    for (at, threshold) in thresholds.iter().enumerate() {
        let fall = wanted.fall.get(&table.environments[at]).copied();
        let Some(threshold) = *threshold else {
            all.push(None);
            continue;
        };
        let agents = table.agents_in(at);
        for agent in &agents {
            if let Some(first) = first_steps(&table.runs[*agent][at], threshold) {
                places.push((at, *agent));
                steps.push(Scores::new(vec![first])?);
            }
        }
        all.push(Some(agents.into_iter().map(|agent| (agent, Solved::new(&table.runs[agent][at], threshold, fall))).collect()));
    }
    let bootstrap = Bootstrap { resamples: INTERVAL, ..Bootstrap::default() };
    let estimates = bootstrap.aggregates(&steps.iter().collect::<Vec<_>>(), &[Aggregate::Mean]);
    for ((at, agent), estimate) in places.into_iter().zip(estimates.concat()) {
        if let Some(solved) = all[at].as_mut().and_then(|all| all.get_mut(&agent)) {
            solved.first = Some(estimate);
        }
    }
    Ok(all)
}

/// Returns the comparisons of lists of pairs. The p-values are corrected for all pairs of a list.
fn tested(lists: &[Vec<(usize, usize)>], estimates: Vec<Estimate>, p_values: Vec<f64>) -> Vec<Vec<Pair>> {
    let (mut estimates, mut p_values) = (estimates.into_iter(), p_values.into_iter());
    let tested = |pairs: &Vec<(usize, usize)>| {
        let p_values: Vec<f64> = p_values.by_ref().take(pairs.len()).collect();
        let all = pairs.iter().zip(estimates.by_ref()).zip(p_values.iter().zip(holm(&p_values)));
        all.map(|(((x, y), estimate), (p, corrected))| Pair { x: *x, y: *y, estimate, p: *p, corrected }).collect()
    };
    lists.iter().map(tested).collect()
}

/// Returns the difference x - y on each problem for each pair of runs with the same seed, if all runs have the same number of problems.
pub(super) fn by_problem(x: &[Runs], y: &[Runs]) -> Option<Vec<Vec<f64>>> {
    let problems = x.first()?.problems.len();
    let have = |runs: &[Runs]| problems > 0 && runs.iter().all(|run| run.problems.len() == problems);
    let difference = |(x, y): (&Runs, &Runs)| x.problems.iter().zip(&y.problems).map(|(x, y)| x - y).collect();
    (have(x) && have(y)).then(|| x.iter().zip(y).map(difference).collect())
}

/// Whether every agent of all environments has the same number of evaluations in them, which overall curves need.
fn same_lengths(table: &Table) -> bool {
    let evaluations = |agent: usize, at: usize| table.runs[agent][at][0].points.len();
    let is_same = |agent: usize| (0..table.environments.len()).all(|at| evaluations(agent, at) == evaluations(agent, 0));
    table.agents_everywhere().into_iter().all(is_same)
}

/// Returns the scores of an agent at `evaluation`, or after equal steps if it is `None`.
fn scores(
    table: &Table,
    agent: usize,
    environments: &[usize],
    evaluation: Option<usize>,
    of: impl Fn(&Point) -> f64,
) -> Result<Scores, ScoresError> {
    let of_environment = |at: &usize| {
        let number = evaluation.unwrap_or_else(|| table.equal(agent, *at));
        table.runs[agent][*at].iter().map(|run| of(&run.points[number])).collect()
    };
    Scores::new(environments.iter().map(of_environment).collect())
}

/// Returns the curves of `agents` over `environments`.
fn curves(
    table: &Table,
    statistic: Statistic,
    tasks: bool,
    (agents, environments): (&[usize], &[usize]),
    of: impl Fn(&Point) -> f64 + Copy,
) -> Result<ByAgent<Curve>, ScoresError> {
    let evaluations = |agent: usize| 0..table.runs[agent][environments[0]][0].points.len();
    let points = agents.iter().flat_map(|agent| evaluations(*agent).map(move |evaluation| (*agent, Some(evaluation))));
    let points: Vec<Scores> =
        points.map(|(agent, evaluation)| scores(table, agent, environments, evaluation, of)).collect::<Result<_, _>>()?;
    let aggregate = match statistic {
        Statistic::Iqm => Aggregate::InterquartileMean,
        Statistic::Mean => Aggregate::Mean,
    };
    let bootstrap = Bootstrap { resamples: BAND, tasks, ..Bootstrap::default() };
    let estimates = bootstrap.aggregates(&points.iter().collect::<Vec<_>>(), &[aggregate]).concat();
    let average = |agent: usize, evaluation: usize, of: &dyn Fn(&Point) -> f64| {
        let runs = environments.iter().flat_map(|at| &table.runs[agent][*at]);
        let all: Vec<f64> = runs.map(|run| of(&run.points[evaluation])).collect();
        all.iter().sum::<f64>() / all.len() as f64
    };
    let has_seconds = table.has_seconds();
    let mut estimates = estimates.into_iter();
    let curve = |agent: &usize| {
        let agent = *agent;
        let average = |of: fn(&Point) -> f64| evaluations(agent).map(|evaluation| average(agent, evaluation, &of)).collect();
        let curve = Curve {
            steps: average(|point| point.step),
            seconds: has_seconds.then(|| average(|point| point.seconds.unwrap_or(0.0))),
            estimates: estimates.by_ref().take(evaluations(agent).len()).collect(),
        };
        (agent, curve)
    };
    Ok(agents.iter().map(curve).collect())
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
        let three = runs(&table[1..]);
        assert!(Solved::new(&three, 475.0, None).fallen.is_empty());
        let of_table = Table { agents: vec!["A".into()], environments: vec!["cartpole".into()], runs: vec![vec![three]] };
        let first = super::solved(&of_table, &Wanted::default(), &[Some(475.0)]).unwrap()[0].as_ref().unwrap()[&0].first.unwrap();
        assert!((first.point - 400.0 / 3.0).abs() < 1e-9 && first.low == 100.0 && first.high == 200.0, "steps 100, 100 and 200: {first:?}");
    }

    #[test]
    fn the_verdict_follows_the_interval_and_significance_the_corrected_p_value() {
        let pair = |low, high, corrected| Pair { x: 0, y: 1, estimate: Estimate { point: 0.0, low, high }, p: 0.001, corrected };
        assert_eq!((pair(0.51, 0.9, 0.04).verdict(0.5, 0.1), pair(0.51, 0.9, 0.04).stands()), ("higher", true));
        assert_eq!((pair(0.1, 0.49, 0.2).verdict(0.5, 0.1), pair(0.1, 0.49, 0.2).stands()), ("lower", false));
        assert_eq!(pair(0.5, 1.0, 0.9).verdict(0.5, 0.1), "undecided", "an interval that touches one half contains it");
        assert_eq!((pair(0.45, 0.6, 0.9).verdict(0.5, 0.1), pair(0.5, 0.5, 1.0).verdict(0.5, 0.1)), ("tie", "tie"));
        assert_eq!((pair(-2.0, -1.0, 0.9).verdict(0.0, 5.0), pair(-2.0, 1.0, 0.9).verdict(0.0, 5.0)), ("lower", "tie"));
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
