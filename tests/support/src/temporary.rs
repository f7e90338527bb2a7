//! Temporary folders for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

/// A folder that is removed when the value is dropped.
pub struct TempDir(PathBuf);

impl TempDir {
    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Creates an empty folder.
pub fn tempdir() -> io::Result<TempDir> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let path = env::temp_dir().join(format!("gradus-test-{}-{}", process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {} // left by a killed process with the same id
            created => return created.map(|()| TempDir(path)),
        }
    }
}
