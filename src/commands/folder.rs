//! Folders that a command writes as a whole.

use std::fs;
use std::path::{Path, absolute};

use crate::Error;

/// Makes the folder `dir`, which must be new or empty, with the files that `write` writes to the folder that it is given: all of them or,
/// after an error, none.
pub(super) fn create(dir: &Path, write: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    let whole = absolute(dir).map_err(|source| io("find", dir, source))?;
    if whole.is_file() || fs::read_dir(&whole).is_ok_and(|mut entries| entries.next().is_some()) {
        let got = if whole.is_file() { "a file" } else { "a folder with other files" };
        return Err(Error::Folder { path: dir.into(), problem: format!("expected a folder that is new or empty, got {got}") });
    }
    // the files are written to a folder beside it, which is then renamed
    let name = whole.file_name().unwrap_or_default().display().to_string();
    let temporary = whole.with_file_name(format!(".{name}-{}", std::process::id()));
    let parent = whole.parent().unwrap_or(&whole);
    let written =
        fs::create_dir_all(parent).map_err(|source| io("create", parent, source)).and_then(|()| write(&temporary)).and_then(|()| {
            if whole.is_dir() {
                fs::remove_dir(&whole).map_err(|source| io("replace", &whole, source))?;
            }
            fs::rename(&temporary, &whole).map_err(|source| io("create", &whole, source))
        });
    if written.is_err() {
        let _ = fs::remove_dir_all(&temporary);
    }
    written
}

pub(super) fn io(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Io { action, path: path.into(), source }
}
