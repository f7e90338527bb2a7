//! Processes of Python, which answer requests over pipes within a time.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

/// The interpreter that [`set_python`] chose.
static PYTHON: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The interpreter that [`suggest_python`] chose.
static SUGGESTED: Mutex<Option<PathBuf>> = Mutex::new(None);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Chooses the Python interpreter of the processes that are started from now on. Without this call it is the variable `GRADUS_PYTHON`, or the
/// `python` of the active virtual environment, or `python3`.
pub fn set_python(path: impl Into<PathBuf>) {
    *lock(&PYTHON) = Some(path.into());
}

/// Returns the Python interpreter that [`set_python`] chose, if it was called.
pub fn chosen_python() -> Option<PathBuf> {
    lock(&PYTHON).clone()
}

/// Chooses the Python interpreter that is used if nothing else is chosen, before `python3`.
pub fn suggest_python(path: impl Into<PathBuf>) {
    *lock(&SUGGESTED) = Some(path.into());
}

/// Returns the Python interpreter that processes are started with.
pub fn python() -> PathBuf {
    if let Some(path) = &*lock(&PYTHON) {
        return path.clone();
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let of_venv = |dir: PathBuf| if cfg!(windows) { dir.join("Scripts/python.exe") } else { dir.join("bin/python") };
    let default = if cfg!(windows) { "python" } else { "python3" };
    let chosen = set("GRADUS_PYTHON").or_else(|| set("VIRTUAL_ENV").map(of_venv));
    chosen.or_else(|| lock(&SUGGESTED).clone()).unwrap_or_else(|| default.into())
}

/// How long a process may take to end by itself.
const CLOSING: Duration = Duration::from_secs(5);

/// The kind of an answer, and its text.
pub(crate) type Answer = (u8, Vec<u8>);

/// The most bytes of a process's messages that are kept: the first and the last ones.
const KEPT: usize = 32 << 10;

/// A process that is ended if it does not answer in time.
struct Watched {
    /// It has a group of processes, which ends with it: those that it forks belong to the group.
    child: Mutex<Child>,
    /// When it is late, in milliseconds since [`START`]; 0 while it has nothing to do.
    deadline: AtomicU64,
    is_late: AtomicBool,
}

impl Watched {
    fn kill(&self) {
        let mut child = lock(&self.child);
        if cfg!(unix) {
            // the standard library cannot send signals
            let mut command = Command::new("kill");
            command.args(["-KILL", "--", &format!("-{}", child.id())]).stdout(Stdio::null()).stderr(Stdio::null());
            _ = command.status();
        }
        _ = child.kill();
    }
}

/// Ends all processes of Python at once, for a program that ends without dropping its environments.
pub fn end_all() {
    lock(&WATCHED).iter().filter_map(Weak::upgrade).for_each(|process| process.kill());
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn now() -> u64 {
    START.elapsed().as_millis() as u64
}

/// The running processes. A thread looks at them from time to time.
static WATCHED: Mutex<Vec<Weak<Watched>>> = Mutex::new(Vec::new());

fn watch(process: &Arc<Watched>) {
    let mut all = lock(&WATCHED);
    all.retain(|process| process.strong_count() > 0);
    all.push(Arc::downgrade(process));
    static THREAD: LazyLock<()> = LazyLock::new(|| {
        thread::spawn(|| {
            loop {
                thread::sleep(Duration::from_millis(200));
                for process in lock(&WATCHED).iter().filter_map(Weak::upgrade) {
                    let deadline = process.deadline.load(Ordering::Relaxed);
                    if deadline != 0 && now() > deadline {
                        process.is_late.store(true, Ordering::Relaxed);
                        process.kill();
                    }
                }
            }
        });
    });
    LazyLock::force(&THREAD);
}

/// What a worker has printed.
#[derive(Default)]
struct Messages {
    first: Vec<u8>,
    last: VecDeque<u8>,
}

impl Messages {
    fn add(&mut self, bytes: &[u8]) {
        let (first, last) = bytes.split_at((KEPT - self.first.len()).min(bytes.len()));
        self.first.extend_from_slice(first);
        self.last.extend(last);
        let more = self.last.len().saturating_sub(KEPT);
        self.last.drain(..more);
    }

    fn text(&self) -> String {
        let last: Vec<u8> = self.last.iter().copied().collect();
        String::from_utf8_lossy(&self.first).into_owned() + &String::from_utf8_lossy(&last)
    }
}

/// A request that was not answered.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The number of the environment with the exception; `None` if the process has ended, or failed elsewhere.
    pub(crate) env: Option<usize>,
    /// What happened, in one line.
    pub(crate) problem: String,
}

/// What a process runs.
pub(crate) struct Program {
    /// The source. It reads requests from its standard input.
    pub(crate) source: &'static str,
    /// Its name in lists of processes, and of the file with its messages.
    pub(crate) name: &'static str,
    /// What the interpreter must be, if it cannot be run.
    pub(crate) advice: &'static str,
    /// What sets the limit of its time.
    pub(crate) limit: &'static str,
}

/// A process of Python.
pub(crate) struct Process {
    watched: Arc<Watched>,
    /// `None` after it was closed.
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    messages: Arc<Mutex<Messages>>,
    name: &'static str,
    limit: &'static str,
    is_broken: bool,
}

impl Process {
    pub(crate) fn start(python: &Path, program: Program) -> Result<Self, String> {
        let Program { source, name, advice, limit } = program;
        let mut command = Command::new(python);
        // the source is read from the pipe, so that lists of processes show a short command
        let n = source.len();
        let loader = format!(
            "import os; s = b''\nwhile len(s) < {n}: s += os.read(0, {n} - len(s)) or exit()\nexec(compile(s, '<string>', 'exec'))"
        );
        command.args(["-c", &loader, name]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // the processes of a run share the cores
        for threads in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            if std::env::var_os(threads).is_none() {
                command.env(threads, "1");
            }
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| format!("cannot run {}: {error}; {advice}", python.display()))?;
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut requests), Some(answers), Some(errors)) = taken else { return Err("the process has no pipes".into()) };
        // if it has already ended, the first request says so
        _ = requests.write_all(source.as_bytes());
        let (child, deadline, is_late) = (Mutex::new(child), AtomicU64::new(0), AtomicBool::new(false));
        let watched = Arc::new(Watched { child, deadline, is_late });
        watch(&watched);
        let messages = Arc::new(Mutex::new(Messages::default()));
        keep(errors, messages.clone());
        Ok(Self { watched, requests: Some(requests), answers, messages, name, limit, is_broken: false })
    }

    /// Whether it has answered every request.
    pub(crate) fn is_alive(&self) -> bool {
        !self.is_broken
    }

    /// Sends a request in JSON: the byte `command`, the length, and the text. Returns the answer, which is in JSON too.
    pub(crate) fn ask_json(&mut self, command: u8, request: &Json, seconds: u64) -> Result<Json, Failure> {
        let text = request.to_string();
        let mut message = vec![command];
        message.extend((text.len() as u32).to_le_bytes());
        message.extend(text.as_bytes());
        match self.ask(&message, seconds)? {
            (b'j', text) => {
                serde_json::from_slice(&text).map_err(|error| Failure { env: None, problem: format!("expected JSON, got: {error}") })
            }
            (kind, _) => Err(self.wrong_answer(kind)),
        }
    }

    /// The error of an answer of another kind than expected.
    pub(crate) fn wrong_answer(&mut self, kind: u8) -> Failure {
        self.is_broken = true;
        Failure { env: None, problem: format!("expected an answer of the protocol, got {:?}", char::from(kind)) }
    }

    /// Sends a request, and waits for the answer.
    pub(crate) fn ask(&mut self, message: &[u8], seconds: u64) -> Result<Answer, Failure> {
        self.in_time(seconds, |process| {
            process.send(message)?;
            process.read_answer()
        })
    }

    /// Calls `exchange`, which sends a request and reads the answer.
    pub(crate) fn in_time(&mut self, seconds: u64, exchange: impl FnOnce(&mut Self) -> io::Result<Answer>) -> Result<Answer, Failure> {
        self.watched.deadline.store(now() + 1000 * seconds, Ordering::Relaxed);
        let answered = exchange(self);
        self.watched.deadline.store(0, Ordering::Relaxed);
        match answered {
            Ok((b'e', text)) => {
                self.is_broken = true;
                let answer: Json = serde_json::from_slice(&text).unwrap_or_default();
                let problem = answer["problem"].as_str().unwrap_or("an exception without a message").to_owned();
                Err(Failure { env: answer["env"].as_u64().map(|env| env as usize), problem: problem + &self.kept_messages() })
            }
            Ok(answer) => Ok(answer),
            Err(_) => {
                self.is_broken = true;
                let problem = if self.watched.is_late.load(Ordering::Relaxed) {
                    format!("no answer within {seconds} s, so its process was ended ({} sets the limit)", self.limit)
                } else {
                    self.ending()
                };
                Err(Failure { env: None, problem: problem + &self.kept_messages() })
            }
        }
    }

    pub(crate) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.requests.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |requests| requests.write_all(message))
    }

    pub(crate) fn read_answer(&mut self) -> io::Result<Answer> {
        let mut kind = [0];
        self.answers.read_exact(&mut kind)?;
        if !matches!(kind[0], b'j' | b'e') {
            return Ok((kind[0], Vec::new()));
        }
        let mut len = [0; 4];
        self.answers.read_exact(&mut len)?;
        let mut text = Vec::new();
        let len = u64::from(u32::from_le_bytes(len));
        if self.answers.by_ref().take(len).read_to_end(&mut text)? < len as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok((kind[0], text))
    }

    /// Says how the process ended.
    fn ending(&self) -> String {
        let mut child = lock(&self.watched.child);
        for _ in 0..40 {
            if let Ok(Some(status)) = child.try_wait() {
                return format!("its Python process ended {}", shown(status));
            }
            thread::sleep(Duration::from_millis(50));
        }
        drop(child);
        self.watched.kill();
        "its Python process closed its pipe".into()
    }

    /// Writes the process's messages, if there are any, to a file, and says where it is.
    pub(crate) fn kept_messages(&self) -> String {
        // the thread that reads them may be behind
        thread::sleep(Duration::from_millis(50));
        let text = lock(&self.messages).text();
        if text.trim().is_empty() {
            return String::new();
        }
        let id = lock(&self.watched.child).id();
        let path = std::env::temp_dir().join(format!("{}-{id}.txt", self.name));
        // a file of that name may be a link that leads elsewhere
        _ = std::fs::remove_file(&path);
        match std::fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => format!("; what Python printed is in {}", path.display()),
            Err(_) => String::new(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // it may have to close what it has open, such as a video that it writes
        self.requests = None;
        let began = Instant::now();
        while !self.is_broken && began.elapsed() < CLOSING && matches!(lock(&self.watched.child).try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(2));
        }
        self.watched.kill();
        _ = lock(&self.watched.child).wait();
    }
}

fn keep(mut from: ChildStderr, messages: Arc<Mutex<Messages>>) {
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            lock(&messages).add(&buffer[..n]);
        }
    });
}

#[cfg(unix)]
fn shown(status: ExitStatus) -> String {
    match std::os::unix::process::ExitStatusExt::signal(&status) {
        Some(signal) => format!("by signal {signal}"),
        None => format!("with code {}", status.code().unwrap_or_default()),
    }
}

#[cfg(not(unix))]
fn shown(status: ExitStatus) -> String {
    format!("with code {}", status.code().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_messages_the_first_and_the_last_are_kept() {
        let mut messages = Messages::default();
        messages.add(b"first\n");
        for _ in 0..100 {
            messages.add(&[b'.'; 4096]);
        }
        messages.add(b"\nlast");
        let text = messages.text();
        assert!(text.starts_with("first\n") && text.ends_with("\nlast") && text.len() == 2 * KEPT, "{}", text.len());
    }
}
