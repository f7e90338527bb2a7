//! The files that a run reads from outside. They are known by their contents: `[inputs]` in the run's `config.toml` has a hash of each, and whatever reads such a
//! file again expects the same contents.
//!
//! A path is relative to the file that names it if it leads to something there, otherwise to the current folder. In memory paths are absolute. A run stores them
//! relative to its folder, so that it can be evaluated and resumed from any folder, and moved together with its inputs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use gradus_agents::registry as agents;
use gradus_envs::gym;
use gradus_envs::text::rewards;
use hmac_sha256::Hash;
use toml::{Table, Value};

use super::{Config, RewardConfig};
use crate::Error;
use crate::files::folder::{CONFIG, EXAMPLES_FILE, METRICS, policy_path};
use crate::files::{create_parents, exists, hexadecimal, read_named, replace};
use crate::saved::is_of_peft;

/// What the names of environments from files begin with.
const FROM_FILES: [&str; 3] = ["grid:", "file:", CHAT];
/// An environment with a second path, that of a pretrained model.
const CHAT: &str = "chat:";
const AND_MODEL: &str = "?model=";
/// The folder of copies beside an exported policy.
const COPIES: &str = "inputs";
/// The key of the environment's file. A text task has its own hash, `text.fingerprint`.
pub const ENVIRONMENT: &str = "environment";
/// The key of the pretrained model of an environment.
pub(crate) const MODEL: &str = "model";
const INIT: &str = "init";
pub(crate) const FOLDER: &str = "reward_model.folder";
/// Functions that give rewards: the setting has more than the path of their file.
const REWARDS: &str = "text.rewards";

/// An input file, or a folder whose files are read: the setting that names it, and its path.
pub(crate) type Input = (String, PathBuf);

impl Config {
    /// Returns the inputs of a new run.
    pub fn all_inputs(&self) -> Vec<Input> {
        let of_model = self.reward_model.as_ref().filter(|model| model.is_on()).map_or("", |model: &RewardConfig| &model.folder);
        let own = [(INIT, self.init.as_str()), (FOLDER, of_model)];
        let own = own.into_iter().map(|(key, path)| (key.to_string(), path.into()));
        own.chain(self.lasting_inputs()).filter(|(_, path): &Input| !path.as_os_str().is_empty()).collect()
    }

    /// Returns the inputs that are read again when a run is resumed or evaluated.
    pub(crate) fn lasting_inputs(&self) -> Vec<Input> {
        let settings = self.algorithm.to_table();
        let of_agent = agents::find(&self.agent).map_or(&[][..], |entry| entry.files).iter();
        let of_agent = of_agent.map(|name| (format!("{}.{name}", self.agent), settings.get(*name).and_then(Value::as_str).unwrap_or("")));
        let of_environment = Place::of(&self.environment).into_iter().flat_map(Place::paths);
        let of_rewards = self.text.as_ref().and_then(|text| rewards::path_of(&text.rewards)).map(|path| (REWARDS.to_string(), path));
        let all = of_environment.into_iter().chain(of_rewards).chain(of_agent).map(|(key, path)| (key, PathBuf::from(path)));
        all.filter(|(_, path)| !path.as_os_str().is_empty()).collect()
    }

    /// Returns these settings with absolute paths and with a hash of every input. Returns an error if an input has another hash than these settings say.
    pub(crate) fn settled(mut self) -> Result<Self, Error> {
        for (key, path) in self.all_inputs() {
            self.expect_same(&key, &path)?;
            if let Some(found) = hash(&key, &path)? {
                self.inputs.insert(key, found);
            }
        }
        self.with_paths(|_, path| whole(path))
    }

    /// As the file of a run, with paths relative to the folder `dir` of the file.
    pub fn to_file_in(&self, dir: &Path) -> Result<String, Error> {
        let dir = whole(dir);
        Ok(self.clone().with_paths(|_, path| relative(&dir, path))?.to_file())
    }

    /// Returns these settings with the paths, which are found from the current folder, relative to the folder `dir`.
    pub fn seen_from(&self, dir: &Path) -> Result<Self, Error> {
        if self.all_inputs().is_empty() {
            return Ok(self.clone());
        }
        self.clone().with_paths(|_, path| relative_to(dir, path))
    }

    /// Returns these settings with the hash of every input in the place of its path: the same for a file that was moved.
    pub(crate) fn by_contents(&self) -> Result<Self, Error> {
        let inputs = self.inputs.clone();
        self.clone().with_paths(|key, path| inputs.get(key).map_or_else(|| path.into(), PathBuf::from))
    }

    /// Returns an error if an input that is read again has other contents than when the run was created. Checks the settings that `is_read` accepts.
    pub(crate) fn check_inputs(&self, is_read: impl Fn(&str) -> bool) -> Result<(), Error> {
        self.lasting_inputs().into_iter().filter(|(key, _)| is_read(key)).try_for_each(|(key, path)| self.expect_same(&key, &path))
    }

    /// Returns an error if the contents of an input are not those of these settings.
    fn expect_same(&self, key: &str, path: &Path) -> Result<(), Error> {
        let Some(expected) = self.inputs.get(key) else { return Ok(()) };
        match hash(key, path)? {
            None => Err(Error::folder(path, format!("{key}: expected a file, got a pipe, a socket or a device"))),
            Some(found) if found != *expected => {
                let short = |hash: &str| hash.chars().take(16).collect::<String>();
                let (expected, found) = (short(expected), short(&found));
                let what = format!("the contents with which the run was created (SHA-256 {expected}...)");
                Err(Error::folder(path, format!("{key}: expected {what}, got others ({found}...); restore the file, or start a new run")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the recorded inputs: the path of each, whether it is read again, and what is wrong with it if it has changed or is missing.
    pub(crate) fn recorded_inputs(&self) -> Vec<(PathBuf, bool, Option<Error>)> {
        let lasting = self.lasting_inputs();
        let known = self.all_inputs().into_iter().filter(|(key, _)| self.inputs.contains_key(key));
        known.map(|input| (input.1.clone(), lasting.contains(&input), self.expect_same(&input.0, &input.1).err())).collect()
    }

    /// Changes the paths of all inputs.
    fn with_paths(self, change: impl Fn(&str, &Path) -> PathBuf) -> Result<Self, Error> {
        self.all_inputs().into_iter().try_fold(self, |config, (key, path)| {
            let changed = change(&key, &path);
            // settings are text: a path that is none stays as it was given
            let Some(changed) = changed.to_str().filter(|changed| Some(*changed) != path.to_str()) else { return Ok(config) };
            // also in a folder that is moved to another system
            let changed = if changed.contains('/') || cfg!(unix) { changed.to_owned() } else { changed.replace('\\', "/") };
            match (key.as_str(), Place::of(&config.environment)) {
                (ENVIRONMENT, Some(place)) => Ok(Config { environment: Place { path: &changed, ..place }.name(), ..config }),
                (MODEL, Some(place)) => Ok(Config { environment: Place { model: Some(&changed), ..place }.name(), ..config }),
                _ => {
                    let inputs = config.inputs.clone();
                    let of_rewards = config.text.as_ref().filter(|_| key == REWARDS);
                    let changed = of_rewards.map(|text| rewards::with_path(&text.rewards, &changed)).unwrap_or(changed);
                    Ok(Config { inputs, ..config.with_value(&key, Value::String(changed))? })
                }
            }
        })
    }

    /// Returns what is wrong with inputs that have changed since the run was created, or that are gone.
    pub fn lost_inputs(&self) -> Vec<String> {
        self.recorded_inputs().into_iter().filter_map(|(.., problem)| problem).map(|problem| problem.to_string()).collect()
    }

    /// Copies the inputs whose contents are still those of the run to the folder `dir`, under `inputs`. Returns the settings with the paths of the copies, relative to
    /// `dir`.
    pub(crate) fn with_copies(self, dir: &Path) -> Result<Self, Error> {
        let mut copies = BTreeMap::new();
        for (key, path) in self.all_inputs() {
            let is_same = hash(&key, &path).is_ok_and(|found| found.is_some() && found.as_ref() == self.inputs.get(&key));
            // a pretrained model is too large to be copied
            if !is_same || key == MODEL {
                continue;
            }
            let folder = Path::new(COPIES).join(key.replace(['.', '_'], "-"));
            let mut files = files(&key, &path)?;
            // a folder of a reward model also has settings and a table
            let others = [CONFIG, METRICS].map(|name| path.join(name));
            files.extend(others.into_iter().filter(|file| path.is_dir() && key != INIT && file.exists()));
            for file in &files {
                let to = dir.join(&folder).join(file.file_name().unwrap_or_default());
                create_parents(&to).and_then(|()| replace(&to, &fs::read(file)?)).map_err(Error::io("copy", file))?;
            }
            // of a run the policy, of adapters the folder
            let is_one = path.is_file() || key == INIT && files.len() == 1;
            copies.insert(key, if is_one { folder.join(files[0].file_name().unwrap_or_default()) } else { folder });
        }
        self.with_paths(|key, path| copies.get(key).cloned().unwrap_or_else(|| path.into()))
    }

    /// Returns these settings, which are those of a file in the folder `dir`, with paths that are found from the current folder.
    pub(crate) fn found_from(self, dir: &Path) -> Result<Self, Error> {
        self.with_paths(|_, path| found_from(dir, path))
    }
}

/// Returns the name of the environment with the path of its file, if it has one, relative to the folder `dir`.
pub fn environment_from(name: &str, dir: &Path) -> String {
    let config = Config { environment: name.into(), ..Config::default() };
    config.seen_from(dir).map_or_else(|_| name.into(), |config| config.environment)
}

/// Returns the name of an environment that a file in the folder `dir` gives, with the path of its file, if it has one, as found from the current folder.
pub fn environment_in(name: &str, dir: &Path) -> String {
    let config = Config { environment: name.into(), ..Config::default() };
    config.found_from(dir).map_or_else(|_| name.into(), |config| config.environment)
}

/// The name of an environment from a file, in its parts.
#[derive(Clone, Copy)]
struct Place<'a> {
    kind: &'static str,
    path: &'a str,
    model: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(environment: &'a str) -> Option<Self> {
        let kind = FROM_FILES.into_iter().find(|kind| environment.starts_with(kind))?;
        let rest = &environment[kind.len()..];
        let (path, model) = match rest.split_once(AND_MODEL).filter(|_| kind == CHAT) {
            Some((path, model)) => (path, Some(model)),
            None => (rest, None),
        };
        Some(Self { kind, path, model })
    }

    fn name(self) -> String {
        let model = self.model.map(|model| format!("{AND_MODEL}{model}")).unwrap_or_default();
        format!("{}{}{model}", self.kind, self.path)
    }

    /// The paths, with the keys of their hashes.
    fn paths(self) -> impl Iterator<Item = (String, &'a str)> {
        std::iter::once((ENVIRONMENT.to_string(), self.path)).chain(self.model.map(|model| (MODEL.to_string(), model)))
    }
}

/// Returns the path in the name of an environment from a file.
pub fn path_of(environment: &str) -> Option<&str> {
    Place::of(environment).map(|place| place.path)
}

/// Returns a name that ends with an environment, which for one from a file is the name of the file without its folder and extension.
pub(crate) fn short_name(name: &str) -> String {
    match FROM_FILES.iter().find_map(|kind| name.split_once(kind)) {
        Some((before, path)) => {
            let path = path.split_once(AND_MODEL).map_or(path, |(path, _)| path);
            format!("{before}{}", Path::new(path).file_stem().unwrap_or_default().display())
        }
        None => match name.split_once(gym::PREFIX) {
            // an identifier without its module, and its arguments in the letters of a file's name
            Some((before, rest)) => {
                let (id, arguments) = rest.split_once('?').map_or((rest, String::new()), |(id, arguments)| (id, format!("-{arguments}")));
                let id = id.rsplit(['/', ':']).next().unwrap_or(id);
                let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
                format!("{before}{id}{}", arguments.chars().map(letter).collect::<String>())
            }
            None => name.into(),
        },
    }
}

/// Returns the path that a file in the folder `dir` calls `path`.
fn found_from(dir: &Path, path: &Path) -> PathBuf {
    if path.is_absolute() || path.as_os_str().is_empty() || dir.as_os_str().is_empty() {
        return path.into();
    }
    let there = dir.join(path);
    if there.exists() || !path.exists() { whole(&there) } else { path.into() }
}

/// Returns the absolute path, without links as far as it exists.
fn whole(path: &Path) -> PathBuf {
    if let Ok(whole) = fs::canonicalize(path) {
        return whole;
    }
    let mut plain = PathBuf::new();
    for part in std::path::absolute(path).unwrap_or_else(|_| path.into()).components() {
        match part {
            Component::ParentDir => _ = plain.pop(),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the path that leads from the folder `dir` to `path`.
pub fn relative_to(dir: &Path, path: &Path) -> PathBuf {
    relative(&whole(if dir.as_os_str().is_empty() { Path::new(".") } else { dir }), &whole(path))
}

/// Returns the path that leads from the folder `dir` to `path`; both are absolute. Paths that share no folder stay as they are.
fn relative(dir: &Path, path: &Path) -> PathBuf {
    let shared = dir.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    // the root, and on Windows a disk, is no folder that they share
    let is_near = dir.components().take(shared).any(|part| matches!(part, Component::Normal(_)));
    if !is_near || path.is_relative() {
        return path.into();
    }
    let up = dir.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(path.components().skip(shared)).collect()
}

/// Changes the paths of inputs in the settings of a file in the folder `dir`, so that they are found from the current folder. Returns whether there are any.
pub fn resolve(table: &mut Table, dir: &Path) -> bool {
    let of_agents = agents::all().into_iter().flat_map(|entry| entry.files.iter().map(move |name| format!("{}.{name}", entry.name)));
    let keys: Vec<String> = of_agents.chain([INIT.into(), FOLDER.into()]).collect();
    resolve_in(table, "", &|key, text| {
        if let Some(place) = Place::of(text) {
            let [path, model] =
                [Some(place.path), place.model].map(|path| path.map(|path| found_from(dir, Path::new(path)).display().to_string()));
            let changed = Place { path: path.as_deref().unwrap_or_default(), model: model.as_deref(), ..place }.name();
            return (changed != text).then_some(changed);
        }
        // `[inputs]` has hashes under the same keys
        let is_path = !text.is_empty()
            && !key.split('.').any(|part| part == "inputs")
            && keys.iter().any(|own| key == *own || key.ends_with(&format!(".{own}")));
        let changed = is_path.then(|| found_from(dir, Path::new(text)).display().to_string())?;
        (changed != text).then_some(changed)
    })
}

/// Returns the settings `text` of a file in the folder `dir` with paths that are found from the current folder. Without such paths, returns the text as it is;
/// otherwise of its comments those at the top.
pub(crate) fn resolved(text: &str, dir: &Path) -> String {
    let Ok(mut table) = text.parse::<Table>() else { return text.into() };
    if !resolve(&mut table, dir) {
        return text.into();
    }
    let comments: String = text.lines().take_while(|line| line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    format!("{comments}{table}")
}

/// Replaces texts, and keys that name an environment, by the results of `change`, which gets the key and the text.
fn resolve_in(table: &mut Table, prefix: &str, change: &dyn Fn(&str, &str) -> Option<String>) -> bool {
    let mut is_changed = false;
    for (name, mut value) in std::mem::take(table) {
        let key = format!("{prefix}{name}");
        is_changed |= resolve_value(&mut value, &key, change);
        let changed = change("", &name);
        is_changed |= changed.is_some();
        table.insert(changed.unwrap_or(name), value);
    }
    is_changed
}

fn resolve_value(value: &mut Value, key: &str, change: &dyn Fn(&str, &str) -> Option<String>) -> bool {
    match value {
        Value::String(text) => match change(key, text) {
            Some(changed) => {
                *text = changed;
                true
            }
            None => false,
        },
        Value::Array(values) => values.iter_mut().filter_map(|value| resolve_value(value, key, change).then_some(())).count() > 0,
        Value::Table(table) => resolve_in(table, &format!("{key}."), change),
        _ => false,
    }
}

/// Whether `[inputs]` may have this key.
pub(super) fn is_key(key: &str) -> bool {
    let of_agents = agents::all().into_iter().flat_map(|entry| entry.files.iter().map(move |name| format!("{}.{name}", entry.name)));
    [ENVIRONMENT, MODEL, INIT, FOLDER, "judge", "pairs"].contains(&key) || of_agents.into_iter().any(|own| own == key)
}

/// Returns the files that the setting `key` with this path makes a run read.
pub fn files(key: &str, path: &Path) -> Result<Vec<PathBuf>, Error> {
    if key == MODEL && path.is_dir() {
        let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(Error::io("read", path))?;
        let is_read =
            |file: &PathBuf| file.extension().is_some_and(|ending| ["json", "jinja", "safetensors"].iter().any(|known| ending == *known));
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).filter(is_read).collect();
        files.sort();
        return Ok(files);
    }
    if ![INIT, FOLDER].contains(&key) && !path.is_dir() {
        return Ok(vec![path.to_path_buf()]);
    }
    if key == INIT && is_of_peft(path) {
        return Ok(vec![path.join("adapter_config.json"), path.join("adapter_model.safetensors")]);
    }
    let policy = policy_path(path)?;
    let examples = policy.with_file_name(EXAMPLES_FILE);
    let with_examples = key != INIT && exists(&examples)?;
    Ok(std::iter::once(policy).chain(with_examples.then_some(examples)).collect())
}

/// Returns the hash of the contents of an input: of several files, the hash of their hashes. Returns `None` for a pipe, which cannot be read again.
pub(crate) fn hash(key: &str, path: &Path) -> Result<Option<String>, Error> {
    let files = files(key, path)?;
    if files.iter().any(|file| file.exists() && !file.is_file()) {
        return Ok(None);
    }
    let hashes = files.iter().map(|file| Ok(Hash::hash(&read_named(file)?))).collect::<Result<Vec<_>, Error>>()?;
    Ok(Some(hexadecimal(&if let [one] = hashes[..] { one } else { Hash::hash(&hashes.concat()) })))
}

/// The hashes of the inputs of a run, by the setting that names them.
pub type Inputs = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    /// What lies beside a file is found from it, in sections, lists, keys and dotted keys; anything else stays as it is.
    #[test]
    fn paths_are_relative_to_the_file_that_names_them() {
        let folder = gradus_testing::tempdir().unwrap();
        let dir = folder.path();
        ["start", "maze.txt", "pairs.jsonl"].iter().for_each(|name| fs::write(dir.join(name), "").unwrap());
        let text = "# a comment\ninit = \"start\"\nname = \"start\"\nenvironments = [\"grid:maze.txt\", \"cartpole\"]\ndpo.pairs = \"pairs.jsonl\"\n\
                    [steps]\n\"grid:maze.txt\" = 3\n[reward_model]\nfolder = \"elsewhere\"\n[[agents]]\nsettings = { \"dpo.pairs\" = \"pairs.jsonl\" }\n";
        let table: Table = resolved(text, dir).parse().unwrap();
        let path = |name: &str| dir.join(name).display().to_string();
        assert!(resolved(text, dir).starts_with("# a comment\n"));
        assert_eq!(table["init"].as_str(), Some(path("start").as_str()));
        assert_eq!(table["name"].as_str(), Some("start"), "no path");
        let environments = table["environments"].as_array().unwrap();
        assert_eq!(environments[0].as_str(), Some(format!("grid:{}", path("maze.txt")).as_str()));
        assert_eq!(environments[1].as_str(), Some("cartpole"));
        assert_eq!(table["dpo"]["pairs"].as_str(), Some(path("pairs.jsonl").as_str()));
        assert!(table["steps"].get(format!("grid:{}", path("maze.txt"))).is_some());
        assert_eq!(table["reward_model"]["folder"].as_str(), Some(path("elsewhere").as_str()), "nowhere");
        assert_eq!(table["agents"][0]["settings"]["dpo.pairs"].as_str(), Some(path("pairs.jsonl").as_str()));
        assert_eq!(resolved("steps = 3 # as it is\n", dir), "steps = 3 # as it is\n");
    }

    #[test]
    fn names_of_files_are_short() {
        let names = ["q-learning-grid:a/b.c/my maze.txt", "grpo-file:sums.jsonl", "ppo-cartpole"].map(short_name);
        assert_eq!(names, ["q-learning-my maze", "grpo-sums", "ppo-cartpole"]);
    }
}
