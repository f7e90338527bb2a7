//! What can go wrong in a run: each message is one line that names the thing, what was expected and what was got.

use std::path::{Path, PathBuf};

use gradus_agents::registry::RegistryError;
use gradus_agents::{AgentError, ConfigError};
use gradus_envs::EnvError;
use gradus_nets::tensors::TensorsError;
use gradus_nets::{Behaviour, NetworkError};

use crate::draw::animation::AnimationError;
use crate::evaluate::trace::TraceError;
use crate::figure::FigureError;

/// An error of training, of a run folder or of a command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An environment failed, or there is none of that name.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A setting is out of range.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The network cannot be made.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// An update failed.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// There is no agent of that name, or there is one already.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
    /// An animation cannot be written.
    #[error(transparent)]
    Animation(#[from] AnimationError),
    /// A recording cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A name that nothing has: preset or key.
    #[error("unknown {what} `{name}`; {hint}")]
    Unknown {
        /// What kind of thing was looked for.
        what: &'static str,
        /// The name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The policy's device failed.
    #[error("{0}")]
    Device(String),
    /// Text that cannot be read as what it should be.
    #[error("{what}: expected {expected}, got {got}")]
    Parse {
        /// What was read.
        what: String,
        /// What it should have been.
        expected: String,
        /// What it was.
        got: String,
    },
    /// A file of tensors that is damaged or belongs to something else.
    #[error("{}: {source}", path.display())]
    Tensors {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: TensorsError,
    },
    /// A run folder, or a file in it, is not what it should be.
    #[error("{}: {problem}", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
}

impl Error {
    /// For `map_err`: the system refused to do `action` to `path`.
    pub(crate) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> Self + use<'a> {
        move |source| Error::Io { action, path: path.into(), source }
    }

    /// Whether the policy's device has done what it was asked for so far.
    pub(crate) fn unless_sound(policy: &dyn Behaviour) -> Result<(), Self> {
        policy.fault().map_or(Ok(()), |problem| Err(Error::Device(problem)))
    }

    pub(crate) fn folder(path: &Path, problem: impl Into<String>) -> Self {
        Error::Folder { path: path.into(), problem: problem.into() }
    }
}
