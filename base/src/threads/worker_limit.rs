//! Gives way to other programs: how many workers of a pool take part.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use super::lock;

/// How many workers take part, on a machine that other programs use too.
///
/// The operating system counts the time in which a thread could run but waited for a core. Every 10 ms, the pool adds this time up over its
/// threads. If they wait for more than a quarter of a core twice in a row, other programs need the cores, and as many workers rest as cores
/// are missing. As soon as half a core of the machine is idle, the pool tries again with one more worker, and as long as that goes well
/// with two more, four more and so on. After every failed trial it rests twice as long, up to 0.3 seconds.
///
/// Only Linux counts these times for every thread. On other systems, and in sandboxes without `/proc`, the number of workers does not change.
pub(super) struct WorkerLimit {
    began: Instant,
    /// Pieces of work so far.
    pieces: AtomicUsize,
    /// The number of workers that take part.
    active: AtomicUsize,
    /// When the waiting time is read next, in nanoseconds after `began`.
    next: AtomicU64,
    watch: Mutex<Watch>,
}

/// The waiting times at the last check.
struct Watch {
    /// The files with the scheduling statistics of the pool's threads, and their waiting time in nanoseconds.
    threads: Vec<(File, u64)>,
    /// When the times were read, in nanoseconds.
    read: u64,
    /// The idle time of all cores while workers rest, in seconds since the machine started.
    idle: Option<f64>,
    /// How long the pool rests if it has to give way the next time, in nanoseconds.
    pause: u64,
    /// How many workers come back at the next check without waiting.
    step: usize,
    /// Whether the threads waited too long before the last check.
    is_second: bool,
}

/// Nanoseconds between two checks while all workers take part.
const CHECK: u64 = 10_000_000;
/// Nanoseconds for which a pool tries one more worker.
const TRIAL: u64 = 5_000_000;
/// The shortest and the longest time in nanoseconds for which workers rest.
const PAUSE: [u64; 2] = [20_000_000, 300_000_000];
/// Nanoseconds until the next look at a machine without an idle core.
const LOOK: u64 = 50_000_000;
/// Cores that the threads of a pool may wait for, on average, before the pool gives way.
const PATIENCE: f64 = 0.25;

impl WorkerLimit {
    pub(super) fn new() -> Self {
        let watch = Watch { threads: Vec::new(), read: 0, idle: None, pause: PAUSE[0], step: 1, is_second: false };
        Self {
            began: Instant::now(),
            pieces: AtomicUsize::new(0),
            active: AtomicUsize::new(usize::MAX),
            next: AtomicU64::new(CHECK),
            watch: Mutex::new(watch),
        }
    }

    /// Adds this thread to the threads whose waiting time counts.
    pub(super) fn watch_this_thread(&self) {
        if cfg!(target_os = "linux")
            && let Ok(mut file) = File::open("/proc/thread-self/schedstat")
            && let Some(waited) = waited(&mut file)
        {
            lock(&self.watch).threads.push((file, waited));
        }
    }

    /// Returns the number of workers, of `workers`, that take part in the next piece of work.
    pub(super) fn active(&self, workers: usize) -> usize {
        // reading the clock takes 30 nanoseconds, and a piece of work a few microseconds or more
        let pieces = self.pieces.load(Ordering::Relaxed);
        self.pieces.store(pieces.wrapping_add(1), Ordering::Relaxed);
        if !pieces.is_multiple_of(8) {
            return self.active.load(Ordering::Relaxed).min(workers);
        }
        let now = self.began.elapsed().as_nanos() as u64;
        if now >= self.next.load(Ordering::Relaxed) {
            self.check(now, workers);
        }
        self.active.load(Ordering::Relaxed).min(workers)
    }

    #[cold]
    fn check(&self, now: u64, workers: usize) {
        let mut watch = lock(&self.watch);
        let mut waited_in_all = 0;
        for (file, before) in &mut watch.threads {
            let waited = waited(file).unwrap_or(*before);
            waited_in_all += waited.saturating_sub(*before);
            *before = waited;
        }
        let nanoseconds = (now - watch.read).max(1) as f64;
        watch.read = now;
        let missing = waited_in_all as f64 / nanoseconds;
        let active = self.active.load(Ordering::Relaxed).min(workers);
        let is_late = missing > PATIENCE;
        // a single delay is no reason to rest: even an idle machine has something to do now and then
        let is_single = is_late && !watch.is_second && active == workers && watch.pause == PAUSE[0];
        watch.is_second = is_late;
        let (active, until) = if is_single {
            (active, CHECK)
        } else if is_late {
            let pause = watch.pause;
            watch.pause = (2 * pause).min(PAUSE[1]);
            watch.step = 1;
            watch.idle = idle();
            (active.saturating_sub((missing.round() as usize).max(1)), pause)
        } else if active == workers {
            watch.pause = (watch.pause / 2).max(PAUSE[0]);
            (workers, CHECK)
        } else {
            let idle = idle();
            let cores = idle.zip(watch.idle).map(|(now, before)| (now - before) * 1e9 / nanoseconds);
            watch.idle = idle;
            // during a trial, the additional worker uses the core that was idle
            if cores.is_some_and(|cores| cores < 0.5) && watch.step == 1 {
                (active, LOOK)
            } else {
                let step = watch.step;
                watch.step = 2 * step;
                ((active + step).min(workers), TRIAL)
            }
        };
        self.active.store(active, Ordering::Relaxed);
        self.next.store(now + until, Ordering::Relaxed);
    }
}

/// Reads how long all cores together have been idle since the machine started, in seconds: the fourth and fifth number of the first line.
fn idle() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<f64> = text.lines().next()?.split_ascii_whitespace().skip(4).take(2).map_while(|ticks| ticks.parse().ok()).collect();
    Some(ticks.iter().sum::<f64>() / 100.0) // Linux counts hundredths of seconds for programs
}

/// Reads how long a thread has waited for a core, in nanoseconds: the second number of the file.
fn waited(file: &mut File) -> Option<u64> {
    let mut bytes = [0; 64];
    file.seek(SeekFrom::Start(0)).ok()?;
    let n = file.read(&mut bytes).ok()?;
    std::str::from_utf8(&bytes[..n]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}
