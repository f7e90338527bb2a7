//! Signals that ask a command to stop: SIGINT (Ctrl-C), SIGTERM and, on Linux, SIGHUP. The first one stops the command at the next point
//! from which it can continue; the second one ends it at once.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

#[cfg(target_os = "linux")]
use signal_hook::consts::SIGHUP;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::output::complain;

/// The signals that stop a command. On other systems than Linux, SIGHUP keeps its default, because it is not known there whether `nohup`
/// started the command.
const STOPPING: &[i32] = &[
    SIGINT,
    SIGTERM,
    #[cfg(target_os = "linux")]
    SIGHUP,
];

/// The signal that the command has received, if any.
#[derive(Clone)]
pub(crate) struct Signals {
    /// Whether a signal was received.
    pub(crate) stop: Arc<AtomicBool>,
    /// Number of the signal.
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// Handles the signals of this process from now on, except those that it was started to ignore. If the system refuses, a signal ends
    /// the command at once.
    pub(crate) fn handle() -> Self {
        let signals = Self { stop: Arc::default(), number: Arc::default() };
        signals.register();
        signals
    }

    fn register(&self) {
        let ignored = ignored();
        for signal in STOPPING.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0) {
            // in this order, because the handlers are called in this order: the first signal must not find `stop` set
            let _ = flag::register_conditional_shutdown(signal, 128 + signal, self.stop.clone());
            let _ = flag::register_usize(signal, self.number.clone(), signal as usize);
            let _ = flag::register(signal, self.stop.clone());
        }
    }

    /// Exit code after the signal, as shells define it.
    pub(crate) fn exit_code(&self) -> u8 {
        128 + self.number.load(Ordering::Relaxed) as u8
    }

    /// Does what Ctrl-C does, for a key of the dashboard.
    #[cfg(feature = "watch")]
    pub(crate) fn interrupt(&self) {
        self.number.store(SIGINT as usize, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Prints `what` when the command is still busy a moment after the first signal. A command that goes on for more than
    /// [`PATIENCE`] after a signal other than Ctrl-C, such as a scheduler's before it kills, is ended with the line `end`: what it has saved so far is a
    /// checkpoint from which it can continue.
    pub(crate) fn announce(&self, what: &'static str, end: String) {
        let signals = self.clone();
        // without a thread, nothing is announced, and the command ends when its work does
        let _ = std::thread::Builder::new().spawn(move || {
            while !signals.stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(100));
            }
            std::thread::sleep(MOMENT);
            complain(what);
            std::thread::sleep(PATIENCE.saturating_sub(MOMENT));
            if signals.number.load(Ordering::Relaxed) != SIGINT as usize {
                complain(end);
                gradus::envs::end_processes();
                std::process::exit(signals.exit_code().into());
            }
        });
    }

    /// For a command that writes its results only at its end: the first signal already ends it, with one line.
    pub(crate) fn end_at_once() {
        let signals = Self { stop: Arc::default(), number: Arc::default() };
        let waiting = signals.clone();
        let thread = std::thread::Builder::new().spawn(move || {
            while !waiting.stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
            }
            complain("stopped before the end; no result was written");
            gradus::envs::end_processes();
            std::process::exit(waiting.exit_code().into());
        });
        // without a thread, a signal ends the command without a word
        if thread.is_ok() {
            signals.register();
        }
    }
}

/// How long a command may be busy after a signal before it says so.
const MOMENT: Duration = Duration::from_millis(700);
/// How long it may be busy before it is ended. Schedulers wait for 10 seconds or more.
const PATIENCE: Duration = Duration::from_secs(5);

/// Lets a write beyond the limit of a file's size (`ulimit -f`) fail with an error, instead of ending the process without a word.
pub(crate) fn survive_large_files() {
    #[cfg(unix)]
    let _ = flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// The signals that this process was started to ignore, one bit each, for example by `nohup`. Known only on Linux.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}
