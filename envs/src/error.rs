//! Errors of environments. Most messages have the form "THING: expected X, got Y".

/// An error of an environment or of the registry.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnvError {
    /// No environment has this name.
    #[error("unknown environment `{name}`; {hint}")]
    Unknown {
        /// The requested name.
        name: String,
        /// The nearest valid name, or all names.
        hint: String,
    },
    /// An environment of that name is already registered.
    #[error("environment `{name}`: expected a new name, got one that is registered already")]
    Registered {
        /// The name.
        name: String,
    },
    /// An action lies outside the action space.
    #[error("action of environment {env}: expected {expected}, got {got}")]
    Action {
        /// Index of the environment in the run.
        env: usize,
        /// The action space.
        expected: String,
        /// The action.
        got: String,
    },
    /// The number of actions differs from the number of environments.
    #[error("actions: expected {expected}, one per environment, got {got}")]
    ActionCount {
        /// The number of environments.
        expected: usize,
        /// The number of actions given.
        got: usize,
    },
    /// An environment returned NaN or an infinity.
    #[error("{world}: {what} of environment {env} is {got}, expected a finite number (step {step} of the episode with seed {seed})")]
    NotFinite {
        /// Name of the environment.
        world: String,
        /// `reward` or `observation[i]`.
        what: String,
        /// Index of the environment in the run.
        env: usize,
        /// The value.
        got: f64,
        /// The step within the episode, counted from 1; 0 is the reset.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// An environment could not compute a reward or an observation.
    #[error("{world}, environment {env}: {fault} (step {step} of the episode with seed {seed})")]
    Fault {
        /// Name of the environment.
        world: String,
        /// The environment's own explanation, see [`Env::fault`](crate::Env::fault).
        fault: String,
        /// Index of the environment in the run.
        env: usize,
        /// The step within the episode, counted from 1; 0 is the reset.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// An environment left a number of an observation unwritten.
    #[error(
        "{world}: observation[{i}] of environment {env} is unwritten, expected {width} numbers (step {step} of the episode with seed {seed})"
    )]
    Unwritten {
        /// Name of the environment.
        world: String,
        /// Index of the first number that was not written.
        i: usize,
        /// Index of the environment in the run.
        env: usize,
        /// Length of the observation.
        width: usize,
        /// The step within the episode, counted from 1; 0 is the reset.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// The code of an environment panicked.
    #[error("{world}: panicked at step {step} of episode {episode} (environment {env}, seed {seed}): {message}")]
    Panicked {
        /// Name of the environment.
        world: String,
        /// Index of the environment in the run.
        env: usize,
        /// Number of the environment's episode, counted from 1.
        episode: u64,
        /// The step within the episode, counted from 1; 0 is the reset.
        step: u32,
        /// The seed of the episode.
        seed: u64,
        /// The message of the panic.
        message: String,
    },
    /// An episode did not end within the largest number of steps, see [`EnvSpec::longest_episode`](crate::EnvSpec::longest_episode).
    #[error(
        "{world}: episode {episode} has not ended after {step} steps (environment {env}, seed {seed}); give the environment a terminal state or a time limit"
    )]
    Endless {
        /// Name of the environment.
        world: String,
        /// Index of the environment in the run.
        env: usize,
        /// Number of the environment's episode, counted from 1.
        episode: u64,
        /// Steps of the episode so far.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// An environment cannot be made, or its spaces are not valid.
    #[error("{world}: {problem}")]
    Made {
        /// Name of the environment.
        world: String,
        /// The problem.
        problem: String,
    },
    /// The action mask of a running episode marks no action.
    #[error(
        "{world}: action mask of environment {env}: expected at least one action, got none (step {step} of the episode with seed {seed})"
    )]
    Mask {
        /// Name of the environment.
        world: String,
        /// Index of the environment in the run.
        env: usize,
        /// The step within the episode, counted from 1; 0 is the reset.
        step: u32,
        /// The seed of the episode.
        seed: u64,
    },
    /// A finished environment was stepped although autoreset is [`Autoreset::Disabled`](crate::Autoreset::Disabled).
    #[error("environment {env} is finished and autoreset is disabled: expected a reset, got a step")]
    Finished {
        /// Index of the environment in the run.
        env: usize,
    },
    /// A transition table, or the input that it is built from, is not valid.
    #[error("tabular world: {0}")]
    Table(String),
    /// A text, a text task, or one of its rules is not valid.
    #[error("text: {0}")]
    Text(String),
    /// A saved state, or a state in which an episode is to begin, is not valid.
    #[error("state of the environment: {0}")]
    State(String),
}
