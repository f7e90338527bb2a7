//! Agents by name.
//!
//! An agent is on the command line when one line here names its settings, which implement [`AgentConfig`]: `gradus list`, the settings with
//! their help, presets, training, resuming and comparisons follow from that. An agent of another crate adds itself with [`register`].

use std::any::Any;
use std::fmt;
use std::sync::{PoisonError, RwLock};

use gradus_envs::{World, names};
use gradus_nets::{NetworkConfig, Settings};
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use crate::{Agent, Algorithm, ConfigError, OptimiserConfig, ReferenceConfig};

/// The agents of this crate, in the order in which `gradus list` shows them.
const AGENTS: &[Entry] = &[
    Entry::of::<crate::ReinforceConfig>(),
    Entry::of::<crate::A2cConfig>(),
    Entry::of::<crate::TrpoConfig>(),
    Entry::of::<crate::PpoConfig>(),
    Entry::of::<crate::GrpoConfig>(),
];

/// Those of other crates.
static ADDED: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

/// The settings of an agent, which make the agent.
///
/// The struct is declared with [`settings!`](gradus_nets::settings), so that each field has its help and its default, and derives `Clone`,
/// `Debug`, `PartialEq`, `Serialize` and `Deserialize`. Every value must have a place in TOML: no whole number above `i64::MAX`.
pub trait AgentConfig: Settings + Default + Clone + PartialEq + fmt::Debug + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The agent's name, which is also that of its section in the configuration; small letters, digits and hyphens.
    const NAME: &'static str;
    /// What it is, in a line.
    const ABOUT: &'static str;
    /// Settings that are known to work.
    const PRESETS: &'static [Preset] = &[];

    /// Whether [`build`](AgentConfig::build) makes [`Built::Whole`].
    const IS_WHOLE: bool = false;

    /// The agent, or which setting is wrong and what was expected of it.
    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError>;

    /// Gamma, and the lambda with which generalised advantage estimation shows this agent's advantages in `gradus sample` and `inspect`.
    fn discounts(&self) -> (f32, f32) {
        (1.0, 0.95)
    }
}

/// What an agent's settings make.
pub enum Built {
    /// An update rule for the actor-critic network that the configuration describes.
    OnPolicy(Box<dyn Agent>),
    /// An agent that brings what it acts with.
    Whole(Box<dyn Algorithm>),
}

impl<A: Agent + 'static> From<A> for Built {
    fn from(agent: A) -> Self {
        Built::OnPolicy(Box::new(agent))
    }
}

/// The rest of the configuration, as far as agents can depend on it.
pub struct Setup<'a> {
    /// The world as the agent sees it, wrappers included.
    pub world: &'a World,
    /// Environments in lockstep.
    pub envs: usize,
    /// The seed of the run.
    pub seed: u64,
    /// How parameters follow gradients.
    pub optimiser: &'a OptimiserConfig,
    /// The frozen policy that the agent may be held to.
    pub reference: &'a ReferenceConfig,
    /// The multilayer perceptrons of actor and critic; none where the network is a transformer.
    pub perceptron: Option<&'a NetworkConfig>,
    /// Whether rewards are those of a reward model, which scores whole texts.
    pub has_reward_model: bool,
}

/// A set of settings for an agent in a world.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The agent.
    pub agent: &'static str,
    /// The world; `text` is every task of text that has no presets of its own.
    pub environment: &'static str,
    /// Its name; `default` is taken where none is asked for.
    pub name: &'static str,
    /// The settings, in TOML; the comment above them says where they come from.
    pub text: &'static str,
}

impl Preset {
    /// The comment above the settings, in one line.
    pub fn about(&self) -> String {
        let lines: Vec<&str> = self.text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        lines.join(" ")
    }
}

/// The presets of an agent of this crate, from the files `presets/ENVIRONMENT-AGENT-NAME.toml`: the agent, then names by environment.
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

/// An agent as the command line knows it.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Its name, such as `ppo`.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Settings that are known to work.
    pub presets: &'static [Preset],
    /// Whether it brings what it acts with.
    pub is_whole: bool,
    /// Its settings with their documentation.
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
    /// The agent with these settings.
    pub const fn of<C: AgentConfig>() -> Self {
        Self {
            name: C::NAME,
            about: C::ABOUT,
            presets: C::PRESETS,
            is_whole: C::IS_WHOLE,
            help: C::HELP,
            defaults: || Box::new(C::default()),
            parse: |table| Ok(Box::new(table.try_into::<C>()?)),
        }
    }

    /// Its default settings.
    pub fn defaults(&self) -> AgentSettings {
        AgentSettings { name: self.name, config: (self.defaults)() }
    }

    /// Its settings as they stand in a table; all of them must be there.
    pub fn parse(&self, table: Table) -> Result<AgentSettings, toml::de::Error> {
        Ok(AgentSettings { name: self.name, config: (self.parse)(table)? })
    }
}

/// A name that cannot be registered, or is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// There is no agent of this name.
    #[error("unknown agent `{name}`; {hint}")]
    Unknown {
        /// The name.
        name: String,
        /// Names there are.
        hint: String,
    },
    /// There is one of that name already, or it is [no name](is_name) for one.
    #[error("agent `{0}`: expected a name of its own in small letters, digits and hyphens that is no key of the configuration")]
    Name(String),
}

/// What the configuration has beside the section of an agent.
const KEYS: [&str; 20] = [
    "agent",
    "device",
    "environment",
    "envs",
    "evaluate_episodes",
    "evaluate_every",
    "format",
    "init",
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

/// Whether an agent may be called `name`: it becomes a key of the configuration and must not hide another one.
pub fn is_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !name.is_empty() && name.chars().all(is_plain) && !KEYS.contains(&name)
}

/// Adds an agent of another crate, for the rest of the process.
pub fn register<C: AgentConfig>() -> Result<(), RegistryError> {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if !is_name(C::NAME) || AGENTS.iter().chain(&*added).any(|entry| entry.name == C::NAME) {
        return Err(RegistryError::Name(C::NAME.into()));
    }
    added.push(Entry::of::<C>());
    Ok(())
}

/// All agents, those of this crate first.
pub fn all() -> Vec<Entry> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    AGENTS.iter().chain(&*added).copied().collect()
}

/// The presets of all agents.
pub fn presets() -> Vec<Preset> {
    all().iter().flat_map(|entry| entry.presets).copied().collect()
}

/// The agent called `name`.
pub fn find(name: &str) -> Result<Entry, RegistryError> {
    let all = all();
    let known: Vec<&str> = all.iter().map(|entry| entry.name).collect();
    let unknown = || RegistryError::Unknown { name: name.into(), hint: names::hint(name, &known) };
    all.iter().find(|entry| entry.name == name).copied().ok_or_else(unknown)
}

/// What every [`AgentConfig`] can do without its type being known.
trait AnyConfig: Any + fmt::Debug + Send + Sync {
    fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError>;
    fn discounts(&self) -> (f32, f32);
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

    fn to_table(&self) -> Table {
        Table::try_from(self).expect("every setting has a place in TOML")
    }

    fn boxed(&self) -> Box<dyn AnyConfig> {
        Box::new(self.clone())
    }
}

/// The settings of some agent.
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
    /// The agent's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The settings, where they are of this type.
    pub fn get<C: AgentConfig>(&self) -> Option<&C> {
        (&*self.config as &dyn Any).downcast_ref()
    }

    /// The same, to be changed.
    pub fn get_mut<C: AgentConfig>(&mut self) -> Option<&mut C> {
        (&mut *self.config as &mut dyn Any).downcast_mut()
    }

    /// The agent, or which setting is wrong and what was expected of it.
    pub fn build(&self, setup: &Setup<'_>) -> Result<Built, ConfigError> {
        self.config.build(setup)
    }

    /// See [`AgentConfig::discounts`].
    pub fn discounts(&self) -> (f32, f32) {
        self.config.discounts()
    }

    /// As they stand in a configuration, without the section's name.
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

/// As a section under the agent's name.
impl Serialize for AgentSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.name, self.to_table())])
    }
}

/// From the first section that has the name of an agent.
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
