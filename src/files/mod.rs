//! Files that are never half-written, and the lock of a folder.

pub(crate) mod csv;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// Puts `bytes` into `path` all at once: a reader, or a kill at any moment, finds the old file or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path, "tmp");
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        drop(file); // some systems do not rename an open file
        fs::rename(&temporary, path)
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&temporary);
    })
}

/// Locks the folder `dir` for as long as the returned file lives; an error with `problem` where another process, or this one, holds it. The lock
/// is a hidden file of its own, because a locked file cannot be read on Windows.
pub(crate) fn lock(dir: &Path, problem: &str) -> Result<File, Error> {
    let path = dir.join(".lock");
    let file = File::create(&path).map_err(Error::io("create", &path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::folder(dir, problem)),
        _ => Ok(file), // a file system without locks
    }
}

/// A hidden name next to `path`.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.{what}-{}", std::process::id()))
}

/// The file's bytes.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::io("read", path))
}
