//! The file that a program shares with a worker.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes the names of files differ.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Whether the files of ended processes have been removed.
static REMOVED: OnceLock<()> = OnceLock::new();

/// Removes the files of processes that were ended before their workers opened them.
fn remove_left(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name
            .strip_prefix("gradus-gym-")
            .and_then(|rest| rest.split('-').next())
            .filter(|id| id.bytes().all(|byte| byte.is_ascii_digit()));
        if process.is_some_and(|id| Path::new("/proc/self").exists() && !Path::new("/proc").join(id).exists()) {
            _ = fs::remove_file(entry.path());
        }
    }
}

/// A file without a name, as soon as both processes have opened it (where the system allows that).
pub(super) struct Frame {
    file: File,
    path: PathBuf,
}

impl Frame {
    /// Creates an empty file, in memory if the system has a folder for it.
    pub(super) fn create() -> io::Result<Self> {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.into() } else { std::env::temp_dir() };
        REMOVED.get_or_init(|| remove_left(&folder));
        let path = folder.join(format!("gradus-gym-{}-{}", process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(Self { file: options.open(&path)?, path })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says that the worker has opened the file: it vanishes with the last of the two processes.
    pub(super) fn opened(&self) {
        if cfg!(unix) {
            _ = fs::remove_file(&self.path);
        }
    }

    #[cfg(unix)]
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }

    #[cfg(unix)]
    pub(super) fn write(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.file, buffer, offset)
    }

    #[cfg(windows)]
    pub(super) fn read(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let n = std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset)?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            (buffer, offset) = (&mut buffer[n..], offset + n as u64);
        }
        Ok(())
    }

    #[cfg(windows)]
    pub(super) fn write(&self, mut buffer: &[u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            let n = std::os::windows::fs::FileExt::seek_write(&self.file, buffer, offset)?;
            (buffer, offset) = (&buffer[n..], offset + n as u64);
        }
        Ok(())
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.path);
    }
}
