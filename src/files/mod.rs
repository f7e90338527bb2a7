//! Atomic writes of files, and the lock of a folder.

pub(crate) mod csv;
pub(crate) mod format;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::Error;
use crate::memory::{self, shown};

/// The most bytes that are read from a pipe or a device.
const MOST_OF_A_PIPE: u64 = 1 << 30;
/// The standard library's message about a file that is not text.
const NOT_TEXT: &str = "stream did not contain valid UTF-8";

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
    expect_file(&path)?;
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

/// Reads a file in a folder that Gradus wrote. Anything else under its name, such as a pipe, which could block for ever, is an error, and
/// so is a file larger than the available memory.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    expect_file(path)?;
    read_named(path)
}

/// As [`read`], for a file of text.
pub(crate) fn read_to_string(path: &Path) -> Result<String, Error> {
    expect_file(path)?;
    read_named_to_string(path)
}

/// Reads a file that the user names, which may be a pipe such as `/dev/stdin`.
pub(crate) fn read_named(path: &Path) -> Result<Vec<u8>, Error> {
    let io = || Error::io("read", path);
    // a folder can be opened, but not read
    let data = fs::metadata(path).map_err(io())?;
    if data.is_dir() {
        return Err(Error::folder(path, "expected a file, got a folder"));
    }
    let most = memory::available().unwrap_or(u64::MAX);
    if data.len() > most {
        return Err(Error::folder(path, format!("expected at most {}, the available memory, got {}", shown(most), shown(data.len()))));
    }
    let most = if data.is_file() { most } else { MOST_OF_A_PIPE.min(most) };
    let mut bytes = Vec::with_capacity(if data.is_file() { data.len() as usize } else { 0 });
    let mut file = File::open(path).map_err(io())?.take(most.saturating_add(1));
    file.read_to_end(&mut bytes).map_err(io())?;
    match bytes.len() as u64 > most {
        true => Err(Error::folder(path, format!("expected at most {}, got more", shown(most)))),
        false => Ok(bytes),
    }
}

/// As [`read_named`], for a file of text.
pub(crate) fn read_named_to_string(path: &Path) -> Result<String, Error> {
    let text = String::from_utf8(read_named(path)?);
    text.map_err(|_| Error::Io { action: "read", path: path.into(), source: io::Error::new(io::ErrorKind::InvalidData, NOT_TEXT) })
}

/// Returns an error if there is something other than a file at `path`; nothing at all is no error.
pub(crate) fn expect_file(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => Err(Error::folder(path, "expected a file, got a folder")),
        Ok(data) if !data.is_file() => Err(Error::folder(path, "expected a file, got a pipe, a socket or a device")),
        _ => Ok(()),
    }
}
