//! What the numbers of a run depend on besides its settings: the code and the input files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gradus::config::inputs;
use gradus::envs::gym;
use gradus::files::{read, read_named};
use gradus::{Config, Error};

/// The code that determines the numbers of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Gradus, identified by a hash of its sources and of Cargo.lock, computed at build time. Comments on their own lines, tests, and code that only
    /// shows, draws or analyses numbers do not affect the hash. Runs with a registered agent or environment of another crate are those of
    /// [`Program`](Code::Program).
    Gradus,
    /// This program, identified by a hash of its executable, which every new build may change.
    Program,
}

impl Code {
    /// Returns the line that identifies the code of a run with these settings.
    pub(super) fn line(self, config: &Config) -> Result<String, Error> {
        let version = env!("CARGO_PKG_VERSION");
        let is_own = gradus::agents::registry::is_registered(&config.agent) || gradus::envs::registry::is_registered(&config.environment);
        match if is_own { Code::Program } else { self } {
            Code::Gradus => Ok(format!("code: gradus {version}, sources {}", gradus::CODE)),
            Code::Program => {
                let path = std::env::current_exe().map_err(Error::io("find", Path::new("this program")))?;
                Ok(format!("code: gradus {version}, executable {:016x}", hash(&read(&path)?)))
            }
        }
    }
}

/// The versions of what steps an environment of Gymnasium, such as `python 3.12.1, gymnasium 1.4.0`.
pub(super) fn versions(environment: &str) -> Result<String, Error> {
    let versions = gym::describe(environment)?.versions;
    Ok(versions.iter().map(|(package, version)| format!("{package} {version}")).collect::<Vec<_>>().join(", "))
}

/// FNV-1a, 64 bits.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The hashes of the files that trainings read, each computed once.
#[derive(Default)]
pub(super) struct Inputs(BTreeMap<PathBuf, u64>);

impl Inputs {
    /// Returns one line for each file that a training with these settings reads. The line has the file's path, relative to the
    /// folder `dir`, and its hash.
    pub(super) fn lines(&mut self, config: &Config, dir: &Path) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        if gym::is_gym(&config.environment) {
            lines.push(format!("the Python of {}: {}", config.environment, versions(&config.environment)?));
        }
        for (setting, path) in config.all_inputs() {
            // the settings have the hash of a text task
            if setting == inputs::ENVIRONMENT && config.text.is_some() {
                continue;
            }
            for file in inputs::files(&setting, &path)? {
                let hash = match self.0.get(&file) {
                    Some(hash) => *hash,
                    None => *self.0.entry(file.clone()).or_insert(hash(&read_named(&file)?)),
                };
                lines.push(format!("{setting}: {} {hash:016x}", inputs::relative_to(dir, &file).display()));
            }
        }
        Ok(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus::saved::EXAMPLES_FILE;

    /// Every file that a training reads has a line, which changes with the file's contents.
    #[test]
    fn input_files_are_identified_by_their_contents() {
        let dir = gradus_testing::tempdir().unwrap();
        let config = Config::preset("grpo", "preference", None).unwrap();
        let settings = ["init", "reward_model.folder"].map(|key| format!("{key}={}", dir.path().display()));
        let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let lines = || Inputs::default().lines(&config, Path::new("")).unwrap();
        assert!(Inputs::default().lines(&config, Path::new("")).is_err(), "an empty folder is not a run folder");
        write("policy.safetensors", "a");
        assert_eq!(lines().len(), 2);
        write(EXAMPLES_FILE, "b");
        let before = lines();
        assert_eq!(before.len(), 3);
        write(EXAMPLES_FILE, "c");
        assert!(lines()[..2] == before[..2] && lines()[2] != before[2]);
        write("policy.safetensors", "d");
        assert!(lines().iter().zip(&before).all(|(now, before)| now != before));
    }

    #[test]
    fn a_program_is_identified_by_the_hash_of_its_executable() {
        let of = |code: Code, config: &Config| code.line(config).unwrap();
        let config = Config::default();
        let line = of(Code::Program, &config);
        assert_eq!(line, of(Code::Program, &config));
        assert_ne!(line, of(Code::Gradus, &config));
        // an environment of another crate
        let mut world = gradus::envs::registry::find("cartpole").unwrap();
        (world.name, world.gymnasium_id) = ("copied-cartpole".into(), None);
        gradus::envs::registry::register(world).unwrap();
        assert_eq!(line, of(Code::Gradus, &config.with_setting("environment=copied-cartpole").unwrap()));
        // the published test values of FNV-1a
        assert_eq!((hash(b""), hash(b"a"), hash(b"foobar")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c, 0x8594_4171_f739_67e8));
    }
}
