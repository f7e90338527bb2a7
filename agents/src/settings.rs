//! The settings of any agent, and the entry of an agent in the registry.

use std::any::Any;
use std::fmt;

use gradus_base::Visit;
use gradus_base::range::Range;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Serialize, Serializer};
use toml::{Table, Value};

use crate::config::{Advantages, AgentConfig, AgentKind, Preset, Setup, Work};
use crate::error::ConfigError;

/// A registered agent.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Name, such as `ppo`.
    pub name: &'static str,
    /// Description, in one line.
    pub about: &'static str,
    /// Presets of the agent.
    pub presets: &'static [Preset],
    /// Whether the agent learns with the configured actor-critic network.
    pub has_actor_critic: bool,
    /// Settings that are paths, see [`AgentConfig::FILES`].
    pub files: &'static [&'static str],
    /// Setting that is the path of a file of pairs, see [`AgentConfig::PAIRS`].
    pub pairs: Option<&'static str>,
    /// Settings that say what parameters mean, see [`AgentConfig::MEANINGS`].
    pub meanings: &'static [&'static str],
    /// Names of the settings, each with its help text.
    pub help: &'static [(&'static str, &'static str)],
    /// Names of the settings that accept only some numbers, each with these.
    pub ranges: &'static [(&'static str, Range)],
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
            has_actor_critic: C::HAS_ACTOR_CRITIC,
            files: C::FILES,
            pairs: C::PAIRS,
            meanings: C::MEANINGS,
            help: C::HELP,
            ranges: C::RANGES,
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

/// The object-safe part of [`AgentConfig`].
trait AnyConfig: Any + fmt::Debug + Send + Sync {
    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError>;
    fn discounts(&self) -> (f32, f32);
    fn advantages(&self) -> Advantages;
    fn work(&self, envs: usize) -> Option<Work>;
    fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)>;
    fn to_table(&self) -> Table;
    fn boxed(&self) -> Box<dyn AnyConfig>;
}

impl<C: AgentConfig> AnyConfig for C {
    fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.check_ranges(C::NAME)?;
        AgentConfig::build(self, setup)
    }

    fn discounts(&self) -> (f32, f32) {
        AgentConfig::discounts(self)
    }

    fn advantages(&self) -> Advantages {
        AgentConfig::advantages(self)
    }

    fn work(&self, envs: usize) -> Option<Work> {
        AgentConfig::work(self, envs)
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
    pub fn build(&self, setup: &Setup<'_>) -> Result<AgentKind, ConfigError> {
        self.config.build(setup)
    }

    /// Returns gamma and lambda (see [`AgentConfig::discounts`]).
    pub fn discounts(&self) -> (f32, f32) {
        self.config.discounts()
    }

    /// Returns which advantages `gradus sample` shows (see [`AgentConfig::advantages`]).
    pub fn advantages(&self) -> Advantages {
        self.config.advantages()
    }

    /// Returns what the updates compute (see [`AgentConfig::work`]).
    pub fn work(&self, envs: usize) -> Option<Work> {
        self.config.work(envs)
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
