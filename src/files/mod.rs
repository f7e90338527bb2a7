//! Atomic writes of files, temporary names, hashes, and the lock of a folder.

pub(crate) mod folder;
#[doc(hidden)]
pub mod format;

use std::fs::{self, DirEntry, File, FileType, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use gradus_base::files::MARK;
use gradus_base::panics;
use hmac_sha256::Hash;

use crate::Error;
use crate::memory::{self, shown};

/// The most bytes that are read from a pipe or a device.
const MOST_OF_A_PIPE: u64 = 1 << 30;
/// The standard library's message about a file that is not text.
const NOT_TEXT: &str = "stream did not contain valid UTF-8";

/// A SHA-256.
pub(crate) type Sha256 = [u8; 32];

/// Returns the hash in hexadecimal digits.
pub fn hexadecimal(hash: &Sha256) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// How often a temporary name is replaced by another one, if its file has disappeared or belongs to another process.
const ATTEMPTS: usize = 8;

/// Replaces the file `path` atomically: even if the process is killed or the machine stops, `path` is either the old file or the new file.
///
/// The temporary file is locked while it is written. `remove_leftovers` of other processes therefore keeps it.
///
/// A link to a file stays a link, and the file that it names is replaced, with the permissions that it has. A pipe or a device is written to.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let named = if path.is_symlink() { fs::canonicalize(path).ok() } else { None };
    let path = named.as_deref().unwrap_or(path);
    let old = fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file() && !old.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let attempt = |temporary: &Path| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
        let write = || {
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(ErrorKind::NotFound.into()); // another process is removing it
            }
            file.write_all(bytes)?;
            if let Some(old) = &old {
                let _ = file.set_permissions(old.permissions()); // some file systems have none
            }
            file.sync_data()?;
            drop(file); // some systems do not rename an open file
            fs::rename(temporary, path)
        };
        write().inspect_err(|_| {
            let _ = fs::remove_file(temporary);
        })
    };
    with_temporary(path, TEMPORARY_FILE, attempt)?;
    sync_folder(folder_of(path))
}

/// Calls `attempt` with a temporary path that does not exist, and again with another one if the path is taken or has been removed.
fn with_temporary<T>(path: &Path, mark: &str, attempt: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    let mut attempts = 1;
    loop {
        match attempt(&beside(path, mark)) {
            // if the folder itself is missing, every attempt fails in the same way
            Err(error) if attempts < ATTEMPTS && matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => attempts += 1,
            result => return result,
        }
    }
}

/// Creates the folder `dir` with the files that `fill` writes. It is filled under a temporary name, so it appears complete or not at all. If
/// `dir` exists, it must be empty.
///
/// The lock file of the temporary folder is locked while the folder is filled. [`remove_leftovers`] of other processes therefore keeps it.
pub fn create_folder(dir: &Path, fill: impl Fn(&Path) -> Result<(), Error>) -> Result<(), Error> {
    create_parents(dir).map_err(Error::io("create", folder_of(dir)))?;
    remove_leftovers(folder_of(dir), |name| dir.file_name().is_some_and(|own| own == name));
    let attempt = |temporary: &Path| {
        fs::create_dir(temporary)?;
        let make = || {
            let lock = File::create_new(temporary.join(LOCK))?;
            if let Err(TryLockError::WouldBlock) = lock.try_lock() {
                return Err(ErrorKind::NotFound.into()); // another process is removing the folder
            }
            // it may have been removed before the lock was taken; from here on it is kept
            fs::metadata(temporary.join(LOCK))?;
            if let Err(error) = fill(temporary) {
                return Ok(Err(error));
            }
            sync_folder(temporary)?;
            drop(lock); // some systems do not rename a folder with an open file
            if dir.exists() {
                fs::remove_dir(dir)?;
            }
            fs::rename(temporary, dir).map(Ok)
        };
        let result = make();
        if !matches!(result, Ok(Ok(()))) {
            let _ = fs::remove_dir_all(temporary);
        }
        result
    };
    with_temporary(dir, TEMPORARY_FOLDER, attempt).map_err(Error::io("create", dir))??;
    sync_folder(folder_of(dir)).map_err(Error::io("create", dir))
}

/// Returns an error if the folder `dir`, which does not exist, cannot be created. Creates the folders above it.
pub(crate) fn try_to_create(dir: &Path) -> io::Result<()> {
    create_parents(dir)?;
    with_temporary(dir, TEMPORARY_FOLDER, |temporary| fs::create_dir(temporary).and_then(|()| fs::remove_dir(temporary)))
}

/// Creates the folders above `path` that are missing.
pub(crate) fn create_parents(path: &Path) -> io::Result<()> {
    if let Some(file) = path.ancestors().skip(1).find(|folder| folder.exists() && !folder.is_dir()) {
        return Err(io::Error::new(ErrorKind::NotADirectory, format!("{} is not a folder", file.display())));
    }
    let missing: Vec<&Path> = path.ancestors().skip(1).take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists()).collect();
    fs::create_dir_all(folder_of(path))?;
    missing.into_iter().try_for_each(|folder| sync_folder(folder_of(folder)))
}

/// Returns the folder of `path`: `.` for a path without a folder.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes the names in a folder to disk, so that a created or renamed file is still there if the machine stops.
#[cfg(unix)]
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        // some file systems cannot sync a folder
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

/// Does nothing, because only Unix opens folders as files.
#[cfg(not(unix))]
pub(crate) fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The lock file of a folder. It is a file of its own, because an editor that saves a file replaces it, and because a locked file cannot be
/// read on Windows.
pub const LOCK: &str = ".lock";

/// Locks the folder `dir` until the returned file is dropped. Returns an error with `problem` if this or another process holds the lock.
/// Prints a warning if the file system has no locks.
pub fn lock(dir: &Path, problem: &str) -> Result<File, Error> {
    let path = dir.join(LOCK);
    expect_file(&path)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(Error::io("create", &path))?;
    // a process that looks for leftovers holds the lock of a new folder for a moment
    let mut result = file.try_lock();
    for _ in 0..10 {
        if !matches!(result, Err(TryLockError::WouldBlock)) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
        result = file.try_lock();
    }
    match result {
        Err(TryLockError::WouldBlock) => return Err(Error::folder(dir, problem)),
        Err(TryLockError::Error(error)) => {
            let advice = "make sure that no other process writes to this folder";
            let _ = writeln!(io::stderr(), "warning: cannot lock {} ({error}); {advice}", dir.display());
        }
        Ok(()) => {}
    }
    Ok(file)
}

/// Locks the file at `path`, which is created, until the returned file is dropped. Returns `None` if this or another process holds the lock. Where the file system
/// has no locks, everyone gets one.
pub fn try_lock(path: &Path) -> Result<Option<File>, Error> {
    expect_file(path)?;
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path).map_err(Error::io("create", path))?;
    let is_held = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    Ok((!is_held).then_some(file))
}

/// Parts of temporary names, of files and of folders.
const TEMPORARY_FILE: &str = "tmp";
const TEMPORARY_FOLDER: &str = "new";

/// Creates a file with a temporary name in the folder of `path`, which is then renamed to `path`. Returns it with its name.
pub(crate) fn create_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    with_temporary(path, TEMPORARY_FILE, |temporary| {
        let file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
        let _ = file.try_lock(); // other processes keep it
        Ok((file, temporary.to_path_buf()))
    })
}

/// Returns a new hidden path in the folder of `path`. It also depends on the time and on an address in memory, because in containers process ids are equal. The
/// system is not asked for random numbers, which it can refuse.
fn beside(path: &Path, mark: &str) -> PathBuf {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let hash = Hash::hash(format!("{} {time} {call} {:p}", std::process::id(), &raw const call).as_bytes());
    path.with_file_name(format!(".{name}.{mark}-{}", &hexadecimal(&hash)[..16]))
}

/// Returns an error unless `dir` is new, empty, or has the file `mark`, which shows that Gradus wrote it. `expected` is what the error expects. First
/// removes the temporary files of `outputs` that killed processes left behind.
pub fn expect_own(dir: &Path, (outputs, mark): (&[&str], &str), expected: &str) -> Result<(), Error> {
    let problem = |got: &str| Err(Error::folder(dir, format!("expected {expected}, got {got}")));
    if !exists(dir)? {
        return Ok(());
    }
    if !dir.is_dir() {
        return problem("a file");
    }
    remove_leftovers(dir, |name| outputs.contains(&name));
    let is_empty = entries(dir).map_err(Error::io("read", dir))?.is_empty();
    if is_empty || exists(&dir.join(mark))? { Ok(()) } else { problem("a folder with other files") }
}

/// Whether there is something at `path`. Unlike [`Path::exists`], an error of the system is not the answer that there is nothing.
pub fn exists(path: &Path) -> Result<bool, Error> {
    match path.try_exists() {
        // a file has no files below it
        Err(error) if error.kind() == ErrorKind::NotADirectory => Ok(false),
        result => result.map_err(Error::io("find", path)),
    }
}

/// An entry of a folder.
pub struct Entry {
    /// Its path.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// The type of the entry itself: a link is neither a file nor a folder. `None` if the system does not tell.
    pub kind: Option<FileType>,
}

/// Returns the entries of a folder, ordered by name. The standard library panics if a folder cannot be closed; here this is an error like others.
pub fn entries(dir: &Path) -> io::Result<Vec<Entry>> {
    let of = |entry: DirEntry| Entry {
        path: entry.path(),
        name: entry.file_name().to_string_lossy().into_owned(),
        kind: entry.file_type().ok(),
    };
    let read = || fs::read_dir(dir)?.map(|entry| Ok(of(entry?))).collect::<io::Result<Vec<Entry>>>();
    let mut entries = panics::catch(read).map_err(|panic| io::Error::other(Error::from(panic).to_string()))??;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

/// Removes the temporary files and folders in `dir` that killed processes left behind for the names that `is_own` accepts. Keeps those that
/// a process still writes, which it has locked.
pub fn remove_leftovers(dir: &Path, is_own: impl Fn(&str) -> bool) {
    for Entry { path, name, kind } in entries(dir).unwrap_or_default() {
        let original = |mark: &str| name.strip_prefix('.')?.rsplit_once(&format!(".{mark}-")).map(|(original, _)| original);
        match kind {
            Some(kind) if kind.is_file() && original(TEMPORARY_FILE).is_some_and(&is_own) => {
                let file = OpenOptions::new().write(true).open(&path);
                if file.as_ref().is_ok_and(|file| file.try_lock().is_ok()) {
                    let _ = fs::remove_file(&path);
                }
            }
            Some(kind) if kind.is_dir() => {
                if let Some(original) = original(TEMPORARY_FOLDER).filter(|name| is_own(name)) {
                    remove_left_folder(&path, original);
                }
            }
            _ => {}
        }
    }
}

/// Removes the temporary files that killed processes left behind when they wrote the file `path`.
pub(crate) fn remove_leftovers_of(path: &Path) {
    remove_leftovers(folder_of(path), |name| path.file_name().is_some_and(|own| own == name));
}

/// Removes a temporary folder of the name `original`, unless a process has locked it.
fn remove_left_folder(path: &Path, original: &str) {
    let open = || OpenOptions::new().write(true).open(path.join(LOCK));
    // if its process has just created it and not yet locked it, it is empty; then the process takes another name
    let lock = open().or_else(|error| if fs::remove_dir(path).is_ok() { Err(error) } else { open() });
    let is_left = match &lock {
        Ok(lock) => lock.try_lock().is_ok(),
        // a process writes nothing into its folder before the lock file
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    // renamed before it is removed: a process that is about to give it its final name finds all of it or nothing
    let away = beside(&path.with_file_name(original), TEMPORARY_FOLDER);
    if is_left && fs::rename(path, &away).is_ok() {
        drop(lock); // some systems do not remove an open file
        let _ = fs::remove_dir_all(away);
    }
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(Error::io("open", path))
}

/// Reads a file in a folder that Gradus wrote. Anything else under its name, such as a pipe, which could block for ever, is an error, and
/// so is a file larger than the available memory.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    expect_file(path)?;
    read_named(path)
}

/// As `read`, for a file of text.
pub fn read_to_string(path: &Path) -> Result<String, Error> {
    text_of(path, read(path)?)
}

/// Reads a file that the user names, which may be a pipe such as `/dev/stdin`.
pub fn read_named(path: &Path) -> Result<Vec<u8>, Error> {
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

/// As [`read_named`], for a file of text, without the byte order mark of some editors.
pub fn read_named_to_string(path: &Path) -> Result<String, Error> {
    let text = text_of(path, read_named(path)?)?;
    Ok(text.strip_prefix(MARK).map(str::to_owned).unwrap_or(text))
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    let problem = |_| Error::Io { action: "read", path: path.into(), source: io::Error::new(io::ErrorKind::InvalidData, NOT_TEXT) };
    String::from_utf8(bytes).map_err(problem)
}

/// Returns an error if there is something other than a file at `path`; nothing at all is no error.
pub fn expect_file(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        Ok(data) if data.is_dir() => Err(Error::folder(path, "expected a file, got a folder")),
        Ok(data) if !data.is_file() => Err(Error::folder(path, "expected a file, got a pipe, a socket or a device")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn leftovers_of_killed_processes_are_removed_and_files_in_use_are_kept() {
        let folder = gradus_testing::tempdir().unwrap();
        let dir = folder.path();
        let left = [".a.tmp-1", ".a.tmp-0123456789abcdef", ".b.new-7"];
        let kept = [".a.tmp", ".c.tmp-1", "a.tmp-1", ".d.new-1", "a"];
        left[..2].iter().chain(&kept).for_each(|name| fs::write(dir.join(name), "x").unwrap());
        fs::create_dir(dir.join(left[2])).unwrap();
        fs::write(dir.join(left[2]).join("config.toml"), "x").unwrap();
        // a file and a folder that another process is writing, and a folder without any file yet
        let (file, inner) = (dir.join(".a.tmp-2"), dir.join(".b.new-8"));
        fs::create_dir(&inner).unwrap();
        fs::create_dir(dir.join(".b.new-9")).unwrap();
        let locks = [file, inner.join(LOCK)].map(|path| File::create_new(path).unwrap());
        locks.iter().for_each(|lock| lock.try_lock().unwrap());
        remove_leftovers(dir, |name| ["a", "b"].contains(&name));
        let mut expected = [&kept[..], &[".a.tmp-2", ".b.new-8"]].concat();
        expected.sort_unstable();
        assert_eq!(names(dir), expected);
        drop(locks);
        remove_leftovers(dir, |name| ["a", "b"].contains(&name));
        assert_eq!(names(dir).len(), kept.len());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_permissions_too() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = gradus_testing::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        replace(&link, b"new").unwrap();
        assert!(link.is_symlink() && fs::read(&file).unwrap() == b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        // what is no file is written to
        replace(Path::new("/dev/null"), b"nothing").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    /// Writers and a process that removes leftovers, all at the same time.
    #[test]
    fn simultaneous_writers_leave_one_whole_file() {
        let folder = gradus_testing::tempdir().unwrap();
        let (dir, path) = (folder.path(), folder.path().join("file"));
        thread::scope(|scope| {
            for writer in 0..3_u8 {
                let path = &path;
                scope.spawn(move || (0..30).for_each(|_| replace(path, &[writer; 10_000]).unwrap()));
            }
            scope.spawn(|| (0..200).for_each(|_| remove_leftovers(dir, |name| name == "file")));
        });
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() == 10_000 && bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(names(dir), ["file"]);
    }

    /// Of several processes that create the same folder, one succeeds, and the folder has all of its files.
    #[test]
    fn simultaneous_creators_of_a_folder_leave_one_whole_folder() {
        let folder = gradus_testing::tempdir().unwrap();
        for round in 0..10 {
            let dir = folder.path().join(format!("run-{round}"));
            let create = || {
                let fill = |temporary: &Path| {
                    let write = |name: &str| fs::write(temporary.join(name), "x").map_err(Error::io("write", temporary));
                    (0..5).try_for_each(|number| write(&number.to_string()))
                };
                create_folder(&dir, fill).is_ok()
            };
            let created: usize = thread::scope(|scope| {
                let all: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
                all.into_iter().map(|thread| usize::from(thread.join().unwrap())).sum()
            });
            assert_eq!(created, 1);
            assert_eq!(names(&dir), [LOCK, "0", "1", "2", "3", "4"]);
        }
        assert_eq!(names(folder.path()).len(), 10, "no leftovers");
    }

    #[test]
    fn temporary_names_differ() {
        let path = Path::new("runs/first");
        let all: std::collections::BTreeSet<PathBuf> = (0..1000).map(|_| beside(path, TEMPORARY_FILE)).collect();
        assert_eq!(all.len(), 1000);
        assert!(all.iter().all(|other| other.parent() == path.parent()));
    }

    #[test]
    fn a_lock_holds_until_it_is_dropped() {
        let folder = gradus_testing::tempdir().unwrap();
        let first = lock(folder.path(), "taken").unwrap();
        assert!(lock(folder.path(), "taken").unwrap_err().to_string().ends_with(": taken"));
        drop(first);
        lock(folder.path(), "taken").unwrap();
        fs::remove_file(folder.path().join(LOCK)).unwrap();
        fs::create_dir(folder.path().join(LOCK)).unwrap();
        assert!(lock(folder.path(), "taken").unwrap_err().to_string().ends_with(".lock: expected a file, got a folder"));
    }
}
