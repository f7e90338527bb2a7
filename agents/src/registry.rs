//! The registry of agents.
//!
//! One line in `AGENTS` adds an agent. It names the type of the agent's settings, which implements [`AgentConfig`]. `gradus list` and the
//! help on settings then show the agent, and it can have presets, train, resume and take part in comparisons. Other crates add their
//! agents with [`register`].

use std::sync::{PoisonError, RwLock};

use gradus_base::names;
use serde::{Deserialize, Deserializer, de};
use toml::{Table, Value};

use crate::config::{AgentConfig, Preset};
use crate::settings::AgentSettings;
pub use crate::settings::Entry;
use crate::{actor_critic, policy_gradient, preferences, q_learning, tabular};

/// The agents of this crate, in the order of `gradus list`.
const AGENTS: &[Entry] = &[
    Entry::of::<policy_gradient::ReinforceConfig>(),
    Entry::of::<policy_gradient::A2cConfig>(),
    Entry::of::<policy_gradient::A3cConfig>(),
    Entry::of::<policy_gradient::TrpoConfig>(),
    Entry::of::<policy_gradient::PpoConfig>(),
    Entry::of::<policy_gradient::GrpoConfig>(),
    Entry::of::<preferences::DpoConfig>(),
    Entry::of::<q_learning::DqnConfig>(),
    Entry::of::<q_learning::MunchausenDqnConfig>(),
    Entry::of::<q_learning::QrDqnConfig>(),
    Entry::of::<q_learning::PqnConfig>(),
    Entry::of::<actor_critic::DdpgConfig>(),
    Entry::of::<actor_critic::Td3Config>(),
    Entry::of::<actor_critic::SacConfig>(),
    Entry::of::<tabular::QLearningConfig>(),
    Entry::of::<tabular::DoubleQLearningConfig>(),
    Entry::of::<tabular::SarsaConfig>(),
    Entry::of::<tabular::ExpectedSarsaConfig>(),
    Entry::of::<tabular::NStepSarsaConfig>(),
    Entry::of::<tabular::SarsaLambdaConfig>(),
    Entry::of::<tabular::MonteCarloConfig>(),
    Entry::of::<tabular::OffPolicyMonteCarloConfig>(),
    Entry::of::<tabular::DynaQConfig>(),
    Entry::of::<tabular::PrioritisedSweepingConfig>(),
    Entry::of::<tabular::TileSarsaConfig>(),
    Entry::of::<tabular::ValueIterationConfig>(),
    Entry::of::<tabular::PolicyIterationConfig>(),
    Entry::of::<tabular::PolicyEvaluationConfig>(),
    Entry::of::<tabular::MonteCarloPredictionConfig>(),
    Entry::of::<tabular::TdLambdaConfig>(),
    Entry::of::<tabular::NStepTdConfig>(),
];

/// The settings of the agent of a configuration that names none.
impl Default for AgentSettings {
    fn default() -> Self {
        policy_gradient::PpoConfig::default().into()
    }
}

/// The agents of other crates.
static ADDED: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

/// The presets of other crates and of files.
static ADDED_PRESETS: RwLock<Vec<Preset>> = RwLock::new(Vec::new());

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
