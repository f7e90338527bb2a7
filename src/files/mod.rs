//! Atomic writes of files, and the lock of a folder.

pub(crate) mod format;

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::Error;

/// Replaces the file `path` atomically: even if the process is killed, `path` is either the old file or the new file.
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

/// Locks the folder `dir` until the returned file is dropped. Returns an error with `problem` if this or another process holds the lock.
/// The lock is a separate hidden file, because a locked file cannot be read on Windows.
pub(crate) fn lock(dir: &Path, problem: &str) -> Result<File, Error> {
    let path = dir.join(".lock");
    let file = File::create(&path).map_err(Error::io("create", &path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::folder(dir, problem)),
        _ => Ok(file), // an error other than `WouldBlock` means that the file system has no locks
    }
}

/// Returns a hidden path in the folder of `path`.
pub(crate) fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.{what}-{}", std::process::id()))
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(Error::io("read", path))
}
