//! A process of Python that steps environments.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use super::description::Description;
use super::frame::Frame;
use super::query::Query;
use super::{Packages, lock};

/// The version of the protocol.
pub(super) const PROTOCOL: u64 = 2;

const SOURCE: &str = include_str!("worker.py");

/// Seconds within which a worker must answer, unless the variable [`LIMIT`] says otherwise. Making environments may take ten times as long.
const SECONDS: u64 = 300;
const LIMIT: &str = "GRADUS_GYM_SECONDS";

/// How long to look for an answer before sleeping, if the last one came within this time. Waking up takes up to a tenth of a millisecond, in a virtual
/// machine; eight environments of CartPole take as long. While it looks, the thread yields to any other.
const SPIN: Duration = Duration::from_micros(1500);

/// The bytes before the actions in the shared file: the count of the steps that were asked for.
pub(super) const HINT: usize = 64;

/// How long a worker may take to close its environments.
const CLOSING: Duration = Duration::from_secs(5);

/// The kind of an answer, and its text.
type Answer = (u8, Vec<u8>);

/// The most bytes of a worker's messages that are kept: the first and the last ones.
const KEPT: usize = 32 << 10;

/// A process that is ended if it does not answer in time.
struct Watched {
    child: Mutex<Child>,
    /// When it is late, in milliseconds since [`START`]; 0 while it has nothing to do.
    deadline: AtomicU64,
    is_late: AtomicBool,
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
                        _ = lock(&process.child).kill();
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
    last: std::collections::VecDeque<u8>,
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

/// An exception in an environment.
#[derive(Debug)]
pub(super) struct Failure {
    /// The environment's number in the worker; `None` if the worker has ended, or failed elsewhere.
    pub(super) env: Option<usize>,
    /// What happened, in one line.
    pub(super) problem: String,
}

/// A process of Python that steps environments.
pub(super) struct Worker {
    process: Arc<Watched>,
    /// `None` after it was closed.
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    messages: Arc<Mutex<Messages>>,
    seconds: u64,
    is_broken: bool,
    /// The steps that were asked for, and the worker's count of its answers.
    calls: u64,
    turn: [u8; 8],
    /// Whether the last step took less than [`SPIN`].
    is_quick: bool,
}

impl Worker {
    pub(super) fn start(python: &Path) -> Result<Self, String> {
        let seconds = match std::env::var(LIMIT) {
            Ok(text) => text
                .parse()
                .ok()
                .filter(|seconds| (1..=1_000_000).contains(seconds))
                .ok_or(format!("{LIMIT}: expected a whole number of seconds from 1 up, got `{text}`"))?,
            Err(_) => SECONDS,
        };
        let mut command = Command::new(python);
        // the source is read from the pipe, so that lists of processes show a short command
        let n = SOURCE.len();
        let loader = format!(
            "import os; s = b''\nwhile len(s) < {n}: s += os.read(0, {n} - len(s)) or exit()\nexec(compile(s, '<string>', 'exec'))"
        );
        command.args(["-c", &loader, "gradus-gym-worker"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // the vectors of a run share the cores
        for threads in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            if std::env::var_os(threads).is_none() {
                command.env(threads, "1");
            }
        }
        let advice = "expected a Python interpreter with gymnasium; --python PATH or the variable GRADUS_PYTHON names it";
        let mut child = command.spawn().map_err(|error| format!("cannot run {}: {error}; {advice}", python.display()))?;
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut requests), Some(answers), Some(errors)) = taken else { return Err("the worker has no pipes".into()) };
        // if it has already ended, the first request says so
        _ = requests.write_all(SOURCE.as_bytes());
        let process = Arc::new(Watched { child: Mutex::new(child), deadline: AtomicU64::new(0), is_late: AtomicBool::new(false) });
        watch(&process);
        let messages = Arc::new(Mutex::new(Messages::default()));
        keep(errors, messages.clone());
        Ok(Self {
            process,
            requests: Some(requests),
            answers,
            messages,
            seconds,
            is_broken: false,
            calls: 0,
            turn: [0; 8],
            is_quick: false,
        })
    }

    /// Whether it has answered every request.
    pub(super) fn is_alive(&self) -> bool {
        !self.is_broken
    }

    /// Asks what an environment is.
    pub(super) fn describe(&mut self, query: &Query) -> Result<Description, String> {
        let answer = self.ask_long(b'd', &query.to_json()).map_err(|failure| failure.problem)?;
        Description::parse(&answer)
    }

    /// Asks which versions of these packages there are. Returns the interpreter, and each package with its version, `None` if it is absent.
    pub(super) fn versions(&mut self, packages: &[&str]) -> Result<Packages, String> {
        let answer = self.ask_long(b'v', &json!({ "packages": packages })).map_err(|failure| failure.problem)?;
        let version = |package: &str| (package.to_owned(), answer["versions"][package].as_str().map(Into::into));
        let all = std::iter::once("python").chain(packages.iter().copied()).map(version).collect();
        Ok((answer["executable"].as_str().unwrap_or_default().into(), all))
    }

    /// Makes n environments, and shares a file with them. Returns the offsets in the file.
    pub(super) fn make(&mut self, n: usize, is_rendered: bool) -> Result<(Frame, Offsets), String> {
        let frame = Frame::create().map_err(|error| format!("cannot create a file to share: {error}"))?;
        let request = json!({ "n": n, "rendered": is_rendered, "frame": frame.path() });
        let answer = self.ask_long(b'm', &request).map_err(|failure| failure.problem)?;
        frame.opened();
        let offset = |what: &str| answer["offsets"][what].as_u64().ok_or_else(|| format!("the worker: expected the offset of {what}"));
        if offset("actions")? != offset("asked")? + HINT as u64 {
            return Err("the worker: expected the actions behind `asked`".into());
        }
        (self.calls, self.turn) = (0, [0; 8]);
        let offsets = Offsets {
            asked: offset("asked")?,
            answered: offset("answered")?,
            seeds: offset("seeds")?,
            marks: offset("marks")?,
            rewards: offset("rewards")?,
            flags: offset("flags")?,
            masks: offset("masks")?,
            final_masks: offset("final_masks")?,
            observations: offset("observations")?,
            final_observations: offset("final_observations")?,
            end: answer["end"].as_u64().unwrap_or_default(),
        };
        Ok((frame, offsets))
    }

    /// Lets the environment `env` write its picture behind everything else in the file. Returns its height and width.
    pub(super) fn picture(&mut self, env: usize) -> Result<[usize; 2], String> {
        let answer = self.ask_long(b'p', &json!({ "env": env })).map_err(|failure| failure.problem)?;
        Ok(["height", "width"].map(|what| answer[what].as_u64().unwrap_or_default() as usize))
    }

    fn ask_long(&mut self, command: u8, request: &Json) -> Result<Json, Failure> {
        let text = request.to_string();
        let mut message = vec![command];
        message.extend((text.len() as u32).to_le_bytes());
        message.extend(text.as_bytes());
        match self.ask(&message, 10 * self.seconds)? {
            (b'j', text) => serde_json::from_slice(&text)
                .map_err(|error| Failure { env: None, problem: format!("the worker: expected JSON, got: {error}") }),
            (kind, _) => Err(self.wrong_answer(kind)),
        }
    }

    /// Steps environments (`s`, or `a` with resets after the ends of episodes) as the marks in the file say. `actions` are the bytes of the actions behind [`HINT`]
    /// bytes.
    pub(super) fn step(&mut self, command: u8, actions: &mut [u8], frame: &Frame, offsets: &Offsets) -> Result<(), Failure> {
        self.calls += 1;
        // a hint only: the byte in the pipe is the request
        actions[..8].copy_from_slice(&self.calls.to_le_bytes());
        let broken = |error| Failure { env: None, problem: format!("cannot write the shared file: {error}") };
        frame.write(actions, offsets.asked).map_err(broken)?;
        let began = Instant::now();
        let exchange = |worker: &mut Self| {
            worker.send(&[command])?;
            let mut turn = [0; 8];
            while worker.is_quick && began.elapsed() < SPIN && frame.read(&mut turn, offsets.answered).is_ok() && turn == worker.turn {
                // the worker may be on the other half of this core, which looking would slow down
                (0..200).for_each(|_| std::hint::spin_loop());
                thread::yield_now();
            }
            let answer = worker.read_answer()?;
            frame.read(&mut worker.turn, offsets.answered).map(|()| answer)
        };
        let answer = self.in_time(self.seconds, exchange)?;
        self.is_quick = began.elapsed() < SPIN;
        if answer.0 == b'k' { Ok(()) } else { Err(self.wrong_answer(answer.0)) }
    }

    /// Resets the environments that are marked in the file. Returns whether they have masks.
    pub(super) fn reset(&mut self) -> Result<bool, Failure> {
        match self.ask(b"r", self.seconds)? {
            (b'k', _) => Ok(false),
            (b'm', _) => Ok(true),
            (kind, _) => Err(self.wrong_answer(kind)),
        }
    }

    fn wrong_answer(&mut self, kind: u8) -> Failure {
        self.is_broken = true;
        Failure { env: None, problem: format!("the worker: expected an answer of protocol {PROTOCOL}, got {:?}", char::from(kind)) }
    }

    /// Sends a request, and waits for the answer.
    fn ask(&mut self, message: &[u8], seconds: u64) -> Result<Answer, Failure> {
        self.in_time(seconds, |worker| {
            worker.send(message)?;
            worker.read_answer()
        })
    }

    /// Calls `exchange`, which sends a request and reads the answer.
    fn in_time(&mut self, seconds: u64, exchange: impl FnOnce(&mut Self) -> io::Result<Answer>) -> Result<Answer, Failure> {
        self.process.deadline.store(now() + 1000 * seconds, Ordering::Relaxed);
        let answered = exchange(self);
        self.process.deadline.store(0, Ordering::Relaxed);
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
                let problem = if self.process.is_late.load(Ordering::Relaxed) {
                    format!("no answer within {seconds} s, so its process was ended (the variable {LIMIT} sets the limit)")
                } else {
                    self.ending()
                };
                Err(Failure { env: None, problem: problem + &self.kept_messages() })
            }
        }
    }

    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        self.requests.as_mut().map_or(Err(io::ErrorKind::BrokenPipe.into()), |requests| requests.write_all(message))
    }

    fn read_answer(&mut self) -> io::Result<Answer> {
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
        let mut child = lock(&self.process.child);
        for _ in 0..40 {
            if let Ok(Some(status)) = child.try_wait() {
                return format!("its Python process ended {}", shown(status));
            }
            thread::sleep(Duration::from_millis(50));
        }
        _ = child.kill();
        "its Python process closed its pipe".into()
    }

    /// Writes the worker's messages, if there are any, to a file, and says where it is.
    fn kept_messages(&self) -> String {
        // the thread that reads them may be behind
        thread::sleep(Duration::from_millis(50));
        let text = lock(&self.messages).text();
        if text.trim().is_empty() {
            return String::new();
        }
        let id = lock(&self.process.child).id();
        let path = std::env::temp_dir().join(format!("gradus-gym-{id}.txt"));
        // a file of that name may be a link that leads elsewhere
        _ = std::fs::remove_file(&path);
        match std::fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes())) {
            Ok(()) => format!("; what Python printed is in {}", path.display()),
            Err(_) => String::new(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut child = lock(&self.process.child);
        // it closes its environments, of which one may be writing a video
        self.requests = None;
        let began = Instant::now();
        while !self.is_broken && began.elapsed() < CLOSING && matches!(child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(2));
        }
        _ = child.kill();
        _ = child.wait();
    }
}

/// Where the parts of the shared file begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offsets {
    pub(super) asked: u64,
    pub(super) answered: u64,
    pub(super) seeds: u64,
    pub(super) marks: u64,
    pub(super) rewards: u64,
    pub(super) flags: u64,
    pub(super) masks: u64,
    pub(super) final_masks: u64,
    pub(super) observations: u64,
    pub(super) final_observations: u64,
    pub(super) end: u64,
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
