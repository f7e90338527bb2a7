//! What can be wrong with settings and with an update.

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

    /// That `x` is above 0; infinity, which turns a limit off, is.
    pub fn unless_above_zero_or_inf(key: &str, x: f32) -> Result<(), Self> {
        Self::unless(x > 0.0, key, "a number above 0, or inf", x)
    }

    /// That `x` is above 0 and finite.
    pub fn unless_above_zero(key: &str, x: f32) -> Result<(), Self> {
        Self::unless(x > 0.0 && x.is_finite(), key, "a number above 0", x)
    }

    /// That `x` is at least 0 and finite.
    pub fn unless_not_negative(key: &str, x: f32) -> Result<(), Self> {
        Self::unless(x >= 0.0 && x.is_finite(), key, "a number from 0 up", x)
    }

    /// That `x` is between 0 and 1.
    pub fn unless_fraction(key: &str, x: f32) -> Result<(), Self> {
        Self::unless((0.0..=1.0).contains(&x), key, "a number from 0 to 1", x)
    }

    /// That `x` is at least 1.
    pub fn unless_at_least_one(key: &str, x: usize) -> Result<(), Self> {
        Self::unless(x > 0, key, "at least 1", x)
    }

    /// That a rollout of `steps` steps of each of `envs` environments fits into memory.
    pub fn unless_rollout(key: &str, steps: usize, envs: usize) -> Result<(), Self> {
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
