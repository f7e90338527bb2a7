//! The registry of agents.
//!
//! One line in `AGENTS` adds an agent. It names the type of the agent's settings, which implements [`AgentConfig`]. `gradus list` and the
//! help on settings then show the agent, and it can have presets, train, resume and take part in comparisons. Other crates add their
//! agents with [`register`].

use std::any::Any;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use gradus_envs::{World, names};
use gradus_nets::{NetworkConfig, QActorCritic, QActorHead, QHead, QNetwork, Settings, Visit};
use serde::de::{self, DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use crate::{Agent, Algorithm, ConfigError, OptimiserConfig, ReferenceConfig};

/// The agents of this crate, in the order of `gradus list`.
const AGENTS: &[Entry] = &[
    Entry::of::<crate::ReinforceConfig>(),
    Entry::of::<crate::A2cConfig>(),
    Entry::of::<crate::A3cConfig>(),
    Entry::of::<crate::TrpoConfig>(),
    Entry::of::<crate::PpoConfig>(),
    Entry::of::<crate::GrpoConfig>(),
    Entry::of::<crate::DpoConfig>(),
    Entry::of::<crate::DqnConfig>(),
    Entry::of::<crate::QrDqnConfig>(),
    Entry::of::<crate::PqnConfig>(),
    Entry::of::<crate::DdpgConfig>(),
    Entry::of::<crate::Td3Config>(),
    Entry::of::<crate::SacConfig>(),
    Entry::of::<crate::tabular::QLearningConfig>(),
    Entry::of::<crate::tabular::DoubleQLearningConfig>(),
    Entry::of::<crate::tabular::SarsaConfig>(),
    Entry::of::<crate::tabular::ExpectedSarsaConfig>(),
    Entry::of::<crate::tabular::NStepSarsaConfig>(),
    Entry::of::<crate::tabular::SarsaLambdaConfig>(),
    Entry::of::<crate::tabular::MonteCarloConfig>(),
    Entry::of::<crate::tabular::OffPolicyMonteCarloConfig>(),
    Entry::of::<crate::tabular::DynaQConfig>(),
    Entry::of::<crate::tabular::PrioritisedSweepingConfig>(),
    Entry::of::<crate::tabular::TileSarsaConfig>(),
    Entry::of::<crate::tabular::ValueIterationConfig>(),
    Entry::of::<crate::tabular::PolicyIterationConfig>(),
    Entry::of::<crate::tabular::PolicyEvaluationConfig>(),
    Entry::of::<crate::tabular::MonteCarloPredictionConfig>(),
    Entry::of::<crate::tabular::TdLambdaConfig>(),
    Entry::of::<crate::tabular::NStepTdConfig>(),
];

/// The agents of other crates.
static ADDED: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

/// The presets of other crates and of files.
static ADDED_PRESETS: RwLock<Vec<Preset>> = RwLock::new(Vec::new());

/// The settings of an agent, from which the agent is built.
///
/// Declare the struct with [`settings!`](gradus_nets::settings), which gives each field its help and its default, and derive `Clone`,
/// `Debug` and `PartialEq`. TOML must be able to hold every value, so no integer may exceed `i64::MAX`.
pub trait AgentConfig: Settings + Default + Clone + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// Name of the agent and of its section in the configuration: lowercase letters, digits and hyphens.
    const NAME: &'static str;
    /// Description, in one line.
    const ABOUT: &'static str;
    /// Presets of the agent.
    const PRESETS: &'static [Preset] = &[];

    /// Settings that are the path of a file or folder which the agent reads, or empty.
    const FILES: &'static [&'static str] = &[];

    /// Settings of which the meaning of the policy's parameters depends, although their shapes do not tell it.
    const MEANINGS: &'static [&'static str] = &[];

    /// Whether the agent has another behaviour than the configured actor-critic network: whether [`build`](AgentConfig::build) returns
    /// something else than [`Built::OnPolicy`].
    const IS_WHOLE: bool = false;

    /// Builds the agent. Returns an error that names the setting that is out of range.
    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError>;

    /// Returns gamma, and the lambda of the GAE advantages that `gradus sample` and `gradus inspect` show for this agent.
    fn discounts(&self) -> (f32, f32) {
        (1.0, 0.95)
    }

    /// Returns the quantities that follow a schedule and their values after `done` of `steps` environment steps: epsilon, a clip range. When a
    /// run is resumed with another number of steps, they jump, and `gradus train` says so. `epsilon` is that of the next step, any other quantity that of the next update. The
    /// learning rate is not among them.
    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        let _ = (steps, done);
        Vec::new()
    }
}

/// Makes an algorithm that learns with the given network of action values.
pub type MakeOfValues = Box<dyn FnOnce(Box<dyn QNetwork>) -> Box<dyn Algorithm>>;

/// Makes an algorithm that learns with the given actor and critics.
pub type MakeOfActorCritics = Box<dyn FnOnce(Box<dyn QActorCritic>) -> Box<dyn Algorithm>>;

/// The result of building an agent.
pub enum Built {
    /// An update rule for the actor-critic network described by the configuration.
    OnPolicy(Box<dyn Agent>),
    /// An algorithm that learns with a network of action values. The engine builds the network, and `make` the algorithm.
    Values {
        /// The network's outputs.
        head: QHead,
        /// For an algorithm with a replay buffer, the decisions that it can keep, and whether they have priorities.
        replay: Option<(usize, bool)>,
        /// Makes the algorithm.
        make: MakeOfValues,
    },
    /// An algorithm that learns with an actor of continuous actions and critics Q(s, a). The engine builds the network, and `make` the
    /// algorithm.
    ActorCritics {
        /// The network's parts.
        head: QActorHead,
        /// For an algorithm with a replay buffer, the decisions that it can keep, and whether they have priorities.
        replay: Option<(usize, bool)>,
        /// Makes the algorithm.
        make: MakeOfActorCritics,
    },
    /// An algorithm with a custom behaviour.
    Whole(Box<dyn Algorithm>),
}

impl<A: Agent + 'static> From<A> for Built {
    fn from(agent: A) -> Self {
        Built::OnPolicy(Box::new(agent))
    }
}

/// The parts of the configuration that an agent may depend on.
pub struct Setup<'a> {
    /// The environment as the agent sees it, wrappers included.
    pub world: &'a World,
    /// Number of environments in lockstep.
    pub envs: usize,
    /// Seed of the run.
    pub seed: u64,
    /// Environment steps of the training.
    pub steps: u64,
    /// Settings of the optimiser.
    pub optimiser: &'a OptimiserConfig,
    /// Settings of the frozen reference policy.
    pub reference: &'a ReferenceConfig,
    /// The multilayer perceptrons of actor and critic; `None` if the network is a transformer.
    pub perceptron: Option<&'a NetworkConfig>,
    /// Whether rewards come from a reward model that scores whole texts.
    pub scores_whole_texts: bool,
    /// The pairs of completions in the file that the agent's setting names; empty if it names none.
    pub pairs: &'a [crate::dpo::Pair],
}

/// Settings of an agent for one environment.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name of the agent.
    pub agent: &'static str,
    /// Name of the environment, or a name for all environments that have no preset of this name: `text` for the text tasks, `any` for the
    /// others.
    pub environment: &'static str,
    /// Name of the preset. `default` is used if the user names no preset.
    pub name: &'static str,
    /// The settings, in TOML; the comment at the top gives their source.
    pub text: &'static str,
}

impl Preset {
    /// Returns the comment at the top of the settings, as one line.
    pub fn about(&self) -> String {
        let lines: Vec<&str> = self.text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        lines.join(" ")
    }
}

/// The presets of an agent of this crate, from the files `presets/ENVIRONMENT-AGENT-NAME.toml`. Arguments: the agent, then
/// each environment with its preset names.
macro_rules! preset_files {
    ($agent:tt: $($environment:literal $($name:literal)+);+ $(;)?) => {
        &[$($($crate::registry::preset_files!(@one $agent $environment $name)),+),+]
    };
    (@one $agent:literal $environment:literal $name:literal) => {
        $crate::registry::Preset {
            agent: $agent,
            environment: $environment,
            name: $name,
            text: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/presets/", $environment, "-", $agent, "-", $name, ".toml")),
        }
    };
}
pub(crate) use preset_files;

/// A registered agent.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name, such as `ppo`.
    pub name: &'static str,
    /// Description, in one line.
    pub about: &'static str,
    /// Presets of the agent.
    pub presets: &'static [Preset],
    /// Whether the agent has another behaviour than the configured actor-critic network.
    pub is_whole: bool,
    /// Settings that are paths, see [`AgentConfig::FILES`].
    pub files: &'static [&'static str],
    /// Settings that say what parameters mean, see [`AgentConfig::MEANINGS`].
    pub meanings: &'static [&'static str],
    /// Names of the settings, each with its help text.
    pub help: &'static [(&'static str, &'static str)],
    defaults: fn() -> Box<dyn AnyConfig>,
    parse: fn(Table) -> Result<Box<dyn AnyConfig>, toml::de::Error>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entry").field(&self.name).finish()
    }
}

impl Entry {
    /// Returns the entry of the agent with settings of type `C`.
    pub const fn of<C: AgentConfig>() -> Self {
        Self {
            name: C::NAME,
            about: C::ABOUT,
            presets: C::PRESETS,
            is_whole: C::IS_WHOLE,
            files: C::FILES,
            meanings: C::MEANINGS,
            help: C::HELP,
            defaults: || Box::new(C::default()),
            parse: |table| Ok(Box::new(read::<C>(table)?)),
        }
    }

    /// Returns the default settings.
    pub fn defaults(&self) -> AgentSettings {
        AgentSettings { name: self.name, config: (self.defaults)() }
    }

    /// Reads the settings from a table that must contain all of them.
    pub fn parse(&self, table: Table) -> Result<AgentSettings, toml::de::Error> {
        Ok(AgentSettings { name: self.name, config: (self.parse)(table)? })
    }
}

/// An agent name that cannot be registered or is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// No agent has this name.
    #[error("unknown agent `{name}`; {hint}")]
    Unknown {
        /// The unknown name.
        name: String,
        /// A similar name, or all known names.
        hint: String,
    },
    /// The name is taken, or is [not allowed](is_name).
    #[error("agent `{0}`: expected an unused name of lowercase letters, digits and hyphens that is not a configuration key")]
    Name(String),
    /// The agent has a preset of this name for this environment.
    #[error("preset `{name}` of {agent} on {environment}: expected an unused name")]
    Preset {
        /// Name of the preset.
        name: String,
        /// Name of the agent.
        agent: String,
        /// Name of the environment.
        environment: String,
    },
}

/// The configuration keys other than the sections of agents.
const KEYS: [&str; 22] = [
    "agent",
    "device",
    "earlier_steps",
    "environment",
    "envs",
    "evaluate_episodes",
    "evaluate_every",
    "format",
    "init",
    "inputs",
    "max_concurrent",
    "network",
    "optimiser",
    "reference",
    "reward_model",
    "seed",
    "steps",
    "stop_at",
    "text",
    "torch",
    "transformer",
    "wrappers",
];

/// Whether an agent may be called `name`. The name becomes a key of the configuration, so it must not equal another key.
pub fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !name.is_empty() && name.chars().all(is_plain) && !KEYS.contains(&name)
}

/// Registers an agent of another crate until the process ends.
pub fn register<C: AgentConfig>() -> Result<(), RegistryError> {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if !is_name(C::NAME) || AGENTS.iter().chain(&*added).any(|entry| entry.name == C::NAME) {
        return Err(RegistryError::Name(C::NAME.into()));
    }
    added.push(Entry::of::<C>());
    Ok(())
}

/// Returns all agents, those of this crate first.
pub fn all() -> Vec<Entry> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    AGENTS.iter().chain(&*added).copied().collect()
}

/// Whether the agent called `name` was [registered](register) by another crate.
pub fn is_registered(name: &str) -> bool {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).iter().any(|entry| entry.name == name)
}

/// Registers a preset until the process ends, for example one that was read from a file.
pub fn register_preset(preset: Preset) -> Result<(), RegistryError> {
    let Preset { agent, environment, name, .. } = preset;
    if presets().iter().any(|other| (other.agent, other.environment, other.name) == (agent, environment, name)) {
        return Err(RegistryError::Preset { name: name.into(), agent: agent.into(), environment: environment.into() });
    }
    ADDED_PRESETS.write().unwrap_or_else(PoisonError::into_inner).push(preset);
    Ok(())
}

/// Returns the presets of all agents, then those that were [registered](register_preset).
pub fn presets() -> Vec<Preset> {
    let added = ADDED_PRESETS.read().unwrap_or_else(PoisonError::into_inner);
    all().iter().flat_map(|entry| entry.presets).chain(&*added).copied().collect()
}

/// Returns the agent called `name`.
pub fn find(name: &str) -> Result<Entry, RegistryError> {
    let all = all();
    let known: Vec<&str> = all.iter().map(|entry| entry.name).collect();
    let wanted = names::spelled(name);
    let variant = || VARIANTS.iter().find(|(names, _)| names.contains(&wanted.as_str())).map(|(_, typed)| format!("type {typed}"));
    let unknown = || RegistryError::Unknown { name: name.into(), hint: variant().unwrap_or_else(|| names::hint(name, &known)) };
    let is_typed = |entry: &&Entry| names::spelled(entry.name) == wanted;
    all.iter().find(|entry| entry.name == name).or_else(|| all.iter().find(is_typed)).copied().ok_or_else(unknown)
}

/// Names that people give to settings of an agent, and what to type instead.
const VARIANTS: [(&[&str], &str); 7] = [
    (&["td", "td0", "td(0)", "tdlearning"], "td-lambda --set td-lambda.lambda=0"),
    (&["vpg", "pg", "policygradient"], "reinforce"),
    (&["ddqn", "doubledqn"], "dqn --set dqn.double=true"),
    (&["duelingdqn", "duellingdqn"], "dqn --set dqn.dueling=true"),
    (&["per", "prioritiseddqn", "prioritizeddqn"], "dqn --set dqn.priority_exponent=0.6"),
    (&["rloo"], "reinforce --preset rloo, on a text task"),
    (&["dynaq+", "dynaqplus"], "dyna-q --set dyna-q.kappa=0.001"),
];

/// The object-safe part of [`AgentConfig`].
trait AnyConfig: Any + fmt::Debug + Send + Sync {
    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError>;
    fn discounts(&self) -> (f32, f32);
    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)>;
    fn to_table(&self) -> Table;
    fn boxed(&self) -> Box<dyn AnyConfig>;
}

impl<C: AgentConfig> AnyConfig for C {
    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError> {
        AgentConfig::build(self, setup)
    }

    fn discounts(&self) -> (f32, f32) {
        AgentConfig::discounts(self)
    }

    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        AgentConfig::scheduled(self, steps, done)
    }

    fn to_table(&self) -> Table {
        let mut table = Written(Table::new());
        self.clone().visit(&mut table);
        table.0
    }

    fn boxed(&self) -> Box<dyn AnyConfig> {
        Box::new(self.clone())
    }
}

/// Reads settings from a table that contains nothing else. Settings that are missing have their defaults, because older versions did not
/// have them.
fn read<C: AgentConfig>(table: Table) -> Result<C, toml::de::Error> {
    let (mut config, mut fields) = (C::default(), Read { table, problem: None });
    config.visit(&mut fields);
    let unknown = || fields.table.keys().next().map(|name| toml::de::Error::custom(format_args!("unknown field `{name}`")));
    fields.problem.or_else(unknown).map_or(Ok(config), Err)
}

/// Sets every field to its value in a table.
struct Read {
    /// The values of the fields that were not visited yet.
    table: Table,
    problem: Option<toml::de::Error>,
}

impl Visit for Read {
    #[inline(never)]
    fn field<T: Serialize + DeserializeOwned>(&mut self, name: &'static str, value: &mut T) {
        let Some(given) = self.table.remove(name) else { return };
        match given.try_into() {
            Ok(given) => *value = given,
            Err(problem) => self.problem = self.problem.take().or(Some(problem)),
        }
    }
}

/// Writes every field into a table.
struct Written(Table);

impl Visit for Written {
    #[inline(never)]
    fn field<T: Serialize + DeserializeOwned>(&mut self, name: &'static str, value: &mut T) {
        self.0.insert(name.into(), Value::try_from(value).expect("TOML can hold every setting"));
    }
}

/// The settings of any agent.
///
/// ```
/// use gradus_agents::{AgentSettings, PpoConfig, registry};
///
/// let mut settings = registry::find("ppo")?.defaults();
/// settings.get_mut::<PpoConfig>().unwrap().clip = 0.1;
/// assert_eq!(settings, AgentSettings::from(PpoConfig { clip: 0.1, ..PpoConfig::default() }));
/// # Ok::<(), registry::RegistryError>(())
/// ```
#[derive(Debug)]
pub struct AgentSettings {
    name: &'static str,
    config: Box<dyn AnyConfig>,
}

impl AgentSettings {
    /// Returns the name of the agent.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the settings if they have type `C`.
    pub fn get<C: AgentConfig>(&self) -> Option<&C> {
        (&*self.config as &dyn Any).downcast_ref()
    }

    /// Returns the settings mutably if they have type `C`.
    pub fn get_mut<C: AgentConfig>(&mut self) -> Option<&mut C> {
        (&mut *self.config as &mut dyn Any).downcast_mut()
    }

    /// Builds the agent. Returns an error that names the setting that is out of range.
    pub fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError> {
        self.config.build(setup)
    }

    /// Returns gamma and lambda (see [`AgentConfig::discounts`]).
    pub fn discounts(&self) -> (f32, f32) {
        self.config.discounts()
    }

    /// Returns the quantities that follow a schedule (see [`AgentConfig::scheduled`]).
    pub fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        self.config.scheduled(steps, done)
    }

    /// Returns the settings as a TOML table, without the section's name.
    pub fn to_table(&self) -> Table {
        self.config.to_table()
    }
}

impl<C: AgentConfig> From<C> for AgentSettings {
    fn from(config: C) -> Self {
        Self { name: C::NAME, config: Box::new(config) }
    }
}

impl Clone for AgentSettings {
    fn clone(&self) -> Self {
        Self { name: self.name, config: self.config.boxed() }
    }
}

impl PartialEq for AgentSettings {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.to_table() == other.to_table()
    }
}

/// Serialises the settings as a section under the agent's name.
impl Serialize for AgentSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.name, self.to_table())])
    }
}

/// Deserialises the first section that has the name of an agent.
impl<'de> Deserialize<'de> for AgentSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sections = Table::deserialize(deserializer)?;
        let of_agent = |(name, section): (String, Value)| Some((find(&name).ok()?, section));
        match sections.into_iter().find_map(of_agent) {
            Some((entry, Value::Table(section))) => entry.parse(section).map_err(|error| de::Error::custom(error.message())),
            Some((entry, other)) => Err(de::Error::custom(format!("{}: expected a section, got {other}", entry.name))),
            None => Err(de::Error::custom("expected the section of an agent, got none")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `dqn` has settings of its own and shared ones.
    #[test]
    fn a_table_may_lack_settings_but_has_no_other() {
        let dqn = find("dqn").unwrap();
        let with = |change: &dyn Fn(&mut Table)| {
            let mut table = dqn.defaults().to_table();
            change(&mut table);
            dqn.parse(table).map_err(|error| error.message().to_string())
        };
        let eight = with(&|table| _ = table.insert("batch_size".into(), Value::Integer(8))).unwrap();
        assert_eq!(eight.get::<crate::DqnConfig>().unwrap().learner.off_policy.batch_size, 8);
        assert!(with(&|table| _ = table.remove("batch_size")).unwrap() == dqn.defaults(), "of an older version");
        assert_eq!(with(&|table| _ = table.insert("clip".into(), Value::Float(0.1))).unwrap_err(), "unknown field `clip`");
        let mistyped = with(&|table| _ = table.insert("double".into(), Value::Float(0.1))).unwrap_err();
        assert_eq!(mistyped, "invalid type: floating point `0.1`, expected a boolean");
    }
}
