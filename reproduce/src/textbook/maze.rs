//! Figures 8.2, 8.4 and 8.5: Dyna-Q in mazes, and Dyna-Q+ in mazes that change.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, difference, mean, share};
use super::super::runs::each;
use super::{banded, figure, lines};
use gradus::Error;
use gradus::agents::bandit::epsilon_greedy;
use gradus::agents::tabular::{ActionValues, Experience, Model, q_learning};
use gradus::envs::random::{Purpose, Stream};
use gradus::envs::tabular::{GridWorld, Tabular};
use gradus::figure::{Chart, Lines};

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
pub(crate) fn dyna(experiment: &Experiment) -> Result<Findings, Error> {
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Changing {
    runs: u64,
    first_seed: u64,
    steps: usize,
    change: usize,
    planning: usize,
    kappa: f64,
    alpha: f64,
    epsilon: f64,
    gamma: f64,
}

/// Returns the cumulative reward after every step of Dyna-Q, or of Dyna-Q+ if `kappa` is above 0, in a maze that becomes another one.
fn learn_while_it_changes(settings: &Changing, mazes: &[GridWorld; 2], kappa: f64, seed: u64) -> Vec<f64> {
    let Changing { steps, change, planning, alpha, epsilon, gamma, .. } = *settings;
    let states = mazes[0].table().states();
    let (mut q, mut model) = (ActionValues::new(states, 4, 0.0), Model::new(states, 4).with_bonus(kappa));
    let (mut choices, mut plans) = (Stream::new(seed, Purpose::Action, 0), Stream::new(seed, Purpose::Shuffle, 0));
    let (mut state, mut total) = (mazes[0].table().sample_start(&mut choices) as usize, 0.0);
    let step = |now: usize| {
        let table = mazes[usize::from(now >= change)].table();
        let action = epsilon_greedy(q.row(state), epsilon, &mut choices);
        let outcome = table.outcomes(state, action)[0];
        let step = Experience { state, action, reward: outcome.reward, next: outcome.next as usize, terminated: outcome.terminated };
        q_learning(&mut q, step, alpha, gamma);
        model.learn(step);
        model.plan(&mut q, planning, alpha, gamma, &mut plans);
        state = if step.terminated { table.sample_start(&mut choices) as usize } else { step.next };
        total += step.reward;
        total
    };
    (0..steps).map(step).collect()
}

/// The cumulative reward after every step of every run.
type Rewards = Vec<Vec<f64>>;

/// Runs both agents. Returns the cumulative rewards of Dyna-Q+ and of Dyna-Q, the figure, and the table.
fn compare_plus(experiment: &Experiment, settings: &Changing, mazes: &[GridWorld; 2]) -> Result<([Rewards; 2], Findings), Error> {
    let Changing { runs, first_seed, steps, change, planning, kappa, alpha, epsilon, gamma } = *settings;
    let jobs: Vec<(f64, u64)> = [kappa, 0.0].iter().flat_map(|kappa| (first_seed..first_seed + runs).map(|seed| (*kappa, seed))).collect();
    let all = each(&jobs, |(kappa, seed)| Ok(learn_while_it_changes(settings, mazes, *kappa, *seed)))?;
    let (plus, plain) = all.split_at(runs as usize);
    let places: Vec<usize> = (0..steps).filter(|step| (step + 1) % (steps / 100) == 0).collect();
    let xs: Vec<f64> = places.iter().map(|step| (step + 1) as f64).collect();
    let at_places = |runs: &[Vec<f64>]| runs.iter().map(|run| places.iter().map(|step| run[*step]).collect()).collect::<Vec<Vec<f64>>>();
    let series = vec![banded("Dyna-Q+", 1, &xs, &at_places(plus)), banded("Dyna-Q", 0, &xs, &at_places(plain))];
    let mut csv = String::from("agent,step,cumulative_reward,low,high\n");
    for series in &series {
        for ((x, y), (_, low, high)) in series.points.iter().zip(&series.band) {
            writeln!(csv, "{},{x},{y:.3},{low:.3},{high:.3}", series.label).expect("a string");
        }
    }
    let panel = lines("", "time steps", "cumulative reward", series);
    let note = format!(
        "change after {change} steps; {planning} planning steps, κ = {kappa}, α = {alpha}, ε = {epsilon}, γ = {gamma}; mean of {runs} runs with 95 % intervals"
    );
    let figures = vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))];
    Ok(([plus.to_vec(), plain.to_vec()], Findings { claims: Vec::new(), figures, tables: vec![("rewards.csv", csv)] }))
}

/// Returns the reward of every run between two steps.
fn between(runs: &[Vec<f64>], from: usize, to: usize) -> Vec<f64> {
    runs.iter().map(|run| run[to - 1] - if from == 0 { 0.0 } else { run[from - 1] }).collect()
}

/// Figure 8.4.
pub(crate) fn blocking(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Changing = experiment.settings()?;
    let Changing { steps, change, .. } = settings;
    let ([plus, plain], findings) = compare_plus(experiment, &settings, &GridWorld::blocking_mazes())?;
    let bootstrap = bootstrap(6);
    let finds = |runs: &[Vec<f64>]| share(6, between(runs, change, steps).into_iter().filter(|reward| *reward > 1.0).count(), runs.len());
    let wanders = |runs: &[Vec<f64>]| mean(bootstrap, &between(runs, change, change + 100));
    let claims = vec![
        Claim::new(
            format!("Dyna-Q+ earns more than Dyna-Q in {steps} steps: difference of the rewards"),
            difference(bootstrap, &between(&plus, 0, steps), &between(&plain, 0, steps)),
            Test::Above(0.0),
        ),
        Claim::new(
            "after the change Dyna-Q at first wanders behind the barrier: reward in the next 100 steps",
            wanders(&plain),
            Test::Below(1.0),
        ),
        Claim::new("so does Dyna-Q+", wanders(&plus), Test::Below(1.0)),
        Claim::new(
            "Dyna-Q+ finds the new way sooner: difference of the rewards in the 1000 steps after the change",
            difference(bootstrap, &between(&plus, change, change + 1000), &between(&plain, change, change + 1000)),
            Test::Above(0.0),
        ),
        Claim::new(
            "Dyna-Q finds it: share of the runs that reach the goal more than once after the change",
            finds(&plain),
            Test::Above(0.5),
        ),
        Claim::new("so does Dyna-Q+", finds(&plus), Test::Above(0.5)),
    ];
    Ok(Findings { claims, ..findings })
}

/// Figure 8.5.
pub(crate) fn shortcut(experiment: &Experiment) -> Result<Findings, Error> {
    let settings: Changing = experiment.settings()?;
    let Changing { steps, change, .. } = settings;
    let ([plus, plain], findings) = compare_plus(experiment, &settings, &GridWorld::shortcut_mazes())?;
    let bootstrap = bootstrap(3);
    let last = |runs: &[Vec<f64>]| between(runs, steps - steps / 6, steps);
    let walks = |runs: &[Vec<f64>]| share(3, runs.iter().filter(|run| has_walked_the_shortcut(run, change)).count(), runs.len());
    let claims = vec![
        Claim::new(
            format!(
                "Dyna-Q+ finds the shortcut: share of the runs with an episode of fewer than {LONG} steps, which only the shortcut allows"
            ),
            walks(&plus),
            Test::Above(0.5),
        ),
        Claim::new("Dyna-Q never does: the same share", walks(&plain), Test::Below(0.05)),
        Claim::new(
            format!("Dyna-Q+ earns more in the last {} steps: difference of the rewards", steps / 6),
            difference(bootstrap, &last(&plus), &last(&plain)),
            Test::Above(0.0),
        ),
    ];
    Ok(Findings { claims, ..findings })
}

/// Steps of the longer way through the shortcut maze.
const LONG: usize = 16;

/// Whether an episode that began after step `change` took fewer steps than the long way. `run` has the cumulative reward after every step; an episode ends with a reward of 1.
fn has_walked_the_shortcut(run: &[f64], change: usize) -> bool {
    let ends: Vec<usize> = (change.max(1)..run.len()).filter(|step| run[*step] > run[*step - 1]).collect();
    ends.windows(2).any(|pair| pair[1] - pair[0] < LONG)
}
