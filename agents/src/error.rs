//! Errors of settings and of updates.

use gradus_base::range::OutOfRange;

/// Maximum number of decisions in a rollout. A rollout of this size takes a few gigabytes of memory.
const MAX_DECISIONS: usize = 1 << 27;

/// A setting out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key}: expected {expected}, got {got}")]
pub struct ConfigError {
    /// Name of the setting.
    pub key: String,
    /// The accepted values.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

impl ConfigError {
    /// Returns an error for the setting `key` unless `holds`.
    pub fn unless(holds: bool, key: &str, expected: &str, got: impl ToString) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { key: key.into(), expected: expected.into(), got: got.to_string() }) }
    }

    /// Checks that `steps`, the number of steps or of episodes of each environment in a rollout, is at least 1, and that `steps` times
    /// `envs` is at most 2^27.
    pub fn unless_rollout(key: &str, steps: usize, envs: usize) -> Result<(), Self> {
        Self::unless(steps > 0, key, "at least 1", steps)?;
        let most = MAX_DECISIONS / envs.max(1);
        let expected = format!("at most {most}, because {envs} environments have at most 2^27 decisions in a rollout");
        Self::unless(steps <= most, key, &expected, steps)
    }
}

impl From<OutOfRange> for ConfigError {
    fn from(OutOfRange { key, expected, got }: OutOfRange) -> Self {
        Self { key, expected, got }
    }
}

impl From<ConfigError> for AgentError {
    fn from(error: ConfigError) -> Self {
        AgentError::Config(error)
    }
}

/// An error that stops the training. A loss or gradient that is not finite is detected before the optimiser step.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// A setting is out of range or does not fit the rollout.
    #[error("{0}")]
    Config(ConfigError),
    /// An advantage is NaN or infinite. The usual cause is a NaN or infinite reward or value.
    #[error("the advantage of decision {decision} is {got} in iteration {} of the run with seed {seed}: expected a finite number", iteration + 1)]
    Advantage {
        /// The advantage.
        got: f64,
        /// Index of the decision in the rollout.
        decision: usize,
        /// Number of the iteration, counted from 0; the message counts from 1, as metrics.csv does.
        iteration: u64,
        /// Seed of the run.
        seed: u64,
    },
    /// A loss, the norm of a gradient, a parameter or the length of TRPO's step is NaN or infinite.
    #[error("the {what} is {got} in iteration {}, epoch {} of the run with seed {seed}: expected a finite number", iteration + 1, epoch + 1)]
    NotFinite {
        /// `loss`, `gradient norm`, `parameter` or `length of the step`.
        what: &'static str,
        /// The value.
        got: f64,
        /// Number of the iteration, counted from 0; the message counts from 1, as metrics.csv does.
        iteration: u64,
        /// Epoch within the update, counted from 0; the message counts from 1.
        epoch: usize,
        /// Seed of the run.
        seed: u64,
    },
    /// The code of an agent panicked.
    #[error("{agent}: panicked in iteration {} of the run with seed {seed}: {message}", iteration + 1)]
    Panicked {
        /// Name of the agent.
        agent: String,
        /// Number of the iteration, counted from 0; the message counts from 1, as metrics.csv does.
        iteration: u64,
        /// Seed of the run.
        seed: u64,
        /// The message of the panic.
        message: String,
    },
}
