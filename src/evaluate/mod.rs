//! Evaluation of policies: the returns of a fixed number of episodes.
//!
//! On a text task, episodes are problems of one split, in the order of a fixed list that is the same for all policies and seeds
//! ([`TextWorld::listed`](gradus_envs::text::TextWorld::listed)). This allows pairing the returns of two policies problem by problem.

pub mod chat;
pub mod features;
pub mod inspect;
pub mod levels;
pub mod play;
pub mod record;
pub mod sample;
pub mod strip;
pub mod trace;

use std::fmt;

use gradus_agents::ConfigError;
use gradus_base::random::{Purpose, Stream, episode_seed};
use gradus_base::{panics, threads};
use gradus_envs::text::{Division, Split, TextWorld};
use gradus_envs::{EnvError, EnvSpec, Finished};
use gradus_nets::{Behaviour, Sampling};
use gradus_rollouts::{MAX_CONCURRENT, PlayedEpisode, play_episodes, play_first_episodes};
use serde::{Serialize, Serializer};

use crate::Error;
use crate::config::is_text;
use crate::memory;
use crate::numbers::with_error;
use crate::numbers::{mean_and_error, mean_and_std};

/// How actions are chosen in an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The most probable action.
    Greedy,
    /// Sampled from the policy, as in training. With gSDE, [`Policy::predict`](crate::Policy::predict) draws its noise anew in every call.
    Sampled,
}

impl Mode {
    pub(crate) fn sampling(self) -> Sampling {
        match self {
            Mode::Greedy => Sampling::GREEDY,
            Mode::Sampled => Sampling::default(),
        }
    }
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// How actions were chosen.
    pub mode: Mode,
    /// The seed of the evaluation.
    pub seed: u64,
    /// The mean return.
    pub mean: f64,
    /// The sample standard deviation of the returns; NaN (null in JSON) if there is only one.
    pub std: f64,
    /// The lowest return.
    pub min: f64,
    /// The highest return.
    pub max: f64,
    /// The return of every episode. Policies evaluated with the same seed play the same episodes in the same order; on a text task, the
    /// order is that of the fixed list of problems.
    pub returns: Vec<f64>,
    /// The number of steps of every episode.
    pub lengths: Vec<u32>,
    /// The means of the environment's scores, if it has any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<Score>,
    /// The problems, on a text task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<Problems>,
}

/// The problems of an evaluation on a text task. The policy answers each problem once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problems {
    /// Name of the task.
    pub task: String,
    /// The split of the problems; `None` if the task has no splits or the prompt is fixed, in which case training uses the same problems.
    #[serde(serialize_with = "split_name")]
    pub split: Option<Split>,
    /// Number of problems, all different.
    pub distinct: usize,
    /// Number of requested problems; larger than `distinct` if the split has fewer.
    pub wanted: usize,
    /// Whether these are all problems of the split, or of a task without splits.
    pub is_whole: bool,
}

fn split_name<S: Serializer>(split: &Option<Split>, serializer: S) -> Result<S::Ok, S::Error> {
    split.map(Split::name).serialize(serializer)
}

impl Problems {
    pub(crate) fn of(world: &EnvSpec, text: &TextWorld, (distinct, wanted): (usize, usize), is_whole: bool) -> Self {
        let has_splits = text.task.division() == Division::Splits && text.prompt.is_none();
        Self {
            task: gradus_envs::registry::without_folder(&world.name),
            split: has_splits.then_some(text.split),
            distinct,
            wanted,
            is_whole,
        }
    }

    /// Whether these are the same problems in the same order as `others`.
    pub fn are_those_of(&self, others: &Problems) -> bool {
        let key = |it: &Problems| (it.task.clone(), it.split, it.distinct);
        key(self) == key(others)
    }
}

/// Formats, for example, as `145 problems (the whole test split of chain-sum)`, or `all 7 problems, also used in training`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, split, distinct, wanted, is_whole } = self;
        let problems = if *distinct == 1 { "problem" } else { "problems" };
        match (split, is_whole) {
            (None, true) => write!(f, "all {distinct} {problems}, also used in training"),
            (None, false) => write!(f, "{distinct} {problems} of {task}, also used in training"),
            (Some(split), false) => write!(f, "{distinct} {problems} (a fixed sample of the {} split of {task})", split.name()),
            (Some(split), true) => {
                let more = if wanted > distinct { format!(", fewer than {wanted}") } else { String::new() };
                write!(f, "{distinct} {problems} (the whole {} split of {task}{more})", split.name())
            }
        }
    }
}

/// A score other than the return, such as `exact` on text tasks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Name of the score.
    pub name: String,
    /// Mean over the episodes.
    pub mean: f64,
}

impl Evaluation {
    /// Returns the mean return as text, with as many digits as its standard error supports.
    pub fn mean_shown(&self) -> String {
        let (mean, error) = mean_and_error(self.returns.iter().copied());
        with_error(mean, error)
    }

    /// Returns the standard error of the mean return; 0 if there is only one return.
    pub fn error(&self) -> f64 {
        (self.std / (self.returns.len() as f64).sqrt()).max(0.0)
    }

    /// Returns the mean of the score `name`, if there is one.
    pub fn score(&self, name: &str) -> Option<f64> {
        self.scores.iter().find(|score| score.name == name).map(|score| score.mean)
    }
}

/// The result of one episode.
struct Outcome {
    episode_return: f64,
    length: u32,
    scores: Vec<f64>,
}

/// Plays `episodes` episodes, each in its own environment, so that short and long episodes count equally.
///
/// On a text task, the episodes are the first `episodes` problems of the fixed list of the world's split, or all problems if the list has
/// fewer. The seed does not affect the problems, only the sampled actions in mode [`Sampled`](Mode::Sampled).
///
/// Returns an error if there are no episodes, and if the policy reads observations of another width, or if an environment fails.
///
/// # Panics
/// If the policy's actions are not of the environment's kind.
pub fn evaluate(policy: &dyn Behaviour, world: &EnvSpec, episodes: usize, seed: u64, mode: Mode) -> Result<Evaluation, Error> {
    ConfigError::unless(episodes > 0, "episodes", "at least 1", episodes)?;
    if !is_text(world) {
        let (width, expected) = (world.checked_env()?.observation_space().width(), policy.observation_width());
        if width != expected {
            let expected = format!("an environment with observations of {expected} numbers, which the policy reads");
            return Err(Error::Parse { what: world.name.clone(), expected, got: format!("one with {width}") });
        }
        let bytes = memory::of_evaluation(world) as f64;
        memory::expect("episodes", episodes, "at once in this environment", |episodes| episodes * bytes)?;
    }
    // evaluations derive a separate key from the seed, so that a training with the same seed has not seen their episodes
    let mut keys = Stream::new(seed, Purpose::Evaluation, 0);
    let key = u64::from(keys.word()) | u64::from(keys.word()) << 32;
    let listed = panics::catch(|| world.text.as_ref().map(|text| (text, text.listed(episodes))));
    let list = listed.map_err(|panic| EnvError::Text(format!("panicked when it drew a problem: {}", panic.message())))?;
    let problems = list.as_ref().map(|(text, list)| Problems::of(world, text, (list.seeds.len(), episodes), list.is_whole));
    let sampling = mode.sampling();
    let stream = |id: usize| Stream::new(key, Purpose::Evaluation, 1 + id as u64);
    let outcomes = threads::with_default(|| match is_text(world) || !world.can_be_saved() {
        true => {
            let of_episodes = || (0..episodes as u64).map(|id| episode_seed(key, id, 0)).collect();
            let seeds = list.map_or_else(of_episodes, |(_, list)| list.seeds);
            let played = play_episodes(policy, world, &seeds, (&sampling, &stream), MAX_CONCURRENT * threads::count())?;
            let outcome =
                |it: PlayedEpisode| Outcome { episode_return: it.episode_return(), length: it.rewards.len() as u32, scores: it.scores };
            Ok::<Vec<_>, EnvError>(played.into_iter().map(outcome).collect())
        }
        false => {
            let finished = play_first_episodes(policy, world, episodes, key, (&sampling, &stream))?;
            let outcome = |it: Finished| Outcome { episode_return: it.episode_return, length: it.length, scores: it.scores };
            Ok(finished.into_iter().map(outcome).collect())
        }
    })?;
    Error::unless_sound(policy)?;

    let returns: Vec<f64> = outcomes.iter().map(|outcome| outcome.episode_return).collect();
    let lengths = outcomes.iter().map(|outcome| outcome.length).collect();
    let (mean, std) = mean_and_std(returns.iter().copied());
    // one return has no deviation
    let std = if returns.len() > 1 { std } else { f64::NAN };
    let mean_score = |i: usize| mean_and_std(outcomes.iter().map(|outcome| outcome.scores[i])).0;
    let names = world.env().score_names();
    let scores = names.into_iter().enumerate().map(|(i, name)| Score { name, mean: mean_score(i) }).collect();
    Ok(Evaluation {
        mode,
        seed,
        mean,
        std,
        min: returns.iter().copied().fold(f64::INFINITY, f64::min),
        max: returns.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        returns,
        lengths,
        scores,
        problems,
    })
}
