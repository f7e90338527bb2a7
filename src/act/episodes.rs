//! Episodes played outside of training: for a baseline, for an evaluation, for a look at them.
//!
//! Each has a seed of its own and, where actions are drawn, a stream of its own, so that it is the same whoever plays beside it.

use std::ops::Range;

use gradus_envs::random::Stream;
use gradus_envs::{Ending, Env, EnvError, Space, World};
use gradus_nets::{ActionRows, Behaviour, Choice, Sampling, threads};

use crate::act::{Clipped, Slots, actors, split};

/// How actions are chosen.
pub(crate) enum Choosing<'a> {
    /// The most probable one.
    Greedy,
    /// At random, from what is left of the distribution; the stream of each episode.
    Sampled(&'a (dyn Fn(usize) -> Stream + Sync), Sampling),
}

/// An episode that was played.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlayedEpisode {
    pub rewards: Vec<f32>,
    pub ending: Ending,
    pub scores: Vec<f64>,
    /// The observation that it ended with.
    pub observation: Vec<f32>,
}

impl PlayedEpisode {
    pub fn episode_return(&self) -> f64 {
        self.rewards.iter().map(|reward| f64::from(*reward)).sum()
    }
}

/// Plays the episodes of these seeds, `slots` at once (0: all), on all threads. The randomness of an episode is that of its seed.
pub(crate) fn play_episodes(
    policy: &dyn Behaviour,
    world: &World,
    seeds: &[u64],
    choosing: Choosing<'_>,
    slots: usize,
) -> Result<Vec<PlayedEpisode>, EnvError> {
    let mut shards: Vec<_> = split(seeds.len(), actors(policy)).collect();
    let slots = slots.div_ceil(shards.len());
    let results = threads::map(&mut shards, |_, ids| play_some(policy, world, seeds, ids.clone(), &choosing, slots));
    Ok(results.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

fn play_some(
    policy: &dyn Behaviour,
    world: &World,
    seeds: &[u64],
    ids: Range<usize>,
    choosing: &Choosing<'_>,
    slots: usize,
) -> Result<Vec<PlayedEpisode>, EnvError> {
    let mut slots = Slots::new(ids.len(), slots);
    let mut envs: Vec<Box<dyn Env>> = slots.rows().iter().map(|_| world.env()).collect();
    let Some(first) = envs.first() else { return Ok(Vec::new()) };
    let (space, width, names) = (first.action_space(), first.observation_space().width(), first.score_names().len());
    let choices = if let Space::Discrete(n) = space { n as usize } else { 0 };
    let mut actor = policy.actor();
    let mut actions = ActionRows::empty(&space);
    let mut clipped = Clipped::to(space);
    let (mut log_probs, mut masks) = (Vec::new(), Vec::new());
    let mut rows = vec![0.0; envs.len() * width];
    let mut episodes = vec![PlayedEpisode::default(); ids.len()];
    let mut streams: Vec<Stream> = match choosing {
        Choosing::Greedy => Vec::new(),
        Choosing::Sampled(stream, _) => ids.clone().map(stream).collect(),
    };
    let check = |what: &str, got: f32, step: usize, id: usize| match got.is_finite() {
        true => Ok(()),
        false => {
            let (env, seed) = (ids.start + id, seeds[ids.start + id]);
            Err(EnvError::NotFinite { what: what.into(), env, got: f64::from(got), step: step as u32, seed })
        }
    };
    let begin = |env: &mut dyn Env, id: usize, row: &mut [f32]| {
        env.reset(seeds[ids.start + id], row);
        if let Some(fault) = env.fault() {
            return Err(EnvError::Fault { fault, env: ids.start + id, step: 0, seed: seeds[ids.start + id] });
        }
        row.iter().enumerate().try_for_each(|(i, x)| check(&format!("observation[{i}]"), *x, 0, id))
    };
    for (id, env) in envs.iter_mut().enumerate() {
        begin(env.as_mut(), id, &mut rows[id * width..(id + 1) * width])?;
    }
    while !slots.rows().is_empty() {
        let acting = slots.rows().len();
        masks.clear();
        masks.resize(acting * choices, true);
        let mut are_masked = false;
        if choices > 0 {
            envs.iter().zip(masks.chunks_mut(choices)).for_each(|(env, mask)| are_masked |= env.action_mask(mask));
        }
        log_probs.resize(acting, 0.0);
        let mut hands: Vec<Stream> = match choosing {
            Choosing::Greedy => Vec::new(),
            Choosing::Sampled(..) => slots.rows().iter().map(|id| streams[*id].clone()).collect(),
        };
        let choice = match choosing {
            Choosing::Greedy => Choice::Greedy,
            Choosing::Sampled(_, sampling) if *sampling == Sampling::default() => Choice::Sample(&mut hands),
            Choosing::Sampled(_, sampling) => Choice::Truncated(&mut hands, sampling),
        };
        actor.act(&rows, are_masked.then_some(&masks[..]), choice, &mut actions, &mut log_probs);
        slots.rows().iter().zip(hands).for_each(|(id, hand)| streams[*id] = hand);
        let chosen = clipped.clip(&actions);
        let mut done = Vec::new();
        for (row, id) in slots.rows().iter().copied().enumerate() {
            let (env, observation) = (&mut envs[row], &mut rows[row * width..(row + 1) * width]);
            let step = env.step(chosen.get(row), observation);
            let (episode, reward) = (&mut episodes[id], step.reward as f32);
            episode.rewards.push(reward);
            let length = episode.rewards.len();
            if !reward.is_finite()
                && let Some(fault) = env.fault()
            {
                let (env, seed) = (ids.start + id, seeds[ids.start + id]);
                return Err(EnvError::Fault { fault, env, step: length as u32, seed });
            }
            check("reward", reward, length, id)?;
            observation.iter().enumerate().try_for_each(|(i, x)| check(&format!("observation[{i}]"), *x, length, id))?;
            if step.done() {
                episode.ending = Ending::new(step.terminated, step.truncated);
                episode.scores = vec![0.0; names];
                env.scores(&mut episode.scores);
                episode.observation = observation.to_vec();
                done.push(row);
            }
        }
        for row in done.into_iter().rev() {
            match slots.release(row) {
                Some(next) => begin(envs[row].as_mut(), next, &mut rows[row * width..(row + 1) * width])?,
                None => {
                    envs.swap_remove(row);
                    rows.copy_within(envs.len() * width.., row * width);
                    rows.truncate(envs.len() * width);
                }
            }
        }
    }
    Ok(episodes)
}
