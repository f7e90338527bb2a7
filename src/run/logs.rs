//! The logs of a run. They are append-only, and a checkpoint stores their lengths and hashes.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use hmac_sha256::Hash;

use crate::Error;
use crate::files::folder::{METRICS, POLICY, STATE};
use crate::files::{Sha256, entries, exists, expect_file, open, read_to_string};
use crate::run::tensorboard::{EventFile, file_name};
use crate::train::Iteration;
use crate::train::metrics::was_cut;
use gradus_rollouts::Episode;

/// The part of a log that a checkpoint covers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Covered {
    /// Bytes from the start of the file.
    pub(crate) length: u64,
    /// Their hash; `None` in checkpoints of older versions.
    pub(crate) hash: Option<Sha256>,
}

/// An append-only file.
struct Log {
    path: PathBuf,
    file: BufWriter<File>,
    length: u64,
    hash: Hash,
    /// The line of column names, once they were [compared](Log::expect_columns).
    header: Option<String>,
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.length += n as u64;
        self.hash.update(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Log {
    /// Checks that the file starts with the bytes that the checkpoint covers. Returns the hash of these bytes. `advice` says what can be
    /// done if they have changed.
    fn check(path: &Path, covered: Covered, advice: &str) -> Result<Hash, Error> {
        let Covered { length, hash } = covered;
        expect_file(path)?;
        let mut read = Hash::new();
        if length == 0 {
            return Ok(read);
        }
        let mut file = open(path)?.take(length);
        let (mut buffer, mut got) = (vec![0; 1 << 16], 0);
        loop {
            let n = file.read(&mut buffer).map_err(Error::io("read", path))?;
            if n == 0 {
                break;
            }
            read.update(&buffer[..n]);
            got += n as u64;
        }
        if got < length {
            return Err(Error::folder(path, format!("expected at least {length} bytes, as in the checkpoint, got {got}; {advice}")));
        }
        if hash.is_some_and(|hash| hash != read.finalize()) {
            return Err(Error::folder(path, format!("damaged: its first {length} bytes have changed since the checkpoint; {advice}")));
        }
        Ok(read)
    }

    /// Opens the file, whose first `length` bytes have this hash, and truncates it to them.
    fn open(path: PathBuf, length: u64, hash: Hash) -> Result<Self, Error> {
        let open = || {
            let mut file = OpenOptions::new().read(true).write(true).create(length == 0).truncate(false).open(&path)?;
            if file.metadata()?.len() > length {
                file.set_len(length)?;
            }
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(Error::io("open", &path))?;
        Ok(Self { file: BufWriter::new(file), length, hash, path, header: None })
    }

    /// Returns an error if `names` are no columns, or not those of the first row.
    fn expect_columns(&mut self, names: &[&str]) -> Result<(), Error> {
        let columns = names.join(",");
        let wrong = |problem: String| Err(Error::folder(&self.path, problem));
        if self.length == 0 {
            let is_wrong = |(at, name): &(usize, &&str)| !is_column(name) || names[..*at].contains(*name);
            if let Some((_, name)) = names.iter().enumerate().find(is_wrong) {
                return wrong(format!("expected columns with different names, without commas, quotes and line ends, got {name:?}"));
            }
        } else if self.header.is_none() {
            // the table of a run that is continued
            let mut first = String::new();
            io::BufReader::new(open(&self.path)?).read_line(&mut first).map_err(Error::io("read", &self.path))?;
            self.header = Some(first.trim_end_matches('\n').to_owned());
        }
        let header = self.header.get_or_insert_with(|| columns.clone());
        if *header == columns {
            return Ok(());
        }
        let before: Vec<&str> = header.split(',').collect();
        let (new, missing) = (names.iter().find(|name| !before.contains(name)), before.iter().find(|name| !names.contains(name)));
        let got = match (new, missing) {
            (Some(new), _) => format!("the new one {new}"),
            (None, Some(missing)) => format!("none called {missing}"),
            (None, None) => "another order".into(),
        };
        wrong(format!("expected the columns of the first row in every row, in the same order, got {got}"))
    }

    /// Writes a line of comma-separated cells. Before the first line, also writes a line of column names.
    fn row(&mut self, names: &[&str], cells: &[String]) -> Result<(), Error> {
        let mut text = String::new();
        if self.length == 0 {
            text = names.join(",") + "\n";
        }
        text += &cells.join(",");
        text += "\n";
        self.write_all(text.as_bytes()).map_err(|error| Error::io("write", &self.path)(error))
    }

    fn sync(&mut self) -> Result<Covered, Error> {
        let result = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        result.map_err(Error::io("write", &self.path))?;
        Ok(Covered { length: self.length, hash: Some(self.hash.finalize()) })
    }
}

/// Whether a table can have a column of this name.
fn is_column(name: &str) -> bool {
    !name.is_empty() && !name.contains([',', '"', '\n', '\r'])
}

/// `metrics.csv`, `episodes.csv`, `timing.csv` and TensorBoard's event file.
pub(crate) struct Logs {
    metrics: Log,
    episodes: Log,
    timing: Log,
    /// Or, without the feature `tensorboard`, what earlier checkpoints cover of it; it is not continued.
    events: Result<EventFile<Log>, Covered>,
    scores: Vec<String>,
    is_text: bool,
}

/// Number of logs.
pub(crate) const LOGS: usize = 4;

/// What can be done if a table of a run is damaged.
const TABLE_ADVICE: &str =
    "the run cannot be continued; its policy can be evaluated, and a new run can start from it with `--set init=DIR`";
/// What can be done if the event file of a run is damaged.
const EVENTS_ADVICE: &str = "delete it, and a new one is started";

/// A log, what the checkpoint covers of it, and the hash of that part or the reason why it cannot be used.
type Checked = (PathBuf, Covered, Result<Hash, Error>);

/// Checks that the logs in `dir` start with what the checkpoint covers. The event file may be missing, because users delete event files to
/// tidy up TensorBoard.
pub(crate) fn check(dir: &Path, [metrics, episodes, timing, events]: [Covered; LOGS]) -> Result<[Checked; LOGS], Error> {
    let (path, events) = match events_path(dir)? {
        Some(path) => (path, events),
        None => (dir.join(file_name(unix_seconds() as u64)), Covered::default()),
    };
    let table = |name, covered| (dir.join(name), covered, TABLE_ADVICE);
    let logs = [table(METRICS, metrics), table(EPISODES, episodes), table(TIMING, timing), (path, events, EVENTS_ADVICE)];
    Ok(logs.map(|(path, covered, advice)| {
        let hash = Log::check(&path, covered, advice);
        (path, covered, hash)
    }))
}

impl Logs {
    /// Opens the logs in `dir` and truncates them to what the checkpoint covers.
    pub fn open(dir: &Path, covered: [Covered; LOGS], is_text: bool, scores: &[String]) -> Result<Self, Error> {
        let [.., events_covered] = covered;
        let mut intact = Vec::new();
        for (path, covered, hash) in check(dir, covered)? {
            intact.push((path, covered.length, hash?));
        }
        // every log is checked before any of them is truncated
        let mut logs = intact.into_iter().map(|(path, length, hash)| Log::open(path, length, hash));
        let mut next = || logs.next().expect("one entry per log");
        let (metrics, episodes, timing) = (next()?, next()?, next()?);
        if cfg!(not(feature = "tensorboard")) {
            return Ok(Self { metrics, episodes, timing, events: Err(events_covered), scores: scores.to_vec(), is_text });
        }
        let mut log = next()?;
        let events = match log.length {
            0 => EventFile::new(log, unix_seconds()).map_err(Error::io("write", dir))?,
            _ => {
                log.flush().map_err(Error::io("write", dir))?;
                EventFile::continue_from(log)
            }
        };
        Ok(Self { metrics, episodes, timing, events: Ok(events), scores: scores.to_vec(), is_text })
    }

    /// Writes an iteration. `seconds` is the training time so far, `rate` the steps per second of this iteration.
    pub fn write(&mut self, number: u64, iteration: &Iteration, seconds: f64, rate: f64) -> Result<(), Error> {
        let names: Vec<&str> = ["iteration", "time/total_timesteps"].into_iter().chain(iteration.metrics.iter().map(|m| &*m.0)).collect();
        let start = [number.to_string(), iteration.steps.to_string()];
        let cells: Vec<String> = start.into_iter().chain(iteration.metrics.iter().map(|(_, x)| cell(*x))).collect();
        self.metrics.expect_columns(&names)?;
        self.metrics.row(&names, &cells)?;

        let columns = ["step", "env", "seed", "return", "length", "end"].into_iter().chain(self.scores.iter().map(String::as_str));
        let columns: Vec<&str> = columns.collect();
        for episode in &iteration.episodes {
            let Episode { step, env, seed, episode_return, length, ending, scores } = episode;
            let ending = match (self.is_text, ending.terminated()) {
                (true, _) if was_cut(&self.scores, episode) => "length",
                (true, _) => "eos",
                (false, true) => "terminated",
                (false, false) => "truncated",
            };
            let cells = [step.to_string(), env.to_string(), seed.to_string(), cell(*episode_return), length.to_string(), ending.into()];
            let cells: Vec<String> = cells.into_iter().chain(scores.iter().map(|score| cell(*score))).collect();
            self.episodes.row(&columns, &cells)?;
        }

        let speed = if self.is_text { "tokens_per_second" } else { "time/fps" };
        let cells = [number.to_string(), iteration.steps.to_string(), format!("{seconds:.6}"), format!("{rate:.0}")];
        self.timing.row(&["iteration", "time/total_timesteps", "time/time_elapsed", speed], &cells)?;

        let Ok(events) = &mut self.events else { return Ok(()) };
        let finite = iteration.metrics.iter().filter(|(_, x)| x.is_finite()).map(|(name, x)| (&**name, *x as f32));
        let scalars: Vec<(&str, f32)> = finite.chain([(speed, rate as f32)]).collect();
        let result = events.scalars(unix_seconds(), iteration.steps, &scalars);
        result.map_err(|error| Error::io("write", &events.get_mut().path)(error))
    }

    /// Writes all logs to disk; returns what the next checkpoint covers.
    pub fn sync(&mut self) -> Result<[Covered; LOGS], Error> {
        let events = match &mut self.events {
            Ok(events) => events.get_mut().sync()?,
            Err(covered) => *covered,
        };
        Ok([self.metrics.sync()?, self.episodes.sync()?, self.timing.sync()?, events])
    }
}

pub(super) const EPISODES: &str = "episodes.csv";
pub(super) const TIMING: &str = "timing.csv";

/// Returns the event file of the folder; `None` if there is none.
fn events_path(dir: &Path) -> Result<Option<PathBuf>, Error> {
    let all = entries(dir).map_err(Error::io("read", dir))?;
    Ok(all.into_iter().find(|entry| entry.name.starts_with("events.out.tfevents.")).map(|entry| entry.path))
}

fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// Formats a number as the shortest decimal that identifies its f32 value. A NaN gives an empty text.
fn cell(x: f64) -> String {
    if x.is_nan() { String::new() } else { (x as f32).to_string() }
}

/// Reads the environment steps and the return of every episode of a run folder.
pub fn read_episodes(dir: &Path) -> Result<Vec<(f64, f64)>, Error> {
    let path = dir.join(EPISODES);
    if !exists(&path)? && exists(&dir.join(POLICY))? && !exists(&dir.join(STATE))? {
        return Err(Error::folder(dir, "expected a run, got only a policy, which has no episodes"));
    }
    let text = read_to_string(&path)?;
    let mut episodes = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let numbers = (cells.first().and_then(|cell| cell.parse().ok()), cells.get(3).and_then(|cell| cell.parse().ok()));
        match numbers {
            (Some(step), Some(episode_return)) => episodes.push((step, episode_return)),
            _ => {
                let problem = format!("line {}: expected step,env,seed,return,length,end, got `{line}`", number + 1);
                return Err(Error::folder(&path, problem));
            }
        }
    }
    Ok(episodes)
}

/// The numbers of a `metrics.csv`. An empty cell is NaN.
pub struct MetricTable {
    names: Vec<String>,
    pub rows: Vec<Vec<f64>>,
}

/// The column with the environment steps or, on text tasks, the generated tokens.
const STEPS: &str = "time/total_timesteps";

impl MetricTable {
    /// Returns the names of the metrics, without the columns that count updates and steps.
    pub fn metrics(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str).filter(|name| !["iteration", "step", STEPS].contains(name))
    }

    /// Whether the table counts environment steps or tokens. The table of a supervised warm start counts optimiser steps instead.
    pub fn counts_steps(&self) -> bool {
        self.names.iter().any(|name| name == STEPS)
    }

    /// Returns the steps (the first column if the table has none) and the value of `metric` in every row. Returns no rows if there is no
    /// column `metric`.
    pub fn column(&self, metric: &str) -> Vec<(f64, f64)> {
        let place = |wanted: &str| self.names.iter().position(|name| name == wanted);
        let (x, Some(y)) = (place(STEPS).unwrap_or(0), place(metric)) else { return Vec::new() };
        self.rows.iter().map(|row| (row[x], row[y])).collect()
    }
}

/// Reads the `metrics.csv` of a run folder.
pub fn read_metrics(dir: &Path) -> Result<MetricTable, Error> {
    read_numbers(dir.join(METRICS))
}

/// Reads the environment steps and the seconds of training at the end of every update of a run folder.
pub fn read_timing(dir: &Path) -> Result<Vec<(f64, f64)>, Error> {
    Ok(read_numbers(dir.join(TIMING))?.column("time/time_elapsed"))
}

fn read_numbers(path: PathBuf) -> Result<MetricTable, Error> {
    let text = read_to_string(&path)?;
    let mut lines = text.lines();
    let names: Vec<String> = lines.next().map_or_else(Vec::new, |line| line.split(',').map(Into::into).collect());
    let mut rows = Vec::new();
    for (number, line) in lines.enumerate() {
        let cells: Option<Vec<f64>> =
            line.split(',').map(|cell| if cell.is_empty() { Some(f64::NAN) } else { cell.parse().ok() }).collect();
        match cells.filter(|cells| cells.len() == names.len()) {
            Some(row) => rows.push(row),
            None => {
                let problem = format!("line {}: expected {} numbers, got `{line}`", number + 2, names.len());
                return Err(Error::folder(&path, problem));
            }
        }
    }
    Ok(MetricTable { names, rows })
}
