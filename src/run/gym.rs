//! Which Python stepped the environments of a run, and which actions they have: the file `gym.toml` in its folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use gradus_envs::{Space, gym};
use hmac_sha256::Hash;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::files::{hexadecimal, read_to_string, replace};

/// The file.
pub(crate) const FILE: &str = "gym.toml";

const HEAD: &str = "# The Python that steps this run's environments. With other versions the numbers may be others.\n";

#[derive(Clone, Deserialize, Serialize)]
struct Record {
    executable: String,
    /// The numbers of values of the choices of an action, if it has several. The loader for Python reads this and the bounds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    choices: Vec<u32>,
    /// The bounds of continuous actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    low: Vec<f32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    high: Vec<f32>,
    /// The kind of Gymnasium's observation space, the first state of a discrete one, and whether observations are images of bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observations: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<i64>,
    #[serde(default, skip_serializing_if = "is_false")]
    image: bool,
    /// The parts of an observation whose numbers the policy reads, of a space of several parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<String>,
    versions: BTreeMap<String, String>,
    /// Other versions with which the run was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    later: Vec<BTreeMap<String, String>>,
}

fn is_false(image: &bool) -> bool {
    !image
}

/// What the last line begins with, which has the hash of the lines before it.
const MARK: &str = "# sha256 ";

/// Whether the text of a file is the one that was written; `None` if an older version wrote it, without a hash.
pub(super) fn is_whole(text: &str) -> Option<bool> {
    let (lines, hash) = text.rsplit_once(MARK)?;
    Some(hexadecimal(&Hash::hash(lines.as_bytes())) == hash.trim_end())
}

impl Record {
    fn of(environment: &str) -> Result<Self, Error> {
        let known = gym::describe(environment)?;
        let (mut choices, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        match known.action_space {
            Space::MultiDiscrete(sizes) => choices = sizes,
            Space::Box { low: lowest, high: highest } => (low, high) = (lowest, highest),
            Space::Discrete(_) | Space::Image(_) | Space::Text { .. } => {}
        }
        let is_of_parts = matches!(known.kind.as_deref(), Some("Dict" | "Tuple"));
        let parts = if is_of_parts { known.parts.into_iter().map(|(name, _)| name).collect() } else { Vec::new() };
        let (observations, start, image) = (known.kind, known.start, matches!(known.observation_space, Space::Image(_)));
        let (executable, versions) = (known.executable, known.versions.into_iter().collect());
        Ok(Self { executable, choices, low, high, observations, start, image, parts, versions, later: Vec::new() })
    }

    fn write(&self, dir: &Path) -> Result<(), Error> {
        let text = toml::to_string(self).map_err(|error| Error::folder(dir, error.to_string()))?;
        let text = format!("{HEAD}{text}");
        let hash = hexadecimal(&Hash::hash(text.as_bytes()));
        replace(&dir.join(FILE), format!("{text}{MARK}{hash}\n").as_bytes()).map_err(Error::io("write", dir))
    }

    /// Returns the record in a folder, if there is one that can be read.
    fn read(dir: &Path) -> Option<Self> {
        toml::from_str(&read_to_string(&dir.join(FILE)).ok()?).ok()
    }
}

/// Writes the file to a new run folder, if the environment is one of Gymnasium.
pub(crate) fn record(dir: &Path, environment: &str) -> Result<(), Error> {
    if !gym::is_gym(environment) {
        return Ok(());
    }
    Record::of(environment)?.write(dir)
}

/// Makes the interpreter of a run folder the one to use, unless another one is chosen.
pub(crate) fn recall(dir: &Path, environment: &str) {
    if gym::is_gym(environment)
        && let Some(record) = Record::read(dir)
        && Path::new(&record.executable).is_absolute()
        // a folder from elsewhere must not bring a program
        && let Some(place) = Path::new(&record.executable).parent().and_then(|place| fs::canonicalize(place).ok())
        && fs::canonicalize(dir).is_ok_and(|dir| !place.starts_with(dir))
        && fs::exists(&record.executable).unwrap_or(false)
    {
        gym::suggest_python(record.executable);
    }
}

/// Returns what is to be said of a run that is resumed, and records other versions.
pub(super) fn notes(dir: &Path, environment: &str) -> Result<Vec<String>, Error> {
    if !gym::is_gym(environment) {
        return Ok(Vec::new());
    }
    let mut notes = vec![format!("{environment} cannot be saved: the run goes on with new episodes")];
    if let Some(old) = Record::read(dir) {
        let new = Record::of(environment)?;
        let last = old.later.last().unwrap_or(&old.versions);
        if *last != new.versions {
            Record { later: [old.later.as_slice(), std::slice::from_ref(&new.versions)].concat(), ..old.clone() }.write(dir)?;
        }
        for (name, version) in &old.versions {
            let now = new.versions.get(name).map_or("none", String::as_str);
            if now != version {
                notes.push(format!("{name}: the run began with version {version}, and goes on with {now}"));
            }
        }
    }
    Ok(notes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The record is read with its hash, and a changed one is known.
    #[test]
    fn a_record_knows_whether_it_is_whole() {
        let dir = gradus_testing::tempdir().unwrap();
        let record = Record {
            executable: "python3".into(),
            choices: Vec::new(),
            low: vec![-1.0],
            high: vec![1.0],
            observations: Some("Discrete".into()),
            start: Some(3),
            image: false,
            parts: vec!["a".into(), "b.c".into()],
            versions: [("python".to_string(), "3.12".to_string())].into(),
            later: Vec::new(),
        };
        record.write(dir.path()).unwrap();
        let text = read_to_string(&dir.path().join(FILE)).unwrap();
        assert_eq!(is_whole(&text), Some(true), "{text}");
        assert_eq!(is_whole(&text.replace("-1.0", "-2.0")), Some(false));
        assert_eq!(is_whole(text.split(MARK).next().unwrap()), None);
        let read = Record::read(dir.path()).unwrap();
        assert_eq!((read.start, read.low, read.observations.as_deref()), (Some(3), vec![-1.0], Some("Discrete")));
        assert_eq!(read.parts, ["a", "b.c"]);
        // those of earlier versions
        let old = "executable = \"python3\"\n[versions]\npython = \"3.12\"\n";
        assert!(toml::from_str::<Record>(old).is_ok_and(|old| old.start.is_none() && !old.image));
    }
}
