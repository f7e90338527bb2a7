//! Reads what a training has left: a run folder's settings and policy, for those who act, evaluate or begin with it.

use std::fs;
use std::path::{Path, PathBuf};

use gradus_envs::World;
use gradus_envs::text::Vocabulary;
use gradus_nets::tensors::{self, Tensors, TensorsError};
use gradus_nets::{Behaviour, Device, Policy};

use crate::act::normaliser::Normaliser;
use crate::config::Network;
use crate::files::read;
use crate::{Config, Error};

/// The settings of a run, in its folder.
pub(crate) const CONFIG: &str = "config.toml";
/// Its latest checkpoint.
pub(crate) const STATE: &str = "state.safetensors";
/// The policy that came of it.
pub(crate) const POLICY: &str = "policy.safetensors";
/// The rankings that a reward model was trained on, beside it.
pub(crate) const RANKINGS_FILE: &str = "rankings.safetensors";
/// What the names of the policy's parameters begin with in a checkpoint.
pub(crate) const POLICY_PREFIX: &str = "policy.";
/// What the names of the reward model's tensors begin with there.
pub(crate) const REWARD_PREFIX: &str = "reward_model.";

pub(crate) fn read_config(dir: &Path) -> Result<Config, Error> {
    let path = dir.join(CONFIG);
    if !path.exists() {
        return Err(Error::folder(dir, format!("expected a run folder, got none: {CONFIG} is missing")));
    }
    let text = fs::read_to_string(&path).map_err(Error::io("read", &path))?;
    Config::from_toml(&text).map_err(|problem| Error::folder(&path, problem))
}

/// A run's settings, its world as the policy sees it, and the policy: the trained one, or that of the last checkpoint where the training
/// is not over.
///
/// It computes on our own engine, whatever it was trained on: one policy at work needs no GPU.
pub fn load_behaviour(dir: impl AsRef<Path>) -> Result<(Config, World, Box<dyn Behaviour>), Error> {
    load_behaviour_on(dir, Device::Cpu)
}

/// As [`load_behaviour`], on another device.
pub fn load_behaviour_on(dir: impl AsRef<Path>, device: Device) -> Result<(Config, World, Box<dyn Behaviour>), Error> {
    let dir = dir.as_ref();
    let config = read_config(dir)?;
    let world = config.world()?;
    let on_device = Config { device, ..config.clone() };
    // a network is made of its settings alone: the others may be such that nothing could be trained with them here
    let mut behaviour: Box<dyn Behaviour> = match config.is_whole() {
        true => on_device.algorithm(&world)?.into_behaviour(),
        false => on_device.policy(&world)?,
    };
    let world = load(dir, &config, world, behaviour.as_mut())?;
    Ok((config, world, behaviour))
}

/// As [`load_behaviour`], the policy being an actor-critic network.
pub fn load_policy(dir: impl AsRef<Path>) -> Result<(Config, World, Box<dyn Policy>), Error> {
    let dir = dir.as_ref();
    let config = read_config(dir)?;
    let world = config.world()?;
    if config.is_whole() {
        return Err(Error::folder(dir, format!("expected a run with an actor-critic network, got one of {}", config.agent)));
    }
    let mut policy = Config { device: Device::Cpu, ..config.clone() }.policy(&world)?;
    let world = load(dir, &config, world, policy.as_mut())?;
    Ok((config, world, policy))
}

/// Loads what the folder of a run has into `behaviour`; returns the world as it sees it.
fn load(dir: &Path, config: &Config, world: World, behaviour: &mut dyn Behaviour) -> Result<World, Error> {
    let normaliser = || Normaliser::new(&config.wrappers, config.envs, behaviour.observation_width());
    let mut frozen = normaliser();
    let trained = dir.join(POLICY).exists();
    let path = dir.join(if trained { POLICY } else { STATE });
    let damaged = |source| Error::Tensors { path: path.clone(), source };
    let (tensors, note) = tensors::decode(&read(&path)?).map_err(damaged)?;
    check_note(&path, &note, config)?;
    let mut tensors = if trained { tensors } else { policy_of(&tensors, normaliser()).map_err(damaged)? };
    frozen.load_observations(&mut tensors).map_err(damaged)?;
    behaviour.load(&tensors).map_err(damaged)?;
    Ok(frozen.frozen(&world))
}

/// The file that holds the policy of a run folder; a file stands for itself.
pub(crate) fn policy_path(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    let names = [POLICY, STATE].map(|name| path.join(name));
    let missing = || Error::folder(path, format!("expected a run folder, got none: {POLICY} is missing"));
    names.into_iter().find(|path| path.exists()).ok_or_else(missing)
}

/// The parameters of a policy that others begin with, and what is known of observations: from a run folder, or from a file such as its
/// `policy.safetensors`. First comes the file, last the settings that it was made with, empty where they are not known.
pub(crate) fn policy_file(path: &Path) -> Result<(PathBuf, Tensors, String), Error> {
    let path = policy_path(path)?;
    let (mut tensors, note) = tensors::decode(&read(&path)?).map_err(|source| Error::Tensors { path: path.clone(), source })?;
    if !path.ends_with(STATE) {
        return Ok((path, tensors, note));
    }
    let mut parameters = without_prefix(&tensors, POLICY_PREFIX);
    parameters.extend(Normaliser::take_observations(&mut tensors));
    Ok((path, parameters, note))
}

/// The rankings in the folder of the reward model at `path`, which is that folder or a file in it: the file and its tensors; nothing where the
/// folder has none.
pub(crate) fn rankings_file(path: &Path) -> Result<Option<(PathBuf, Tensors)>, Error> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let file = folder.join(RANKINGS_FILE);
    if !file.exists() {
        return Ok(None);
    }
    let (tensors, note) = tensors::decode(&read(&file)?).map_err(|source| Error::Tensors { path: file.clone(), source })?;
    check_note(&file, &note, &read_config(folder)?)?;
    Ok(Some((file, tensors)))
}

/// Whether the file at `path`, which carries the settings it was made with, belongs to these. Files of others carry none.
pub(crate) fn check_note(path: &Path, note: &str, config: &Config) -> Result<(), Error> {
    if note.is_empty() {
        return Ok(());
    }
    let key = match Config::from_toml(note) {
        Ok(made_with) if made_with == *config => return Ok(()),
        Ok(made_with) => config.first_difference(&made_with).map_or_else(String::new, |key| format!(": {key} differs")),
        Err(problem) => format!(": {problem}"),
    };
    Err(Error::folder(path, format!("belongs to other settings than {CONFIG} beside it{key}")))
}

pub(crate) fn without_prefix(tensors: &Tensors, prefix: &str) -> Tensors {
    tensors.iter().filter_map(|(name, tensor)| Some((name.strip_prefix(prefix)?.into(), tensor.clone()))).collect()
}

/// What [`Trainer::export`](crate::Trainer::export) would say, in what [`Trainer::save`](crate::Trainer::save) saved.
pub(crate) fn policy_of(state: &Tensors, mut normaliser: Normaliser) -> Result<Tensors, TensorsError> {
    normaliser.load(state)?;
    let mut tensors = without_prefix(state, POLICY_PREFIX);
    tensors.extend(normaliser.save_observations());
    Ok(tensors)
}

/// Takes over the parameters that the setting `init` names, if it names some. Returns what is known of observations.
pub(crate) fn initial(config: &Config, world: &World, policy: &mut dyn Behaviour) -> Result<Option<Tensors>, Error> {
    if config.init.is_empty() {
        return Ok(None);
    }
    begin_as(Path::new(&config.init), (world, &config.network), policy).map(Some)
}

/// Takes over the parameters at `path`, a run folder or a file. Returns what is known of observations.
pub(crate) fn begin_as(path: &Path, (world, network): (&World, &Network), policy: &mut dyn Behaviour) -> Result<Tensors, Error> {
    let (path, mut tensors, note) = policy_file(path)?;
    check_vocabulary(&path, &note, world)?;
    check_heads(&path, &note, network)?;
    let statistics = Normaliser::take_observations(&mut tensors);
    policy.load(&tensors).map_err(|source| Error::Tensors { path, source })?;
    Ok(statistics)
}

/// The policy that a training with this configuration begins with.
pub(crate) fn first_policy(config: &Config, world: &World) -> Result<Box<dyn Policy>, Error> {
    let mut policy = config.policy(world)?;
    initial(config, world, policy.as_mut())?;
    Ok(policy)
}

/// That the transformer at `path`, made with the settings in `note`, has as many heads as this one: its tensors' shapes do not tell.
fn check_heads(path: &Path, note: &str, network: &Network) -> Result<(), Error> {
    match (Config::from_toml(note).map(|config| config.network), network) {
        (Ok(Network::Transformer(theirs)), Network::Transformer(ours)) if theirs.heads != ours.heads => {
            let problem = format!("expected a policy with transformer.heads = {}, got one with {}", ours.heads, theirs.heads);
            Err(Error::folder(path, problem))
        }
        _ => Ok(()),
    }
}

/// That the policy at `path`, made with the settings in `note`, writes what `world` reads, as far as that is known.
pub(crate) fn check_vocabulary(path: &Path, note: &str, world: &World) -> Result<(), Error> {
    let made_in = Config::from_toml(note).ok().and_then(|config| gradus_envs::registry::find(&config.environment).ok());
    let vocabulary = |world: &World| world.text.as_ref().map(|text| text.task.vocabulary().clone());
    match (made_in.as_ref().and_then(vocabulary), vocabulary(world)) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            let show = |vocabulary: &Vocabulary| (0..vocabulary.eos()).map(|token| vocabulary.symbol(token)).collect::<Vec<_>>().join(" ");
            let problem =
                format!("expected a policy with the vocabulary of {}, {}, got one with {}", world.name, show(&ours), show(&theirs));
            Err(Error::folder(path, problem))
        }
        _ => Ok(()),
    }
}
