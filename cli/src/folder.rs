//! Folders that a command writes as a whole.

use std::fs;
use std::path::{Path, PathBuf, absolute};

use gradus::Error;
use gradus::files::{LOCK, create_folder};
use gradus::saved::EXAMPLES_FILE;

/// Makes the folder `dir`, which must be new or empty, with the files that `write` writes to the folder that it is given: all of them or,
/// after an error, none.
pub(crate) fn create(dir: &Path, write: impl Fn(&Path) -> Result<(), Error>) -> Result<(), Error> {
    if dir.is_file() || fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
        let got = if dir.is_file() { "a file" } else { "a folder with other files" };
        return Err(Error::Folder { path: dir.into(), problem: format!("expected a folder that is new or empty, got {got}") });
    }
    // `.` has no name that a temporary folder could have
    let whole = fs::canonicalize(dir).or_else(|_| absolute(dir)).map_err(|source| io("find", dir, source))?;
    // an error of the temporary folder is one of this folder
    let named = |error: Error, temporary: &Path| match error {
        Error::Folder { path, problem } if path == temporary => Error::Folder { path: dir.into(), problem },
        other => other,
    };
    create_folder(&whole, |temporary| write(temporary).map_err(|error| named(error, temporary)))?;
    // nobody trains in such a folder
    let _ = fs::remove_file(whole.join(LOCK));
    Ok(())
}

/// Returns an error if the folder has a reward model, whose policy only gives scores.
pub(crate) fn expect_policy(dir: &Path) -> Result<(), Error> {
    let problem = || Error::Folder { path: dir.into(), problem: "expected a policy that acts, got a reward model".into() };
    if dir.join(EXAMPLES_FILE).exists() { Err(problem()) } else { Ok(()) }
}

/// Replaces a folder that is no run, and has runs directly in it, by these runs.
pub(crate) fn with_runs_inside(dirs: Vec<PathBuf>) -> Vec<PathBuf> {
    let is_run = |dir: &Path| dir.join("config.toml").exists();
    let inside = |dir: PathBuf| {
        let entries = fs::read_dir(&dir).ok().filter(|_| !is_run(&dir)).into_iter().flatten();
        let mut runs: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_run(path)).collect();
        runs.sort();
        if runs.is_empty() { vec![dir] } else { runs }
    };
    dirs.into_iter().flat_map(inside).collect()
}

pub(crate) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { action, path: path.into(), source }
}
