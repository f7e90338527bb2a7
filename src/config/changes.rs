//! How presets, files and single settings change a configuration.

use std::collections::BTreeSet;
use std::path::Path;

use gradus_agents::{Preset, registry as agents};
use gradus_envs::registry;
use toml::{Table, Value};

use super::{Config, effect, flatten, in_file, inputs, names};
use crate::Error;
use crate::files::{format, read_named_to_string};

impl Config {
    /// Applies a preset, after the one that it inherits from: `inherits = "NAME"`, or `inherits = "ENVIRONMENT/NAME"` of another environment.
    pub(super) fn with_preset(self, preset: &Preset) -> Result<Self, Error> {
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
        self.check_wholes()?;
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
        let mut seen = BTreeSet::new();
        if let Some((key, _)) = settings.iter().find(|(key, _)| !seen.insert(key.clone())) {
            let got = format!("`{key}` twice");
            return Err(Error::Parse { what: "settings".into(), expected: "each setting once".into(), got });
        }
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
        self.with_text_of(path, &read_named_to_string(path)?)
    }

    /// As [`with_file`](Self::with_file), if the text of the file has already been read, as from a pipe.
    pub fn with_text_of(self, path: &Path, text: &str) -> Result<Self, Error> {
        self.with_toml_in(text, path.parent().unwrap_or(Path::new(""))).map_err(|error| Error::folder(path, error.to_string()))
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
        self.check_wholes()?;
        // a bare word is a string, so that strings need no quotes on the command line
        let alone = |mut table: Table| if table.len() == 1 { table.remove("x") } else { None };
        let value = format!("x = {text}").parse::<Table>().ok().and_then(alone);
        let value = value.unwrap_or_else(|| Value::String(text.trim().into()));
        let (settings, key) = (self.settings(), key.trim());
        let key = self.full_name(key, &settings);
        let is_text = settings.iter().any(|(name, value)| name == key && value.starts_with('"'));
        // such as 0x3, which TOML reads as the number 3
        let is_rewritten = matches!(value, Value::Integer(_) | Value::Float(_)) && value.to_string() != text.trim();
        let value = if is_text && is_rewritten { Value::String(text.trim().into()) } else { value };
        self.with_value(key, value)
    }

    /// Returns the name of the setting `key` with its section, which `key` may lack. An unknown name stays as it is.
    pub fn setting_name(&self, key: &str) -> String {
        self.full_name(key, &self.settings()).into()
    }

    /// Returns the name of a setting with its section, which `key` may lack.
    fn full_name<'a>(&self, key: &'a str, settings: &'a [(String, String)]) -> &'a str {
        let known: Vec<&str> = settings.iter().map(|(name, _)| name.as_str()).collect();
        if known.contains(&key) { key } else { names::without_section(key, &self.agent, &known).unwrap_or(key) }
    }

    /// Changes one setting to the TOML value `value`. A whole number may be a text such as `500k` or `2m`.
    pub fn with_value(self, key: &str, value: Value) -> Result<Self, Error> {
        self.check_wholes()?;
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
        [inputs::ENVIRONMENT, inputs::MODEL].iter().for_each(|key| _ = self.inputs.remove(*key));
        let Config { network, text, reward_model, .. } = Config::for_world(&world);
        let config = Config { environment: world.name, ..self };
        Ok(if network.name() == config.network.name() { config } else { Config { network, text, reward_model, ..config } })
    }
}

/// The key of the preset that a preset inherits from.
const INHERITS: &str = "inherits";

/// The largest number of steps that is exact as a number with a fraction.
const MOST_STEPS: f64 = 9e15;

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
    if steps > MOST_STEPS {
        return Err(format!("expected a number of steps up to {MOST_STEPS}, got {text}"));
    }
    if steps >= 1.0 && steps.fract() == 0.0 { Ok(steps as u64) } else { Err(error()) }
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
