//! The command line as a part of other programs.

use std::process::ExitCode;

use gradus_agents::AgentConfig;
use gradus_agents::registry as agents;
use gradus_envs::{Env, World, registry};

use crate::{Error, commands, program};

/// Returns the command line of the program `gradus`. A program with environments and agents of its own adds them:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// use gradus::envs::bandits::Bandit;
///
/// fn main() -> ExitCode {
///     gradus::app().world("casino", || Bandit::gaussian(20, 7)).run()
/// }
/// ```
///
/// `cargo run -- train ppo casino` then trains on the new environment, and so do all other commands, such as `eval`, `play`, `compare` and `list`.
pub fn app() -> App {
    App { added: Ok(()) }
}

/// A command line, see [`app`].
#[must_use = "the command line does nothing until `run` is called"]
#[derive(Debug)]
pub struct App {
    /// The first error of an environment or agent that was added; `run` reports it.
    added: Result<(), Error>,
}

impl App {
    /// Adds an environment. `make` returns a new copy, with any time limit. See [`with_world`](App::with_world) for one with a Gymnasium
    /// name, a threshold or a description.
    pub fn world<E: Env + 'static>(self, name: &str, make: impl Fn() -> E + Clone + Send + Sync + 'static) -> Self {
        self.with_world(World::new(name, make))
    }

    /// Adds an environment.
    pub fn with_world(mut self, world: World) -> Self {
        self.added = self.added.and_then(|()| Ok(registry::register(world)?));
        self
    }

    /// Adds the agent with settings of type `C`, which name the agent and its presets.
    pub fn agent<C: AgentConfig>(mut self) -> Self {
        self.added = self.added.and_then(|()| Ok(agents::register::<C>()?));
        self
    }

    /// Runs the command that the arguments of the process name. Returns the exit code: 0, 1 if a check failed, or 2 after an error, which is one line
    /// on standard error.
    pub fn run(self) -> ExitCode {
        program::take_name();
        commands::main(self.added)
    }
}
