//! The command line as a part of other programs.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use gradus_agents::registry as agents;
use gradus_agents::{AgentConfig, Preset};
use gradus_envs::{Env, EnvSpec, registry};

use crate::config::inputs;
use crate::files::read_named_to_string;
use crate::{Config, Error, commands, program};

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
    /// for all text tasks or `any` for all others. The preset `default` is used without `--preset`. The folder is read by [`run`](App::run); a
    /// relative path begins in the current folder. A wrong preset is an error of the commands that read presets, and a warning of the others; so is a missing
    /// folder a warning, because a program may run where its source is not.
    ///
    /// ```no_run
    /// gradus::app().presets(concat!(env!("CARGO_MANIFEST_DIR"), "/presets")).run();
    /// ```
    pub fn presets(mut self, dir: impl Into<PathBuf>) -> Self {
        self.presets.push(dir.into());
        self
    }

    /// Runs the command that the arguments of the process name. Returns the exit code: 0, 1 if a check failed, or 2 after an error, which is one line
    /// on standard error.
    pub fn run(self) -> ExitCode {
        program::take_name();
        let presets = self.added.as_ref().map_or(Ok(()), |()| self.presets.iter().try_for_each(|dir| read_presets(dir)));
        commands::main(self.added, presets)
    }
}

/// Registers the presets in `dir` and checks them.
fn read_presets(dir: &Path) -> Result<(), Error> {
    if !dir.exists() {
        commands::warn(&format!("{}: expected a folder of presets, got none", dir.display()));
        return Ok(());
    }
    for agent in folders(dir)? {
        agents::find(&name_of(&agent)).map_err(|error| Error::folder(&agent, error.to_string()))?;
        for environment_folder in folders(&agent)? {
            // a preset of several environments is checked in one of them
            let world = match name_of(&environment_folder).as_str() {
                "any" => "cartpole".into(),
                "text" => "addition".into(),
                name => registry::find(name).map_err(|error| Error::folder(&environment_folder, error.to_string()))?.name,
            };
            for file in entries(&environment_folder)?.into_iter().filter(|path| is_preset(path)) {
                let leaked = |text: String| -> &'static str { text.leak() };
                let [agent, environment, name] = [&agent, &environment_folder, &file].map(|path| leaked(name_of(path)));
                let environment = if ["any", "text"].contains(&environment) { environment } else { leaked(world.clone()) };
                // paths in it are relative to its folder
                let text = inputs::resolved(&read_named_to_string(&file)?, &environment_folder);
                agents::register_preset(Preset { agent, environment, name, text: leaked(text) })
                    .map_err(Error::from)
                    .and_then(|()| Config::preset(agent, &world, Some(name)))
                    .map_err(|error| Error::folder(&file, error.to_string()))?;
            }
        }
    }
    Ok(())
}

/// Returns the paths in a folder, in the order of their names.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let all = crate::files::entries(dir).map_err(Error::io("read", dir))?;
    Ok(all.into_iter().map(|entry| entry.path).collect())
}

/// Returns the folders in a folder of presets. A preset there is an error, because it would be ignored.
fn folders(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = entries(dir)?;
    match paths.iter().find(|path| is_preset(path)) {
        Some(path) => Err(Error::folder(path, "expected a preset in AGENT/ENVIRONMENT/NAME.toml")),
        None => Ok(paths.into_iter().filter(|path| path.is_dir()).collect()),
    }
}

fn is_preset(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|extension| extension == "toml")
}

/// Returns the name of a folder, or of a file without its extension.
fn name_of(path: &Path) -> String {
    let name = if path.is_dir() { path.file_name() } else { path.file_stem() };
    name.unwrap_or_default().display().to_string()
}
