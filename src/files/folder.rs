//! The names of the files in the folder of a run.

use std::path::{Path, PathBuf};

use super::exists;
use crate::Error;

/// Configuration file of a run folder.
pub const CONFIG: &str = "config.toml";
/// Latest checkpoint of a run folder.
pub(crate) const STATE: &str = "state.safetensors";
/// Policy file of a run folder.
pub(crate) const POLICY: &str = "policy.safetensors";
/// Policy file of a run folder with the policy of the best evaluation.
pub(crate) const BEST: &str = "best_policy.safetensors";
/// File with the rankings or the labelled steps that a reward model was trained on, in the model's folder.
pub const EXAMPLES_FILE: &str = "rankings.safetensors";
/// The file that identifies the folder of a comparison.
pub const COMPARISON: &str = "comparison.toml";
/// The file that identifies the folder of a sweep.
pub const SWEEP: &str = "sweep.toml";
/// The file that identifies the folder of a tuning.
pub const TUNING: &str = "tuning.toml";
/// The folder of a comparison with its runs' policies.
pub const POLICIES: &str = "policies";
/// The measurements of every iteration of a run.
pub(crate) const METRICS: &str = "metrics.csv";

/// Returns the error for a path that is no run folder, because it has no file called `missing`.
pub(crate) fn no_run(path: &Path, missing: &str) -> Error {
    let got = if path.join(COMPARISON).exists() {
        format!("a comparison, whose policies are files in {}, such as AGENT-ENVIRONMENT-SEED.safetensors", path.join(POLICIES).display())
    } else if path.is_file() {
        "a file".into()
    } else {
        format!("none: {missing} is missing")
    };
    Error::folder(path, format!("expected a run folder, got {got}"))
}

/// Returns the file with the policy of the run folder `path`. If `path` is a file, returns `path`.
pub(crate) fn policy_path(path: &Path) -> Result<PathBuf, Error> {
    if !path.is_dir() {
        return Ok(path.to_path_buf());
    }
    for name in [POLICY, STATE] {
        if exists(&path.join(name))? {
            return Ok(path.join(name));
        }
    }
    Err(no_run(path, POLICY))
}
