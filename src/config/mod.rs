//! The configuration of a run, from presets, files and single settings.

pub mod effect;
#[doc(hidden)] // for comparisons
pub mod inputs;
mod names;
mod network;
mod presets;
mod reward;
pub mod settings;
mod text;

use gradus_base::range::at_least;
use gradus_base::{Settings, settings};
use std::path::Path;

use gradus_agents::dpo::Pair;
use gradus_agents::{
    Agent, AgentKind, AgentSettings, Algorithm, ConfigError, OnPolicy, OptimiserConfig, Preset, ReferenceConfig, Setup, registry as agents,
};
use gradus_envs::{EnvSpec, Space, registry};
use gradus_nets::{ActionScale, Device, NetworkError, Policy, Precision, TorchConfig};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::Error;
use crate::files::{format, read_named_to_string};
pub use gradus_rollouts::WrapperConfig;
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
    /// `default`, or the default settings if there is no such preset. The presets of `text` fit every text task, those of `any` every other
    /// environment; an environment's own preset of the same name replaces them. The name `any` stands for the default of an environment without presets of its own.
    ///
    /// ```
    /// let config = gradus::Config::preset("ppo", "CartPole-v1", Some("cleanrl"))?;
    /// assert_eq!((config.steps, config.envs, config.optimiser.learning_rate), (500_000, 4, 2.5e-4));
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn preset(agent: &str, environment: &str, name: Option<&str>) -> Result<Self, Error> {
        let entry = agents::find(agent)?;
        let world = registry::find(environment)?;
        let others = Config::for_world(&world);
        let (agent, environment) = (entry.name, world.name);
        let all = agents::presets();
        let of = |environment: &str| {
            all.iter().filter(|preset| (preset.agent, preset.environment) == (agent, environment)).collect::<Vec<&Preset>>()
        };
        let (own, common) = (of(&environment), of(if world.text.is_some() { "text" } else { "any" }));
        let wanted = name.unwrap_or("default");
        let config = Config { agent: agent.into(), environment, algorithm: entry.defaults(), ..others };
        // the one that an environment without presets has
        if let Some(preset) = common.iter().find(|preset| wanted == "any" && preset.name == "default") {
            return config.with_preset(preset);
        }
        let common = common.into_iter().filter(|preset| own.iter().all(|other| other.name != preset.name));
        let presets: Vec<&Preset> = own.iter().copied().chain(common).collect();
        match presets.iter().find(|preset| preset.name == wanted) {
            Some(preset) => config.with_preset(preset),
            None if name.is_none() => Ok(config),
            None => {
                let known: Vec<&str> = presets.iter().map(|preset| preset.name).collect();
                let none = || format!("{agent} has no presets for {}", config.environment);
                let hint = if known.is_empty() { none() } else { gradus_base::names::hint(wanted, &known) };
                Err(Error::Unknown { what: "preset", name: wanted.into(), hint })
            }
        }
    }

    /// Applies a preset, after the one that it inherits from: `inherits = "NAME"`, or `inherits = "ENVIRONMENT/NAME"` of another environment.
    fn with_preset(self, preset: &Preset) -> Result<Self, Error> {
        let all = agents::presets();
        let (mut preset, mut texts) = (*preset, Vec::new());
        loop {
            let mut table: Table = preset.text.parse().unwrap_or_default(); // a syntax error is reported below
            let Some(Value::String(parent)) = table.remove(INHERITS) else { break };
            texts.push(table.to_string());
            let (environment, name) = parent.split_once('/').unwrap_or((preset.environment, &parent));
            let is_meant = |other: &&Preset| (other.agent, other.environment, other.name) == (preset.agent, environment, name);
            let meant = all.iter().find(is_meant).filter(|_| texts.len() <= all.len());
            preset = *meant.ok_or_else(|| {
                let expected =
                    format!("another preset of {}, as NAME or ENVIRONMENT/NAME, that does not inherit from this one", preset.agent);
                Error::Parse { what: INHERITS.into(), expected, got: parent.clone() }
            })?;
        }
        texts.iter().rev().try_fold(self.with_toml(preset.text)?, |config, text| config.with_toml(text))
    }

    /// Applies the settings in a TOML text.
    pub fn with_toml(self, text: &str) -> Result<Self, Error> {
        self.with_toml_in(text, Path::new(""))
    }

    /// As [`with_toml`](Config::with_toml), for the text of a file in the folder `dir`.
    fn with_toml_in(self, text: &str, dir: &Path) -> Result<Self, Error> {
        let mut table: Table =
            text.parse().map_err(|error| Error::Parse { what: "settings".into(), expected: "TOML".into(), got: in_file(text, &error) })?;
        // a run's configuration file may have an older format; format 1 has no format number but always has these keys
        if table.contains_key("format")
            || ["agent", "environment", "steps", "seed", "envs", "init"].iter().all(|key| table.contains_key(*key))
        {
            format::settings(&mut table).map_err(|problem| Error::Parse {
                what: "settings".into(),
                expected: "a known format".into(),
                got: problem,
            })?;
        }
        inputs::resolve(&mut table, dir);
        let mut settings = Vec::new();
        flatten("", &table, &mut settings);
        // first the keys that determine which other settings exist, at the end those that the table of all settings need not have
        settings.sort_by_key(|(key, _)| (key != "agent", key != "environment", key.starts_with("inputs.") || key == "earlier_steps"));
        let is_usual = |key: &str| !["agent", "environment", "earlier_steps"].contains(&key) && !key.starts_with("inputs.");
        let (usual, special): (Vec<_>, Vec<_>) = settings.into_iter().partition(|(key, _)| is_usual(key));
        let (first, last): (Vec<_>, Vec<_>) = special.into_iter().partition(|(key, _)| key == "agent" || key == "environment");
        let one = |config: Self, (key, value): (String, Value)| config.with_value(&key, value);
        let config = first.into_iter().try_fold(self, one)?.with_values(usual)?;
        last.into_iter().try_fold(config, one)
    }

    /// Applies the settings in a TOML file.
    pub fn with_file(self, path: &Path) -> Result<Self, Error> {
        let text = read_named_to_string(path)?;
        self.with_toml_in(&text, path.parent().unwrap_or(Path::new(""))).map_err(|error| Error::folder(path, error.to_string()))
    }

    /// Changes one setting, such as `ppo.clip=0.1`. The keys are the same as in the configuration file. The section may be missing if no other
    /// section has a setting of this name: `clip=0.1`.
    ///
    /// ```
    /// let config = gradus::Config::default().with_setting("ppo.clip=0.1")?.with_setting("network.hidden=[32]")?;
    /// assert!(config.settings().contains(&("network.hidden".into(), "[32]".into())));
    /// let error = gradus::Config::default().with_setting("ppo.clib=0.1").unwrap_err();
    /// assert_eq!(error.to_string(), "unknown setting `ppo.clib`; did you mean `ppo.clip`?");
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn with_setting(self, setting: &str) -> Result<Self, Error> {
        let (key, text) = setting.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(|| Error::Parse {
            what: "--set".into(),
            expected: "key=value".into(),
            got: format!("`{setting}`"),
        })?;
        // a bare word is a string, so that strings need no quotes on the command line
        let value = format!("x = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("x"));
        self.with_named(key.trim(), value.unwrap_or_else(|| Value::String(text.trim().into())))
    }

    /// As [`with_setting`](Config::with_setting), from the key and the value.
    pub fn with_named(self, key: &str, value: Value) -> Result<Self, Error> {
        let settings = self.settings();
        let known: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        let key = if known.contains(&key) { key } else { names::without_section(key, &self.agent, &known).unwrap_or(key) };
        self.with_value(key, value)
    }

    /// Changes one setting to the TOML value `value`. A whole number may be a text such as `500k` or `2m`.
    pub fn with_value(self, key: &str, value: Value) -> Result<Self, Error> {
        if let ("agent", Value::String(name)) = (key, &value)
            && *name != self.agent
        {
            let entry = agents::find(name)?;
            // another spelling of the same name
            let is_same = entry.name == self.agent;
            return Ok(if is_same { self } else { Config { algorithm: entry.defaults(), agent: entry.name.into(), ..self } });
        }
        if let ("environment", Value::String(name)) = (key, &value) {
            return self.with_environment(name);
        }
        if key == "earlier_steps" {
            // the table of these settings has no such key while there are none
            let got = value.to_string();
            let expected = "a list of { steps, until }, as in the file of a run that was trained further".into();
            let error = |_| Error::Parse { what: key.into(), expected, got };
            return Ok(Config { earlier_steps: value.try_into().map_err(error)?, ..self });
        }
        if let Some(input) = key.strip_prefix("inputs.").filter(|input| inputs::is_key(input)) {
            let Value::String(hash) = value else {
                return Err(Error::Parse { what: key.into(), expected: "a hash".into(), got: value.to_string() });
            };
            let mut inputs = self.inputs;
            inputs.insert(input.into(), hash);
            return Ok(Config { inputs, ..self });
        }
        let mut table = self.to_table();
        let (kind, got) = (self.insert(&mut table, key, value.clone())?, value.to_string());
        let names = if kind == "a name" { choices(table.clone(), key) } else { None };
        let kind =
            if key.ends_with(".ent_coef") && got == "\"auto\"" { "a number; sac.auto_ent_coef says whether it is learned" } else { kind };
        table.try_into().map_err(|error: toml::de::Error| Error::Parse {
            what: key.into(),
            expected: names_in(error.message()).or(names.as_deref()).map_or(kind.into(), |names| names.replace('`', "").replace('\n', " ")),
            got,
        })
    }

    /// Changes many settings, which the table of all settings has. All of them are parsed at once.
    fn with_values(self, settings: Vec<(String, Value)>) -> Result<Self, Error> {
        let mut table = self.to_table();
        settings.iter().try_for_each(|(key, value)| self.insert(&mut table, key, value.clone()).map(|_| ()))?;
        match table.try_into() {
            Ok(config) => Ok(config),
            // one after the other, which finds the wrong one and says what it accepts
            Err(_) => settings.into_iter().try_fold(self, |config, (key, value)| config.with_value(&key, value)),
        }
    }

    /// Writes a value into `table`, the table of all settings. Returns what kind of value the setting accepts, in words.
    fn insert(&self, table: &mut Table, key: &str, value: Value) -> Result<&'static str, Error> {
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or(key);
        let inner = parts.into_iter().try_fold(&mut *table, |table, part| table.get_mut(part).and_then(Value::as_table_mut));
        let Some(inner) = inner.filter(|inner| inner.get(last).is_some_and(|value| !value.is_table())) else {
            return Err(self.unknown(key));
        };
        if let Value::Float(x) = value
            && x.is_finite()
            && !(x as f32).is_finite()
        {
            return Err(Error::Parse { what: key.into(), expected: "a number from -3.4e38 to 3.4e38".into(), got: format!("{x:e}") });
        }
        // accepts 1 for 1.0
        let value = match (&inner[last], value) {
            (Value::Float(_), Value::Integer(whole)) => Value::Float(whole as f64),
            (Value::Integer(_), Value::String(text)) => match parse_steps(&text) {
                Ok(steps) => Value::Integer(steps as i64),
                Err(_) => Value::String(text),
            },
            (_, value) => value,
        };
        let kind = match &inner[last] {
            Value::Float(_) => "a number",
            Value::Integer(_) => "a whole number from 0 up",
            Value::Boolean(_) => "true or false",
            Value::Array(_) => "a list of whole numbers, such as [64, 64]",
            _ => "a name",
        };
        inner.insert(last.into(), value);
        // the hash of another file says nothing of this one
        if let Some(Value::Table(inputs)) = table.get_mut("inputs") {
            inputs.remove(key);
        }
        Ok(kind)
    }

    /// The error for a setting that does not exist, with the nearest one that does.
    fn unknown(&self, key: &str) -> Error {
        let known = self.settings();
        let foreign = self.world().map(|world| self.foreign(&world)).unwrap_or_default();
        let is_read = |name: &&str| !foreign.iter().any(|(own, _)| effect::covers(own, name));
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).filter(is_read).collect();
        Error::Unknown { what: "setting", name: key.into(), hint: names::hint(key, &self.agent, &names) }
    }

    /// Changes the environment. A change between a text task and another kind of environment resets the network, `[text]` and
    /// `[reward_model]`.
    fn with_environment(mut self, name: &str) -> Result<Self, Error> {
        let world = registry::find(name)?;
        self.inputs.remove(inputs::ENVIRONMENT);
        let Config { network, text, reward_model, .. } = Config::for_world(&world);
        let config = Config { environment: world.name, ..self };
        Ok(if network.name() == config.network.name() { config } else { Config { network, text, reward_model, ..config } })
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
        ours.into_iter().zip(theirs).find(|(a, b)| a != b).map(|((key, _), _)| key)
    }

    /// Returns the key and value of every setting, as in the configuration file.
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

    /// Returns the configured environment without wrappers.
    pub fn plain_world(&self) -> Result<EnvSpec, Error> {
        let world = registry::find(&self.environment)?;
        self.text.as_ref().map_or(Ok(world.clone()), |text| Ok(text.apply(world)?))
    }

    /// Returns the configured environment with its wrappers, except for normalisation and reward clipping, which the collector does.
    pub fn world(&self) -> Result<EnvSpec, Error> {
        self.wrap(registry::find(&self.environment)?)
    }

    /// Applies the configured wrappers to `world`, or on text tasks the settings of `[text]`.
    pub(crate) fn wrap(&self, mut world: EnvSpec) -> Result<EnvSpec, Error> {
        self.check_inputs(|key| key == inputs::ENVIRONMENT)?;
        let WrapperConfig { frame_stack, time_aware, normalise_observations, .. } = self.wrappers;
        if is_text(&world) {
            let (expected, got) = ("[transformer], because observations are texts", format!("[{}]", self.network.name()));
            ConfigError::unless(matches!(self.network, Network::Transformer(_)), "section", expected, got)?;
            let reason = "because observations are texts";
            ConfigError::unless(frame_stack == 1, "wrappers.frame_stack", &format!("1, {reason}"), frame_stack)?;
            for (key, is_on) in [("wrappers.time_aware", time_aware), ("wrappers.normalise_observations", normalise_observations)] {
                ConfigError::unless(!is_on, key, &format!("false, {reason}"), is_on)?;
            }
            let world = self.text.as_ref().map_or(Ok(world.clone()), |text| text.apply(world))?;
            return Ok(world);
        }
        self.wrappers.check_ranges("wrappers").map_err(ConfigError::from)?;
        if let Space::Discrete(_) = world.env().observation_space() {
            world = world.one_hot();
        }
        if time_aware {
            let expected = "false, because this environment has no time limit";
            let limit =
                world.max_episode_steps.ok_or_else(|| ConfigError::unless(false, "wrappers.time_aware", expected, true).unwrap_err())?;
            world = world.time_aware(limit);
        }
        if frame_stack > 1 {
            world = world.stacked(frame_stack);
        }
        Ok(world)
    }

    /// Checks the ranges of the settings that all agents share.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges("")?;
        self.wrappers.check_ranges("wrappers")?;
        let mut before = 0;
        for EarlierSteps { steps, until } in &self.earlier_steps {
            ConfigError::unless(*steps > 0, "earlier_steps.steps", "at least 1", steps)?;
            let expected = format!("{before} to {}, between the change before and steps", self.steps);
            ConfigError::unless((before..=self.steps).contains(until), "earlier_steps.until", &expected, until)?;
            before = *until;
        }
        ConfigError::unless(self.seed <= i64::MAX as u64, "seed", "0 to 9223372036854775807", self.seed)?;
        ConfigError::unless(!self.stop_at.is_nan(), "stop_at", "a mean return, or inf", self.stop_at)?;
        let can_stop = self.stop_at == f64::INFINITY || self.evaluate_every > 0;
        ConfigError::unless(can_stop, "stop_at", "evaluate_every above 0", "evaluate_every = 0")?;
        self.reward_model.as_ref().map_or(Ok(()), RewardConfig::check)?;
        let is_ours = self.device == Device::Cpu && self.torch.precision != Precision::F32;
        let precision = format!("{:?}", self.torch.precision).to_lowercase();
        ConfigError::unless(!is_ours, "torch.precision", "f32 on cpu, because other precisions need libtorch", precision)
    }

    /// Returns warnings of settings that are allowed but hardly meant.
    pub fn warnings(&self) -> Vec<String> {
        let rates = [("optimiser.learning_rate", self.optimiser.learning_rate)];
        let rates = rates.into_iter().filter(|(_, rate)| *rate > 1.0);
        rates
            .map(|(key, rate)| format!("{key}: {rate:e} is far above the usual 1e-5 to 1e-1, so the training will hardly succeed"))
            .chain(self.vain_in_this_run())
            .collect()
    }

    /// Builds the agent for `world`, to which the wrappers are already applied. Returns an error if a setting is invalid.
    pub fn build(&self, world: &EnvSpec) -> Result<AgentKind, Error> {
        self.build_with(world, &[])
    }

    /// As [`build`](Config::build), for an agent that learns from these pairs.
    fn build_with(&self, world: &EnvSpec, pairs: &[Pair]) -> Result<AgentKind, Error> {
        self.check()?;
        let setup = Setup {
            pairs,
            world,
            envs: self.envs,
            seed: self.seed,
            steps: self.steps,
            optimiser: &self.optimiser,
            reference: &self.reference,
            perceptron: if let Network::Perceptron(config) = &self.network { Some(config) } else { None },
            scores_whole_texts: self.reward_model.as_ref().is_some_and(RewardConfig::scores_whole_texts),
        };
        self.optimiser.check()?;
        let built = self.algorithm.build(&setup)?;
        let is_said = matches!(built, AgentKind::ActorCritic(_)) == self.has_actor_critic();
        ConfigError::unless(is_said, "agent", "AgentConfig::HAS_ACTOR_CRITIC to match the built agent", &self.agent)?;
        let (seen, done) = (world.env().observation_space(), world.env().action_space());
        let is_continuous = matches!(built, AgentKind::ActorAndCritics { .. });
        if is_continuous || matches!(built, AgentKind::ActionValues { .. }) {
            let is_text = matches!(seen, Space::Text { .. });
            ConfigError::unless(!is_text, &self.agent, "an environment whose observations are rows of numbers", seen)?;
            if is_continuous {
                let is_bounded = ActionScale::of(&done).is_some();
                ConfigError::unless(is_bounded, &self.agent, "an environment with continuous actions within finite bounds", done)?;
            } else {
                ConfigError::unless(matches!(done, Space::Discrete(_)), &self.agent, "an environment with discrete actions", done)?;
            }
        }
        Ok(built)
    }

    /// Whether the agent learns with the configured actor-critic network.
    pub(crate) fn has_actor_critic(&self) -> bool {
        agents::find(self.algorithm.name()).map_or(true, |entry| entry.has_actor_critic)
    }

    /// Builds the update rule of an agent that trains an actor-critic network. Returns an error for other agents and invalid settings.
    pub fn agent(&self, world: &EnvSpec) -> Result<Box<dyn Agent>, Error> {
        match self.build(world)? {
            AgentKind::ActorCritic(agent) => Ok(agent),
            AgentKind::ActionValues { .. } | AgentKind::ActorAndCritics { .. } | AgentKind::Own(_) => {
                let expected = "an agent that trains an actor-critic network";
                Err(ConfigError::unless(false, "agent", expected, &self.agent).unwrap_err().into())
            }
        }
    }

    /// Builds the configured network with random initial parameters from the seed.
    pub fn policy(&self, world: &EnvSpec) -> Result<Box<dyn Policy>, NetworkError> {
        self.network.policy_on(world, self.seed, self.device, &self.torch)
    }

    /// Builds the agent together with its policy, which `wrap` may put into another one. Returns `None` for an agent without an actor-critic network.
    pub(crate) fn algorithm_around(
        &self,
        world: &EnvSpec,
        wrap: &dyn Fn(Box<dyn Policy>) -> Box<dyn Policy>,
    ) -> Result<Option<Box<dyn Algorithm>>, Error> {
        Ok(match self.build(world)? {
            AgentKind::ActorCritic(agent) => Some(Box::new(OnPolicy { agent, policy: wrap(self.policy(world)?) })),
            _ => None,
        })
    }

    /// Builds the agent together with its policy. Returns an error if a setting is invalid.
    pub fn algorithm(&self, world: &EnvSpec) -> Result<Box<dyn Algorithm>, Error> {
        self.algorithm_with(world, &[])
    }

    /// As [`algorithm`](Config::algorithm), for an agent that learns from these pairs.
    pub fn algorithm_with(&self, world: &EnvSpec, pairs: &[Pair]) -> Result<Box<dyn Algorithm>, Error> {
        Ok(match self.build_with(world, pairs)? {
            AgentKind::ActorCritic(agent) => Box::new(OnPolicy { agent, policy: self.policy(world)? }),
            AgentKind::ActionValues { head, make, .. } => {
                make(self.network.q_network(head, world, (self.seed, self.device), &self.torch)?)
            }
            AgentKind::ActorAndCritics { head, make, .. } => {
                make(self.network.q_actor_critic(head, world, (self.seed, self.device), &self.torch)?)
            }
            AgentKind::Own(algorithm) => algorithm,
        })
    }
}

/// The key of the preset that a preset inherits from.
const INHERITS: &str = "inherits";

/// The beginning of the error for a run whose agent this program does not have.
pub(crate) const UNKNOWN_AGENT: &str = "unknown agent";

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

/// Collects all settings of a table, with dotted keys.
fn flatten(prefix: &str, table: &Table, settings: &mut Vec<(String, Value)>) {
    for (key, value) in table {
        match value {
            Value::Table(inner) => flatten(&format!("{prefix}{key}."), inner, settings),
            value => settings.push((format!("{prefix}{key}"), value.clone())),
        }
    }
}

/// Parses a number of steps, such as `500k`, `2m` or `1_000`.
///
/// ```
/// assert_eq!(gradus::config::parse_steps("500k"), Ok(500_000));
/// assert_eq!(gradus::config::parse_steps("1.5m"), Ok(1_500_000));
/// assert_eq!(gradus::config::parse_steps("1.001k"), Ok(1_001));
/// assert!(gradus::config::parse_steps("-3").is_err());
/// ```
pub fn parse_steps(text: &str) -> Result<u64, String> {
    let error = || format!("expected a number of steps above 0, such as 5000, 500k or 2m, got {text}");
    let plain = text.trim().to_lowercase().replace('_', "");
    let (digits, unit) = match plain.strip_suffix('k') {
        Some(digits) => (digits, 1e3),
        None => plain.strip_suffix('m').map_or((plain.as_str(), 1.0), |digits| (digits, 1e6)),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(error());
    }
    let exact = digits.parse::<f64>().map_err(|_| error())? * unit;
    // 1.001 x 1000 is a little less than 1001
    let steps = if (exact - exact.round()).abs() < 1e-12 * exact { exact.round() } else { exact };
    if steps >= 1.0 && steps.fract() == 0.0 && steps <= 9e15 { Ok(steps as u64) } else { Err(error()) }
}

/// Returns the names that a setting accepts, if it is one of names.
fn choices(mut table: Table, key: &str) -> Option<String> {
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop()?;
    let inner = parts.into_iter().try_fold(&mut table, |table, part| table.get_mut(part).and_then(Value::as_table_mut))?;
    // a word that is none of them
    inner.insert(last.into(), Value::String("?".into()));
    names_in(table.try_into::<Config>().err()?.message()).map(str::to_owned)
}

/// Extracts the valid names from the TOML parser's message about an invalid name.
fn names_in(message: &str) -> Option<&str> {
    let message = message.strip_prefix("unknown variant ").or(message.strip_prefix("device: "))?;
    let names = message.split_once("expected ").map_or(message, |(_, names)| names);
    names.split(", got ").next()
}
