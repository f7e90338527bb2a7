//! The configuration of a run, from presets, files and single settings.

mod changes;
pub mod effect;
#[doc(hidden)] // for comparisons
pub mod inputs;
pub(crate) mod language;
mod making;
mod names;
mod network;
mod presets;
mod reward;
pub mod settings;
pub mod spaces;
mod text;

use gradus_agents::{AgentSettings, OptimiserConfig, Preset, ReferenceConfig, registry as agents};
use gradus_base::range::at_least;
use gradus_base::settings;
use gradus_envs::{EnvSpec, registry};
use gradus_nets::{Device, TorchConfig};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Error;
use crate::files::format;
pub use changes::parse_steps;
pub use gradus_rollouts::{Atari, WrapperConfig};
use inputs::Inputs;
pub use network::Network;
pub(crate) use network::{is_text, of_text};
pub use presets::register_presets;
pub use reward::{Labelling, MOST_COMPLETIONS, RewardConfig, StepLabels};
pub use text::TextConfig;

/// Maximum number of environments, of episodes per evaluation, and of reward-model problems per training.
pub const MOST: usize = 1 << 24;

settings! {
    /// The configuration of a run: all settings that affect its results.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    pub struct Config {
        /// Name of the agent.
        pub agent: String = "ppo".into(),
        /// Name of the environment.
        pub environment: String = "cartpole".into(),
        /// Total environment steps, rounded up to whole rollouts; on text tasks, generated tokens.
        pub steps: u64 = 100_000 => at_least(1),
        /// Earlier values of `steps`, with the step until which each was the plan; empty if the plan has not changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub earlier_steps: Vec<EarlierSteps> = Vec::new(),
        /// Random seed.
        pub seed: u64 = 1,
        /// Number of environments in lockstep.
        pub envs: usize = 8 => at_least(1).up_to(MOST as u64),
        /// Text tasks: number of environments that act at once, at least one per thread; 0: all. Affects only time and memory.
        pub max_concurrent: usize = 0 => at_least(0).up_to(MOST as u64),
        /// Device: cpu (the built-in engine), or torch-cpu, cuda, cuda:N or mps (libtorch).
        #[serde(default)]
        pub device: Device = Device::Cpu,
        /// Initial parameters: a run folder, or a file such as its policy.safetensors; empty: random, from the seed.
        pub init: String = String::new(),
        /// Hashes of the contents of the files that the run reads from outside, by the setting that names each; written when a run is created.
        #[serde(default, skip_serializing_if = "Inputs::is_empty")]
        pub inputs: Inputs = Inputs::new(),
        /// Approximate number of steps between greedy evaluations; 0: no evaluations.
        pub evaluate_every: u64 = 0,
        /// Episodes per evaluation; on text tasks, problems of the validation split (all of them if there are fewer).
        pub evaluate_episodes: usize = 20 => at_least(1).up_to(MOST as u64),
        /// Stop training when an evaluation reaches this mean return; `inf`: train for all steps.
        pub stop_at: f64 = f64::INFINITY,
        /// Network of actor and critic.
        #[serde(flatten)]
        pub network: Network = Network::default(),
        /// Optimiser.
        pub optimiser: OptimiserConfig = OptimiserConfig::default(),
        /// Settings of libtorch, for every device except cpu.
        #[serde(default)]
        pub torch: TorchConfig = TorchConfig::default(),
        /// Reference policy: a frozen policy. PPO, GRPO and REINFORCE can penalise the divergence from it.
        pub reference: ReferenceConfig = ReferenceConfig::default(),
        /// Environment wrappers.
        pub wrappers: WrapperConfig = WrapperConfig::default(),
        /// Length and penalties of completions, on text tasks only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub text: Option<TextConfig> = None,
        /// Reward model, on text tasks only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub reward_model: Option<RewardConfig> = None,
        /// Settings of the agent, in the section named after it.
        #[serde(flatten)]
        pub algorithm: AgentSettings = AgentSettings::default(),
    }
}

/// A number of steps that a training was planned for before the plan changed. Schedules, such as that of the learning rate, depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EarlierSteps {
    /// The planned number of steps.
    pub steps: u64,
    /// The step at which the plan changed.
    pub until: u64,
}

impl Config {
    /// Returns the default settings, with the sections that apply to `world`.
    fn for_world(world: &EnvSpec) -> Self {
        let (text, reward_model) = match is_text(world) {
            true => (Some(TextConfig::of(world)), Some(RewardConfig::default())),
            false => (None, None),
        };
        Config { network: Network::of(world), text, reward_model, ..Config::default() }
    }

    /// Returns the preset `name` of `agent` on `environment` (the Gradus or the Gymnasium name). Without a name, returns the preset
    /// `default`, or the default settings if there is no such preset. The presets of `text` fit every text task but those of a pretrained model, which has those of `chat`, those of `continuous` the
    /// environments of Gymnasium with continuous actions, those of `atari` its Atari games, those of `any` every environment but texts; an environment's own preset of the same name replaces them. The name `any` stands for the default of an environment without presets of its own.
    ///
    /// ```
    /// let config = gradus::Config::preset("ppo", "CartPole-v1", Some("cleanrl"))?;
    /// assert_eq!((config.steps, config.envs, config.optimiser.learning_rate), (500_000, 4, 2.5e-4));
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn preset(agent: &str, environment: &str, name: Option<&str>) -> Result<Self, Error> {
        // an unknown agent is reported before an unknown environment
        let entry = agents::find(agent)?;
        Self::preset_in(entry.name, &registry::find(environment)?, name)
    }

    /// As [`preset`](Config::preset), in an environment that the caller has.
    pub fn preset_in(agent: &str, world: &EnvSpec, name: Option<&str>) -> Result<Self, Error> {
        let entry = agents::find(agent)?;
        let others = Config::for_world(world);
        let (agent, environment) = (entry.name, world.name.clone());
        let all = agents::presets();
        let of = |environment: &str| {
            all.iter().filter(|preset| (preset.agent, preset.environment) == (agent, environment)).collect::<Vec<&Preset>>()
        };
        let own = of(&spaces::preset_environment(&environment));
        let common: Vec<&Preset> = spaces::kinds(world).iter().flat_map(|kind| of(kind)).collect();
        let wanted = name.unwrap_or("default");
        let config = Config { agent: agent.into(), environment, algorithm: entry.defaults(), ..others };
        // the one that an environment without presets has
        if let Some(preset) = common.iter().find(|preset| wanted == "any" && preset.name == "default") {
            return config.with_preset(preset);
        }
        let common = common.into_iter().filter(|preset| own.iter().all(|other| other.name != preset.name));
        let presets: Vec<&Preset> = own.iter().copied().chain(common).collect();
        match presets.iter().find(|preset| preset.name == wanted) {
            Some(preset) => config.with_preset(preset).map(|config| spaces::adapted(config, world)),
            None if name.is_none() => Ok(spaces::adapted(config, world)),
            None => {
                let known: Vec<&str> = presets.iter().map(|preset| preset.name).collect();
                let none = || format!("{agent} has no presets for {}", config.environment);
                let hint = if known.is_empty() { none() } else { gradus_base::names::hint(wanted, &known) };
                Err(Error::Unknown { what: "preset", name: wanted.into(), hint })
            }
        }
    }

    /// Returns the agent and the environment as a name for files; of an environment from a file, the name of the file without its folder and extension.
    pub fn short_name(&self) -> String {
        inputs::short_name(&format!("{}-{}", self.agent, self.environment))
    }

    fn to_table(&self) -> Table {
        let mut table = Table::try_from(self).expect("every setting can be written as TOML");
        shorten(&mut table);
        table
    }

    /// Returns these settings with another number of steps, for a training that has done `done` steps.
    pub(crate) fn replanned(self, steps: u64, done: u64) -> Self {
        let now = EarlierSteps { steps: self.plan(done).steps, until: done };
        let earlier = self.earlier_steps.iter().filter(|earlier| earlier.until <= done).cloned().chain([now]).collect();
        Self { steps, earlier_steps: earlier, ..self }
    }

    /// Returns the plan of a training that has done `done` steps: the number of steps that its schedules follow, and until when.
    pub(crate) fn plan(&self, done: u64) -> EarlierSteps {
        let last = EarlierSteps { steps: self.steps, until: u64::MAX };
        self.earlier_steps.iter().find(|earlier| done < earlier.until).cloned().unwrap_or(last)
    }

    /// Whether these settings are `earlier` after one or more changes of the number of steps.
    pub(crate) fn continues(&self, earlier: &Config) -> bool {
        let plans = |config: &Config| {
            let last = EarlierSteps { steps: config.steps, until: u64::MAX };
            config.earlier_steps.iter().cloned().chain([last]).collect::<Vec<_>>()
        };
        let changed = plans(self).into_iter().zip(plans(earlier)).find(|(ours, theirs)| ours != theirs);
        changed.is_some_and(|(ours, theirs)| ours.steps == theirs.steps && ours.until < theirs.until)
            && Config { steps: earlier.steps, earlier_steps: earlier.earlier_steps.clone(), ..self.clone() } == *earlier
    }

    /// Returns the key of the first setting that differs from `other`.
    pub(crate) fn first_difference(&self, other: &Config) -> Option<String> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        flatten("", &self.to_table(), &mut ours);
        flatten("", &other.to_table(), &mut theirs);
        // one of them may have keys that the other lacks
        let lacks = |other: &[(String, Value)], own: &(String, Value)| !other.contains(own);
        ours.iter().find(|own| lacks(&theirs, own)).or_else(|| theirs.iter().find(|own| lacks(&ours, own))).map(|(key, _)| key.clone())
    }

    /// Returns the key and value of every setting, as in the configuration file.
    ///
    /// # Panics
    /// If `seed`, `steps` or `evaluate_every` is above 2^63 - 1, which TOML cannot write. Other methods return an error.
    pub fn settings(&self) -> Vec<(String, String)> {
        let mut settings = Vec::new();
        flatten("", &self.to_table(), &mut settings);
        settings.into_iter().map(|(key, value)| (key, value.to_string())).collect()
    }

    /// Returns the whole configuration as TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(&self.to_table()).expect("a table is TOML")
    }

    /// Returns the whole configuration as TOML with its format number, for the file in a run folder.
    pub(crate) fn to_file(&self) -> String {
        format!("format = {}\n{}", format::RUN, self.to_toml())
    }

    /// Parses the configuration of a run. Unknown settings are errors. Settings that older versions did not have may be missing.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let in_one_line = |error: toml::de::Error| error.message().replace('\n', " ");
        let mut table: Table = text.parse().map_err(|error| in_file(text, &error))?;
        format::settings(&mut table)?;
        if let Some(Value::String(agent)) = table.get("agent") {
            agents::find(agent).map_err(|_| format!("{UNKNOWN_AGENT} `{agent}`; only a program that has this agent can read the run"))?;
        }
        let config: Self = table.clone().try_into().map_err(in_one_line)?;
        // reject unknown settings
        let (mut known, mut given) = (Vec::new(), Vec::new());
        flatten("", &config.to_table(), &mut known);
        flatten("", &table, &mut given);
        match given.iter().find(|(key, _)| !known.iter().any(|(name, _)| name == key)) {
            Some((key, _)) => Err(format!("unknown field `{key}`")),
            None if config.algorithm.name() == config.agent => Ok(config),
            None => Err(format!("agent: expected the section [{0}], which is missing, for agent = \"{0}\"", config.agent)),
        }
    }
}

/// The beginning of the error for a run whose agent this program does not have.
pub(crate) const UNKNOWN_AGENT: &str = "unknown agent";

/// Writes f32 values with the fewest digits that identify them: 0.2 instead of 0.20000000298023224.
fn shorten(table: &mut Table) {
    for (_, value) in table.iter_mut() {
        match value {
            Value::Table(inner) => shorten(inner),
            Value::Float(x) if f64::from(*x as f32) == *x => *x = (*x as f32).to_string().parse().unwrap_or(*x),
            _ => {}
        }
    }
}

/// Returns the TOML parser's error in one line, with the line of the text that it is about.
fn in_file(text: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    match error.span() {
        Some(span) => {
            let start = span.start.min(text.len());
            let line = text[..start].matches('\n').count();
            format!("{message} in line {} (`{}`)", line + 1, text.lines().nth(line).unwrap_or_default().trim())
        }
        None => message,
    }
}

/// Collects all settings of a table, with dotted keys.
fn flatten(prefix: &str, table: &Table, settings: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => flatten(&format!("{prefix}{key}."), inner, settings),
            value => settings.push((format!("{prefix}{key}"), value.clone())),
        }
    }
}
