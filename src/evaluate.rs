//! How good a policy is: the returns of a fixed number of episodes.

use std::ops::Range;

use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{EnvError, World};
use gradus_nets::{ActionRows, Choice, Policy, threads};
use serde::Serialize;

use crate::collect::{Clipped, split};

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
}

/// Plays `episodes` episodes, each in an environment of its own, so that short ones count no more than long ones.
pub fn evaluate(policy: &dyn Policy, world: &World, episodes: usize, seed: u64, mode: Mode) -> Result<Evaluation, EnvError> {
    // a key of its own, so that a training with the same seed has not seen these episodes
    let mut keys = Stream::new(seed, Purpose::Evaluation, 0);
    let key = u64::from(keys.word()) | u64::from(keys.word()) << 32;
    let results = threads::with_default(|| {
        let mut shards: Vec<_> = split(episodes, threads::count()).collect();
        threads::map(&mut shards, |_, ids| play_once(policy, world, ids.clone(), key, mode))
    });
    let results = results.into_iter().collect::<Result<Vec<_>, _>>()?;

    let (returns, lengths): (Vec<f64>, Vec<u32>) = results.into_iter().flatten().unzip();
    let n = returns.len() as f64;
    let mean = returns.iter().sum::<f64>() / n;
    let squares: f64 = returns.iter().map(|g| (g - mean) * (g - mean)).sum();
    Ok(Evaluation {
        mode,
        seed,
        mean,
        std: if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 },
        min: returns.iter().copied().fold(f64::INFINITY, f64::min),
        max: returns.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        returns,
        lengths,
    })
}

/// Return and length of the first episode of each of the environments `ids`.
fn play_once(policy: &dyn Policy, world: &World, ids: Range<usize>, key: u64, mode: Mode) -> Result<Vec<(f64, u32)>, EnvError> {
    let mut envs = world.vec_env(ids.clone(), key)?;
    let mut streams: Vec<_> = ids.clone().map(|id| Stream::new(key, Purpose::Evaluation, 1 + id as u64)).collect();
    let mut actor = policy.actor();
    let mut actions = ActionRows::empty(&envs.action_space());
    let mut clipped = Clipped::to(envs.action_space());
    let mut log_probs = vec![0.0; ids.len()];
    let mut results = vec![None; ids.len()];
    while results.iter().any(Option::is_none) {
        let choice = if mode == Mode::Greedy { Choice::Greedy } else { Choice::Sample(&mut streams) };
        actor.act(envs.observation_rows(), envs.action_masks(), choice, &mut actions, &mut log_probs);
        for finished in &envs.step(clipped.clip(&actions))?.finished {
            // an environment plays on until all are done; only its first episode counts
            results[finished.env].get_or_insert((finished.episode_return, finished.length));
        }
    }
    Ok(results.into_iter().flatten().collect())
}
