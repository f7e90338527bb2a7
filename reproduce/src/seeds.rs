//! Wrong conclusions from few seeds (Henderson et al., 2018; Agarwal et al., 2021).

use std::fmt::Write;

use serde::Deserialize;

use super::draw::{figure, lines};
use super::experiment::Experiment;
use super::findings::{Claim, Findings, Test, bootstrap, difference, scores};
use super::runs::each;
use super::study::Study;
use gradus::Error;
use gradus::envs::random::{Purpose, Stream};
use gradus::figure::{Chart, Panel, Series, Violin, Violins, solid};
use gradus_compare::statistics::{Estimate, mann_whitney};

const COUNTS: [usize; 10] = [2, 3, 4, 5, 7, 10, 15, 20, 30, 50];

#[derive(Deserialize)]
struct Settings {
    /// Draws of groups of seeds for each size.
    draws: usize,
    /// Samples of the runs, for the intervals.
    samples: u64,
    /// Draws of groups from each sample.
    sample_draws: usize,
}

/// Returns `n` different numbers of `all`.
fn draw(all: &[f64], n: usize, stream: &mut Stream) -> Vec<f64> {
    let mut places: Vec<usize> = Vec::new();
    while places.len() < n {
        let place = stream.below(all.len() as u32) as usize;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places.into_iter().map(|place| all[place]).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Returns the probability that the means of `n` runs of each agent are in the order opposite to that of the means of all runs.
fn wrong_order([better, worse]: &[Vec<f64>; 2], n: usize, draws: usize, stream: &mut Stream) -> f64 {
    let is_wrong = |stream: &mut Stream| mean(&draw(better, n, stream)) < mean(&draw(worse, n, stream));
    (0..draws).filter(|_| is_wrong(stream)).count() as f64 / draws as f64
}

/// Returns the mean size of the difference between two groups of `n` runs of the first agent, as a share of the difference between the agents.
fn spread([better, worse]: &[Vec<f64>; 2], n: usize, draws: usize, stream: &mut Stream) -> f64 {
    let size = |stream: &mut Stream| {
        let both = draw(better, 2 * n, stream);
        (mean(&both[..n]) - mean(&both[n..])).abs()
    };
    let total: f64 = (0..draws).map(|_| size(stream)).sum();
    total / draws as f64 / (mean(better) - mean(worse))
}

/// Returns the interval of a number that is computed from all runs of both agents: it is computed again from samples of the runs with replacement, which are as many
/// as the runs. Each of these has fewer draws than the number itself, and their error makes the interval a little wider than it has to be.
fn resampled(
    all: &[Vec<f64>; 2],
    settings: &Settings,
    claims: usize,
    number: &(impl Fn(&[Vec<f64>; 2], usize, &mut Stream) -> f64 + Sync),
) -> Result<Estimate, Error> {
    let point = number(all, settings.draws, &mut Stream::new(2, Purpose::Shuffle, 0));
    let samples: Vec<u64> = (1..=settings.samples).collect();
    let mut numbers = each(&samples, |sample| {
        let mut stream = Stream::new(2, Purpose::Shuffle, *sample);
        let mut again = |runs: &Vec<f64>| (0..runs.len()).map(|_| runs[stream.below(runs.len() as u32) as usize]).collect();
        let sample = [again(&all[0]), again(&all[1])];
        Ok(number(&sample, settings.sample_draws, &mut stream))
    })?;
    numbers.sort_by(f64::total_cmp);
    let tail = 0.025 / claims as f64;
    let at = |share: f64| numbers[(share * (numbers.len() - 1) as f64).round() as usize];
    Ok(Estimate { point, low: at(tail).min(point), high: at(1.0 - tail).max(point) })
}

/// The resampling.
pub(super) fn reproduce(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Settings = experiment.settings()?;
    let draws = settings.draws;
    let study = Study::make(experiment)?;
    let [ppo, a2c] = ["PPO", "A2C"].map(|agent| study.numbers(agent, 0, |run| run.last_episodes(100)));
    let (is_ppo_better, better) = if mean(&ppo) >= mean(&a2c) { (true, 1.0) } else { (false, -1.0) };
    let all = if is_ppo_better { [ppo.clone(), a2c.clone()] } else { [a2c.clone(), ppo.clone()] };
    let counts: Vec<usize> = COUNTS.into_iter().filter(|n| 2 * n <= ppo.len()).collect();
    // how often: wrong order, significant in the wrong order, equal agents significant, significant in the right order
    let events = each(&counts, |n| {
        let mut stream = Stream::new(1, Purpose::Shuffle, *n as u64);
        let mut events = [0; 4];
        for _ in 0..draws {
            let (x, y) = (draw(&ppo, *n, &mut stream), draw(&a2c, *n, &mut stream));
            let difference = better * (mean(&x) - mean(&y));
            let is_found = mann_whitney(&scores(&x), &scores(&y)) < 0.05;
            // two groups of the same agent
            let both = draw(&ppo, 2 * n, &mut stream);
            let is_equal_found = mann_whitney(&scores(&both[..*n]), &scores(&both[*n..])) < 0.05;
            let happened = [difference < 0.0, is_found && difference < 0.0, is_equal_found, is_found && difference > 0.0];
            events.iter_mut().zip(happened).for_each(|(count, happened)| *count += usize::from(happened));
        }
        Ok(events)
    })?;
    let rows: Vec<(usize, [usize; 4])> = counts.into_iter().zip(events).collect();
    let mut csv = String::from("seeds,wrong_order,wrong_significant,equal_agents_significant,right_significant\n");
    for (n, events) in &rows {
        let shares = events.map(|events| (events as f64 / draws as f64).to_string());
        writeln!(csv, "{n},{}", shares.join(",")).expect("a string");
    }
    let wrong = |n: usize| resampled(&all, &settings, 5, &move |all, draws, stream| wrong_order(all, n, draws, stream));
    let claims = vec![
        Claim::new(
            "the two agents differ: mean return of PPO minus that of A2C over all runs",
            difference(bootstrap(5), &ppo, &a2c),
            Test::Above(0.0),
        ),
        Claim::new("with 3 seeds each the means are in the wrong order with a probability above 5 %", wrong(3)?, Test::Above(0.05)),
        Claim::new("with 5 seeds each, too", wrong(5)?, Test::Above(0.05)),
        Claim::new(
            "two groups of five seeds of the better agent differ, on average, by more than half of the difference between the agents: share of it",
            resampled(&all, &settings, 5, &|all, draws, stream| spread(all, 5, draws, stream))?,
            Test::Above(0.5),
        ),
        Claim::new("with 20 seeds each the means are in the wrong order with a probability below 1 %", wrong(20)?, Test::Below(0.01)),
        Claim::exact(
            "a valid test seldom calls two groups of five equal runs different: share of all ways to divide ten different numbers that have p < 0.05",
            8.0 / 252.0,
            Test::Below(0.05),
        ),
    ];
    let line = |place: usize, colour: usize, label: &str| Series {
        style: Some(solid(colour)),
        ..Series::new(label, rows.iter().map(|(n, events)| (*n as f64, events[place] as f64 / draws as f64)).collect())
    };
    let violins = vec![Violin::of_samples("PPO", &ppo), Violin::of_samples("A2C", &a2c)];
    let chart = Violins { x_label: String::new(), y_label: "training return, last 100 episodes".into(), violins, ..Violins::default() };
    let panels = vec![
        lines(
            "what may go wrong",
            "seeds of each agent",
            "probability",
            vec![line(0, 1, "means in the wrong order"), line(2, 3, "equal agents, p < 0.05"), line(1, 6, "wrong order, p < 0.05")],
        ),
        lines("what is wanted", "seeds of each agent", "probability", vec![line(3, 0, "difference found, p < 0.05")]),
        Panel { title: "all runs".into(), chart: Chart::Violins(chart) },
    ];
    let note = format!("{} runs of each agent on CartPole-v1, {draws} draws; test of Mann and Whitney", ppo.len());
    let figure = figure(&experiment.title, &note, 1, panels);
    Ok(Findings { claims, figures: vec![("figure", figure)], tables: vec![("probabilities.csv", csv)] })
}
