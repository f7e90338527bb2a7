//! Checks that the files of a run, of a policy or of a comparison are as they were written.
//!
//! | folder | files with a hash | where the hash is |
//! | --- | --- | --- |
//! | run | `state.safetensors`, `policy.safetensors`, `rankings.safetensors` | in the file itself, see [`tensors::encode`](gradus::nets::tensors::encode) |
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

use gradus::Error;
use gradus::run::verify as run;
pub use gradus::run::verify::{Checked, Verdict};
use gradus::saved::CONFIG;

use crate::folder;

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
    folder::verify(path)
}
