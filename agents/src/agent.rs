//! What every agent is to the training loop.

use gradus_nets::tensors::{Tensors, TensorsError};
use gradus_nets::{Batch, Objective, Policy, Store, Sums};

use crate::Rollout;

/// How an agent wants its rollouts collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// So many steps of every environment, wherever episodes end.
    Steps(usize),
    /// Whole episodes, so many of every environment: never the first to finish, which would favour short ones.
    Episodes {
        /// Episodes of each environment.
        per_env: usize,
        /// So many neighbouring environments begin each episode alike, as a group; 1: every environment for itself.
        group: usize,
        /// Whether one more episode is played for each group, with the most probable actions: its return comes with the rollout, its
        /// decisions do not.
        greedy: bool,
    },
}

/// Where in the training an update stands.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext {
    /// The run's seed.
    pub seed: u64,
    /// The number of this update, counted from 0.
    pub iteration: u64,
    /// The fraction of the training that was done before this update, 0 to 1, as schedules see it.
    pub progress: f64,
}

impl UpdateContext {
    /// That every advantage is a number.
    pub(crate) fn check_advantages(&self, advantages: &[f32]) -> Result<(), AgentError> {
        match advantages.iter().position(|advantage| !advantage.is_finite()) {
            Some(decision) => {
                let got = f64::from(advantages[decision]);
                Err(AgentError::Advantage { got, decision, iteration: self.iteration, seed: self.seed })
            }
            None => Ok(()),
        }
    }

    /// That every parameter is a number.
    pub(crate) fn check_parameters(&self, policy: &dyn Policy, epoch: usize) -> Result<(), AgentError> {
        if policy.is_finite() {
            return Ok(());
        }
        let parameter = policy.parameters().iter().find(|parameter| !parameter.is_finite());
        Err(self.not_finite("parameter", parameter.map_or(f64::NAN, |parameter| f64::from(*parameter)), epoch))
    }

    /// The gradient of `objective` over a batch: its sums and its norm, all of them numbers.
    pub(crate) fn gradient(
        &self,
        policy: &mut dyn Policy,
        (store, batch): (&Store, Batch<'_>),
        objective: &dyn Objective,
        epoch: usize,
    ) -> Result<(Sums, f64), AgentError> {
        let sums = policy.gradient(store, batch, objective);
        let norm = f64::from(policy.gradient_norm());
        match (sums.loss.is_finite(), norm.is_finite()) {
            (true, true) => Ok((sums, norm)),
            (false, _) => Err(self.not_finite("loss", sums.loss, epoch)),
            (_, false) => Err(self.not_finite("gradient norm", norm, epoch)),
        }
    }

    pub(crate) fn not_finite(&self, what: &'static str, got: f64, epoch: usize) -> AgentError {
        AgentError::NotFinite { what, got, iteration: self.iteration, epoch, seed: self.seed }
    }
}

/// Figures of one update, under Stable-Baselines3's names.
pub type Report = Vec<(&'static str, f64)>;

/// A rollout of this length fills a few gigabytes.
const MOST_DECISIONS: usize = 1 << 27;

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

    pub(crate) fn unless_above_zero(key: &str, x: f32) -> Result<(), Self> {
        Self::unless(x > 0.0, key, "a number above 0, or inf", x)
    }

    pub(crate) fn unless_finite_above_zero(key: &str, x: f32) -> Result<(), Self> {
        Self::unless(x > 0.0 && x.is_finite(), key, "a number above 0", x)
    }

    pub(crate) fn unless_not_negative(key: &str, x: f32) -> Result<(), Self> {
        Self::unless(x >= 0.0 && x.is_finite(), key, "a number from 0 up", x)
    }

    pub(crate) fn unless_fraction(key: &str, x: f32) -> Result<(), Self> {
        Self::unless((0.0..=1.0).contains(&x), key, "a number from 0 to 1", x)
    }

    pub(crate) fn unless_at_least_one(key: &str, x: usize) -> Result<(), Self> {
        Self::unless(x > 0, key, "at least 1", x)
    }

    /// That a rollout of `steps` steps of each of `envs` environments fits into memory.
    pub(crate) fn unless_rollout(key: &str, steps: usize, envs: usize) -> Result<(), Self> {
        Self::unless_at_least_one(key, steps)?;
        Self::unless(steps.saturating_mul(envs) <= MOST_DECISIONS, key, "a rollout of at most 2^27 decisions", steps)
    }
}

impl From<ConfigError> for AgentError {
    fn from(error: ConfigError) -> Self {
        AgentError::Config(error)
    }
}

/// An update that cannot go on. A bad loss or gradient is found before it reaches the policy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// A setting does not fit what was collected.
    #[error("{0}")]
    Config(ConfigError),
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

    /// Sees the policy that training begins with, before the first update.
    fn begin(&mut self, policy: &dyn Policy) {
        let _ = policy;
    }

    /// Whether [`wants_more`](Agent::wants_more) can ever say so: then the rollouts' texts stay on the host.
    fn may_want_more(&self) -> bool {
        false
    }

    /// Whether more episodes are to be collected, with the same policy, before it can learn from these.
    fn wants_more(&self, rollout: &Rollout) -> bool {
        let _ = rollout;
        false
    }

    /// Improves `policy` with a rollout that it has collected.
    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError>;

    /// What it remembers from update to update, for a checkpoint.
    fn save(&self) -> Tensors {
        Tensors::new()
    }

    /// Takes over what [`save`](Agent::save) saved, for `policy`.
    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        let _ = policy;
        match state.keys().next() {
            Some(name) => Err(TensorsError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }
}
