//! Which process makes a run, if several share a folder.
//!
//! Whoever creates `KEY.claim` makes the run. The file has the machine, the process, a number that the process raises every few seconds, and the code of the program. A claim is stale if its
//! process has ended, which its lock tells on the same machine, or if its number has not changed for a minute of the observer's own time: clocks of different machines are
//! never compared. A stale claim is taken over by a rename, which succeeds for one process only. If the file system has no locks and loses a claim, a run is made twice, with
//! the same result.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gradus::Error;
use gradus::files::{Entry, entries, expect_file};

/// The ending of the files.
pub(super) const ENDING: &str = "claim";

/// Time between two numbers of a claim.
pub(super) const BEAT: Duration = Duration::from_secs(5);
/// Time without a new number after which a claim of another machine is stale.
const STALE: Duration = Duration::from_secs(60);

/// The claims of this process, and what it has seen of the others.
pub(super) struct Claims<'a> {
    folder: &'a Path,
    machine: String,
    stale: Duration,
    beats: AtomicU64,
    held: Mutex<BTreeMap<PathBuf, (File, String)>>,
    /// The text of a foreign claim, and when this process first read it.
    seen: Mutex<BTreeMap<PathBuf, (String, Instant)>>,
}

/// The answer to a claim.
pub(super) enum Taken<'a> {
    /// This process makes the run.
    Mine(Claim<'a>),
    /// Another process, or another thread of this one, makes it.
    Theirs,
    /// No file can be written. The run may be made twice, with the same result.
    Unclaimed,
}

/// A run that this process makes, until this is dropped.
pub(super) struct Claim<'a> {
    claims: &'a Claims<'a>,
    path: PathBuf,
}

fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns what tells this machine, since it was started, from others; empty if the system does not say.
fn machine() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let name = ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok()).unwrap_or_default();
    if boot.is_empty() { name } else { boot.trim().to_owned() }
}

impl<'a> Claims<'a> {
    /// The claims in the folder of the runs.
    pub(super) fn new(folder: &'a Path) -> Self {
        Self { folder, machine: machine(), stale: STALE, beats: AtomicU64::new(0), held: Mutex::default(), seen: Mutex::default() }
    }

    fn text(&self, code: &str) -> String {
        format!("{} {} {:08} {code}\n", self.machine, std::process::id(), self.beats.load(Ordering::Relaxed))
    }

    /// Claims the run `key`, which the program of this `code` makes. It is an error if a program of other code is making it: each would make the other's runs again.
    pub(super) fn take(&self, key: &str, code: &str) -> Result<Taken<'_>, Error> {
        let path = self.folder.join(format!("{key}.{ENDING}"));
        if expect_file(&path).is_err() {
            return Ok(Taken::Unclaimed);
        }
        match self.create(&path, code) {
            Taken::Theirs => {}
            taken => return Ok(taken),
        }
        match self.stale(&path) {
            // the lock of the stale file is held until there is a new one
            Some((text, _lock)) => {
                self.take_away(&path, &text);
                Ok(self.create(&path, code))
            }
            None => {
                let text = fs::read_to_string(&path).unwrap_or_default();
                match text.trim_end().splitn(4, ' ').nth(3).filter(|other| *other != code) {
                    Some(other) => {
                        Err(Error::folder(&path, format!("expected other processes with the same program ({code}), got one with {other}")))
                    }
                    None => Ok(Taken::Theirs),
                }
            }
        }
    }

    /// Creates the file of a claim, unless there is one.
    fn create(&self, path: &Path, code: &str) -> Taken<'_> {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(mut file) => {
                // another process may look at the lock at this moment
                for _ in 0..100 {
                    if !matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
                        break;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                // without a text, as on a full disk, it is a claim all the same
                let _ = file.write_all(self.text(code).as_bytes());
                open(&self.held).insert(path.into(), (file, code.to_owned()));
                Taken::Mine(Claim { claims: self, path: path.into() })
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Taken::Theirs,
            Err(_) => Taken::Unclaimed,
        }
    }

    /// Returns the text of a claim whose process has ended, or is silent, with its file, which is locked if the system has locks.
    fn stale(&self, path: &Path) -> Option<(String, File)> {
        if open(&self.held).contains_key(path) {
            return None;
        }
        let (mut bytes, mut file) = (Vec::new(), OpenOptions::new().read(true).write(true).open(path).ok()?);
        file.read_to_end(&mut bytes).ok()?;
        // a damaged claim is one, too
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if !text.is_empty() && text.split(' ').next() == Some(self.machine.as_str()) {
            match file.try_lock() {
                // what was locked may be the file of a claim that another process has taken over in between
                Ok(()) => return fs::read(path).is_ok_and(|now| now == bytes).then_some((text, file)),
                Err(TryLockError::WouldBlock) => return None,
                Err(TryLockError::Error(_)) => {}
            }
        }
        let mut seen = open(&self.seen);
        let now = Instant::now();
        let (known, since) = seen.entry(path.into()).or_insert((text.clone(), now));
        if *known != text {
            (*known, *since) = (text, now);
            return None;
        }
        (since.elapsed() >= self.stale).then_some((text, file))
    }

    /// Removes a stale claim, of which `text` was read, unless another process is faster.
    fn take_away(&self, path: &Path, text: &str) {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let place = format!("{}-{}-{}", self.machine, std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let away = path.with_extension(format!("{place}.stale"));
        if fs::rename(path, &away).is_err() {
            return;
        }
        match fs::read(&away) {
            // between the look and the rename, another process has taken over the run: it keeps its claim
            Ok(now) if String::from_utf8_lossy(&now) != text && fs::hard_link(&away, path).is_ok() => {}
            _ => _ = open(&self.seen).remove(path),
        }
        let _ = fs::remove_file(&away);
    }

    /// Removes the claims of this machine's processes that have ended.
    pub(super) fn remove_left(&self) {
        for Entry { path, name, .. } in entries(self.folder).unwrap_or_default() {
            if name.ends_with(&format!(".{ENDING}")) && self.stale(&path).is_some() || name.ends_with(".stale") {
                let _ = fs::remove_file(&path);
            }
        }
    }

    /// Raises the numbers of all claims of this process.
    pub(super) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
        for (file, code) in open(&self.held).values_mut() {
            // every text is as long as the one before
            let text = self.text(code);
            let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(text.as_bytes())).and_then(|()| file.sync_data());
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // removed before it is unlocked, unless another process thought that this one had ended
        let is_own = |text: String| text.starts_with(&format!("{} {} ", self.claims.machine, std::process::id())) || text.is_empty();
        if fs::read_to_string(&self.path).is_ok_and(is_own) {
            let _ = fs::remove_file(&self.path);
        }
        open(&self.claims.held).remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(folder: &'a Path, machine: &str, stale: Duration) -> Claims<'a> {
        Claims { machine: machine.into(), stale, ..Claims::new(folder) }
    }

    fn take<'a>(claims: &'a Claims, key: &str) -> Option<Claim<'a>> {
        match claims.take(key, "code").unwrap() {
            Taken::Mine(claim) => Some(claim),
            Taken::Theirs => None,
            Taken::Unclaimed => panic!("a file can be written"),
        }
    }

    #[test]
    fn a_run_has_one_claim() {
        let dir = gradus_testing::tempdir().unwrap();
        let (mine, other) = (Claims::new(dir.path()), Claims::new(dir.path()));
        let claim = take(&mine, "a").unwrap();
        assert!(take(&mine, "a").is_none() && take(&other, "a").is_none());
        assert!(take(&other, "b").is_some(), "another run");
        drop(claim);
        assert!(take(&other, "a").is_some() && fs::read_dir(dir.path()).unwrap().next().is_none(), "claims leave no files");
    }

    #[test]
    fn processes_of_other_code_do_not_share_runs() {
        let dir = gradus_testing::tempdir().unwrap();
        let (mine, other) = (Claims::new(dir.path()), Claims::new(dir.path()));
        let _claim = take(&mine, "a").unwrap();
        let problem = other.take("a", "gradus 9").err().map(|error| error.to_string()).unwrap();
        assert!(problem.ends_with("a.claim: expected other processes with the same program (gradus 9), got one with code"), "{problem}");
        assert!(matches!(other.take("b", "gradus 9"), Ok(Taken::Mine(_))));
    }

    #[test]
    fn claims_of_ended_processes_are_taken_over_at_once() {
        let dir = gradus_testing::tempdir().unwrap();
        fs::write(dir.path().join("a.claim"), format!("{} 1 7 code\n", machine())).unwrap();
        let claims = Claims::new(dir.path());
        assert!(take(&claims, "a").is_some(), "no process has locked it");
    }

    #[test]
    fn claims_of_other_machines_are_taken_over_when_they_are_silent() {
        let dir = gradus_testing::tempdir().unwrap();
        let (far, near) = (of(dir.path(), "far", STALE), of(dir.path(), "near", Duration::from_millis(60)));
        let claim = take(&far, "a").unwrap();
        for _ in 0..5 {
            far.beat();
            assert!(take(&near, "a").is_none(), "its number changes");
            thread::sleep(Duration::from_millis(20));
        }
        // a clock that is wrong, in either direction, changes nothing
        for year in [1990, 2090] {
            let time = std::time::UNIX_EPOCH + Duration::from_secs((year - 1970) * 31_557_600);
            File::options().write(true).open(dir.path().join("a.claim")).unwrap().set_modified(time).unwrap();
            far.beat();
            assert!(take(&near, "a").is_none());
        }
        assert!(take(&near, "a").is_none());
        thread::sleep(Duration::from_millis(80));
        let taken = take(&near, "a").expect("it was silent");
        assert!(take(&of(dir.path(), "third", STALE), "a").is_none());
        drop((claim, taken));
    }

    /// Of many processes that find the same stale claim, one makes the run.
    #[test]
    fn a_stale_claim_has_one_heir() {
        for _ in 0..50 {
            let dir = gradus_testing::tempdir().unwrap();
            fs::write(dir.path().join("a.claim"), format!("{} 1 7 code\n", machine())).unwrap();
            let all: Vec<Claims> = (0..4).map(|_| Claims::new(dir.path())).collect();
            let taken: Vec<Option<Claim>> = thread::scope(|scope| {
                let threads: Vec<_> = all.iter().map(|claims| scope.spawn(|| take(claims, "a"))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(taken.iter().flatten().count(), 1);
        }
    }
}
