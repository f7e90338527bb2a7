//! Environments of Gymnasium, by the name `gym:ID`: `gym:HalfCheetah-v5`, `gym:minigrid/MiniGrid-Empty-8x8-v0`.
//!
//! They run in processes of Python. A worker process holds the environments of a [`VecEnv`](crate::VecEnv), one after the other, and the vectors
//! of a run step at the same time. Observations lie in a file that both processes share (in memory, where the system has such files); what
//! goes through the pipes is a byte in each direction for a step of all environments. The protocol is that of the page `docs/gym-protocol.md`.
//!
//! A name may go on with arguments: `gym:LunarLander-v3?continuous=true&gravity=-5.0`. Values are Python literals, or else texts. Three keys are ours, and may be
//! repeated: `wrapper=NAME` or `wrapper=NAME(4)` applies a wrapper of `gymnasium.wrappers` or any `module.Class`; `keys=a,b` takes these parts
//! of a Dict of observations.
//!
//! An episode is as reproducible as the environment makes it with `reset(seed=...)`. The state of such an environment cannot be saved: a run that is
//! resumed begins new episodes.

mod atari;
mod batch;
mod description;
mod frame;
mod query;
mod worker;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex};

use crate::python::lock;
use crate::{Batch, Env, EnvError, EnvSpec};

pub use crate::python::{chosen_python, python, set_python, suggest_python};
pub use atari::AtariEpisodes;
pub use description::Description;

use batch::{GymBatch, GymEnv};
use query::Query;
use worker::Worker;

/// What the names of these environments begin with.
pub const PREFIX: &str = "gym:";

/// Whether environments make no pictures.
static DRAWS_NOTHING: AtomicBool = AtomicBool::new(false);

/// Lets the environments that are made from now on make no pictures.
pub fn draw_nothing() {
    DRAWS_NOTHING.store(true, Ordering::Relaxed);
}

/// What is known of environments, by the interpreter and the name; of preprocessed games, with what an episode is.
static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

type Known = HashMap<(PathBuf, String), Arc<World>>;

/// One environment of Gymnasium as it was asked for, and what is known of it.
struct World {
    /// The whole name, with `gym:`.
    name: String,
    query: Query,
    python: PathBuf,
    description: Description,
    /// Workers that are started and have no work.
    idle: Mutex<Vec<Worker>>,
}

/// The most workers without work that are kept for each environment.
const MOST_IDLE: usize = 4;

impl World {
    /// Starts Python, and asks what the environment is.
    fn new(name: &str, python: PathBuf) -> Result<Self, EnvError> {
        let made = |problem| EnvError::Made { world: name.into(), problem };
        let query = Query::parse(name.strip_prefix(PREFIX).unwrap_or(name)).map_err(made)?;
        let mut worker = Worker::start(&python).map_err(made)?;
        let description = worker.describe(&query).map_err(made)?;
        Ok(Self { name: name.into(), query, python, description, idle: Mutex::new(vec![worker]) })
    }

    /// Whether it is an Atari game that can be preprocessed.
    fn is_plain_atari(&self) -> bool {
        self.description.class == ATARI && self.query.is_plain_game()
    }

    /// Returns a worker that knows the environment and has made none.
    fn worker(&self) -> Result<Worker, String> {
        if let Some(worker) = lock(&self.idle).pop() {
            return Ok(worker);
        }
        let mut worker = Worker::start(&self.python)?;
        if worker.describe(&self.query)? != self.description {
            return Err("expected the environment that it was at the beginning, got another one: its package has changed, or its spaces are not the same each time".into());
        }
        Ok(worker)
    }

    fn give_back(&self, worker: Worker) {
        let mut idle = lock(&self.idle);
        if idle.len() < MOST_IDLE && worker.is_alive() {
            idle.push(worker);
        }
    }
}

/// Returns what is known of the environment `name`, after asking Python once.
fn world(name: &str) -> Result<Arc<World>, EnvError> {
    let key = (python(), name.to_string());
    if let Some(world) = lock(&KNOWN).get(&key) {
        return Ok(world.clone());
    }
    let world = Arc::new(World::new(name, key.0.clone())?);
    lock(&KNOWN).insert(key, world.clone());
    Ok(world)
}

/// Returns what is known of the environment `name`, such as `gym:CartPole-v1`: its spaces, and the versions of Python and its packages.
pub fn describe(name: &str) -> Result<Description, EnvError> {
    Ok(world(name)?.description.clone())
}

/// The bits of a seed that `reset(seed=...)` gets: NumPy takes seeds of any size, and environments expect numbers of 31 bits.
pub(crate) const SEED_BITS: u64 = (1 << 31) - 1;

/// The class of the Arcade Learning Environment's games.
const ATARI: &str = "AtariEnv";

/// Whether `name` is that of an Atari game that was [found](crate::registry::find), such as `gym:ALE/Pong-v5`, without wrappers and the arguments `obs_type` and
/// `frameskip`: one that [`atari`] takes.
pub fn is_atari(name: &str) -> bool {
    let is_it = |world: &Arc<World>| world.is_plain_atari() && (world.name == name || world.description.versioned(&world.name) == name);
    is_gym(name) && lock(&KNOWN).values().any(is_it)
}

/// Returns the Atari game `name` with the usual preprocessing (Machado et al. 2018, section 5; Gymnasium's `AtariPreprocessing`): an episode begins with 1 to 30 actions
/// that do nothing, and with the fire button in games that wait for it; an action is repeated for 4 frames, whose rewards are added; an observation is the larger one of the last two
/// grey screens at each point, as an image of 84 x 84 pixels.
pub fn atari(name: &str, episodes: AtariEpisodes) -> Result<EnvSpec, EnvError> {
    let plain = world(name)?;
    let made = |problem| EnvError::Made { world: name.into(), problem };
    if !plain.is_plain_atari() {
        let (expected, got) =
            ("a game of the Arcade Learning Environment without wrappers, obs_type and frameskip", &plain.description.class);
        return Err(made(format!("expected {expected} for Atari's preprocessing, got {got}")));
    }
    let preprocessed = |episodes| -> Result<EnvSpec, EnvError> {
        let key = (plain.python.clone(), format!("{name} {episodes:?}"));
        if let Some(known) = lock(&KNOWN).get(&key) {
            return Ok(spec_of(known));
        }
        let query = plain.query.preprocessed(episodes);
        let mut worker = plain.worker().map_err(made)?;
        let description = worker.describe(&query).map_err(made)?;
        let (name, python) = (plain.name.clone(), plain.python.clone());
        let world = Arc::new(World { name, query, python, description, idle: Mutex::new(vec![worker]) });
        lock(&KNOWN).insert(key, world.clone());
        Ok(spec_of(&world))
    };
    let games = preprocessed(AtariEpisodes::Games)?;
    match episodes {
        AtariEpisodes::Games => Ok(games),
        AtariEpisodes::Lives => Ok(EnvSpec { whole: Some(Arc::new(games)), ..preprocessed(episodes)? }),
    }
}

/// Whether `name` is that of an environment of Gymnasium.
pub fn is_gym(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Returns the identifier in the name of an environment of Gymnasium: `CartPole-v1` of `gym:CartPole-v1?sutton_barto_reward=true`.
pub fn id(name: &str) -> Option<&str> {
    name.strip_prefix(PREFIX).map(|rest| rest.split('?').next().unwrap_or(rest))
}

/// Returns the environment `name`, which begins with `gym:`.
pub(crate) fn find(name: &str) -> Result<EnvSpec, EnvError> {
    Ok(spec_of(&world(name)?))
}

fn spec_of(world: &Arc<World>) -> EnvSpec {
    // a name without a version is that of the newest one
    let name = &world.description.versioned(&world.name);
    let (one, many) = (world.clone(), world.clone());
    let one = move || -> Box<dyn Env> { Box::new(GymEnv::new(one.clone())) };
    let many = move |n| -> Box<dyn Batch> { Box::new(GymBatch::new(many.clone(), n, false)) };
    let Description { class, states, max_episode_steps, reward_threshold, .. } = &world.description;
    EnvSpec {
        gymnasium_id: id(name).map(Into::into),
        about: format!("{class} of Gymnasium"),
        solved_at: *reward_threshold,
        max_episode_steps: *max_episode_steps,
        is_one_hot: states.is_some(),
        can_be_saved: false,
        states: *states,
        ..EnvSpec::of(name, Arc::new(one), Arc::new(many))
    }
}

/// What [`look_at`] found: the interpreter, and packages with their versions, `None` for those that are absent.
pub type Packages = (String, Vec<(String, Option<String>)>);

/// Looks at a Python interpreter and the packages in it. Returns what is missing if it can run no environment.
pub fn look_at(python: &Path, packages: &[&str]) -> Result<Packages, String> {
    Worker::start(python)?.versions(packages)
}
