//! Makes `results/text/variants*`: compares GRPO with six variants on two tasks, at equal generated tokens and at equal optimiser steps.
//!
//! `cargo run --release --example text_variants`
//!
//! Every method has its preset for texts, with 128 completions per rollout. On a task all begin with the same supervised start. A training is
//! evaluated on the whole test split every few rollouts, until it has both the tokens and the optimiser steps of the comparison. The methods
//! differ in what a rollout costs: RLOO takes one step on it, the others four, and DAPO may sample several rounds of completions.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gradus::evaluate::evaluate;
use gradus::figure::{self, Chart, Figure, Lines, Panel, Series};
use gradus::nets::threads;
use gradus::run::sft::{self, WarmStart};
use gradus::{Config, Error, Mode, Trainer};
use gradus_compare::statistics::{Bootstrap, Estimate};

/// Name, agent, preset, and optimiser steps per rollout.
const METHODS: [(&str, &str, &str, u64); 7] = [
    ("GRPO", "grpo", "default", 4),
    ("Dr. GRPO", "grpo", "dr-grpo", 4),
    ("DAPO", "grpo", "dapo", 4),
    ("GSPO", "grpo", "gspo", 4),
    ("CISPO", "grpo", "cispo", 4),
    ("RLOO", "reinforce", "rloo", 1),
    ("REINFORCE++", "reinforce", "reinforce-plus-plus", 4),
];
/// Task, and the share of validation problems that the supervised start answers exactly.
const TASKS: [(&str, f64); 2] = [("addition", 0.25), ("chain-sum", 0.3)];
const SEEDS: u64 = 10;
const TOKENS: u64 = 400_000;
const STEPS: u64 = 1000;
/// Rollouts between evaluations.
const EVERY: u64 = 20;
/// Problems of an evaluation: all of the test split.
const PROBLEMS: usize = 2000;
const DIR: &str = "results/text";

/// An evaluation on the test split.
#[derive(Clone)]
struct Point {
    tokens: u64,
    steps: u64,
    /// The reward of each problem.
    rewards: Vec<f64>,
}

impl Point {
    fn mean(&self) -> f64 {
        self.rewards.iter().sum::<f64>() / self.rewards.len() as f64
    }
}

fn train(config: Config, steps_per_rollout: u64) -> Result<Vec<Point>, Error> {
    let mut trainer = Trainer::new(Config { steps: u64::MAX >> 16, ..config })?;
    let mut points = Vec::new();
    loop {
        let rewards = evaluate(trainer.policy(), &trainer.evaluation_world(), PROBLEMS, 1, Mode::Greedy)?.returns;
        let point = Point { tokens: trainer.steps(), steps: trainer.iteration() * steps_per_rollout, rewards };
        let is_done = point.tokens >= TOKENS && point.steps >= STEPS;
        points.push(point);
        if is_done {
            return Ok(points);
        }
        for _ in 0..EVERY {
            trainer.iterate()?;
        }
    }
}

/// The budgets of the comparison: the name, the unit, the column of a point, and the size.
type Budget = (&'static str, &'static str, fn(&Point) -> u64, u64);
const BUDGETS: [Budget; 2] =
    [("tokens", "generated tokens", |point| point.tokens, TOKENS), ("steps", "optimiser steps", |point| point.steps, STEPS)];

/// Returns the last evaluation within a budget.
fn within(run: &[Point], (_, _, column, size): Budget) -> &Point {
    run.iter().rev().find(|point| column(point) <= size).expect("the evaluation before the first update")
}

/// Returns the mean reward of the seeds over one of the columns, in equal parts of the budget.
fn curve(runs: &[Vec<Point>], (_, _, column, size): Budget) -> Vec<(f64, f64)> {
    const PARTS: u64 = 20;
    let at = |part: u64| {
        let limit = size * part / PARTS;
        let last = runs.iter().map(|run| run.iter().rev().find(|point| column(point) <= limit).map_or(f64::NAN, Point::mean));
        (limit as f64, last.sum::<f64>() / runs.len() as f64)
    };
    (0..=PARTS).map(at).collect()
}

fn main() -> Result<(), Error> {
    let dir = Path::new(DIR);
    let mut csv = String::from("task,method,seed,tokens,steps,reward\n");
    let mut table = String::from("task,budget,method,reward,low,high,difference,difference_low,difference_high\n");
    let mut panels = Vec::new();
    for (task, until_exact) in TASKS {
        let base = sft::defaults(Config::preset("grpo", task, None)?);
        let wanted = WarmStart { until_exact, evaluate_every: 5, ..WarmStart::default() };
        let (start, _) = sft::run(&base, &wanted, None, &format!("variants-{task}"), |_| ())?;
        let mut all = Vec::new();
        for (name, agent, preset, steps) in METHODS {
            let config = Config::preset(agent, task, Some(preset))?.with_setting(&format!("init={}", start.display()))?;
            let mut seeds: Vec<u64> = (1..=SEEDS).collect();
            let runs = threads::with_default(|| threads::map(&mut seeds, |_, seed| train(Config { seed: *seed, ..config.clone() }, steps)));
            let runs = runs.into_iter().collect::<Result<Vec<_>, _>>()?;
            for (seed, run) in seeds.iter().zip(&runs) {
                for point in run {
                    let Point { tokens, steps, .. } = point;
                    writeln!(csv, "{task},{name},{seed},{tokens},{steps},{}", point.mean()).expect("writing to a string cannot fail");
                }
            }
            println!("{task}, {name}: trained");
            all.push((name, runs));
        }
        for budget in BUDGETS {
            let rewards = |runs: &[Vec<Point>]| -> Vec<Vec<f64>> { runs.iter().map(|run| within(run, budget).rewards.clone()).collect() };
            let of_grpo = rewards(&all[0].1);
            let mut lines = Lines { x_label: budget.1.into(), y_label: "reward on the test split".into(), ..Lines::default() };
            for (name, runs) in &all {
                // over seeds and problems; the difference is paired by both
                let own = rewards(runs);
                let less = |(own, other): (&Vec<f64>, &Vec<f64>)| own.iter().zip(other).map(|(a, b)| a - b).collect();
                let differences: Vec<Vec<f64>> = own.iter().zip(&of_grpo).map(less).collect();
                let [reward, difference] = [own, differences].map(|rewards| Bootstrap::default().crossed_mean(&rewards));
                let shown = |Estimate { point, low, high }: Estimate| format!("{point},{low},{high}");
                writeln!(table, "{task},{},{name},{},{}", budget.0, shown(reward), shown(difference))
                    .expect("writing to a string cannot fail");
                lines.series.push(Series::new((*name).to_string(), curve(runs, budget)));
            }
            panels.push(Panel { title: format!("{task}, equal {}", budget.1), chart: Chart::Lines(lines) });
        }
    }
    let title = "Variants of GRPO, mean of ten seeds".into();
    let figure = Figure { title, note: String::new(), columns: 2, panels };
    for extension in ["svg", "png"] {
        figure::write(&figure, &dir.join(format!("variants.{extension}")))?;
    }
    write(&dir.join("variants.csv"), &csv)?;
    write(&dir.join("variants-summary.csv"), &table)
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(|source| Error::Io { action: "write", path: path.into(), source })
}
