//! Makes the runs of a study, one on each core, together with other processes that share its folder.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gradus_base::{panics, threads};

use super::claim::{BEAT, Claims, Taken};
use super::run::{CHECKPOINT, Job, Outcome, Stored};
use super::summary::short;
use gradus::envs::EnvError;
use gradus::memory;
use gradus::{Config, Error};

/// Time between two looks at a run that another process makes.
const PAUSE: Duration = Duration::from_millis(50);

/// How the runs of a study are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// A line for each.
    Each,
    /// A line once a second, with the time that is left.
    EverySecond,
}

/// How runs are made.
#[derive(Clone, Copy)]
pub(super) struct Making<'a> {
    /// Number of simultaneous runs.
    pub(super) workers: usize,
    pub(super) stop: &'a AtomicBool,
    pub(super) lines: Lines,
}

/// The runs of a study.
pub(super) struct Finished {
    /// The outcomes in the order of the jobs, `None` for runs that failed.
    pub(super) outcomes: Vec<Option<Outcome>>,
    /// What failed.
    pub(super) failure: Option<String>,
    /// The first failure that says nothing about a run's settings: of a file, or in an environment.
    pub(super) fault: Option<String>,
    /// How many runs were kept and made, in a line.
    pub(super) summary: String,
}

/// Makes every run whose stored result is missing or outdated.
pub(super) fn make(
    all: &[Job],
    runs: &Path,
    Making { workers, stop, lines }: Making,
    say: &(impl Fn(&str) + Sync),
) -> Result<Finished, Error> {
    let missing: Vec<&Config> = all.iter().filter(|job| !matches!(job.stored(runs), Stored::Kept(_))).map(|job| &job.config).collect();
    memory::check_jobs(workers.min(missing.len()), &missing)?;
    let (waiting, done) = (Mutex::new((0..all.len()).collect::<VecDeque<usize>>()), AtomicUsize::new(0));
    let (results, claims) = (Mutex::new(BTreeMap::new()), Claims::new(runs));
    let progress = Mutex::new(Progress::new(all, workers, lines));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || {
        while !stop.load(Ordering::Relaxed)
            && let Some(number) = next()
        {
            let (job, began) = (&all[number], Instant::now());
            let mut stored = job.stored(runs);
            let (mut claim, mut foreign) = (None, None);
            if !matches!(stored, Stored::Kept(_)) {
                match claims.take(&job.key(), job.code()) {
                    Ok(Taken::Mine(own)) => claim = Some(own),
                    Ok(Taken::Theirs) => {
                        // a run that another process is making comes last
                        waiting.lock().unwrap_or_else(PoisonError::into_inner).push_back(number);
                        thread::sleep(PAUSE);
                        continue;
                    }
                    Ok(Taken::Unclaimed) => {}
                    Err(error) => foreign = Some(error),
                }
            }
            // it may have been made in between
            if claim.is_some() {
                stored = job.stored(runs);
            }
            let (result, how) = match (&stored, foreign) {
                (_, Some(error)) => (Err(error), String::new()),
                (Stored::Kept(outcome), None) => (Ok(outcome.clone()), "kept from before".to_owned()),
                (Stored::Outdated(_) | Stored::Nothing, None) => {
                    let result =
                        panics::catch(|| threads::with(1, || job.run(runs, CHECKPOINT, stop))).unwrap_or_else(|panic| Err(panic.into()));
                    let seconds = result.as_ref().ok().and_then(|run: &Outcome| run.evaluated.last()).map_or(0.0, |last| last.seconds);
                    (result, format!("{seconds:.1} s"))
                }
            };
            drop(claim);
            let why = if let Stored::Outdated(why) = &stored { format!(", made again: {why}") } else { String::new() };
            let what = match result.as_ref().map(|run| run.evaluated.last()) {
                Ok(Some(last)) => format!("return {}, {how}{why}", short(last.mean)),
                Ok(None) => "nothing".into(),
                Err(Error::Stopped(place)) => format!("stopped {place}"),
                Err(error) => format!("failed: {error}"),
            };
            let count = 1 + done.fetch_add(1, Ordering::Relaxed);
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.finished(number, began.elapsed(), matches!(stored, Stored::Kept(_)));
            if let Some(left) = progress.line(count, result.is_err()) {
                let digits = all.len().to_string().len();
                say(&format!("[{count:>digits$}/{}]{left} {}: {what}", all.len(), name(job)));
            }
            drop(progress);
            results.lock().unwrap_or_else(PoisonError::into_inner).insert(number, (result, stored));
        }
    };
    let over = AtomicBool::new(false);
    let beat = || {
        while !over.load(Ordering::Relaxed) {
            thread::park_timeout(BEAT);
            claims.beat();
        }
    };
    thread::scope(|scope| {
        // if the system refuses a thread, fewer threads do the same work
        let beats = thread::Builder::new().spawn_scoped(scope, beat);
        thread::scope(|scope| {
            (1..workers.min(all.len())).for_each(|_| drop(thread::Builder::new().spawn_scoped(scope, work)));
            work();
        });
        over.store(true, Ordering::Relaxed);
        beats.iter().for_each(|beats| beats.thread().unpark());
    });
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (mut outcomes, mut failed, mut fault) = (Vec::new(), Vec::new(), None);
    let (mut kept, mut outdated) = (0, BTreeMap::<String, usize>::new());
    for ((result, stored), job) in results.into_values().zip(all) {
        match stored {
            Stored::Kept(_) => kept += 1,
            Stored::Outdated(why) => *outdated.entry(why).or_default() += 1,
            Stored::Nothing => {}
        }
        match result {
            Ok(run) => outcomes.push(Some(run)),
            Err(Error::Stopped(_)) => {}
            Err(error) => {
                let text = format!("{}: {error}", name(job));
                if fault.is_none() && matches!(error, Error::Io { .. } | Error::Env(EnvError::Fault { .. })) {
                    fault = Some(text.clone());
                }
                failed.push(text);
                outcomes.push(None);
            }
        }
    }
    if stop.load(Ordering::Relaxed) && outcomes.len() < all.len() {
        return Err(Error::Stopped(format!("after {} of {} runs", outcomes.len(), all.len())));
    }
    let again: String = outdated.iter().map(|(why, runs)| format!(", {runs} of them again because {why}")).collect();
    let made = all.len() - kept - failed.len();
    let without = if failed.is_empty() { String::new() } else { format!(", {} failed", failed.len()) };
    let summary = format!("{} runs: {kept} kept (same settings, code and files), {made} made{again}{without}", all.len());
    let others = if failed.len() < all.len() { ", the others are kept" } else { "" };
    let failure = failed.first().map(|first| format!("{} of {} runs failed{others}; the first failure: {first}", failed.len(), all.len()));
    Ok(Finished { outcomes, failure, fault, summary })
}

pub(super) fn name(job: &Job) -> String {
    format!("{} on {}, seed {}", job.agent, job.environment(), job.config.seed)
}

/// What is known of the time that is left.
struct Progress {
    lines: Lines,
    workers: f64,
    began: Instant,
    said: Option<Instant>,
    /// The kind of every run: runs of a kind take about as long as each other.
    kinds: Vec<usize>,
    /// For each kind, the runs that are left, the runs that were made, and the seconds for them.
    left: Vec<(usize, usize, f64)>,
}

impl Progress {
    fn new(all: &[Job], workers: usize, lines: Lines) -> Self {
        let mut known: BTreeMap<(String, String, u64), usize> = BTreeMap::new();
        let kind = |job: &Job| {
            let next = known.len();
            *known.entry((job.config.agent.clone(), job.config.environment.clone(), job.config.steps)).or_insert(next)
        };
        let kinds: Vec<usize> = all.iter().map(kind).collect();
        let mut left = vec![(0, 0, 0.0); known.len()];
        kinds.iter().for_each(|kind| left[*kind].0 += 1);
        Self { lines, workers: workers.max(1) as f64, began: Instant::now(), said: None, kinds, left }
    }

    fn finished(&mut self, number: usize, took: Duration, was_kept: bool) {
        let (left, made, seconds) = &mut self.left[self.kinds[number]];
        *left -= 1;
        if !was_kept {
            *made += 1;
            *seconds += took.as_secs_f64();
        }
    }

    /// The seconds that are left, from the mean time of the runs of each kind; `None` while there is a kind without one.
    fn seconds_left(&self) -> Option<f64> {
        let of = |(left, made, seconds): &(usize, usize, f64)| match (left, made) {
            (0, _) => Some(0.0),
            (_, 0) => None,
            _ => Some(*left as f64 * seconds / *made as f64),
        };
        Some(self.left.iter().map(of).sum::<Option<f64>>()? / self.workers)
    }

    /// What a line says of the time, if there is a line now.
    fn line(&mut self, count: usize, is_news: bool) -> Option<String> {
        if self.lines == Lines::Each {
            return Some(String::new());
        }
        let is_last = count == self.kinds.len();
        if !is_news && !is_last && self.said.is_some_and(|said| said.elapsed() < Duration::from_secs(1)) {
            return None;
        }
        self.said = Some(Instant::now());
        let left = self.seconds_left().filter(|_| !is_last).map_or_else(String::new, |left| format!(", about {} left", clock(left)));
        Some(format!(" {}{left};", clock(self.began.elapsed().as_secs_f64())))
    }
}

/// Seconds as people say them.
pub(super) fn clock(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_each_kind() {
        let config = |steps| Config { steps, ..Config::default() };
        let job = |steps| Job { agent: "a", config: config(steps), folder: Path::new(""), evaluations: 1, episodes: 1, origin: Vec::new() };
        let all: Vec<Job> = [1, 1, 1, 9, 9].map(job).into();
        let mut progress = Progress::new(&all, 2, Lines::EverySecond);
        assert_eq!(progress.seconds_left(), None);
        progress.finished(0, Duration::from_secs(2), false);
        progress.finished(1, Duration::ZERO, true);
        assert_eq!(progress.seconds_left(), None, "nothing is known of the longer runs");
        progress.finished(3, Duration::from_secs(18), false);
        assert_eq!(progress.seconds_left(), Some(10.0));
        assert!(progress.line(3, false).is_some_and(|line| line.ends_with(", about 10 s left;")));
        assert_eq!((progress.line(4, false), progress.line(4, true).is_some(), progress.line(5, false).is_some()), (None, true, true));
        assert_eq!([7.4, 61.0, 7_322.0].map(clock), ["7 s", "1 min 1 s", "2 h 2 min"]);
    }
}
