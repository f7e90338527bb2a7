//! Figures 6.2, 7.2 and 12.3: predictions on random walks.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, paired};
use super::super::runs::each;
use super::{banded, figure, lines, play, root_mean_square};
use gradus::Error;
use gradus::agents::tabular::{Trajectory, lambda_return, n_step_td};
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::tabular::{Table, random_walk, random_walk_between};
use gradus::figure::{Chart, Lines, Panel, Series};

fn walk(table: &Table, stream: &mut Stream) -> Trajectory {
    let start = table.sample_start(stream) as usize;
    play(table, start, stream, |_, _| 0)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Batch {
    runs: u64,
    episodes: usize,
}

/// Returns the values to which TD(0) converges if all steps are shown to it again and again: V(s) is the mean of R + V(S') over the visits of s. States that
/// were never visited keep 1/2.
fn batch_td(episodes: &[Trajectory], values: &mut [f64]) {
    // sums over visits: their number, the rewards, and how often each state came next
    let states = values.len();
    let (mut visits, mut rewards, mut after) = (vec![0.0; states], vec![0.0; states], vec![vec![0.0; states]; states]);
    for episode in episodes {
        for (t, state) in episode.states.iter().enumerate() {
            visits[*state] += 1.0;
            rewards[*state] += episode.rewards[t];
            if let Some(next) = episode.states.get(t + 1) {
                after[*state][*next] += 1.0;
            }
        }
    }
    loop {
        let mut change: f64 = 0.0;
        for state in (0..states).filter(|state| visits[*state] > 0.0) {
            let later: f64 = after[state].iter().zip(values.iter()).map(|(count, value)| count * value).sum();
            let value = (rewards[state] + later) / visits[state];
            change = change.max((value - values[state]).abs());
            values[state] = value;
        }
        if change < 1e-10 {
            return;
        }
    }
}

/// Returns the mean return from each state over all visits, to which constant-alpha Monte Carlo converges in batches. The only reward is the last one.
fn batch_monte_carlo(episodes: &[Trajectory], values: &mut [f64]) {
    let (mut visits, mut sums) = (vec![0.0; values.len()], vec![0.0; values.len()]);
    for episode in episodes {
        let value = episode.rewards.last().copied().unwrap_or(0.0);
        for state in &episode.states {
            visits[*state] += 1.0;
            sums[*state] += value;
        }
    }
    (0..values.len()).filter(|state| visits[*state] > 0.0).for_each(|state| values[state] = sums[state] / visits[state]);
}

/// Figure 6.2.
pub(crate) fn batch(experiment: &Experiment) -> Result<Findings, Error> {
    let Batch { runs, episodes } = experiment.settings()?;
    let (table, truth) = (random_walk(5), [1.0, 2.0, 3.0, 4.0, 5.0].map(|i| i / 6.0));
    let seeds: Vec<u64> = (1..=runs).collect();
    let errors = each(&seeds, |seed| {
        let mut stream = Stream::new(*seed, Purpose::Environment, 0);
        let (mut seen, mut errors) = (Vec::new(), [Vec::new(), Vec::new()]);
        for _ in 0..episodes {
            seen.push(walk(&table, &mut stream));
            for (errors, batch) in errors.iter_mut().zip([batch_td as fn(&[Trajectory], &mut [f64]), batch_monte_carlo]) {
                let mut values = [0.5; 5];
                batch(&seen, &mut values);
                errors.push(root_mean_square(&values, &truth));
            }
        }
        Ok(errors)
    })?;
    let [td, monte_carlo] = [0, 1].map(|kind| errors.iter().map(|errors| errors[kind].clone()).collect::<Vec<Vec<f64>>>());
    let area = |runs: &[Vec<f64>]| runs.iter().map(|run| run.iter().sum::<f64>() / run.len() as f64).collect::<Vec<f64>>();
    let at = |runs: &[Vec<f64>], episode: usize| runs.iter().map(|run| run[episode.min(episodes) - 1]).collect::<Vec<f64>>();
    let bootstrap = bootstrap(3);
    let claims = vec![
        Claim::new(
            "batch TD is better than batch Monte Carlo: error of Monte Carlo minus that of TD, mean over all episodes",
            paired(bootstrap, &area(&monte_carlo), &area(&td)),
            Test::Above(0.0),
        ),
        Claim::new("the same after 10 episodes", paired(bootstrap, &at(&monte_carlo, 10), &at(&td, 10)), Test::Above(0.0)),
        Claim::new(
            format!("the same after {episodes} episodes"),
            paired(bootstrap, &at(&monte_carlo, episodes), &at(&td, episodes)),
            Test::Above(0.0),
        ),
    ];
    let xs: Vec<f64> = (1..=episodes).map(|episode| episode as f64).collect();
    let series = vec![banded("Monte Carlo", 1, &xs, &monte_carlo), banded("TD", 0, &xs, &td)];
    let mut csv = String::from("method,episode,root_mean_square_error\n");
    for series in &series {
        series.points.iter().for_each(|(x, y)| writeln!(csv, "{},{x},{y:.5}", series.label).expect("a string"));
    }
    let mut panel = lines("", "walks / episodes", "root mean square error, mean over the states", series);
    if let Chart::Lines(Lines { y_range, .. }) = &mut panel.chart {
        *y_range = Some((0.0, 0.25));
    }
    let note = format!("batch training; mean of {runs} runs with 95 % intervals");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("errors.csv", csv)] })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Study {
    runs: u64,
    episodes: usize,
    states: usize,
    alphas: Vec<f64>,
    /// n of n-step TD.
    steps: Vec<usize>,
    /// lambda of the lambda-return.
    #[serde(default)]
    lambdas: Vec<f64>,
}

/// A method and its parameter.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Steps(usize),
    Lambda(f64),
}

impl Method {
    fn name(self) -> String {
        match self {
            Method::Steps(n) => format!("n = {n}"),
            Method::Lambda(lambda) => format!("λ = {lambda}"),
        }
    }

    fn learn(self, values: &mut [f64], episode: &Trajectory, alpha: f64) {
        match self {
            Method::Steps(n) => n_step_td(values, episode, n, alpha, 1.0),
            Method::Lambda(lambda) => lambda_return(values, episode, lambda, alpha, 1.0),
        }
    }
}

/// The errors of a method: `errors[alpha][run]`, the mean over the first episodes.
struct Errors {
    method: Method,
    errors: Vec<Vec<f64>>,
}

impl Errors {
    /// Returns the mean error for each alpha over half of the runs: the even or the odd ones.
    fn half(&self, is_odd: bool) -> Vec<Vec<f64>> {
        let half = |runs: &Vec<f64>| runs.iter().skip(usize::from(is_odd)).step_by(2).copied().collect();
        self.errors.iter().map(half).collect()
    }

    /// Returns the errors with the best alpha. The alpha of each half of the runs is the best one of the other half, so that the choice does not favour it.
    fn best(&self) -> Vec<f64> {
        let best = |is_odd: bool| {
            let means: Vec<f64> = self.half(is_odd).iter().map(|runs| runs.iter().sum::<f64>() / runs.len() as f64).collect();
            (0..means.len()).fold(0, |best, place| if means[place] < means[best] { place } else { best })
        };
        [(true, best(false)), (false, best(true))].into_iter().flat_map(|(is_odd, alpha)| self.half(is_odd).swap_remove(alpha)).collect()
    }
}

/// Measures every method with every alpha on the same walks.
fn measure(study: &Study, methods: &[Method]) -> Result<Vec<Errors>, Error> {
    let (table, middle) = (random_walk_between(study.states, [-1.0, 1.0]), (study.states as f64 + 1.0) / 2.0);
    let truth: Vec<f64> = (1..=study.states).map(|state| state as f64 / middle - 1.0).collect();
    let seeds: Vec<u64> = (1..=study.runs).collect();
    // values that grow without bound have the largest error of the figure
    let bounded = |error: f64| if error.is_finite() { error.min(10.0) } else { 10.0 };
    let of_runs = each(&seeds, |seed| {
        let mut stream = Stream::new(*seed, Purpose::Environment, 0);
        let episodes: Vec<Trajectory> = (0..study.episodes).map(|_| walk(&table, &mut stream)).collect();
        let error = |method: Method, alpha: f64| {
            let mut values = vec![0.0; study.states];
            let errors = episodes.iter().map(|episode| {
                method.learn(&mut values, episode, alpha);
                bounded(root_mean_square(&values, &truth))
            });
            errors.sum::<f64>() / episodes.len() as f64
        };
        Ok(methods.iter().map(|method| study.alphas.iter().map(|alpha| error(*method, *alpha)).collect::<Vec<f64>>()).collect::<Vec<_>>())
    })?;
    let of = |place: usize| (0..study.alphas.len()).map(|alpha| of_runs.iter().map(|run| run[place][alpha]).collect()).collect();
    Ok(methods.iter().enumerate().map(|(place, method)| Errors { method: *method, errors: of(place) }).collect())
}

/// Draws the mean error over alpha, a line for each method.
fn draw(title: &str, study: &Study, all: &[Errors]) -> Panel {
    let line = |errors: &Errors| {
        let points =
            study.alphas.iter().zip(mean_of_alphas(errors)).filter(|(_, error)| *error < 0.6).map(|(alpha, error)| (*alpha, error));
        Series::new(errors.method.name(), points.collect())
    };
    let series = all.iter().map(line).collect();
    let chart = Lines {
        x_label: "α".into(),
        y_label: "root mean square error".into(),
        y_range: Some((0.2, 0.55)),
        x_range: Some((0.0, 1.0)),
        series,
        ..Lines::default()
    };
    Panel { title: title.into(), chart: Chart::Lines(chart) }
}

fn mean_of_alphas(errors: &Errors) -> Vec<f64> {
    errors.errors.iter().map(|runs| runs.iter().sum::<f64>() / runs.len() as f64).collect()
}

fn csv(study: &Study, all: &[Errors]) -> String {
    let mut text = String::from("method,alpha,root_mean_square_error\n");
    for errors in all {
        for (alpha, error) in study.alphas.iter().zip(mean_of_alphas(errors)) {
            writeln!(text, "{},{alpha},{error:.5}", errors.method.name()).expect("a string");
        }
    }
    text
}

fn note(study: &Study) -> String {
    let Study { states, episodes, runs, .. } = study;
    format!("{states} states; error: mean over the states and the first {episodes} episodes of {runs} runs")
}

/// Figure 7.2.
pub(crate) fn n_step(experiment: &Experiment) -> Result<Findings, Error> {
    let study: Study = experiment.settings()?;
    let methods: Vec<Method> = study.steps.iter().map(|n| Method::Steps(*n)).collect();
    let all = measure(&study, &methods)?;
    let of = |n: usize| all.iter().find(|errors| errors.method == Method::Steps(n)).map(Errors::best).unwrap_or_default();
    let (fewest, most) = (study.steps[0], study.steps[study.steps.len() - 1]);
    let bootstrap = bootstrap(3);
    let best = of(4);
    let claims = vec![
        Claim::new(
            format!("n = 4 is better than n = {fewest}, both with their best α: difference of the errors"),
            paired(bootstrap, &of(fewest), &best),
            Test::Above(0.0),
        ),
        Claim::new(format!("n = 4 is better than n = {most}: difference"), paired(bootstrap, &of(most), &best), Test::Above(0.0)),
        Claim::new("n = 4 is better than n = 32: difference", paired(bootstrap, &of(32), &best), Test::Above(0.0)),
    ];
    let figure = figure(&experiment.title, &note(&study), 1, vec![draw("", &study, &all)]);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("errors.csv", csv(&study, &all))] })
}

/// Figure 12.3.
pub(crate) fn lambda(experiment: &Experiment) -> Result<Findings, Error> {
    let study: Study = experiment.settings()?;
    let returns: Vec<Method> = study.lambdas.iter().map(|lambda| Method::Lambda(*lambda)).collect();
    let steps: Vec<Method> = study.steps.iter().map(|n| Method::Steps(*n)).collect();
    let (returns, steps) = (measure(&study, &returns)?, measure(&study, &steps)?);
    let of = |method: Method| returns.iter().chain(&steps).find(|errors| errors.method == method).map(Errors::best).unwrap_or_default();
    let bootstrap = bootstrap(6);
    let highest = |method: Method| {
        returns
            .iter()
            .chain(&steps)
            .find(|errors| errors.method == method)
            .and_then(|errors| errors.errors.last().cloned())
            .unwrap_or_default()
    };
    let (best, steps_at_best) = (of(Method::Lambda(0.8)), of(Method::Steps(4)));
    let claims = vec![
        Claim::new(
            "an intermediate λ is best: error of λ = 0 minus that of λ = 0.8, both with their best α",
            paired(bootstrap, &of(Method::Lambda(0.0)), &best),
            Test::Above(0.0),
        ),
        Claim::new("error of λ = 1 minus that of λ = 0.8", paired(bootstrap, &of(Method::Lambda(1.0)), &best), Test::Above(0.0)),
        Claim::new(
            "an intermediate n is best: error of n = 1 minus that of n = 4",
            paired(bootstrap, &of(Method::Steps(1)), &steps_at_best),
            Test::Above(0.0),
        ),
        Claim::new("error of n = 512 minus that of n = 4", paired(bootstrap, &of(Method::Steps(512)), &steps_at_best), Test::Above(0.0)),
        Claim::new(
            "the λ-return is slightly better at the best values: error of n = 4 minus that of λ = 0.8",
            paired(bootstrap, &steps_at_best, &best),
            Test::Above(0.0),
        ),
        Claim::new(
            format!("and at high α: the same with α = {}", study.alphas.last().copied().unwrap_or_default()),
            paired(bootstrap, &highest(Method::Steps(4)), &highest(Method::Lambda(0.8))),
            Test::Above(0.0),
        ),
    ];
    let panels = vec![draw("off-line λ-return algorithm", &study, &returns), draw("n-step TD", &study, &steps)];
    let figure = figure(&experiment.title, &note(&study), 2, panels);
    let tables = vec![("lambda.csv", csv(&study, &returns)), ("n-step.csv", csv(&study, &steps))];
    Ok(Findings { claims, figures: vec![("figure", figure)], tables })
}
