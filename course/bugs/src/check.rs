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
        /// Where it was seen first: environment, settings, update and metric.
        place: String,
        /// What the right agent has there, and what this one has.
        values: [f64; 2],
    },
    /// It stopped with an error.
    Failed {
        /// Environment and settings.
        place: String,
        /// What went wrong.
        problem: String,
    },
}

/// The relative difference up to which two numbers are the same: a right agent may add in another order, and its rounding errors grow from
/// update to update.
const TOLERANCE: f64 = 2e-3;

fn is_same(a: f64, b: f64) -> bool {
    let size = a.abs().max(b.abs()).max(1e-3);
    a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= TOLERANCE * size
}

/// How an agent is compared with the right one.
struct Trials {
    worlds: &'static [&'static str],
    /// Settings of all trials.
    settings: &'static [&'static str],
    /// Further settings of the second trial in each environment: a number that was written into the file instead of its setting shows there.
    other_settings: &'static [&'static str],
    /// Updates, or reports of several updates.
    updates: usize,
}

fn trials(agent: &str) -> Trials {
    match agent {
        "q_learning" => Trials {
            worlds: &["cliff-walking", "frozen-lake", "taxi", "short-cliff"],
            settings: &["steps=2000"],
            // powers of two: products of any other rounding would break ties between actions in another way
            other_settings: &["gamma=0.5", "alpha=0.25"],
            updates: 500,
        },
        "dqn" => Trials {
            worlds: &["short-pole", "cartpole", "acrobot"],
            settings: &["learning_starts=100", "target_update_interval=20", "exploration_steps=500"],
            other_settings: &["buffer_size=70", "gamma=0.9", "n_step=2", "target_update_interval=10"],
            updates: 2,
        },
        "sac" => Trials {
            worlds: &["pendulum", "mountain-car-continuous"],
            settings: &[],
            other_settings: &["gamma=0.9", "tau=0.05", "temperature_rate=0.01"],
            updates: 1,
        },
        "grpo" => Trials {
            worlds: &["target-sum", "copy"],
            settings: &["reference.coefficient=0"],
            other_settings: &["beta=0.3", "clip=0.01", "group_size=4"],
            updates: 4,
        },
        "reinforce" => Trials {
            worlds: &["short-pole", "cartpole", "pendulum"],
            settings: &[],
            other_settings: &["gamma=0.8", "episodes=2"],
            updates: 3,
        },
        "actor_critic" => Trials {
            worlds: &["short-pole", "cartpole", "pendulum"],
            settings: &["steps=4000"],
            other_settings: &["gamma=0.8", "rollout_steps=5", "value_coefficient=1", "entropy_coefficient=0.1"],
            updates: 3,
        },
        _ => Trials {
            worlds: &["short-pole", "cartpole", "pendulum"],
            settings: &["steps=4000"],
            other_settings: &[
                "gamma=0.8",
                "gae_lambda=0.6",
                "clip=0.05",
                "rollout_steps=30",
                "entropy_coefficient=0.1",
                "value_coefficient=1",
            ],
            updates: 3,
        },
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
    let Trials { worlds, settings, other_settings, updates } = trials(&bug.agent);
    for (world, others) in worlds.iter().flat_map(|world| [(world, &[][..]), (world, other_settings)]) {
        let all = [settings, others].concat();
        let place = others.iter().fold((*world).to_owned(), |place, setting| format!("{place} --set {setting}"));
        let right = first_updates(config(&bug.right_name(), world, &all)?, updates)?;
        let own = match first_updates(config(name, world, &all)?, updates) {
            Ok(own) => own,
            Err(error) => return Ok(Verdict::Failed { place, problem: error.to_string() }),
        };
        for (number, (right, own)) in (1..).zip(right.iter().zip(&own)) {
            for ((metric, expected), (_, got)) in right.iter().zip(own) {
                if !is_same(*expected, *got) {
                    let place = format!("{place}, update {number}, {metric}");
                    return Ok(Verdict::Wrong { place, values: [*expected, *got] });
                }
            }
        }
    }
    Ok(Verdict::Right)
}

/// A number with five digits.
pub(crate) fn shown(number: f64) -> String {
    format!("{number:.4e}").parse::<f64>().map_or_else(|_| number.to_string(), |rounded| rounded.to_string())
}
