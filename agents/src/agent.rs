//! What every agent is to the training loop.

use gradus_nets::Policy;

use crate::Rollout;

/// How an agent wants its rollouts collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// So many steps of every environment, wherever episodes end.
    Steps(usize),
}

/// Where in the training an update stands.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The run's seed.
    pub seed: u64,
    /// The number of this update, counted from 0.
    pub iteration: u64,
    /// The number of updates of the whole training.
    pub iterations: u64,
}

impl Moment {
    /// The fraction of the training that was done before this update, as schedules see it.
    pub fn progress(&self) -> f64 {
        self.iteration as f64 / self.iterations.max(1) as f64
    }
}

/// Figures of one update, under Stable-Baselines3's names.
pub type Report = Vec<(&'static str, f64)>;

/// A setting out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key}: expected {expected}, got {got}")]
pub struct ConfigError {
    /// The setting.
    pub key: String,
    /// What it may be.
    pub expected: String,
    /// What it is.
    pub got: String,
}

impl ConfigError {
    /// An error of the setting `key` unless `holds`.
    pub fn unless(holds: bool, key: &str, expected: &str, got: impl ToString) -> Result<(), Self> {
        if holds { Ok(()) } else { Err(Self { key: key.into(), expected: expected.into(), got: got.to_string() }) }
    }
}

/// An update that cannot go on. A bad loss or gradient is found before it reaches the policy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// An advantage is NaN or infinite: a reward or a value is.
    #[error("the advantage of decision {decision} is {got} in update {iteration} of the run with seed {seed}: expected a finite number")]
    Advantage {
        /// The number that was got.
        got: f64,
        /// The decision of the rollout.
        decision: usize,
        /// The number of the update, counted from 0.
        iteration: u64,
        /// The run's seed.
        seed: u64,
    },
    /// A loss, a gradient or a parameter is NaN or infinite.
    #[error("the {what} is {got} in update {iteration}, epoch {epoch} of the run with seed {seed}: expected a finite number")]
    NotFinite {
        /// `loss`, `gradient norm` or `parameter`.
        what: &'static str,
        /// The number that was got.
        got: f64,
        /// The number of the update, counted from 0.
        iteration: u64,
        /// The epoch within the update, counted from 0.
        epoch: usize,
        /// The run's seed.
        seed: u64,
    },
}

/// An algorithm: turns rollouts into better policies.
pub trait Agent: Send {
    /// How rollouts are to be collected.
    fn collection(&self) -> Collection;

    /// Improves `policy` with a rollout that it has collected.
    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, moment: Moment) -> Result<Report, AgentError>;
}
