//! How good a policy is: the returns of a fixed number of episodes.

use std::ops::Range;

use gradus_envs::random::{Purpose, Stream, episode_seed};
use gradus_envs::{EnvError, World};
use gradus_nets::{ActionRows, Choice, Policy, Sampling, threads};
use serde::Serialize;

use crate::Error;
use crate::collect::{Clipped, actors, split};
use crate::complete::SLOTS;
use crate::config::is_text;
use crate::episodes::{Choosing, play_episodes};
use crate::metrics::{mean_and_error, mean_and_std};
use crate::numbers::with_error;

/// How actions are chosen in an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The most probable action.
    Greedy,
    /// At random, as in training.
    Sampled,
}

/// The outcome of an evaluation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// How actions were chosen.
    pub mode: Mode,
    /// The seed of the evaluation.
    pub seed: u64,
    /// The mean return.
    pub mean: f64,
    /// The sample standard deviation of the returns.
    pub std: f64,
    /// The lowest return.
    pub min: f64,
    /// The highest return.
    pub max: f64,
    /// The return of every episode, in the order of their seeds.
    pub returns: Vec<f64>,
    /// The number of steps of every episode.
    pub lengths: Vec<u32>,
    /// The means of the world's scores, where it has some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<Score>,
}

/// What the episodes were like besides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// Its name.
    pub name: String,
    /// Its mean over the episodes.
    pub mean: f64,
}

impl Evaluation {
    /// The mean return for people, with the digits that its standard error leaves.
    pub fn mean_shown(&self) -> String {
        let (mean, error) = mean_and_error(self.returns.iter().copied());
        with_error(mean, error)
    }

    /// The mean of the score called `name`, where there is one.
    pub fn score(&self, name: &str) -> Option<f64> {
        self.scores.iter().find(|score| score.name == name).map(|score| score.mean)
    }
}

/// How an episode went.
struct Outcome {
    episode_return: f64,
    length: u32,
    scores: Vec<f64>,
}

/// Plays `episodes` episodes, each in an environment of its own, so that short ones count no more than long ones.
pub fn evaluate(policy: &dyn Policy, world: &World, episodes: usize, seed: u64, mode: Mode) -> Result<Evaluation, Error> {
    // a key of its own, so that a training with the same seed has not seen these episodes
    let mut keys = Stream::new(seed, Purpose::Evaluation, 0);
    let key = u64::from(keys.word()) | u64::from(keys.word()) << 32;
    let outcomes = threads::with_default(|| match is_text(world) {
        true => play_texts(policy, world, episodes, key, mode),
        false => {
            let mut shards: Vec<_> = split(episodes, actors(policy)).collect();
            let results = threads::map(&mut shards, |_, ids| play_once(policy, world, ids.clone(), key, mode));
            Ok::<_, EnvError>(results.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
    })?;
    Error::unless_sound(policy)?;

    let returns: Vec<f64> = outcomes.iter().map(|outcome| outcome.episode_return).collect();
    let lengths = outcomes.iter().map(|outcome| outcome.length).collect();
    let (mean, std) = mean_and_std(returns.iter().copied());
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
    })
}

/// The first episode of each of the environments `0..episodes`, which are those of [`play_once`].
fn play_texts(policy: &dyn Policy, world: &World, episodes: usize, key: u64, mode: Mode) -> Result<Vec<Outcome>, EnvError> {
    let seeds: Vec<u64> = (0..episodes).map(|id| episode_seed(key, id as u64, 0)).collect();
    let stream = |id: usize| Stream::new(key, Purpose::Evaluation, 1 + id as u64);
    let choosing = if mode == Mode::Greedy { Choosing::Greedy } else { Choosing::Sampled(&stream, Sampling::default()) };
    let played = play_episodes(policy, world, &seeds, choosing, SLOTS * threads::count())?;
    let outcome = |episode: crate::episodes::PlayedEpisode| Outcome {
        episode_return: episode.episode_return(),
        length: episode.rewards.len() as u32,
        scores: episode.scores,
    };
    Ok(played.into_iter().map(outcome).collect())
}

/// The first episode of each of the environments `ids`.
fn play_once(policy: &dyn Policy, world: &World, ids: Range<usize>, key: u64, mode: Mode) -> Result<Vec<Outcome>, EnvError> {
    let mut envs = world.vec_env(ids.clone(), key)?;
    let mut streams: Vec<_> = ids.clone().map(|id| Stream::new(key, Purpose::Evaluation, 1 + id as u64)).collect();
    let mut actor = policy.actor();
    let mut actions = ActionRows::empty(&envs.action_space());
    let mut clipped = Clipped::to(envs.action_space());
    let mut log_probs = vec![0.0; ids.len()];
    let mut results: Vec<Option<Outcome>> = ids.map(|_| None).collect();
    while results.iter().any(Option::is_none) {
        let choice = if mode == Mode::Greedy { Choice::Greedy } else { Choice::Sample(&mut streams) };
        actor.act(envs.observation_rows(), envs.action_masks(), choice, &mut actions, &mut log_probs);
        for finished in &envs.step(clipped.clip(&actions))?.finished {
            // an environment plays on until all are done; only its first episode counts
            results[finished.env].get_or_insert_with(|| Outcome {
                episode_return: finished.episode_return,
                length: finished.length,
                scores: finished.scores.clone(),
            });
        }
    }
    Ok(results.into_iter().flatten().collect())
}
