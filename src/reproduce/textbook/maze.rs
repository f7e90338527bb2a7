//! Figure 8.2: Dyna-Q in a maze.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, difference, mean};
use super::super::runs::each;
use super::{banded, figure, lines};
use crate::Error;
use crate::agents::bandit::epsilon_greedy;
use crate::agents::tabular::{ActionValues, Experience, Model, q_learning};
use crate::envs::random::{Purpose, Stream};
use crate::envs::tabular::{GridWorld, Tabular};
use crate::figure::{Chart, Lines};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    runs: u64,
    episodes: usize,
    planning: [usize; 3],
    alpha: f64,
    epsilon: f64,
    gamma: f64,
    /// An episode with at most this many steps counts as near the optimum of 14.
    near: f64,
}

/// Returns the steps of each episode of tabular Dyna-Q with `n` planning steps after each real step. The first episode has the same random numbers for every n.
fn learn(settings: &Settings, n: usize, seed: u64) -> Vec<f64> {
    let Settings { episodes, alpha, epsilon, gamma, .. } = *settings;
    let maze = GridWorld::dyna_maze();
    let table = maze.table();
    let (mut q, mut model) = (ActionValues::new(table.states(), 4, 0.0), Model::new(table.states(), 4));
    let (mut choices, mut plans) = (Stream::new(seed, Purpose::Action, 0), Stream::new(seed, Purpose::Shuffle, 0));
    let episode = |_| {
        let mut state = table.sample_start(&mut choices) as usize;
        let mut steps = 0.0;
        loop {
            let action = epsilon_greedy(q.row(state), epsilon, &mut choices);
            let outcome = table.outcomes(state, action)[0];
            let step = Experience { state, action, reward: outcome.reward, next: outcome.next as usize, terminated: outcome.terminated };
            q_learning(&mut q, step, alpha, gamma);
            model.learn(step);
            model.plan(&mut q, n, alpha, gamma, &mut plans);
            steps += 1.0;
            if step.terminated {
                return steps;
            }
            state = step.next;
        }
    };
    (0..episodes).map(episode).collect()
}

/// Figure 8.2.
pub(in crate::reproduce) fn dyna(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Settings = experiment.settings()?;
    let Settings { runs, episodes, planning, alpha, epsilon, gamma, near } = settings;
    let jobs: Vec<(usize, u64)> = planning.iter().flat_map(|n| (1..=runs).map(|seed| (*n, seed))).collect();
    let steps = each(&jobs, |(n, seed)| Ok(learn(&settings, *n, *seed)))?;
    let steps: Vec<Vec<Vec<f64>>> = steps.chunks(runs as usize).map(<[_]>::to_vec).collect();
    // the first episode near the optimum
    let first = |run: &Vec<f64>| 1.0 + run.iter().position(|steps| *steps <= near).unwrap_or(episodes) as f64;
    let [without, five, fifty] = [0, 1, 2].map(|place| steps[place].iter().map(first).collect::<Vec<f64>>());
    let bootstrap = bootstrap(5);
    // the first episode is a random walk, because all values are equal until its end
    let walk = {
        let maze = GridWorld::dyna_maze();
        let table = maze.table();
        let mut steps = vec![0.0; table.states()];
        let mut change = 1.0;
        while change > 1e-6 {
            change = 0.0;
            for state in 0..table.states() {
                let next = |action: usize| {
                    let outcome = table.outcomes(state, action)[0];
                    0.25 * if outcome.terminated { 0.0 } else { steps[outcome.next as usize] }
                };
                let value = 1.0 + (0..4).map(next).sum::<f64>();
                change = f64::max(change, (value - steps[state]).abs());
                steps[state] = value;
            }
        }
        table.starts().iter().zip(&steps).map(|(p, steps)| p * steps).sum::<f64>()
    };
    let in_words = |n: usize| format!("episodes until the first one with at most {near} steps, n = {n}");
    let claims = vec![
        Claim::new(
            format!(
                "the first episode takes about 1700 steps (ours is a random walk, of {walk:.0} steps on average): mean over n = {}, {} and {}",
                planning[0], planning[1], planning[2]
            ),
            mean(bootstrap, &steps[0].iter().map(|run| run[0]).collect::<Vec<f64>>()),
            Test::Within(1500.0, 1900.0),
        ),
        Claim::new(
            format!("without planning it takes about 25 episodes to come near the optimum: {}", in_words(planning[0])),
            mean(bootstrap, &without),
            Test::Within(15.0, 35.0),
        ),
        Claim::new(format!("with n = 5 about five: {}", in_words(planning[1])), mean(bootstrap, &five), Test::Within(4.0, 6.0)),
        Claim::new(format!("with n = 50 only three: {}", in_words(planning[2])), mean(bootstrap, &fifty), Test::Within(2.0, 4.0)),
        Claim::new(
            "planning shortens it: episodes with n = 5 minus episodes with n = 50",
            difference(bootstrap, &five, &fifty),
            Test::Above(0.0),
        ),
    ];
    let xs: Vec<f64> = (2..=episodes).map(|episode| episode as f64).collect();
    let series: Vec<_> = steps
        .iter()
        .zip(planning)
        .enumerate()
        .map(|(colour, (runs, n))| {
            banded(format!("{n} planning steps"), colour, &xs, &runs.iter().map(|run| run[1..].to_vec()).collect::<Vec<_>>())
        })
        .collect();
    let mut csv = String::from("planning_steps,episode,mean_steps,low,high\n");
    for (series, n) in series.iter().zip(planning) {
        for ((x, y), (_, low, high)) in series.points.iter().zip(&series.band) {
            writeln!(csv, "{n},{x},{y:.3},{low:.3},{high:.3}").expect("a string");
        }
    }
    let mut panel = lines("", "episodes", "steps per episode", series);
    if let Chart::Lines(Lines { y_range, .. }) = &mut panel.chart {
        *y_range = Some((0.0, 800.0));
    }
    let note = format!("α = {alpha}, ε = {epsilon}, γ = {gamma}; mean of {runs} runs with 95 % intervals; the first episode is left out");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("steps.csv", csv)] })
}
