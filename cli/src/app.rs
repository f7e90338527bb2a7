//! The command line as a part of other programs.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gradus::Error;
use gradus::agents::AgentConfig;
use gradus::agents::registry as agents;
use gradus::config::register_presets;
use gradus::envs::{Env, EnvSpec, registry};

use crate::{command, output};

/// Returns the command line of the program `gradus`. A program with environments and agents of its own adds them:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use gradus::envs::bandits::Bandit;
///
/// fn main() -> ExitCode {
///     gradus_cli::app().world("casino", || Bandit::gaussian(20, 7)).run()
/// }
/// ```
///
/// `cargo run -- train ppo casino` then trains on the new environment, and so do all other commands, such as `eval`, `play`, `compare` and `list`.
pub fn app() -> App {
    App { added: Ok(()), presets: Vec::new() }
}

/// A command line, see [`app`].
#[must_use = "the command line does nothing until `run` is called"]
#[derive(Debug)]
pub struct App {
    /// The first error of an environment or agent that was added; `run` reports it.
    added: Result<(), Error>,
    presets: Vec<PathBuf>,
}

impl App {
    /// Adds an environment. `make` returns a new copy, with any time limit. See [`with_world`](App::with_world) for one with a Gymnasium
    /// name, a threshold or a description.
    pub fn world<E: Env + 'static>(self, name: &str, make: impl Fn() -> E + Clone + Send + Sync + 'static) -> Self {
        self.with_world(EnvSpec::new(name, make))
    }

    /// Adds an environment.
    pub fn with_world(mut self, world: EnvSpec) -> Self {
        self.added = self.added.and_then(|()| Ok(registry::register(world)?));
        self
    }

    /// Adds the agent with settings of type `C`, which name the agent and its presets.
    pub fn agent<C: AgentConfig>(mut self) -> Self {
        self.added = self.added.and_then(|()| Ok(agents::register::<C>()?));
        self
    }

    /// Adds the presets in the files `DIR/AGENT/ENVIRONMENT/NAME.toml`, which have settings like a file for `--config`. ENVIRONMENT may be `text`
    /// for all text tasks but those of a pretrained model, which are `chat`, `continuous` for environments of Gymnasium with continuous actions, `atari` for its Atari games, or `any` for all others. The preset `default` is used without `--preset`. The folder is read by [`run`](App::run); a
    /// relative path begins in the current folder. A wrong preset is an error of the commands that read presets, and a warning of the others; so is a missing
    /// folder a warning, because a program may run where its source is not.
    ///
    /// ```no_run
    /// gradus_cli::app().presets(concat!(env!("CARGO_MANIFEST_DIR"), "/presets")).run();
    /// ```
    pub fn presets(mut self, dir: impl Into<PathBuf>) -> Self {
        self.presets.push(dir.into());
        self
    }

    /// Runs the command that the arguments of the process name. Returns the exit code: 0, 1 if a check failed, or 2 after an error, which is one line
    /// on standard error.
    pub fn run(self) -> ExitCode {
        ExitCode::from(self.run_with(std::env::args_os()))
    }

    /// As [`run`](App::run), with these arguments, of which the first is the name of the program.
    pub fn run_with(self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> u8 {
        let arguments: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
        gradus::take_program_name(arguments.first().map_or(OsStr::new(""), |name| name));
        let presets = self.added.as_ref().map_or(Ok(()), |()| self.presets.iter().try_for_each(|dir| presets_of(dir)));
        command::main(&arguments, self.added, presets)
    }
}

fn presets_of(dir: &Path) -> Result<(), Error> {
    if !dir.exists() {
        output::warn(&format!("{}: expected a folder of presets, got none", dir.display()));
        return Ok(());
    }
    register_presets(dir)
}
