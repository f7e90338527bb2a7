//! Records episodes as lines of a trace, which `gradus check ENV --trace FILE` replays.
//!
//! ```
//! use gradus::evaluate::record::{Recorder, Recordings};
//! use gradus::{envs::Actions, envs::registry, evaluate::trace};
//!
//! let file = std::env::temp_dir().join(format!("gradus-recordings-{}.jsonl", std::process::id()));
//! let recordings = Recordings::create(&file)?;
//! let cartpole = registry::find("cartpole")?;
//! let recorded = recordings.of(cartpole.clone());
//!
//! let mut envs = recorded.vec_env(0..2, 7)?;
//! for _ in 0..100 {
//!     envs.step(Actions::Discrete(&[0, 1]))?;
//! }
//! drop(envs); // records the unfinished episodes
//! let episodes = recordings.finish()?;
//!
//! let report = trace::check_file(&cartpole, &file)?;
//! assert_eq!((report.agreeing(), report.episodes.len()), (episodes, episodes));
//! # std::fs::remove_file(file).unwrap();
//! # Ok::<(), gradus::Error>(())
//! ```

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gradus_base::panics;
use gradus_envs::registry::without_folder;
use gradus_envs::{Action, Ending, Env, EnvError, EnvSpec, Scene, Space, Step};

use crate::Error;
use crate::evaluate::trace::{Episode, Place, RecordedAction, Start};
use crate::files::{create_beside, remove_leftovers_of};

/// A file of recorded episodes, shared by all recorders. Episodes are written in the order in which they end. Each line has the seed or the
/// state from which its episode starts.
#[derive(Clone)]
pub struct Recordings {
    file: Arc<Mutex<Out>>,
}

struct Out {
    path: PathBuf,
    /// The file under its temporary name, until [`Recordings::finish`] gives it its own.
    temporary: Option<PathBuf>,
    writer: BufWriter<File>,
    episodes: usize,
    error: Option<io::Error>,
}

impl Drop for Out {
    fn drop(&mut self) {
        self.temporary.iter().for_each(|temporary| _ = fs::remove_file(temporary));
    }
}

impl Recordings {
    /// Creates a file that [`finish`](Self::finish) calls `path`, and that replaces an older file then.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let io = Error::io("create", path);
        let (file, temporary) = if path.exists() && !path.is_file() {
            // a device or a pipe, such as standard output, is written as it is
            (File::create(path).map_err(io)?, None)
        } else {
            remove_leftovers_of(path);
            create_beside(path).map(|(file, temporary)| (file, Some(temporary))).map_err(io)?
        };
        let writer = BufWriter::new(file);
        Ok(Self { file: Arc::new(Mutex::new(Out { path: path.into(), temporary, writer, episodes: 0, error: None })) })
    }

    /// Wraps every environment of `world` in a recorder. Call this before adding wrappers that change observations, because the replay does
    /// not add them.
    pub fn of(&self, world: EnvSpec) -> EnvSpec {
        let (name, recordings) = (without_folder(&world.name), self.clone());
        world.wrapped(move |env| Recorder::new(env, &name, recordings.clone()))
    }

    /// Flushes the file, and gives it its name. Returns the number of recorded episodes, or the first error in writing them.
    pub fn finish(&self) -> Result<usize, Error> {
        let mut out = self.lock();
        let result = match out.error.take() {
            Some(error) => Err(error),
            None => out.writer.flush().and_then(|()| if out.temporary.is_some() { out.writer.get_ref().sync_data() } else { Ok(()) }),
        };
        let result = result.and_then(|()| out.temporary.take().map_or(Ok(()), |temporary| fs::rename(temporary, &out.path)));
        result.map_err(Error::io("write", &out.path))?;
        Ok(out.episodes)
    }

    fn lock(&self) -> MutexGuard<'_, Out> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an episode. The methods of an environment cannot return a write error, so [`finish`](Self::finish) returns it.
    fn write(&self, episode: &Episode) {
        let mut out = self.lock();
        if out.error.is_none() {
            out.error = writeln!(out.writer, "{}", episode.to_json()).err();
            out.episodes += 1;
        }
    }
}

/// Plays the episode of `seed` with `actions` and writes it to `path`, replacing the file if it exists.
pub fn write_episode(world: &EnvSpec, seed: u64, actions: &[RecordedAction], path: impl AsRef<Path>) -> Result<(), Error> {
    let recordings = Recordings::create(path)?;
    let mut env = recordings.of(world.clone()).checked_env()?;
    let mut observation = vec![0.0; env.observation_space().width()];
    let mut step = 0;
    let played = panics::catch(|| {
        env.reset(seed, &mut observation);
        for action in actions {
            step += 1;
            env.step(action.as_action(), &mut observation);
        }
    });
    drop(env);
    recordings.finish()?;
    played
        .map_err(|panic| EnvError::Panicked { world: world.name.clone(), env: 0, episode: 1, step, seed, message: panic.message() }.into())
}

/// Records every episode of an environment: start, actions, observations, rewards and ending.
///
/// An abandoned episode is recorded as unfinished. An episode that [`load`](Env::load) continues is not recorded, because its beginning is
/// unknown. If an episode is reseeded ([`reseed`](Env::reseed)) after its first step, or if it starts from a state, only the steps before
/// the reseeding are recorded, because the rest could not be replayed.
pub struct Recorder<E: Env> {
    env: E,
    name: String,
    recordings: Recordings,
    episode: Option<Episode>,
}

impl<E: Env> Recorder<E> {
    /// Wraps `env`, an environment of the world `name`, and writes its episodes to `recordings`.
    pub fn new(env: E, name: &str, recordings: Recordings) -> Self {
        Self { env, name: name.into(), recordings, episode: None }
    }

    fn begin(&mut self, start: Start, observation: &[f32]) {
        self.store();
        self.episode = Some(Episode {
            place: Place::default(),
            env: self.name.clone(),
            start,
            actions: Vec::new(),
            observations: vec![observation.to_vec()],
            rewards: Vec::new(),
            ending: Ending::Running,
        });
    }

    /// Writes the current episode if it has at least one step.
    fn store(&mut self) {
        if let Some(episode) = self.episode.take().filter(|episode| !episode.actions.is_empty()) {
            self.recordings.write(&episode);
        }
    }
}

impl<E: Env> Drop for Recorder<E> {
    fn drop(&mut self) {
        self.store();
    }
}

impl<E: Env> Env for Recorder<E> {
    fn observation_space(&self) -> Space {
        self.env.observation_space()
    }

    fn action_space(&self) -> Space {
        self.env.action_space()
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.env.reset(seed, observation);
        self.begin(Start::Seed { seed, rng: None }, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let step = self.env.step(action, observation);
        if let Some(episode) = &mut self.episode {
            episode.actions.push(action.into());
            episode.observations.push(observation.to_vec());
            episode.rewards.push(step.reward as f32);
            episode.ending = Ending::new(step.terminated, step.truncated);
            if step.done() {
                self.store();
            }
        }
        step
    }

    fn save(&self) -> Vec<u64> {
        self.env.save()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.store();
        self.env.load(state)
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.env.start_from(state, observation)?;
        self.begin(Start::State(state.to_vec()), observation);
        Ok(())
    }

    fn reseed(&mut self, seed: u64) {
        match &mut self.episode {
            Some(Episode { start: Start::Seed { rng, .. }, actions, .. }) if actions.is_empty() => *rng = Some(seed),
            _ => self.store(),
        }
        self.env.reseed(seed);
    }

    fn action_mask(&self, mask: &mut [bool]) -> bool {
        self.env.action_mask(mask)
    }

    fn ends_step(&self) -> bool {
        self.env.ends_step()
    }

    fn score_names(&self) -> Vec<String> {
        self.env.score_names()
    }

    fn scores(&self, scores: &mut [f64]) {
        self.env.scores(scores);
    }

    fn fault(&self) -> Option<String> {
        self.env.fault()
    }

    fn render(&self) -> Option<Scene> {
        self.env.render()
    }

    fn ansi(&self) -> Option<String> {
        self.env.ansi()
    }
}
