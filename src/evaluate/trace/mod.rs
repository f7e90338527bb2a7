//! Recorded episodes, replayed to check that an environment behaves like another implementation.
//!
//! A trace is a text file with one episode per line, each a JSON object. Blank lines are ignored.
//!
//! | key | value |
//! |---|---|
//! | `env` | the environment's name in Gymnasium or in Gradus: `"CartPole-v1"` |
//! | `start` | the physical state after the reset, in f64 with all digits: `env.unwrapped.state` |
//! | `episode_seed` | the seed of the reset instead of `start`; a [`Recorder`](crate::evaluate::record::Recorder) writes it after a reset |
//! | `dynamics_seed` | only with `episode_seed`: the seed of the randomness after the start, if it differs from `episode_seed` |
//! | `format` | 1, the number of this format; 1 if missing |
//! | `actions` | one per step: a whole number for a discrete space, an array of numbers for a box |
//! | `observations` | one row of numbers after the reset and one after each step, so one row more than actions |
//! | `rewards` | one number per step |
//! | `terminated`, `truncated` | Gymnasium's two flags of the last step; both false if the recording stopped early |
//!
//! Files of earlier versions have `luck_seed` instead of `dynamics_seed`. Other keys are ignored. Observations and rewards are compared as
//! f32, so decimals that parse to the same f32 are enough.
//!
//! The replay is open loop: the environment starts in `start` and receives the recorded actions, independently of its observations. A digit
//! missing from `start` can change the whole episode, so agreement over a long episode is strong evidence that the implementations are
//! equal. Disagreement is weaker evidence that they differ: sines of two libraries sometimes differ in the last place, and this changes
//! about one balanced CartPole episode in 100, one Acrobot episode in 25 and one Pendulum episode in 400.

use std::fmt;
use std::path::Path;

use gradus_base::panics;
use gradus_envs::registry::without_folder;
use gradus_envs::{Action, Ending, Env, EnvError, EnvSpec};
use serde::Serialize;

mod file;

pub use file::read;

/// Tolerance for observations and rewards, in units in the last place of f32: rounding to f32 can turn a difference in the last place of
/// f64 into one unit.
const TOLERANCE: u32 = 1;

/// One recorded episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// The file and line of the episode, for error messages.
    pub place: Place,
    /// Name of the environment.
    pub env: String,
    /// The start of the episode.
    pub start: Start,
    /// One action per step.
    pub actions: Vec<RecordedAction>,
    /// The observation after the reset, followed by one observation per step.
    pub observations: Vec<Vec<f32>>,
    /// One reward per step.
    pub rewards: Vec<f32>,
    /// The ending after the last step.
    pub ending: Ending,
}

/// The start of an episode.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// A physical state, for [`Env::start_from`].
    State(Vec<f64>),
    /// A seed for [`Env::reset`].
    Seed {
        /// Seed of the episode.
        seed: u64,
        /// Seed of the dynamics, if it differs from that of the episode ([`Env::reseed`]).
        rng: Option<u64>,
    },
}

/// A line of a file, counted from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file, self.line)
    }
}

/// An action in a trace. The replay checks that it belongs to the action space.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RecordedAction {
    /// A whole number.
    Discrete(u32),
    /// An array of numbers.
    Continuous(Vec<f32>),
}

impl From<Action<'_>> for RecordedAction {
    fn from(action: Action<'_>) -> Self {
        match action {
            Action::Discrete(action) => RecordedAction::Discrete(action),
            Action::Continuous(row) => RecordedAction::Continuous(row.to_vec()),
        }
    }
}

impl RecordedAction {
    /// Returns the action for an environment's `step`.
    pub fn as_action(&self) -> Action<'_> {
        match self {
            RecordedAction::Discrete(action) => Action::Discrete(*action),
            RecordedAction::Continuous(row) => Action::Continuous(row),
        }
    }
}

impl fmt::Display for RecordedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordedAction::Discrete(action) => write!(f, "{action}"),
            RecordedAction::Continuous(row) => write!(f, "{row:?}"),
        }
    }
}

/// A trace that cannot be replayed. A difference between the environment and the recording is not an error.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("cannot read {file}: {error}")]
    File {
        /// The file.
        file: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// The file holds no episode.
    #[error("{file}: expected one episode per line, got an empty file")]
    Empty {
        /// The file.
        file: String,
    },
    /// A line is not an episode, or not an episode of this environment.
    #[error("{place}: {what}: expected {expected}, got {got}")]
    Input {
        /// The file and line.
        place: Place,
        /// The key, with the index if there is one.
        what: String,
        /// The expected value.
        expected: String,
        /// The actual value.
        got: String,
    },
    /// The environment cannot start in the recorded state.
    #[error("{place}: start: {error}")]
    Start {
        /// The file and line.
        place: Place,
        /// The environment's error.
        error: EnvError,
    },
    /// The environment failed.
    #[error("{place}: {error}")]
    Env {
        /// The file and line.
        place: Place,
        /// The environment's error.
        error: EnvError,
    },
}

/// The first difference between the environment and the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step, counted from 1; 0 is the reset.
    pub step: usize,
    /// The quantity that differs.
    pub what: Quantity,
    /// The recorded value.
    pub expected: String,
    /// The value from the environment.
    pub got: String,
    /// For an observation: the distance of the two values, see [`ulps`].
    pub ulps: Option<u32>,
}

/// A quantity that can differ in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number of the observation.
    Observation(usize),
    /// The reward.
    Reward,
    /// The flag `terminated` of the last recorded step.
    Terminated,
    /// The flag `truncated` of the last recorded step.
    Truncated,
    /// The length: the environment ended the episode before the recording did.
    End,
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Observation(i) => write!(f, "observation[{i}]"),
            Quantity::Reward => f.write_str("reward"),
            Quantity::Terminated => f.write_str("terminated"),
            Quantity::Truncated => f.write_str("truncated"),
            Quantity::End => f.write_str("end"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, what, expected, got, ulps } = self;
        write!(f, "step {step}: {what}: expected {expected}, got {got}")?;
        match ulps {
            Some(ulps) => write!(f, " ({ulps} ulps apart)"),
            None => Ok(()),
        }
    }
}

/// The result of replaying the episodes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One result per episode, in the order of the file.
    pub episodes: Vec<Checked>,
}

impl Report {
    /// Returns the number of episodes without a difference.
    pub fn agreeing(&self) -> usize {
        self.episodes.iter().filter(|episode| episode.difference.is_none()).count()
    }
}

/// The result of replaying one episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Line in the file, counted from 1.
    pub line: usize,
    /// Number of recorded steps.
    pub steps: usize,
    /// The first difference, if there is one.
    pub difference: Option<Difference>,
}

/// Replays every episode of the trace at `path`.
pub fn check_file(world: &EnvSpec, path: impl AsRef<Path>) -> Result<Report, TraceError> {
    let check = |episode: Episode| {
        let difference = replay(world, &episode)?;
        Ok(Checked { line: episode.place.line, steps: episode.actions.len(), difference })
    };
    Ok(Report { episodes: read(path)?.into_iter().map(check).collect::<Result<_, _>>()? })
}

/// Replays `episode` up to the first difference.
///
/// Observations and rewards may differ by one unit in the last place of f32; flags must be equal.
pub fn replay(world: &EnvSpec, episode: &Episode) -> Result<Option<Difference>, TraceError> {
    let mut step = 0;
    panics::catch(|| replay_steps(world, episode, &mut step)).unwrap_or_else(|panic| {
        let seed = if let Start::Seed { seed, .. } = episode.start { seed } else { 0 };
        let (world, message) = (world.name.clone(), panic.message());
        let error = EnvError::Panicked { world, env: 0, episode: 1, step, seed, message };
        Err(TraceError::Env { place: episode.place.clone(), error })
    })
}

/// Replays `episode` and counts the steps in `count`.
fn replay_steps(world: &EnvSpec, episode: &Episode, count: &mut u32) -> Result<Option<Difference>, TraceError> {
    let mut env = world.env();
    check_fit(world, env.as_ref(), episode)?;

    let mut observation = vec![0.0; env.observation_space().width()];
    match &episode.start {
        Start::State(state) => {
            let refused = |error| TraceError::Start { place: episode.place.clone(), error };
            env.start_from(state, &mut observation).map_err(refused)?;
        }
        Start::Seed { seed, rng } => {
            env.reset(*seed, &mut observation);
            rng.iter().for_each(|rng| env.reseed(*rng));
        }
    }
    if let Some(difference) = compare_rows(0, &episode.observations[0], &observation) {
        return Ok(Some(difference));
    }
    for (t, action) in episode.actions.iter().enumerate() {
        *count += 1;
        let step = env.step(action.as_action(), &mut observation);
        let got = (step.reward as f32, Ending::new(step.terminated, step.truncated));
        let last = t + 1 == episode.actions.len();
        let difference = compare_rows(t + 1, &episode.observations[t + 1], &observation)
            .or_else(|| compare_rewards(t + 1, episode.rewards[t], got.0))
            .or_else(|| compare_endings(t + 1, last.then_some(episode.ending), got.1));
        if difference.is_some() {
            return Ok(difference);
        }
    }
    Ok(None)
}

fn compare_rows(step: usize, expected: &[f32], got: &[f32]) -> Option<Difference> {
    expected.iter().zip(got).enumerate().find(|(_, (expected, got))| ulps(**expected, **got) > TOLERANCE).map(|(i, (expected, got))| {
        let what = Quantity::Observation(i);
        Difference { step, what, expected: format!("{expected:?}"), got: format!("{got:?}"), ulps: Some(ulps(*expected, *got)) }
    })
}

fn compare_rewards(step: usize, expected: f32, got: f32) -> Option<Difference> {
    let what = Quantity::Reward;
    (ulps(expected, got) > TOLERANCE).then(|| Difference {
        step,
        what,
        expected: format!("{expected:?}"),
        got: format!("{got:?}"),
        ulps: None,
    })
}

/// Compares the endings at a step. `expected` is the recorded ending if the step is the last one; otherwise it is `None`, and the episode
/// must continue.
fn compare_endings(step: usize, expected: Option<Ending>, got: Ending) -> Option<Difference> {
    let flag = |what, expected: bool, got: bool| {
        (expected != got).then(|| Difference { step, what, expected: expected.to_string(), got: got.to_string(), ulps: None })
    };
    match expected {
        Some(ending) => flag(Quantity::Terminated, ending.terminated(), got.terminated())
            .or_else(|| flag(Quantity::Truncated, ending.truncated(), got.truncated())),
        None => got.done().then(|| {
            let got = format!("{got:?}").to_lowercase();
            Difference { step, what: Quantity::End, expected: "running".into(), got, ulps: None }
        }),
    }
}

/// Returns the distance of `a` and `b` in units in the last place of f32. The two zeros are equal; the distance to NaN is `u32::MAX`.
///
/// ```
/// use gradus::evaluate::trace::ulps;
///
/// assert_eq!(ulps(1.0, 1.0 + f32::EPSILON), 1);
/// assert_eq!(ulps(-0.0, 0.0), 0);
/// assert_eq!(ulps(-1e-45, 1e-45), 2);
/// assert_eq!(ulps(f32::NAN, f32::NAN), u32::MAX);
/// ```
pub fn ulps(a: f32, b: f32) -> u32 {
    if a.is_nan() || b.is_nan() {
        return u32::MAX;
    }
    // f32 is sign and magnitude: this maps both signs onto one integer scale with a single zero
    let rank = |x: f32| {
        let magnitude = i64::from(x.to_bits() & 0x7FFF_FFFF);
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    rank(a).abs_diff(rank(b)) as u32 // at most twice the bits of infinity, which fits u32
}

/// Checks that `episode` belongs to `world`, that its lists have the right lengths, and that its actions are in the action space.
fn check_fit(world: &EnvSpec, env: &dyn Env, episode: &Episode) -> Result<(), TraceError> {
    let Episode { place, env: name, actions, observations, .. } = episode;
    let id = world.gymnasium_id.as_deref().unwrap_or(&world.name);
    // a map may have been moved since
    if *name != world.name && name != id && without_folder(name) != without_folder(&world.name) {
        return Err(input(place, "env", format!("`{id}`"), format!("`{name}`")));
    }
    check_lengths(episode)?;
    let width = env.observation_space().width();
    if let Some((i, row)) = observations.iter().enumerate().find(|(_, row)| row.len() != width) {
        return Err(input(place, &format!("observations[{i}]"), format!("{width} numbers"), row.len().to_string()));
    }
    let space = env.action_space();
    if let Some((i, action)) = actions.iter().enumerate().find(|(_, action)| !space.contains(action.as_action())) {
        return Err(input(place, &format!("actions[{i}]"), space.to_string(), action.to_string()));
    }
    Ok(())
}

fn check_lengths(episode: &Episode) -> Result<(), TraceError> {
    let (steps, rows, rewards) = (episode.actions.len(), episode.observations.len(), episode.rewards.len());
    if steps == 0 {
        return Err(input(&episode.place, "actions", "at least 1", "0"));
    }
    if rows != steps + 1 {
        let expected = format!("{} rows, one more than actions", steps + 1);
        return Err(input(&episode.place, "observations", expected, rows.to_string()));
    }
    if rewards != steps {
        return Err(input(&episode.place, "rewards", format!("{steps} numbers, one per action"), rewards.to_string()));
    }
    Ok(())
}

fn input(place: &Place, what: &str, expected: impl Into<String>, got: impl Into<String>) -> TraceError {
    TraceError::Input { place: place.clone(), what: what.into(), expected: expected.into(), got: got.into() }
}
