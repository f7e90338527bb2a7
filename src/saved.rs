//! Reads the configuration and the policy of a run folder, to act, to evaluate or to initialise another training.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use gradus_agents::groups::Supervision;
use gradus_agents::registry as agents;
use gradus_base::tensors::{self, Tensors, TensorsError, without_prefix};
use gradus_envs::EnvSpec;
use gradus_envs::text::{TextWorld, Vocabulary, rewards};
use gradus_nets::{Behaviour, Device, Policy};
use gradus_rollouts::Normaliser;

use crate::config::inputs::MODEL;
use crate::config::{TextConfig, language, of_text};
use crate::files::folder::no_run;
pub(crate) use crate::files::folder::{BEST, POLICY, STATE, policy_path};
pub use crate::files::folder::{COMPARISON, CONFIG, EXAMPLES_FILE, POLICIES, SWEEP, TUNING};
use crate::files::{exists, read, read_named, read_to_string};
use crate::run::gym;
use crate::{Config, Error, memory};

/// Prefix of the policy's parameters in a checkpoint.
pub(crate) const POLICY_PREFIX: &str = "policy.";
/// Prefix of the reward model's tensors in a checkpoint.
pub(crate) const REWARD_PREFIX: &str = "reward_model.";

/// Returns the configuration of a run folder.
pub fn read_config(dir: &Path) -> Result<Config, Error> {
    let path = dir.join(CONFIG);
    if !exists(&path)? {
        return Err(no_run(dir, CONFIG));
    }
    let text = read_to_string(&path)?;
    settings(&path, &text)
}

/// Parses the settings `text` in the file `path`, with the paths that are found from the current folder.
fn settings(path: &Path, text: &str) -> Result<Config, Error> {
    let config = Config::from_toml(text).map_err(|problem| Error::folder(path, problem))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    gym::recall(folder, &config.environment);
    config.found_from(folder)
}

/// Reads a tensor file of a folder, and the note in it. The error for a damaged file says what can still be done.
pub(crate) fn read_tensors(path: &Path) -> Result<(Tensors, String), Error> {
    decode(path, read(path)?)
}

/// Decodes the contents of the tensor file at `path`. The error for a damaged file says what can still be done.
fn decode(path: &Path, bytes: Vec<u8>) -> Result<(Tensors, String), Error> {
    let (name, folder) = (path.file_name().unwrap_or_default(), path.parent().unwrap_or(Path::new("")));
    let is_intact = |other: &str| read(&folder.join(other)).is_ok_and(|bytes| tensors::decode(&bytes).is_ok());
    tensors::decode(&bytes).map_err(|source| {
        if !matches!(source, TensorsError::Damaged | TensorsError::Format(_)) {
            return Error::Tensors { path: path.into(), source };
        }
        let (gradus, dir) = (crate::program_name(), folder.display());
        let advice = if name == STATE && is_intact(POLICY) {
            format!("{POLICY} is intact: evaluate it with `{gradus} eval {dir}`, or start a new run from it with `--set init={dir}`")
        } else if name == POLICY && is_intact(STATE) {
            format!("`{gradus} train --resume {dir}` writes it again from the checkpoint")
        } else if [STATE, POLICY, BEST, EXAMPLES_FILE].iter().any(|own| name == *own) {
            format!("it cannot be used; {CONFIG} has the settings to make it again")
        } else {
            "it cannot be used".into()
        };
        Error::folder(path, format!("{source}; {advice}"))
    })
}

/// Loads a run's configuration, environment and policy. The observations of the environment are normalised by frozen statistics if the run
/// normalises observations. The policy of an unfinished run is that of the last checkpoint.
///
/// The policy computes on the built-in CPU engine even if it was trained on another device, because acting with one policy needs no GPU.
pub fn load_behaviour(dir: impl AsRef<Path>) -> Result<(Config, EnvSpec, Box<dyn Behaviour>), Error> {
    load_behaviour_on(dir, Device::Cpu)
}

/// Same as [`load_behaviour`], on `device`.
pub fn load_behaviour_on(dir: impl AsRef<Path>, device: Device) -> Result<(Config, EnvSpec, Box<dyn Behaviour>), Error> {
    let saved = Saved::read(dir.as_ref(), None)?;
    let mut behaviour = saved.behaviour(device)?;
    let (config, world, normaliser) = saved.load(behaviour.as_mut())?;
    Ok((config, normaliser.frozen(&world), behaviour))
}

/// Loads the policy of the run folder `path`, or of a policy file in a run folder. Without `world`, its environment is the registered one.
pub(crate) fn load(path: &Path, world: Option<EnvSpec>) -> Result<crate::Policy, Error> {
    let saved = Saved::read(path, world)?;
    let mut behaviour = saved.behaviour(Device::Cpu)?;
    let (config, world, normaliser) = saved.load(behaviour.as_mut())?;
    Ok(crate::Policy::new(config, world, behaviour, &normaliser))
}

/// Same as [`load_behaviour`], but returns an error if the run has no actor-critic network.
pub fn load_policy(dir: impl AsRef<Path>) -> Result<(Config, EnvSpec, Box<dyn Policy>), Error> {
    let dir = dir.as_ref();
    let saved = Saved::read(dir, None)?;
    if !saved.config.has_actor_critic() {
        return Err(Error::folder(dir, format!("expected a run with an actor-critic network, got a run of {}", saved.config.agent)));
    }
    let mut policy = Config { device: Device::Cpu, ..saved.config.clone() }.policy(&saved.world)?;
    let (config, world, normaliser) = saved.load(policy.as_mut())?;
    Ok((config, normaliser.frozen(&world), policy))
}

/// Returns the policy at the beginning of the training of the run folder `dir`; `None` if it began with parameters that are gone or others now.
pub fn load_first_policy(dir: impl AsRef<Path>) -> Result<Option<Box<dyn Policy>>, Error> {
    let saved = Saved::read(dir.as_ref(), None)?;
    let config = Config { device: Device::Cpu, ..saved.config };
    if config.recorded_inputs().iter().any(|(path, _, problem)| problem.is_some() && *path == Path::new(&config.init)) {
        return Ok(None);
    }
    first_policy(&config, &saved.world).map(Some)
}

/// Loads the policy of a run of a pretrained model, for texts of at most `context` tokens or as many as the model can read, and its text task.
pub(crate) fn load_talking(dir: &Path, context: usize) -> Result<(TextWorld, Box<dyn Policy>), Error> {
    // nothing is rewarded
    let unrewarded = |config: Config| Config { text: config.text.map(TextConfig::without_rewards), ..config };
    let mut saved = Saved::read_as(dir, unrewarded, None)?;
    let text = of_text("chat", &saved.world)?;
    let language = text.task.vocabulary().language();
    let language = language
        .ok_or_else(|| Error::folder(dir, format!("expected a run of a pretrained model (chat:), got one of {}", saved.world.name)))?;
    let (most, prompt) = (context.min(language.context()), text.longest_prompt());
    if most <= prompt {
        let got = format!("{most}");
        return Err(Error::Parse {
            what: "--context".into(),
            expected: format!("more than the {prompt} tokens of the longest prompt"),
            got,
        });
    }
    let longer = TextConfig { max_new_tokens: most - prompt, overlong_buffer: 0, ..saved.config.text.clone().unwrap_or_default() };
    saved.config = Config { text: Some(longer), device: Device::Cpu, ..saved.config };
    saved.world = world_of(dir, &saved.config)?;
    let mut policy = saved.config.policy(&saved.world)?;
    let world = saved.world.text.clone().expect("a world of text");
    saved.load(policy.as_mut())?;
    Ok((world, policy))
}

/// The policy of a run folder, before a network is built for it.
struct Saved {
    config: Config,
    world: EnvSpec,
    path: PathBuf,
    tensors: Tensors,
}

/// The variable with which reward functions run that came with the folder of a policy.
const TRUST: &str = "GRADUS_TRUST";

/// Leaves out reward functions whose file lies in the folder, as an export has it: to look at a policy of somebody else runs no program of theirs.
fn trusted(dir: &Path, config: Config) -> Config {
    let whole = |path: &Path| fs::canonicalize(path).ok();
    let file = config.text.as_ref().and_then(|text| rewards::path_of(&text.rewards)).and_then(|file| whole(Path::new(file)));
    let is_foreign = file.zip(whole(dir)).is_some_and(|(file, dir)| file.starts_with(dir));
    if !is_foreign || std::env::var_os(TRUST).is_some_and(|value| value == "yes") {
        return config;
    }
    // standard error may be closed
    let text = "warning: rewards are those of the task alone, because the file of `text.rewards` came with the folder; the variable";
    let _ = writeln!(std::io::stderr(), "{text} {TRUST}=yes runs it");
    Config { text: config.text.map(TextConfig::without_rewards), ..config }
}

impl Saved {
    /// Reads the run folder `path`, or a policy file. The settings are those of the folder; outside of a run folder, those in the file.
    /// Checks first that the settings are those that the policy was made
    /// with, because damaged settings can describe a network of any size.
    fn read(path: &Path, world: Option<EnvSpec>) -> Result<Self, Error> {
        Self::read_as(path, |config| config, world)
    }

    /// As [`read`](Saved::read), with the settings that `change` makes of those that were saved.
    fn read_as(path: &Path, change: impl Fn(Config) -> Config, world: Option<EnvSpec>) -> Result<Self, Error> {
        let (dir, path, is_file) = if path.is_file() {
            (path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")), path.to_path_buf(), true)
        } else {
            (path, path.join(if exists(&path.join(POLICY))? { POLICY } else { STATE }), false)
        };
        let is_alone = is_file && !exists(&dir.join(CONFIG))?;
        if is_file && path.extension().is_none_or(|ending| ending != "safetensors") {
            return Err(Error::folder(&path, "expected a run folder or a policy file (.safetensors), got neither"));
        }
        let config = if is_alone { None } else { Some(read_config(dir)?) };
        let (tensors, note) = read_tensors(&path)?;
        let config = match config {
            Some(config) => config,
            None if note.is_empty() => {
                let expected = "a run folder, or a policy with its settings";
                let problem = format!("expected {expected}, got a file without settings and without a {CONFIG} next to it");
                return Err(Error::folder(&path, problem));
            }
            None => settings(&path, &note)?,
        };
        check_note(&path, &note, &config)?;
        let config = trusted(dir, change(config));
        // adapters of another model would be taken for its own
        config.check_inputs(|key| key == MODEL)?;
        let world = match world {
            Some(world) => config.wrap(world)?,
            None => world_of(dir, &config)?,
        };
        Ok(Self { config, world, path, tensors })
    }

    /// Builds the network on `device`.
    fn behaviour(&self, device: Device) -> Result<Box<dyn Behaviour>, Error> {
        let on_device = Config { device, ..self.config.clone() };
        // the settings of an agent may be invalid on this machine, so the agent is built only if it brings its own behaviour
        Ok(match self.config.has_actor_critic() {
            true => on_device.policy(&self.world)?,
            false => on_device.algorithm(&self.world)?.into_behaviour(),
        })
    }

    /// Loads the parameters into `behaviour`. Returns the configuration, the environment, and the saved statistics of its observations.
    fn load(self, behaviour: &mut dyn Behaviour) -> Result<(Config, EnvSpec, Normaliser), Error> {
        let Self { config, world, path, tensors } = self;
        let normaliser = || Normaliser::new(&config.wrappers, config.envs, behaviour.observation_width());
        let mut frozen = normaliser();
        let damaged = |source| Error::Tensors { path: path.clone(), source };
        let mut tensors = if path.ends_with(STATE) { policy_of(&tensors, normaliser()).map_err(damaged)? } else { tensors };
        frozen.load_observations(&mut tensors).map_err(damaged)?;
        behaviour.load(&tensors).map_err(damaged)?;
        Ok((config, world, frozen))
    }
}

/// Returns the environment of the run folder `dir`.
pub(crate) fn world_of(dir: &Path, config: &Config) -> Result<EnvSpec, Error> {
    trusted(dir, config.clone()).world().map_err(|error| Error::folder(&dir.join(CONFIG), error.to_string()))
}

/// Reads the initial parameters of a policy and its observation statistics, from a run folder or a file such as `policy.safetensors`.
/// Returns the file's path, its tensors, and the settings in the file (empty if it has none).
pub(crate) fn policy_file(path: &Path) -> Result<(PathBuf, Tensors, String), Error> {
    let is_named = !path.is_dir();
    let path = policy_path(path)?;
    let (mut tensors, note) = decode(&path, if is_named { read_named(&path)? } else { read(&path)? })?;
    if !path.ends_with(STATE) {
        return Ok((path, tensors, note));
    }
    let mut parameters = without_prefix(&tensors, POLICY_PREFIX);
    parameters.extend(Normaliser::take_observations(&mut tensors));
    Ok((path, parameters, note))
}

/// Reads what a reward model was trained on. `path` is the model's folder or a file in that folder. Returns the file and its tensors, or
/// `None` if the folder has none.
pub(crate) fn examples_file(path: &Path) -> Result<Option<(PathBuf, Tensors)>, Error> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let file = folder.join(EXAMPLES_FILE);
    if !exists(&file)? {
        return Ok(None);
    }
    let (tensors, note) = read_tensors(&file)?;
    check_note(&file, &note, &read_config(folder)?)?;
    Ok(Some((file, tensors)))
}

/// Checks that the reward model at `path` is of this kind.
pub(crate) fn check_reward_model(path: &Path, supervision: Supervision) -> Result<(), Error> {
    let folder = path;
    let (path, _, note) = policy_file(folder)?;
    if folder.join(CONFIG).is_file() {
        check_note(&path, &note, &read_config(folder)?)?;
    }
    let theirs = match Config::from_toml(&note) {
        Ok(config) if !note.is_empty() => config.reward_model.unwrap_or_default().supervision,
        _ => return Ok(()),
    };
    let name = |kind: Supervision| if kind == Supervision::Process { "process" } else { "outcome" };
    let problem = || format!("expected a reward model with reward_model.supervision = {}, got {}", name(supervision), name(theirs));
    if theirs == supervision { Ok(()) } else { Err(Error::folder(&path, problem())) }
}

/// Checks that the file at `path` was made with the settings `config`, or with those from before a change of the number of steps. `note` has the settings stored in the file. It is empty for files
/// that Gradus did not write.
pub(crate) fn check_note(path: &Path, note: &str, config: &Config) -> Result<(), Error> {
    if note.is_empty() {
        return Ok(());
    }
    let key = match settings(path, note) {
        Ok(made_with) if made_with == *config || config.continues(&made_with) => return Ok(()),
        // an input may have been moved
        Ok(made_with)
            if made_with.inputs == config.inputs && !config.inputs.is_empty() && {
                let (ours, theirs) = (config.by_contents()?, made_with.by_contents()?);
                ours == theirs || ours.continues(&theirs)
            } =>
        {
            return Ok(());
        }
        Ok(made_with) => config.first_difference(&made_with).map_or_else(String::new, |key| format!(": {key} differs")),
        Err(problem) => format!(": {problem}"),
    };
    Err(Error::folder(path, format!("made with other settings than {CONFIG} in the same folder{key}")))
}

/// Converts a checkpoint of [`Trainer::save`](crate::Trainer::save) to the tensors of [`Trainer::export`](crate::Trainer::export).
pub(crate) fn policy_of(state: &Tensors, mut normaliser: Normaliser) -> Result<Tensors, TensorsError> {
    normaliser.load(state)?;
    let mut tensors = without_prefix(state, POLICY_PREFIX);
    tensors.extend(normaliser.save_observations());
    Ok(tensors)
}

/// If the setting `init` names a run folder or a file, loads its parameters into `policy` and returns its observation statistics.
pub(crate) fn initial(config: &Config, world: &EnvSpec, policy: &mut dyn Behaviour) -> Result<Option<Tensors>, Error> {
    if config.init.is_empty() {
        return Ok(None);
    }
    let path = Path::new(&config.init);
    // a pipe would be waited for
    if fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        return Err(Error::folder(path, "init: expected a run folder or a policy file, got a pipe, a socket or a device"));
    }
    let of_wrappers = ["normalise_observations", "frame_stack", "time_aware"].map(|name| format!("wrappers.{name}"));
    let of_agent =
        agents::find(&config.agent).map_or(&[][..], |entry| entry.meanings).iter().map(|name| format!("{}.{name}", config.agent));
    let keys = of_wrappers.into_iter().chain(of_agent).collect::<Vec<_>>();
    begin_as(Path::new(&config.init), Beginner { world, config, keys: &keys }, policy).map(Some)
}

/// What begins with the parameters of another run.
pub(crate) struct Beginner<'a> {
    /// Its environment.
    pub world: &'a EnvSpec,
    /// Its settings.
    pub config: &'a Config,
    /// The settings that must be the same in the other run.
    pub keys: &'a [String],
}

/// Loads the parameters at `path`, a run folder or a file, into `policy`. Returns the observation statistics. Returns an error if the parameters mean something else
/// there: they were made with another vocabulary, or with another value of a setting of the network or of one of the keys.
pub(crate) fn begin_as(
    path: &Path,
    Beginner { world, config: ours, keys }: Beginner<'_>,
    policy: &mut dyn Behaviour,
) -> Result<Tensors, Error> {
    if is_of_peft(path) {
        let tensors = language::adapters(path, ours, policy.save())?;
        return policy.load(&tensors).map(|()| Tensors::new()).map_err(|source| Error::Tensors { path: path.into(), source });
    }
    let (path, mut tensors, note) = policy_file(path)?;
    // the settings of an agent of another program are not known
    let theirs = Some(&note).filter(|note| !note.is_empty()).and_then(|note| settings(&path, note).ok());
    theirs.as_ref().map_or(Ok(()), |theirs| check_vocabulary(&path, theirs, world))?;
    let of_model = |config: &Config| config.inputs.get(MODEL).cloned();
    if let Some((theirs, ours)) = theirs.as_ref().and_then(of_model).zip(of_model(ours)).filter(|(theirs, ours)| theirs != ours) {
        let [theirs, ours] = [theirs, ours].map(|hash| hash.chars().take(16).collect::<String>());
        return Err(Error::folder(
            &path,
            format!("expected a policy of the model with the SHA-256 {ours}..., got one of another ({theirs}...)"),
        ));
    }
    let statistics = Normaliser::take_observations(&mut tensors);
    let loaded = policy.load(&tensors);
    // tensors of another agent are another network, whatever its settings
    if let Some(theirs) = theirs.filter(|theirs| loaded.is_ok() || theirs.agent == ours.agent) {
        let of_network = MEANINGS.map(|(section, name)| format!("{section}.{name}"));
        check_meanings(&path, (&theirs, ours), of_network.iter().chain(keys))?;
    }
    loaded.map_err(|source| Error::Tensors { path, source })?;
    Ok(statistics)
}

/// Whether a folder has adapters in peft's layout, and no policy beside them.
pub(crate) fn is_of_peft(path: &Path) -> bool {
    language::has_adapters(path) && !path.join(POLICY).exists()
}

/// Returns the initial policy of a training with this configuration.
pub(crate) fn first_policy(config: &Config, world: &EnvSpec) -> Result<Box<dyn Policy>, Error> {
    memory::check_network(config, world)?;
    let mut policy = config.policy(world)?;
    initial(config, world, policy.as_mut())?;
    Ok(policy)
}

/// Settings of networks of which the meaning of parameters depends. Their shapes tell most of the others.
const MEANINGS: [(&str, &str); 11] = [
    ("network", "activation"),
    ("network", "cell"),
    ("network", "layer_norm"),
    ("network", "gsde"),
    ("transformer", "heads"),
    ("transformer", "feed_forward"),
    ("transformer", "positions"),
    ("transformer", "lora_alpha"),
    ("transformer", "rotary_base"),
    ("transformer", "rotary_scaling"),
    ("transformer", "norm_epsilon"),
];

/// Returns an error if a setting that both have differs between the settings of the policy at `path`, `theirs`, and `ours`.
fn check_meanings<'a>(path: &Path, (theirs, ours): (&Config, &Config), mut keys: impl Iterator<Item = &'a String>) -> Result<(), Error> {
    let [theirs, ours] = [theirs, ours].map(Config::settings);
    let value = |settings: &[(String, String)], key: &str| settings.iter().find(|(name, _)| name == key).map(|(_, value)| value.clone());
    let different = keys.find_map(|key| {
        let (theirs, ours) = (value(&theirs, key)?, value(&ours, key)?);
        (theirs != ours).then(|| format!("expected a policy with {key} = {ours}, got one with {theirs}"))
    });
    different.map_or(Ok(()), |problem| Err(Error::folder(path, problem)))
}

/// Checks that the policy at `path`, made with the settings `theirs`, has the vocabulary of `world`. Returns no error if their environment is not known, or if
/// `world` has no vocabulary.
pub(crate) fn check_vocabulary(path: &Path, theirs: &Config, world: &EnvSpec) -> Result<(), Error> {
    let made_in = gradus_envs::registry::find(&theirs.environment).ok();
    let vocabulary = |world: &EnvSpec| world.text.as_ref().map(|text| text.task.vocabulary().clone());
    match (made_in.as_ref().and_then(vocabulary), vocabulary(world)) {
        (Some(theirs), Some(ours)) if theirs != ours => {
            let show = |vocabulary: &Vocabulary| match vocabulary.language() {
                Some(language) => language.name(),
                None => (0..vocabulary.eos()).map(|token| vocabulary.symbol(token)).collect::<Vec<_>>().join(" "),
            };
            let problem =
                format!("expected a policy with the vocabulary of {}, {}, got one with {}", world.name, show(&ours), show(&theirs));
            Err(Error::folder(path, problem))
        }
        _ => Ok(()),
    }
}
