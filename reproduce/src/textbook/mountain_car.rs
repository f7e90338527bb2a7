//! Figures 10.1, 10.2 and 10.4: Sarsa with tile coding on the mountain car.

use std::fmt::Write;

use serde::Deserialize;

use super::super::experiment::Experiment;
use super::super::findings::{Claim, Findings, Test, bootstrap, difference, mean};
use super::super::runs::each;
use super::{banded, figure, lines};
use gradus::Error;
use gradus::agents::tabular::{SarsaSettings, Tiles, semi_gradient_sarsa};
use gradus::envs::MountainCar;
use gradus::envs::random::{Purpose, Stream, episode_seed};
use gradus::envs::{Action, Env};
use gradus::figure::{Cell, Chart, Grid, Lines, Panel};

/// Position and velocity.
const BOUNDS: [(f64, f64); 2] = [(-1.2, 0.6), (-0.07, 0.07)];
/// The book's grid-tilings.
const TILINGS: usize = 8;
const TILES: usize = 8;
/// An episode that is longer ends, without an update; none of the figures' episodes is.
const MOST: usize = 100_000;

/// A mountain car and what a run has learned.
struct Learner {
    car: MountainCar,
    q: Tiles,
    stream: Stream,
    settings: SarsaSettings,
    seed: u64,
    episode: u64,
}

impl Learner {
    /// `step` is the step size of a value, 8 times that of each weight.
    fn new(step: f64, n: usize, seed: u64) -> Self {
        let settings = SarsaSettings { alpha: step / TILINGS as f64, epsilon: 0.0, gamma: 1.0, n };
        let q = Tiles::new(BOUNDS, TILINGS, TILES, 3);
        Self { car: MountainCar::default(), q, stream: Stream::new(seed, Purpose::Action, 0), settings, seed, episode: 0 }
    }

    /// Plays an episode and returns its number of steps.
    fn play(&mut self) -> usize {
        let mut observation = [0.0; 2];
        self.car.reset(episode_seed(self.seed, 0, self.episode), &mut observation);
        self.episode += 1;
        let (car, start) = (&mut self.car, observation.map(f64::from));
        let step = |action: usize| {
            let mut next = [0.0; 2];
            let step = car.step(Action::Discrete(action as u32), &mut next);
            (step.reward, (!step.terminated).then(|| next.map(f64::from)))
        };
        semi_gradient_sarsa(&mut self.q, start, step, self.settings, MOST, &mut self.stream)
    }

    /// Returns the cost to go: minus the largest action value.
    fn cost(&self, point: [f64; 2]) -> f64 {
        -self.q.values(&self.q.active(point)).into_iter().fold(f64::NEG_INFINITY, f64::max)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostToGo {
    runs: u64,
    first_seed: u64,
    step_size: f64,
    episodes: Vec<u64>,
}

/// Figure 10.1.
pub(crate) fn cost_to_go(experiment: &Experiment) -> Result<Findings, Error> {
    let CostToGo { runs, first_seed, step_size, episodes } = experiment.settings()?;
    const CELLS: usize = 20;
    let centre = |axis: usize, cell: usize| {
        let (low, high) = BOUNDS[axis];
        low + (high - low) * (cell as f64 + 0.5) / CELLS as f64
    };
    let all: Vec<[f64; 2]> =
        (0..CELLS).rev().flat_map(|v| (0..CELLS).map(move |x| (x, v))).map(|(x, v)| [centre(0, x), centre(1, v)]).collect();
    let seeds: Vec<u64> = (first_seed..first_seed + runs).collect();
    // costs[run][stage], the cost at the bottom of the valley, and the mean steps of the last 100 episodes
    let found = each(&seeds, |seed| {
        let mut learner = Learner::new(step_size, 1, *seed);
        let (mut stages, mut last) = (Vec::new(), Vec::new());
        for wanted in &episodes {
            while learner.episode < *wanted {
                last.push(learner.play() as f64);
            }
            stages.push(all.iter().map(|point| learner.cost(*point)).collect::<Vec<f64>>());
        }
        let recent = &last[last.len().saturating_sub(100)..];
        Ok((stages, learner.cost([-0.5, 0.0]), recent.iter().sum::<f64>() / recent.len() as f64))
    })?;
    let largest = |stage: usize| found.iter().map(|(stages, ..)| stages[stage].iter().copied().fold(0.0, f64::max)).collect::<Vec<f64>>();
    let bootstrap = bootstrap(3);
    let last = episodes.len() - 1;
    let claims = vec![
        Claim::new(
            format!(
                "the cost grows while the car learns: largest cost after episode {} minus that after episode {}",
                episodes[last], episodes[0]
            ),
            difference(bootstrap, &largest(last), &largest(0)),
            Test::Above(0.0),
        ),
        Claim::new(
            format!(
                "after episode {} most of the surface is there: its largest cost as a share of that after episode {}",
                episodes[1], episodes[last]
            ),
            mean(bootstrap, &largest(1).iter().zip(largest(last)).map(|(early, late)| early / late).collect::<Vec<f64>>()),
            Test::Above(0.5),
        ),
        Claim::new(
            "the cost at the bottom of the valley is the length of an episode: mean steps of the last 100 episodes minus that cost",
            mean(bootstrap, &found.iter().map(|(_, cost, steps)| steps - cost).collect::<Vec<f64>>()),
            Test::Within(-12.0, 12.0),
        ),
    ];
    let mut csv = String::from("episode,position,velocity,cost_to_go\n");
    let mut panels = Vec::new();
    for (stage, episode) in episodes.iter().enumerate() {
        let costs = &found[0].0[stage];
        all.iter().zip(costs).for_each(|([x, v], cost)| writeln!(csv, "{episode},{x:.4},{v:.5},{cost:.4}").expect("a string"));
        let cells = costs.iter().map(|cost| Cell { value: Some(*cost), ..Cell::default() }).collect();
        let grid = Grid { columns: CELLS, cells, value_label: "cost to go, steps".into(), ..Grid::default() };
        panels.push(Panel { title: format!("episode {episode}"), chart: Chart::Grid(grid) });
    }
    let note = "columns: position from -1.2 to 0.6; rows: velocity from 0.07 (top) to -0.07; one run".replace('-', "−");
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 2, panels))], tables: vec![("costs.csv", csv)] })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepSizes {
    runs: u64,
    episodes: usize,
    step_sizes: [f64; 3],
}

/// Figure 10.2.
pub(crate) fn step_sizes(experiment: &Experiment) -> Result<Findings, Error> {
    let StepSizes { runs, episodes, step_sizes } = experiment.settings()?;
    let jobs: Vec<(f64, u64)> = step_sizes.iter().flat_map(|step| (1..=runs).map(|seed| (*step, seed))).collect();
    let steps = each(&jobs, |(step, seed)| {
        let mut learner = Learner::new(*step, 1, *seed);
        Ok((0..episodes).map(|_| learner.play() as f64).collect::<Vec<f64>>())
    })?;
    let steps: Vec<Vec<Vec<f64>>> = steps.chunks(runs as usize).map(<[_]>::to_vec).collect();
    let part = |place: usize, part: std::ops::Range<usize>| {
        let length = part.len() as f64;
        steps[place].iter().map(|run| run[part.clone()].iter().sum::<f64>() / length).collect::<Vec<f64>>()
    };
    let (early, late) = (0..episodes / 10, episodes - episodes / 5..episodes);
    let bootstrap = bootstrap(5);
    let words = |range: &std::ops::Range<usize>| format!("episodes {} to {}", range.start + 1, range.end);
    let claims = vec![
        Claim::new(
            format!("a larger step size learns faster: steps with α = 0.1/8 minus steps with α = 0.2/8, {}", words(&early)),
            difference(bootstrap, &part(0, early.clone()), &part(1, early.clone())),
            Test::Above(0.0),
        ),
        Claim::new(
            "steps with α = 0.2/8 minus steps with α = 0.5/8 in the same episodes",
            difference(bootstrap, &part(1, early.clone()), &part(2, early)),
            Test::Above(0.0),
        ),
        Claim::new(
            format!("all end between 100 and 200 steps: steps with α = 0.1/8, {}", words(&late)),
            mean(bootstrap, &part(0, late.clone())),
            Test::Within(100.0, 200.0),
        ),
        Claim::new("steps with α = 0.2/8 in the same episodes", mean(bootstrap, &part(1, late.clone())), Test::Within(100.0, 200.0)),
        Claim::new("steps with α = 0.5/8 in the same episodes", mean(bootstrap, &part(2, late)), Test::Within(100.0, 200.0)),
    ];
    let xs: Vec<f64> = (1..=episodes).map(|episode| episode as f64).collect();
    // the axis of the figure is logarithmic
    let log = |runs: &Vec<Vec<f64>>| {
        let means = super::mean_of(runs);
        vec![means.iter().map(|steps| steps.log10()).collect::<Vec<f64>>()]
    };
    let mut csv = String::from("step_size,episode,mean_steps\n");
    let mut series = Vec::new();
    for (colour, (runs, step)) in steps.iter().zip(step_sizes).enumerate() {
        super::mean_of(runs).iter().zip(&xs).for_each(|(steps, episode)| writeln!(csv, "{step}/8,{episode},{steps:.3}").expect("a string"));
        series.push(banded(format!("α = {step}/8"), colour, &xs, &log(runs)));
    }
    let mut panel = lines("", "episodes", "steps per episode, log10", series);
    if let Chart::Lines(Lines { y_range, .. }) = &mut panel.chart {
        *y_range = Some((2.0, 3.0));
    }
    let note = format!(
        "one-step semi-gradient Sarsa, 8 tilings of 8 x 8 tiles, ε = 0; mean of {runs} runs; 2 is 100 steps, 2.3 is 200, 3 is 1000"
    );
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("steps.csv", csv)] })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sensitivity {
    runs: u64,
    episodes: usize,
    n: Vec<usize>,
    /// For each n.
    step_sizes: Vec<Vec<f64>>,
}

/// The step size with the fewest steps, by the mean over its runs, and its place.
fn best(of: &[Vec<f64>]) -> usize {
    let mean = |runs: &[f64]| runs.iter().sum::<f64>() / runs.len() as f64;
    (0..of.len()).min_by(|a, b| mean(&of[*a]).total_cmp(&mean(&of[*b]))).unwrap_or(0)
}

/// Figure 10.4.
pub(crate) fn sensitivity(experiment: &Experiment) -> Result<Findings, Error> {
    let Sensitivity { runs, episodes, n, step_sizes } = experiment.settings()?;
    // the step sizes are chosen by the first half of the runs and judged by the second, so that the best of many is not the luckiest
    let jobs: Vec<(usize, f64, u64)> = n
        .iter()
        .zip(&step_sizes)
        .flat_map(|(n, sizes)| sizes.iter().flat_map(move |step| (1..=2 * runs).map(move |seed| (*n, *step, seed))))
        .collect();
    let steps = each(&jobs, |(n, step, seed)| {
        let mut learner = Learner::new(*step, *n, *seed);
        Ok((0..episodes).map(|_| learner.play() as f64).sum::<f64>() / episodes as f64)
    })?;
    // steps[n][step size][run]
    let mut rows = steps.chunks(2 * runs as usize).map(<[_]>::to_vec);
    let steps: Vec<Vec<Vec<f64>>> = step_sizes.iter().map(|sizes| rows.by_ref().take(sizes.len()).collect()).collect();
    let half = runs as usize;
    let chosen = |place: usize| {
        let first: Vec<Vec<f64>> = steps[place].iter().map(|runs| runs[..half].to_vec()).collect();
        let step = best(&first);
        (step_sizes[place][step], steps[place][step][half..].to_vec())
    };
    let at = |wanted: usize| n.iter().position(|n| *n == wanted).map_or((f64::NAN, Vec::new()), chosen);
    let (bootstrap, four) = (bootstrap(4), at(4));
    let than = |wanted: usize| {
        let other = at(wanted);
        Claim::new(
            format!(
                "n = 4 needs fewer steps than n = {wanted}, each with its best step size ({}/8 and {}/8): the difference, first {episodes} episodes",
                four.0, other.0
            ),
            difference(bootstrap, &other.1, &four.1),
            Test::Above(0.0),
        )
    };
    let claims = vec![than(1), than(16), than(2), than(8)];
    let mut csv = String::from("n,step_size,mean_steps\n");
    let mut series = Vec::new();
    for (colour, ((of, n), sizes)) in steps.iter().zip(&n).zip(&step_sizes).enumerate() {
        let means: Vec<f64> = of.iter().map(|runs| runs.iter().sum::<f64>() / runs.len() as f64).collect();
        means.iter().zip(sizes).for_each(|(steps, step)| writeln!(csv, "{n},{step}/8,{steps:.3}").expect("a string"));
        // rows of `banded` are runs
        let rows: Vec<Vec<f64>> = (0..2 * half).map(|run| of.iter().map(|runs| runs[run]).collect()).collect();
        series.push(banded(format!("n = {n}"), colour, sizes, &rows));
    }
    let mut panel = lines("", "α x number of tilings (8)", "steps per episode", series);
    if let Chart::Lines(Lines { y_range, .. }) = &mut panel.chart {
        *y_range = Some((210.0, 300.0));
    }
    let note = format!(
        "n-step semi-gradient Sarsa, 8 tilings of 8 x 8 tiles, ε = 0; mean of the first {episodes} episodes and of {} runs",
        2 * runs
    );
    Ok(Findings { claims, figures: vec![("figure", figure(&experiment.title, &note, 1, vec![panel]))], tables: vec![("steps.csv", csv)] })
}
