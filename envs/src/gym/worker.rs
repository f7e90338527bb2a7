//! A process of Python that steps environments.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::Packages;
use super::description::Description;
use super::frame::Frame;
use super::query::Query;
use crate::python::{Failure, Process, Program};

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

/// A process of Python that steps environments.
pub(super) struct Worker {
    process: Process,
    seconds: u64,
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
        let advice = "expected a Python interpreter with gymnasium; --python PATH or the variable GRADUS_PYTHON names it";
        let limit = "the variable GRADUS_GYM_SECONDS";
        let program = Program { source: SOURCE, name: "gradus-gym-worker", advice, limit };
        Ok(Self { process: Process::start(python, program)?, seconds, calls: 0, turn: [0; 8], is_quick: false })
    }

    /// Whether it has answered every request.
    pub(super) fn is_alive(&self) -> bool {
        self.process.is_alive()
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

    /// Steps environments (`s`, or `a` with resets after the ends of episodes) as the marks in the file say. `actions` are the bytes of the actions behind [`HINT`]
    /// bytes.
    pub(super) fn step(&mut self, command: u8, actions: &mut [u8], frame: &Frame, offsets: &Offsets) -> Result<(), Failure> {
        self.calls += 1;
        // a hint only: the byte in the pipe is the request
        actions[..8].copy_from_slice(&self.calls.to_le_bytes());
        let broken = |error| Failure { env: None, problem: format!("cannot write the shared file: {error}") };
        frame.write(actions, offsets.asked).map_err(broken)?;
        let began = Instant::now();
        let Self { turn, is_quick, .. } = self;
        let exchange = |process: &mut Process| {
            process.send(&[command])?;
            let mut found = [0; 8];
            while *is_quick && began.elapsed() < SPIN && frame.read(&mut found, offsets.answered).is_ok() && found == *turn {
                // the worker may be on the other half of this core, which looking would slow down
                (0..200).for_each(|_| std::hint::spin_loop());
                thread::yield_now();
            }
            let answer = process.read_answer()?;
            frame.read(turn, offsets.answered).map(|()| answer)
        };
        let answer = self.process.in_time(self.seconds, exchange)?;
        self.is_quick = began.elapsed() < SPIN;
        if answer.0 == b'k' { Ok(()) } else { Err(self.process.wrong_answer(answer.0)) }
    }

    /// Resets the environments that are marked in the file. Returns whether they have masks.
    pub(super) fn reset(&mut self) -> Result<bool, Failure> {
        match self.process.ask(b"r", self.seconds)? {
            (b'k', _) => Ok(false),
            (b'm', _) => Ok(true),
            (kind, _) => Err(self.process.wrong_answer(kind)),
        }
    }

    fn ask_long(&mut self, command: u8, request: &serde_json::Value) -> Result<serde_json::Value, Failure> {
        self.process.ask_json(command, request, 10 * self.seconds)
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
