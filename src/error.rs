//! The error type of this crate. Each message is one line: it names the setting, argument or file, and states the problem or the expected
//! and the actual value.

use std::path::{Path, PathBuf};

use gradus_agents::registry::RegistryError;
use gradus_agents::{AgentError, ConfigError};
use gradus_base::panics::Panic;
use gradus_base::tensors::TensorsError;
#[cfg(feature = "gif")]
use gradus_drawing::AnimationError;
use gradus_envs::EnvError;
use gradus_nets::{Behaviour, NetworkError};
use gradus_rollouts::InputError;

use crate::evaluate::trace::TraceError;
#[cfg(feature = "figures")]
use crate::figure::FigureError;

/// An error in training, in a run folder or in a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An environment failed, or its name is unknown.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The network cannot be built.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// An update failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The agent's name is unknown, or already registered.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A figure cannot be drawn.
    #[cfg(feature = "figures")]
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// An animation cannot be drawn.
    #[cfg(feature = "gif")]
    #[error("{}: {source}", path.display())]
    Animation {
        /// The file to be written.
        path: PathBuf,
        /// The problem.
        source: AnimationError,
    },
    /// A recording cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The name of a preset, setting or metric is unknown.
    #[error("unknown {what} `{name}`; {hint}")]
    Unknown {
        /// The kind of thing that was looked up.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest valid name, or all valid names.
        hint: String,
    },
    /// Code panicked, and not in an environment or an update, which have errors of their own. The text is the panic's message.
    #[error("panicked: {0}")]
    Panicked(String),
    /// The work was stopped on request before its end; the text says how far it came. See [`Run::stop_when`](crate::Run::stop_when) and
    /// `gradus_compare::Execution::stop`.
    #[error("stopped {0}")]
    Stopped(String),
    /// The policy's device failed.
    #[error("{0}")]
    Device(String),
    /// An input text cannot be parsed.
    #[error("{what}: expected {expected}, got {got}")]
    Parse {
        /// The argument, setting or file that was parsed.
        what: String,
        /// The expected input.
        expected: String,
        /// The actual input.
        got: String,
    },
    /// A tensor file is damaged, or its tensors do not match the run.
    #[error("{}: {source}", path.display())]
    Tensors {
        /// The file.
        path: PathBuf,
        /// The problem.
        source: TensorsError,
    },
    /// A folder or file is not usable.
    #[error("{}: {problem}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action, such as `read`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Error {
    /// Returns a closure for `map_err` that reports a failed `action` on `path`.
    pub fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Self + use<'a> {
        move |source| Error::Io { action, path: path.into(), source }
    }

    /// Returns an error if the policy's device has failed.
    #[doc(hidden)] // for benchmarks
    pub fn unless_sound(policy: &dyn Behaviour) -> Result<(), Self> {
        policy.fault().map_or(Ok(()), |problem| Err(Error::Device(problem)))
    }

    /// Returns an error about what a file or folder contains.
    pub fn folder(path: &Path, problem: impl Into<String>) -> Self {
        Error::Folder { path: path.into(), problem: problem.into() }
    }
}

impl From<InputError> for Error {
    fn from(InputError { what, expected, got }: InputError) -> Self {
        Error::Parse { what, expected, got }
    }
}

impl From<Panic> for Error {
    fn from(panic: Panic) -> Self {
        panic.into_error().map_or_else(|panic| Error::Panicked(panic.message()), Error::Env)
    }
}
