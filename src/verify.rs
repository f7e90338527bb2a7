//! Checks that the files of a run, of a policy or of a comparison are as they were written.
//!
//! | folder | files with a hash | where the hash is |
//! | --- | --- | --- |
//! | run | `state.safetensors`, `policy.safetensors`, `rankings.safetensors` | in the file itself, see [`tensors::encode`](crate::nets::tensors::encode) |
//! | | `metrics.csv`, `episodes.csv`, `timing.csv` and the event file, up to the checkpoint | in the checkpoint, `state.safetensors` |
//! | | `replay/PAGE-VERSION.safetensors`, the replay buffer | in the checkpoint, and in the file itself |
//! | | `config.toml` | compared with its copy in the tensor files |
//! | | maps, problems and other inputs from outside | in `[inputs]` of `config.toml` |
//! | policy of a warm start, reward model | `metrics.csv` | in the note of `policy.safetensors` |
//! | comparison | the tables and `comparison.toml` | in `SHA256SUMS`, which the command `sha256sum -c` also reads |
//! | | the policies in `policies/names.txt` | in the files themselves |
//! | | `runs/KEY.csv`, `.timing`, `.problems` and `.state` | in the files themselves; that of `.problems` in `runs/KEY.csv` |
//!
//! Every hash is a SHA-256. Figures and reports have none, because `gradus plot` and `gradus compare` draw them again.

use std::path::Path;

use crate::Error;
use crate::compare;
use crate::run::verify as run;
use crate::saved::CONFIG;

/// The result of checking a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The file is as it was written.
    Intact,
    /// The file has no hash, because an older version or another program wrote it, or its agent is one of another program.
    Unknown,
    /// The file is damaged or missing.
    Damaged,
}

/// A checked file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The result.
    pub verdict: Verdict,
    /// The file's path, and what there is to say about the file.
    pub line: String,
}

impl Checked {
    pub(crate) fn intact(path: &Path, detail: impl AsRef<str>) -> Self {
        let colon = if detail.as_ref().is_empty() { "" } else { ": " };
        Self { verdict: Verdict::Intact, line: format!("{}{colon}{}", path.display(), detail.as_ref()) }
    }

    pub(crate) fn unknown(path: &Path) -> Self {
        Self { verdict: Verdict::Unknown, line: format!("{}: no hash, written by an older version or another program", path.display()) }
    }

    /// `problem` names the file.
    pub(crate) fn damaged(problem: impl ToString) -> Self {
        Self { verdict: Verdict::Damaged, line: problem.to_string() }
    }
}

/// Checks a run folder, a folder with a policy, a comparison, or a single tensor file.
///
/// # Errors
/// If `path` is none of these, or cannot be read.
pub fn verify(path: &Path) -> Result<Vec<Checked>, Error> {
    if path.is_file() {
        return Ok(vec![run::tensors(path, None)]);
    }
    if path.join(CONFIG).exists() {
        return run::folder(path);
    }
    compare::verify(path)
}
