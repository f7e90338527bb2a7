//! What can go wrong in an environment: each message names the thing, what was expected and what was got.

/// An error of an environment or of the registry.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnvError {
    /// No environment has this name.
    #[error("unknown environment `{name}`; {hint}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// There is an environment of that name already.
    #[error("environment `{name}`: expected a new name, got one that is registered already")]
    Registered {
        /// The name.
        name: String,
    },
    /// An action lies outside the action space.
    #[error("action of environment {env}: expected {expected}, got {got}")]
    Action {
        /// Which environment of the vector.
        env: usize,
        /// The action space.
        expected: String,
        /// The action.
        got: String,
    },
    /// The number of actions is not the number of environments.
    #[error("actions: expected {expected}, one per environment, got {got}")]
    ActionCount {
        /// The number of environments.
        expected: usize,
        /// The number of actions.
        got: usize,
    },
    /// An environment returned NaN or an infinity.
    #[error("{what} of environment {env} is {got}, expected a finite number (step {step} of the episode with seed {seed})")]
    NotFinite {
        /// `reward` or `observation[i]`.
        what: String,
        /// Which environment of the vector.
        env: usize,
        /// The number that was got.
        got: f64,
        /// The step within the episode, counted from 1; 0 is the reset.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// An environment could not say what an action was worth.
    #[error("environment {env}: {fault} (step {step} of the episode with seed {seed})")]
    Fault {
        /// What it says of it.
        fault: String,
        /// Which environment of the run.
        env: usize,
        /// The step within the episode, counted from 1.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// An environment marks no action as worth taking although its episode goes on.
    #[error("action mask of environment {env}: expected at least one action, got none (step {step} of the episode with seed {seed})")]
    Mask {
        /// Which environment of the run.
        env: usize,
        /// The step within the episode; 0 is the reset.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// A finished environment was stepped although autoreset is [`Autoreset::Disabled`](crate::Autoreset::Disabled).
    #[error("environment {env} is finished and autoreset is disabled: expected a reset, got a step")]
    Finished {
        /// Which environment of the vector.
        env: usize,
    },
    /// A table, or what one was to be made from, does not describe a world.
    #[error("tabular world: {0}")]
    Table(String),
    /// A text, a task or a rule of one does not fit.
    #[error("text: {0}")]
    Text(String),
    /// A saved or given state does not fit the environment.
    #[error("state of the environment: {0}")]
    State(String),
}
