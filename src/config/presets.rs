//! Presets in a folder, beside those of the agents.

use std::path::{Path, PathBuf};

use gradus_agents::Preset;
use gradus_agents::registry as agents;
use gradus_envs::{EnvSpec, Space, gym, registry};

use super::{Config, inputs};
use crate::Error;
use crate::files::{self, read_named_to_string};

/// Adds the presets in the files `DIR/AGENT/ENVIRONMENT/NAME.toml` and checks them. ENVIRONMENT may be an environment, an identifier of
/// Gymnasium such as `Hopper-v5`, `text` for all text tasks, `chat` for those of pretrained models, `continuous` for environments of Gymnasium with continuous actions, `atari` for
/// Atari games of Gymnasium, or `any` for all but texts. A relative path in a preset begins in the folder of its file.
pub fn register_presets(dir: &Path) -> Result<(), Error> {
    let mut added = Vec::new();
    for agent in folders(dir)? {
        agents::find(&name_of(&agent)).map_err(|error| Error::folder(&agent, error.to_string()))?;
        for environment_folder in folders(&agent)? {
            // a preset of several environments is checked in one of them
            let of_gymnasium = |name: &str, actions| {
                let observations = Space::Box { low: vec![-1.0], high: vec![1.0] };
                EnvSpec::of_spaces(&format!("{}{name}", gym::PREFIX), observations, actions)
            };
            let world = match name_of(&environment_folder).as_str() {
                "any" => registry::find("cartpole"),
                "text" | "chat" => registry::find("addition"),
                "atari" => Ok(of_gymnasium("atari", Space::Discrete(2))),
                "continuous" => Ok(of_gymnasium("continuous", Space::Box { low: vec![-1.0], high: vec![1.0] })),
                name => registry::find(name).or_else(|error| match is_versioned(name) {
                    true => Ok(of_gymnasium(name, Space::Discrete(2))),
                    false => Err(error),
                }),
            };
            let world = world.map_err(|error| Error::folder(&environment_folder, error.to_string()))?;
            for file in entries(&environment_folder)?.into_iter().filter(|path| is_preset(path)) {
                let leaked = |text: String| -> &'static str { text.leak() };
                let [agent, environment, name] = [&agent, &environment_folder, &file].map(|path| leaked(name_of(path)));
                let is_kind = ["any", "text", "chat", "continuous", "atari"].contains(&environment) || gym::is_gym(&world.name);
                let environment = if is_kind { environment } else { leaked(world.name.clone()) };
                // paths in it are relative to its folder
                let text = inputs::resolved(&read_named_to_string(&file)?, &environment_folder);
                let wrong = |error: String| Error::folder(&file, error);
                agents::register_preset(Preset { agent, environment, name, text: leaked(text) })
                    .map_err(|error| wrong(error.to_string()))?;
                added.push((agent, world.clone(), name, file));
            }
        }
    }
    // at the end, because a preset may inherit from a later one
    for (agent, world, name, file) in added {
        Config::preset_in(agent, &world, Some(name)).map_err(|error| Error::folder(&file, error.to_string()))?;
    }
    Ok(())
}

/// Whether a name ends as Gymnasium's identifiers do: `-v5`.
fn is_versioned(name: &str) -> bool {
    name.rsplit_once("-v").is_some_and(|(_, version)| !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the paths in a folder, in the order of their names.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let all = files::entries(dir).map_err(Error::io("read", dir))?;
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
