//! Recorded episodes: whether a world does what another implementation of it did.
//!
//! A trace is a text file with one episode a line, each line a JSON object (blank lines do not count):
//!
//! | key | value |
//! |---|---|
//! | `env` | the world, by Gymnasium's name or by ours: `"CartPole-v1"` |
//! | `start` | the physical state after the reset, in f64 with all its digits: `env.unwrapped.state` |
//! | `episode_seed` | instead of `start`, in what our [`Recorder`](crate::evaluate::record::Recorder) wrote: the seed of the reset |
//! | `dynamics_seed` | with `episode_seed`, and only if the randomness after the start was drawn from another one |
//! | `format` | 1, the number of this format; lines without it have it, too |
//! | `actions` | one per step: a whole number for a discrete space, an array of numbers for a box |
//! | `observations` | one row of numbers after the reset and one after each step, so one row more than actions |
//! | `rewards` | one number per step |
//! | `terminated`, `truncated` | Gymnasium's two flags, of the last step; both false when the recording stopped early |
//!
//! `luck_seed`, in files of earlier versions, is `dynamics_seed`. Other keys are ignored. Observations and rewards are compared as f32; the shortest decimal that reads back as the same f32 will
//! do. The replay is open loop: the world begins in `start` and is given the actions, whatever it answers. So one digit lost from
//! `start` is enough for another episode, and a long episode that agrees is strong evidence. One that does not is weaker evidence: sines
//! of two libraries differ in the last place now and then, and about one balanced CartPole in a hundred grows that to another episode,
//! one Acrobot in 25 and one Pendulum in 400.

use std::fmt;
use std::path::Path;

use gradus_envs::{Action, Ending, Env, EnvError, World};
use serde::Serialize;

mod file;

pub use file::read;

/// How far apart an observation or a reward may lie, in units in the last place of f32: what rounding to f32 makes of a difference in the last
/// place of f64.
const TOLERANCE: u32 = 1;

/// One recorded episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Where it was read, for error messages.
    pub place: Place,
    /// The name of the world.
    pub env: String,
    /// What it began from.
    pub start: Start,
    /// One action per step.
    pub actions: Vec<RecordedAction>,
    /// One observation more than steps: the reset's is the first.
    pub observations: Vec<Vec<f32>>,
    /// One reward per step.
    pub rewards: Vec<f32>,
    /// How it stood after the last step.
    pub ending: Ending,
}

/// What an episode begins from.
#[derive(Clone, Debug, PartialEq)]
pub enum Start {
    /// A physical state, for [`Env::start_from`].
    State(Vec<f64>),
    /// A seed of ours, for [`Env::reset`].
    Seed {
        /// The seed of the episode.
        seed: u64,
        /// What its dynamics were drawn from, if from another seed ([`Env::reseed`]).
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

/// An action as it stands in the file; whether the world knows it is seen at the replay.
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
    /// As an environment takes it.
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

/// A trace that cannot be replayed. A difference is not an error.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read.
    #[error("{file}: {error}")]
    File {
        /// The file.
        file: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file holds no episode.
    #[error("{file}: expected one episode per line, got an empty file")]
    Empty {
        /// The file.
        file: String,
    },
    /// A line is not an episode, or not one of this world.
    #[error("{place}: {what}: expected {expected}, got {got}")]
    Input {
        /// Where it stands.
        place: Place,
        /// The key, with the index where there is one.
        what: String,
        /// What should stand there.
        expected: String,
        /// What stands there.
        got: String,
    },
    /// The world refuses to begin in the recorded state.
    #[error("{place}: start: {error}")]
    Start {
        /// Where it stands.
        place: Place,
        /// The world's own words.
        error: EnvError,
    },
}

/// The first place where the world does not do what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step, counted from 1; 0 is the reset.
    pub step: usize,
    /// What differs.
    pub what: Quantity,
    /// What was recorded.
    pub expected: String,
    /// What the world returned.
    pub got: String,
    /// For an observation: how far apart the two are, see [`ulps`].
    pub ulps: Option<u32>,
}

/// What can differ in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A number of the observation.
    Observation(usize),
    /// The reward.
    Reward,
    /// The flag of the last recorded step.
    Terminated,
    /// The flag of the last recorded step.
    Truncated,
    /// The length: the world ended the episode while the recording goes on.
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

/// What became of the episodes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// One entry per episode, in the order of the file.
    pub episodes: Vec<Checked>,
}

impl Report {
    /// How many episodes replayed without a difference.
    pub fn agreeing(&self) -> usize {
        self.episodes.iter().filter(|episode| episode.difference.is_none()).count()
    }
}

/// What became of one episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its line in the file, counted from 1.
    pub line: usize,
    /// How many steps were recorded.
    pub steps: usize,
    /// The first difference, if there is one.
    pub difference: Option<Difference>,
}

/// Replays every episode of the trace `path`.
pub fn check_file(world: &World, path: impl AsRef<Path>) -> Result<Report, TraceError> {
    let check = |episode: Episode| {
        let difference = replay(world, &episode)?;
        Ok(Checked { line: episode.place.line, steps: episode.actions.len(), difference })
    };
    Ok(Report { episodes: read(path)?.into_iter().map(check).collect::<Result<_, _>>()? })
}

/// Replays `episode` up to the first difference.
///
/// Observations and rewards may lie one unit in the last place apart; flags must be equal.
pub fn replay(world: &World, episode: &Episode) -> Result<Option<Difference>, TraceError> {
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

/// `expected` is the recorded ending on the last step and nothing before it, when the episode must go on.
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

/// How many f32 numbers lie between `a` and `b`, one of them included: 0 when they are equal, the two zeros being one number.
/// Nothing is near NaN.
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
    // f32 is sign and magnitude: this puts the numbers of both signs on one line that runs through a single zero
    let rank = |x: f32| {
        let magnitude = i64::from(x.to_bits() & 0x7FFF_FFFF);
        if x.is_sign_negative() { -magnitude } else { magnitude }
    };
    rank(a).abs_diff(rank(b)) as u32 // at most twice the bits of infinity, which fits
}

/// Whether `episode` is one of `world`, and every number of it in its place.
fn check_fit(world: &World, env: &dyn Env, episode: &Episode) -> Result<(), TraceError> {
    let Episode { place, env: name, actions, observations, .. } = episode;
    let id = world.gymnasium_id.as_deref().unwrap_or(&world.name);
    if *name != world.name && name != id {
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
        return Err(input(&episode.place, "rewards", format!("{steps} numbers, as many as actions"), rewards.to_string()));
    }
    Ok(())
}

fn input(place: &Place, what: &str, expected: impl Into<String>, got: impl Into<String>) -> TraceError {
    TraceError::Input { place: place.clone(), what: what.into(), expected: expected.into(), got: got.into() }
}
