//! Training runs with a folder: settings, logs, checkpoints, figures.
//!
//! `state.safetensors` is the only commit point. It holds everything that is needed to resume bit for bit, including the lengths of the
//! logs, and is replaced atomically about once a second. A killed run therefore leaves either no folder or a folder that can be resumed.

pub mod best_of;
#[cfg(feature = "figures")]
mod curves;
pub(crate) mod gym;
#[doc(hidden)] // for figures of several runs
pub mod logs;
mod pages;
mod progress;
pub mod reward_model;
pub mod sft;
pub mod tensorboard;
#[doc(hidden)] // for comparisons
pub mod verify;

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gradus_agents::ConfigError;
use gradus_base::tensors::{self, Tensor, Tensors, TensorsError, get_u64, without_prefix};
use gradus_base::threads;
use gradus_envs::EnvSpec;
use gradus_nets::Device;
use hmac_sha256::Hash;

use crate::config::{RewardConfig, inputs};
use crate::evaluate::{Evaluation, Mode, evaluate};
use crate::files::folder::METRICS;
use crate::files::{
    Sha256, create_folder, entries, exists, expect_file, hexadecimal, lock, read, remove_leftovers, replace, try_to_create,
};
use crate::saved::{
    BEST, CONFIG, EXAMPLES_FILE, POLICY, POLICY_PREFIX, REWARD_PREFIX, STATE, check_note, read_config, read_tensors, world_of,
};
use crate::train::{Iteration, LearnedReward, Trainer};
use crate::{Config, Error, Policy};
#[cfg(feature = "figures")]
pub use curves::{plot, reach};
use logs::{Covered, LOGS, Logs};
use pages::Pages;
use progress::Progress;
pub use progress::Show;
pub(crate) use progress::warn_of_a_debug_build;
#[doc(hidden)] // for comparisons
pub use progress::with_steps;

/// Names of the files that a run replaces in its folder.
const OUTPUTS: [&str; 10] = [CONFIG, STATE, POLICY, BEST, CURVES[0], CURVES[1], "curve.pdf", "metrics.svg", "metrics.png", "metrics.pdf"];
/// Figures of the learning curve.
const CURVES: [&str; 2] = ["curve.svg", "curve.png"];

/// What [`Run::train_with`] tells after every iteration, that is after every update of the agent.
#[derive(Debug)]
pub struct Update<'a> {
    /// The steps so far, the metrics, the episodes that ended, and the mean return of an evaluation, if there was one.
    pub iteration: &'a Iteration,
    /// The trainer, with the current policy.
    pub trainer: &'a Trainer,
    /// Seconds of training so far.
    pub seconds: f64,
}

/// A training run and its folder.
pub struct Run {
    dir: PathBuf,
    trainer: Trainer,
    logs: Logs,
    /// The pages of the replay buffer in the last checkpoint.
    pages: Pages,
    /// Seconds of training so far.
    seconds: f64,
    checkpoint_every: Duration,
    /// How long it took to write the last checkpoint.
    writing: Duration,
    /// When the last checkpoint was written.
    saved: Instant,
    /// Whether training must stop.
    stop: Arc<AtomicBool>,
    /// What is to be said of a run that is resumed.
    notes: Vec<String>,
    /// Locked as long as the run exists, so that no other process trains in the same folder.
    _lock: File,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("dir", &self.dir)
            .field("trainer", &self.trainer)
            .field("seconds", &self.seconds)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// Creates a run in a folder that must be new or empty.
    pub fn create(config: Config, dir: impl AsRef<Path>) -> Result<Self, Error> {
        let world = gradus_envs::registry::find(&config.environment)?;
        Self::create_in_world(config, world, dir)
    }

    /// Same as [`create`](Run::create), but with a custom environment.
    pub fn create_in_world(config: Config, world: EnvSpec, dir: impl AsRef<Path>) -> Result<Self, Error> {
        let trainer = Trainer::in_world(config, world.clone())?;
        let dir = vacant(dir.as_ref())?;
        create_folder(&dir, |temporary| {
            replace(&temporary.join(CONFIG), trainer.config().to_file_in(temporary)?.as_bytes()).map_err(Error::io("write", &dir))?;
            gym::record(temporary, &trainer.config().environment)?;
            write_state(temporary, &trainer, [Covered::default(); LOGS], &Pages::default(), 0.0).map(|_| ())
        })?;
        drop(trainer); // frees its memory for the trainer of the run
        Self::open(&dir, world, None)
    }

    /// Creates a run in the first of the folders `runs/NAME-1`, `runs/NAME-2`, ... that is free.
    pub fn create_numbered(config: Config, name: &str) -> Result<Self, Error> {
        numbered(name, |dir| Self::create(config.clone(), dir))
    }

    /// Resumes a run that was stopped or killed. A finished run is not trained further, see [`resume_until`](Run::resume_until).
    pub fn resume(dir: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open(dir.as_ref(), registered(dir.as_ref())?, None)
    }

    /// Resumes a run, finished or not, to train until `steps` environment steps are done in all. The run folder records in `earlier_steps` of
    /// `config.toml` when the plan changed. Schedules, such as that of the learning rate, follow the new number of steps from then on.
    ///
    /// ```no_run
    /// gradus::Run::resume_until("runs/first", 1_000_000)?.train(gradus::Show::Progress)?;
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn resume_until(dir: impl AsRef<Path>, steps: u64) -> Result<Self, Error> {
        Self::open(dir.as_ref(), registered(dir.as_ref())?, Some(steps))
    }

    /// Same as [`resume`](Run::resume), but with a custom environment.
    pub fn resume_in_world(dir: impl AsRef<Path>, world: EnvSpec) -> Result<Self, Error> {
        Self::open(dir.as_ref(), world, None)
    }

    /// Same as [`resume_until`](Run::resume_until), but with a custom environment.
    pub fn resume_in_world_until(dir: impl AsRef<Path>, world: EnvSpec, steps: u64) -> Result<Self, Error> {
        Self::open(dir.as_ref(), world, Some(steps))
    }

    fn open(dir: &Path, world: EnvSpec, until: Option<u64>) -> Result<Self, Error> {
        let mut config = read_config(dir)?;
        let path = dir.join(STATE);
        if !exists(&path)? && exists(&dir.join(POLICY))? {
            let advice = format!("expected a run, got only a policy; start a run from it with `--set init={}`", dir.display());
            return Err(Error::folder(dir, advice));
        }
        let lock = lock(dir, "another process is training in this folder")?;
        remove_leftovers(dir, |name| OUTPUTS.contains(&name));
        let damaged = |source| Error::Tensors { path: path.clone(), source };
        let (state, note) = read_tensors(&path)?;
        check_note(&path, &note, &config)?;
        let done = get_u64(&state, "steps").ok().and_then(|steps| steps.first().copied()).unwrap_or_default();
        if let Some(steps) = until.filter(|steps| *steps != config.steps) {
            let expected = format!("more than the {done} that are done");
            ConfigError::unless(steps > done, "steps", &expected, steps)?;
            config = config.replanned(steps, done);
        }
        let mut trainer = Trainer::to_resume(config, world, done)?;
        trainer.load_state(&state).map_err(damaged)?;
        let pages = Pages::listed(&state).map_err(damaged)?;
        if let Some(replay) = trainer.replay_mut() {
            pages::create(dir)?;
            pages.load(dir, replay)?;
        }
        trainer.begin_again();
        let (covered, seconds) = covered(&state).map_err(damaged)?;
        // nothing is changed before everything has been checked
        CURVES.into_iter().chain([POLICY]).try_for_each(|name| expect_file(&dir.join(name)))?;
        let logs = Logs::open(dir, covered, trainer.is_text(), trainer.score_names())?;
        if trainer.replay_mut().is_some() {
            pages.remove_uncommitted(dir);
        }
        // rewrites settings of an older format in the current format, and records another number of steps
        let (settings, text) = (dir.join(CONFIG), trainer.config().to_file_in(dir)?);
        if read(&settings)? != text.as_bytes() {
            replace(&settings, text.as_bytes()).map_err(Error::io("write", &settings))?;
        }
        if !trainer.is_finished() {
            // from now on the checkpoint has the newest policy; the curves are drawn after the policy is written
            for path in CURVES.into_iter().chain([POLICY]).map(|name| dir.join(name)) {
                let is_gone = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
                fs::remove_file(&path)
                    .or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })
                    .map_err(Error::io("remove", &path))?;
            }
        }
        Ok(Self {
            logs,
            notes: gym::notes(dir, &trainer.config().environment)?,
            dir: dir.into(),
            trainer,
            pages,
            seconds,
            checkpoint_every: Duration::from_secs(1),
            writing: Duration::ZERO,
            saved: Instant::now(),
            stop: Arc::default(),
            _lock: lock,
        })
    }

    /// Returns the folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the trainer.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Returns what is to be said of a run that is resumed: what could not be restored, and what has changed since.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the seconds of training so far.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Sets the shortest time between two checkpoints while training, 1 second by default. It is also at least ten times what it takes to write one, unless it is 0.
    pub fn checkpoint_every(&mut self, interval: Duration) {
        self.checkpoint_every = interval;
    }

    /// Makes [`train`](Run::train) stop when `stop` becomes true, for example in a signal handler: it finishes the current iteration, writes a
    /// checkpoint and returns [`Error::Stopped`]. The run can be resumed or trained further.
    pub fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.stop = stop;
    }

    /// Calls `listener` after each rollout, see [`Trainer::after_rollouts`].
    pub fn after_rollouts(&mut self, listener: impl FnMut(&Trainer) + Send + 'static) {
        self.trainer.after_rollouts(listener);
    }

    /// Trains to the end, then exports the policy and draws the learning curve.
    pub fn train(&mut self, show: Show) -> Result<(), Error> {
        self.train_with(show, |_| ControlFlow::Continue(()))
    }

    /// As [`train`](Run::train), but calls `on_update` after every iteration. If it returns [`ControlFlow::Break`], the training ends there: the
    /// run is finished with the steps that are done, and [`resume_until`](Run::resume_until) can continue it.
    ///
    /// ```no_run
    /// use std::ops::ControlFlow;
    /// use gradus::{Config, Run, Show};
    ///
    /// let config = Config { evaluate_every: 10_000, ..Config::preset("ppo", "cartpole", None)? };
    /// let mut run = Run::create(config, "runs/until-solved")?;
    /// run.train_with(Show::Progress, |update| match update.iteration.evaluation {
    ///     Some(mean) if mean >= 475.0 => ControlFlow::Break(()),
    ///     _ => ControlFlow::Continue(()),
    /// })?;
    /// # Ok::<(), gradus::Error>(())
    /// ```
    pub fn train_with(&mut self, show: Show, mut on_update: impl FnMut(&Update<'_>) -> ControlFlow<()> + Send) -> Result<(), Error> {
        threads::with_default(|| self.train_with_threads(show, &mut on_update))
    }

    fn train_with_threads(&mut self, show: Show, on_update: OnUpdate<'_>) -> Result<(), Error> {
        if show == Show::Progress {
            warn_of_a_debug_build();
        }
        let trained = !self.trainer.is_finished();
        self.train_until(u64::MAX, show, on_update)?;
        if trained {
            // the checkpoint first: a killed run is then one that can be resumed with the same plan
            self.checkpoint()?;
            if self.trainer.end() {
                let path = self.dir.join(CONFIG);
                replace(&path, self.trainer.config().to_file_in(&self.dir)?.as_bytes()).map_err(Error::io("write", &path))?;
            }
        }
        if show == Show::Progress && self.trainer.recent_episodes() == 0 {
            let advice = "give the environment a terminal state or a time limit, or train for more steps";
            let steps = self.trainer.steps();
            // standard error may be closed
            let _ = writeln!(io::stderr(), "warning: no episode has ended in {steps} steps, so there is no return to report: {advice}");
        }
        self.export()
    }

    /// Trains until at least `steps` environment steps are done, or to the end; exports nothing, and writes checkpoints from time to time only: call [`checkpoint`](Run::checkpoint) before the run is dropped. Runs on one thread unless it is called within
    /// [`threads::with`].
    pub fn train_until(&mut self, steps: u64, show: Show, on_update: OnUpdate<'_>) -> Result<(), Error> {
        let progress = Progress::new(show, self.trainer.is_text(), self.trainer.steps(), self.trainer.total_steps());
        let (mut shown, mut shown_steps, mut rate) = (Instant::now(), self.trainer.steps(), 0.0);
        progress.update(self.trainer.steps(), self.trainer.recent_return_shown(), rate);
        while !self.trainer.is_finished() && self.trainer.steps() < steps {
            let (began, before) = (Instant::now(), self.trainer.steps());
            let iteration = self.trainer.iterate().inspect_err(|_| progress.finish())?;
            let seconds = began.elapsed().as_secs_f64();
            self.seconds += seconds;
            let speed = (self.trainer.steps() - before) as f64 / seconds;
            self.logs.write(self.trainer.iteration(), &iteration, self.seconds, speed)?;
            if iteration.is_best {
                self.write_policy(BEST).inspect_err(|_| progress.finish())?;
            }
            if on_update(&Update { iteration: &iteration, trainer: &self.trainer, seconds: self.seconds }).is_break() {
                break;
            }
            if shown.elapsed() > Duration::from_millis(100) {
                rate = (self.trainer.steps() - shown_steps) as f64 / shown.elapsed().as_secs_f64();
                (shown, shown_steps) = (Instant::now(), self.trainer.steps());
                progress.update(self.trainer.steps(), self.trainer.recent_return_shown(), rate);
            }
            let must_stop = self.stop.load(Ordering::Relaxed) && !self.trainer.is_finished();
            // a tenth of the time at most, unless a checkpoint is wanted after every update
            let pause = if self.checkpoint_every.is_zero() { Duration::ZERO } else { self.checkpoint_every.max(10 * self.writing) };
            if must_stop || self.saved.elapsed() >= pause {
                let begin = Instant::now();
                self.checkpoint().inspect_err(|_| progress.finish())?;
                (self.writing, self.saved) = (begin.elapsed(), Instant::now());
            }
            if must_stop {
                progress.finish();
                return Err(Error::Stopped(format!("at step {} of {}", self.trainer.steps(), self.trainer.total_steps())));
            }
        }
        progress.update(self.trainer.steps(), self.trainer.recent_return_shown(), rate);
        progress.finish();
        Ok(())
    }

    /// Writes a checkpoint, with which [`resume`](Run::resume) continues.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        let covered = self.logs.sync()?;
        self.pages = write_state(&self.dir, &self.trainer, covered, &self.pages, self.seconds)?;
        Ok(())
    }

    /// Writes the current policy to the file `name`, unless the file has it already. Returns whether the file had it.
    fn write_policy(&self, name: &str) -> Result<bool, Error> {
        let parameters = self.trainer.export();
        check_parameters(&self.trainer, parameters.iter())?;
        let policy = tensors::encode(&parameters, &self.trainer.config().to_file_in(&self.dir)?);
        Error::unless_sound(self.trainer.policy())?;
        let path = self.dir.join(name);
        let is_same = read(&path).is_ok_and(|bytes| bytes == policy);
        if is_same { Ok(true) } else { replace(&path, &policy).map(|()| false).map_err(Error::io("write", &path)) }
    }

    /// Writes the policy and then the figures, if they are missing or out of date.
    fn export(&self) -> Result<(), Error> {
        let _is_same = self.write_policy(POLICY)?;
        #[cfg(feature = "figures")]
        {
            let figures = CURVES.map(|name| self.dir.join(name));
            if !_is_same || !figures.iter().all(|path| path.exists()) {
                plot(&[&self.dir], &figures)?;
            }
        }
        Ok(())
    }

    /// Ends the run and returns its policy. The folder can then be opened by others.
    pub fn into_policy(self) -> Policy {
        self.trainer.into_policy()
    }

    /// Evaluates the policy on `episodes` greedy episodes with other seeds than in training; on a text task, on problems of the test split.
    pub fn evaluate(&self, episodes: usize) -> Result<Evaluation, Error> {
        let seed = self.trainer.config().seed;
        evaluate(self.trainer.policy(), &self.trainer.evaluation_world(), episodes, seed, Mode::Greedy)
    }
}

/// A function that is called after every iteration.
type OnUpdate<'a> = &'a mut (dyn FnMut(&Update<'_>) -> ControlFlow<()> + Send);

/// Returns the registered environment of the run folder `dir`.
fn registered(dir: &Path) -> Result<EnvSpec, Error> {
    let config = read_config(dir)?;
    gradus_envs::registry::find(&config.environment).map_err(|error| Error::folder(&dir.join(CONFIG), error.to_string()))
}

/// Checks that `dir` is new or empty. Returns its path in a form that ends with the folder's name.
pub(crate) fn vacant(dir: &Path) -> Result<PathBuf, Error> {
    let mut dir = dir.to_path_buf();
    if dir.file_name().is_none() || dir.is_symlink() {
        // resolves links, and `.`, which has no file name
        dir = fs::canonicalize(&dir).map_err(Error::io("open", &dir))?;
    }
    let has_settings = exists(&dir.join(CONFIG))?;
    if has_settings && !exists(&dir.join(STATE))? {
        return Err(Error::folder(&dir, "holds a policy; choose another folder"));
    }
    if has_settings {
        let (name, shown) = (crate::program_name(), dir.display());
        let advice = format!("holds another run; continue it with `{name} train --resume {shown}`, or choose another folder");
        return Err(Error::folder(&dir, advice));
    }
    if dir.exists() && !dir.is_dir() {
        return Err(Error::folder(&dir, "expected a folder that is new or empty, got a file"));
    }
    if dir.exists() && !entries(&dir).map_err(Error::io("read", &dir))?.is_empty() {
        return Err(Error::folder(&dir, "expected a folder that is new or empty, got a folder with other files"));
    }
    Ok(dir)
}

/// Returns an error if [`write_policy`] could not create its folder.
pub(crate) fn expect_place(dir: Option<&Path>, name: &str) -> Result<(), Error> {
    let usual = Path::new("runs");
    let dir = match dir {
        Some(dir) => vacant(dir)?,
        None if usual.exists() => usual.join(inputs::short_name(name)),
        None => usual.into(),
    };
    try_to_create(&dir).map_err(Error::io("create", &dir))
}

/// Creates a folder with a policy and its settings, for `eval`, `sample` and the setting `init`. The folder also has the metrics of the
/// training, `table`. If the policy is a reward model, the folder also has the `examples` that it was trained on. If `dir` is `None`, the
/// folder is the first free one of `runs/NAME-1`, `runs/NAME-2`, ...; otherwise it is `dir`, which must be new or empty.
pub(crate) fn write_policy(
    dir: Option<&Path>,
    name: &str,
    config: &Config,
    policy: &Tensors,
    table: &str,
    examples: Option<&Tensors>,
) -> Result<PathBuf, Error> {
    let write = |dir: &Path| {
        let dir = vacant(dir)?;
        create_folder(&dir, |temporary| {
            let settings = config.to_file_in(temporary)?;
            let note = format!("{settings}{}", line_of_hash(table));
            let write = |name, bytes: &[u8]| replace(&temporary.join(name), bytes).map_err(Error::io("write", &dir));
            write(CONFIG, settings.as_bytes())?;
            write(METRICS, table.as_bytes())?;
            examples.map_or(Ok(()), |examples| write(EXAMPLES_FILE, &tensors::encode(examples, &settings)))?;
            write(POLICY, &tensors::encode(policy, &note))
        })?;
        Ok(dir)
    };
    match dir {
        // if another process has taken the folder during the training, the policy gets another folder and is not lost
        Some(dir) => write(dir).or_else(|error| if dir.join(CONFIG).exists() { numbered(name, write) } else { Err(error) }),
        None => numbered(name, write),
    }
}

/// Returns the line of a policy's note that has the hash of the table in the policy's folder.
fn line_of_hash(table: &str) -> String {
    format!("# {METRICS} {}\n", hexadecimal(&Hash::hash(table.as_bytes())))
}

/// Calls `make` with the first of the folders `runs/NAME-1`, `runs/NAME-2`, ... that is free. If `name` ends with an environment from a file, such as `file:PATH`, the
/// folder's name ends with the name of the file, without its folder and extension.
fn numbered<T>(name: &str, make: impl Fn(&Path) -> Result<T, Error>) -> Result<T, Error> {
    let name = inputs::short_name(name);
    let mut number = 1;
    loop {
        let dir = Path::new("runs").join(format!("{name}-{number}"));
        if !dir.exists() {
            match make(&dir) {
                // another process was faster; other errors would come again with every number
                Err(Error::Folder { path, .. } | Error::Io { path, .. }) if path == dir && dir.exists() => {}
                result => return result,
            }
        }
        number += 1;
    }
}

/// Returns an error if a parameter of the policy, which an agent of another crate may have moved anywhere, is NaN or infinite.
fn check_parameters<'a>(trainer: &Trainer, parameters: impl Iterator<Item = (&'a String, &'a Tensor)>) -> Result<(), Error> {
    tensors::check_finite(parameters).map_err(|error| {
        let got = match error {
            TensorsError::NotFinite { name, got, .. } => format!("{got} in {}", name.trim_start_matches(POLICY_PREFIX)),
            other => other.to_string(),
        };
        let (agent, steps) = (&trainer.config().agent, trainer.steps());
        Error::Parse { what: format!("{agent}, at step {steps}"), expected: "finite parameters".into(), got }
    })
}

/// Writes a checkpoint. `pages` are the pages of the replay buffer that are already files; returns those of the checkpoint.
fn write_state(dir: &Path, trainer: &Trainer, covered: [Covered; LOGS], pages: &Pages, seconds: f64) -> Result<Pages, Error> {
    let mut state = trainer.checkpoint()?; // on an error, the last checkpoint is kept
    check_parameters(trainer, state.iter().filter(|(name, _)| name.starts_with(POLICY_PREFIX)))?;
    let hashes = covered.iter().flat_map(|log| log.hash.unwrap_or_default().as_chunks().0.to_vec());
    state.insert("log_lengths".into(), Tensor::u64(covered.iter().map(|log| log.length).collect()));
    state.insert("log_hashes".into(), Tensor::u64(hashes.map(u64::from_be_bytes).collect()));
    state.insert("seconds".into(), Tensor::u64(vec![seconds.to_bits()]));
    let note = trainer.config().to_file_in(dir)?;
    let written = match trainer.replay() {
        Some(replay) => {
            pages::create(dir)?;
            let written = pages.write(dir, replay, &note)?;
            written.list(&mut state);
            written
        }
        None => Pages::default(),
    };
    let path = dir.join(STATE);
    replace(&path, &tensors::encode(&state, &note)).map_err(Error::io("write", &path))?;
    // the new checkpoint no longer needs the other pages
    written.remove_replaced(pages, dir);
    Ok(written)
}

/// Returns what a checkpoint covers of each log, and the seconds of training.
fn covered(state: &Tensors) -> Result<([Covered; LOGS], f64), TensorsError> {
    let lengths = get_u64(state, "log_lengths")?;
    // checkpoints of older versions have no hashes
    let hashes = if state.contains_key("log_hashes") { get_u64(state, "log_hashes")? } else { &[] };
    let seconds = get_u64(state, "seconds")?;
    let (LOGS, [bits], (groups, [])) = (lengths.len(), seconds, hashes.as_chunks::<4>()) else {
        return Err(TensorsError::State(format!("expected the lengths of {LOGS} logs and a time, got {lengths:?} and {seconds:?}")));
    };
    if ![0, LOGS].contains(&groups.len()) {
        return Err(TensorsError::State(format!("expected the hashes of {LOGS} logs, got {}", groups.len())));
    }
    let mut logs = [Covered::default(); LOGS];
    for (i, (log, length)) in logs.iter_mut().zip(lengths).enumerate() {
        *log = Covered { length: *length, hash: groups.get(i).map(bytes_of) };
    }
    Ok((logs, f64::from_bits(*bits)))
}

/// Returns the bytes of a hash that is stored as four numbers.
fn bytes_of(words: &[u64; 4]) -> Sha256 {
    let mut hash = Sha256::default();
    hash.as_chunks_mut().0.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_be_bytes());
    hash
}

/// Loads the reward model that a run's agent learns from, in its state at the last checkpoint. Returns `None` if the agent learns from the
/// environment's reward, or if the folder has only a policy.
pub fn load_reward(dir: impl AsRef<Path>) -> Result<Option<LearnedReward>, Error> {
    let dir = dir.as_ref();
    // a policy file has no checkpoint
    if dir.is_file() {
        return Ok(None);
    }
    let (config, path) = (read_config(dir)?, dir.join(STATE));
    if !config.reward_model.as_ref().is_some_and(RewardConfig::is_on) || !exists(&path)? {
        return Ok(None);
    }
    let world = world_of(dir, &config)?;
    let policy = Config { device: Device::Cpu, ..config.clone() }.policy(&world)?;
    let mut learned = LearnedReward::new(&config, &world, Some(policy.as_ref()))?;
    let damaged = |source| Error::Tensors { path: path.clone(), source };
    let (state, note) = read_tensors(&path)?;
    check_note(&path, &note, &config)?;
    learned.iter_mut().try_for_each(|learned| learned.load(&without_prefix(&state, REWARD_PREFIX))).map_err(damaged)?;
    Ok(learned)
}

/// Loads the reward model that `gradus reward-model` wrote to the folder `model`, for the texts of the run in `dir`.
pub fn load_reward_of(model: impl AsRef<Path>, dir: impl AsRef<Path>) -> Result<LearnedReward, Error> {
    let config = read_config(dir.as_ref())?;
    LearnedReward::of_folder(model.as_ref(), &config, &world_of(dir.as_ref(), &config)?)
}
