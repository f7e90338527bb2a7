//! Whether an agent is right: its first updates beside those of the right agent, and the returns of whole trainings.

use gradus::base::tensors::{Data, Tensor};
use gradus::{Config, Error, Trainer};

use crate::bug::Bug;

/// What the check of an agent found.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The agent does what the right one does.
    Right,
    /// It does something else.
    Wrong {
        /// Where it was seen first: environment, update and metric.
        place: String,
        /// What the right agent has there, and what this one has.
        values: [f64; 2],
    },
}

/// The relative difference up to which two numbers are the same: a right agent may add in another order, and its rounding errors grow from
/// update to update.
const TOLERANCE: f64 = 2e-3;

fn is_same(a: f64, b: f64) -> bool {
    let size = a.abs().max(b.abs()).max(1e-3);
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= TOLERANCE * size
}

/// The environments in which an agent is compared with the right one, the settings, and the number of updates or of reports.
fn trials(agent: &str) -> (&'static [&'static str], &'static [&'static str], usize) {
    match agent {
        "q_learning" => (&["cliff-walking", "frozen-lake", "taxi"], &["steps=2000"], 500),
        "dqn" => {
            (&["short-pole", "cartpole", "acrobot"], &["learning_starts=100", "target_update_interval=20", "exploration_steps=500"], 2)
        }
        "sac" => (&["pendulum", "mountain-car-continuous"], &[], 1),
        "grpo" => (&["target-sum", "copy"], &["reference.coefficient=0"], 4),
        "reinforce" => (&["short-pole", "cartpole", "pendulum"], &[], 3),
        _ => (&["short-pole", "cartpole", "pendulum"], &["steps=4000"], 3),
    }
}

/// Returns the agent's training with these settings.
fn config(name: &str, world: &str, settings: &[&str]) -> Result<Config, Error> {
    settings.iter().try_fold(Config::preset(name, world, None)?, |config, setting| config.with_setting(setting))
}

/// Returns the metrics of the first updates, and what is left of the parameters: their mean and the root of their mean square.
fn first_updates(config: Config, updates: usize) -> Result<Vec<Vec<(String, f64)>>, Error> {
    let mut trainer = Trainer::new(config)?;
    let mut all = Vec::new();
    while all.len() < updates && !trainer.is_finished() {
        let iteration = trainer.iterate()?;
        let mut metrics: Vec<(String, f64)> = iteration.metrics.into_iter().map(|(name, value)| (name.into_owned(), value)).collect();
        let numbers: Vec<f64> = trainer.export().values().flat_map(numbers).collect();
        let mean = |of: fn(f64) -> f64| numbers.iter().map(|x| of(*x)).sum::<f64>() / numbers.len() as f64;
        metrics.push(("the parameters' mean".into(), mean(|x| x)));
        metrics.push(("the parameters' mean square".into(), mean(|x| x * x)));
        all.push(metrics);
    }
    Ok(all)
}

fn numbers(tensor: &Tensor) -> Vec<f64> {
    match &tensor.data {
        Data::F32(numbers) => numbers.iter().map(|x| f64::from(*x)).collect(),
        Data::F64(numbers) => numbers.clone(),
        Data::U64(_) => Vec::new(),
    }
}

/// Compares the agent called `name` with the right one.
pub fn verdict(bug: &Bug, name: &str) -> Result<Verdict, Error> {
    let (worlds, settings, updates) = trials(&bug.agent);
    for world in worlds {
        let right = first_updates(config(&bug.right_name(), world, settings)?, updates)?;
        let own = first_updates(config(name, world, settings)?, updates)?;
        for (number, (right, own)) in (1..).zip(right.iter().zip(&own)) {
            for ((metric, expected), (_, got)) in right.iter().zip(own) {
                if !is_same(*expected, *got) {
                    let place = format!("{world}, update {number}, {metric}");
                    return Ok(Verdict::Wrong { place, values: [*expected, *got] });
                }
            }
        }
    }
    Ok(Verdict::Right)
}
