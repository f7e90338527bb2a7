//! Episodes played outside of training, for a baseline or an evaluation.
//!
//! Each episode has its own seed and its own random stream for actions, so it does not depend on the episodes played at the same time.

use std::ops::Range;

use gradus_base::panics;
use gradus_base::random::{Purpose, Stream};
use gradus_base::threads;
use gradus_envs::{Ending, Env, EnvError, EnvSpec, Finished, Space, UNWRITTEN, VecEnv, unwritten};
use gradus_nets::{Behaviour, Sampling};

use crate::turns::{MOST, Turns};
use crate::{ActiveRows, Decisions, Environments, act, actors, split};

/// A finished episode.
#[derive(Clone, Debug, Default)]
pub struct PlayedEpisode {
    /// The reward of each step.
    pub rewards: Vec<f32>,
    /// How the episode ended.
    pub ending: Ending,
    /// Further scores, one for each of the environment's score names.
    pub scores: Vec<f64>,
    /// The final observation.
    pub observation: Vec<f32>,
}

impl PlayedEpisode {
    /// Returns the undiscounted return.
    pub fn episode_return(&self) -> f64 {
        self.rewards.iter().map(|reward| f64::from(*reward)).sum()
    }
}

/// Plays one episode per seed, with one actor or one per thread, as suits `policy`. `max_concurrent` episodes are played at once (0: all),
/// rounded up to a multiple of the actors. Actions are chosen by `sampling`. The actions of episode i are drawn from `stream(i)`.
pub fn play_episodes(
    policy: &dyn Behaviour,
    world: &EnvSpec,
    seeds: &[u64],
    (sampling, stream): (&Sampling, &(dyn Fn(usize) -> Stream + Sync)),
    max_concurrent: usize,
) -> Result<Vec<PlayedEpisode>, EnvError> {
    let mut shards: Vec<_> = split(seeds.len(), actors(policy)).collect();
    let max_concurrent = max_concurrent.div_ceil(shards.len());
    let results = threads::map(&mut shards, |_, ids| {
        let mut streams: Vec<Stream> = ids.clone().map(stream).collect();
        if !world.can_be_saved() {
            // environments in another process
            let most = if max_concurrent == 0 { MOST } else { max_concurrent.min(MOST) };
            let active = ActiveRows::concurrent(&mut streams, most);
            let mut turns = Turns::begin(world, ids.start, &seeds[ids.clone()], active.rows().len())?;
            let acted = panics::catch(|| act(policy, &mut turns, active, sampling));
            return match acted.map_err(panics::Panic::into_error::<EnvError>) {
                Ok(acted) => acted.map(|()| turns.played),
                Err(Ok(error)) => Err(error),
                // not one of the environments
                Err(Err(panic)) => panic.resume(),
            };
        }
        let active = ActiveRows::concurrent(&mut streams, max_concurrent);
        let mut episodes = Episodes::new(world, ids.start, &seeds[ids.clone()], active.rows().len())?;
        let played = panics::catch(|| {
            episodes.begin()?;
            act(policy, &mut episodes, active, sampling)
        });
        match (played, episodes.current) {
            (Ok(result), _) => result.map(|()| episodes.played),
            (Err(panic), Some((id, step))) => Err(error_of(panic, &world.name, (ids.start + id, seeds[ids.start + id], step))),
            (Err(panic), None) => panic.resume(),
        }
    });
    Ok(results.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// The error that was raised, or that of a panic in this environment at this step of the episode with this seed.
pub(crate) fn error_of(panic: panics::Panic, world: &str, (env, seed, step): (usize, u64, u32)) -> EnvError {
    let panicked = |panic: panics::Panic| EnvError::Panicked { world: world.into(), env, episode: 1, step, seed, message: panic.message() };
    panic.into_error().unwrap_or_else(panicked)
}

/// Same as [`play_episodes`], but with the most probable actions.
pub fn play_greedily(
    policy: &dyn Behaviour,
    world: &EnvSpec,
    seeds: &[u64],
    max_concurrent: usize,
) -> Result<Vec<PlayedEpisode>, EnvError> {
    // greedy actions draw nothing from the streams
    let stream = |id: usize| Stream::new(0, Purpose::Evaluation, id as u64);
    play_episodes(policy, world, seeds, (&Sampling::GREEDY, &stream), max_concurrent)
}

/// A shard of a list of episodes, with an environment for each row.
struct Episodes<'a> {
    /// Name of the environment, for errors.
    world: &'a str,
    /// Largest number of steps of an episode.
    longest: u32,
    /// The episode whose environment is being called, and its step.
    current: Option<(usize, u32)>,
    /// Index of the first episode in the whole list.
    first: usize,
    seeds: &'a [u64],
    envs: Vec<Box<dyn Env>>,
    actions: Space,
    width: usize,
    /// Number of scores.
    scores: usize,
    observations: Vec<f32>,
    masks: Vec<bool>,
    played: Vec<PlayedEpisode>,
}

impl<'a> Episodes<'a> {
    /// Makes the environments of `acting` rows.
    fn new(world: &'a EnvSpec, first: usize, seeds: &'a [u64], acting: usize) -> Result<Self, EnvError> {
        let one = world.checked_env()?;
        let (actions, width) = (one.action_space(), one.observation_space().width());
        Ok(Self {
            world: &world.name,
            longest: world.longest_episode(),
            current: None,
            first,
            seeds,
            envs: (0..acting).map(|_| world.checked_env()).collect::<Result<_, _>>()?,
            actions,
            width,
            scores: one.score_names().len(),
            observations: vec![0.0; acting * width],
            masks: Vec::new(),
            played: vec![PlayedEpisode::default(); seeds.len()],
        })
    }

    /// Begins the first episodes, one per row.
    fn begin(&mut self) -> Result<(), EnvError> {
        (0..self.envs.len()).try_for_each(|id| self.reset(id, id))
    }

    /// Begins episode `id` in `row`.
    fn reset(&mut self, row: usize, id: usize) -> Result<(), EnvError> {
        let observation = &mut self.observations[row * self.width..(row + 1) * self.width];
        observation.fill(UNWRITTEN);
        self.current = Some((id, 0));
        self.envs[row].reset(self.seeds[id], observation);
        let fault = self.envs[row].fault();
        self.current = None;
        if let Some(fault) = fault {
            return Err(EnvError::Fault { world: self.world.into(), fault, env: self.first + id, step: 0, seed: self.seeds[id] });
        }
        self.check_observation(row, id)
    }

    fn check_observation(&self, row: usize, id: usize) -> Result<(), EnvError> {
        let observation = &self.observations[row * self.width..(row + 1) * self.width];
        self.fault_in(row, id, observation.iter().all(|x| x.is_finite()))?;
        if let Some(i) = unwritten(observation) {
            let (env, step, seed) = (self.first + id, self.played[id].rewards.len() as u32, self.seeds[id]);
            return Err(EnvError::Unwritten { world: self.world.into(), i, env, width: self.width, step, seed });
        }
        match observation.iter().position(|x| !x.is_finite()) {
            Some(i) => self.check(&format!("observation[{i}]"), observation[i], id),
            None => Ok(()),
        }
    }

    /// Returns the cause of a number that is not finite, if the environment of `row` has recorded one.
    fn fault_in(&self, row: usize, id: usize, are_finite: bool) -> Result<(), EnvError> {
        match self.envs[row].fault().filter(|_| !are_finite) {
            Some(fault) => {
                let (env, step, seed) = (self.first + id, self.played[id].rewards.len() as u32, self.seeds[id]);
                Err(EnvError::Fault { world: self.world.into(), fault, env, step, seed })
            }
            None => Ok(()),
        }
    }

    /// Checks that a number in the current step of episode `id` is finite.
    fn check(&self, what: &str, got: f32, id: usize) -> Result<(), EnvError> {
        if got.is_finite() {
            return Ok(());
        }
        let (env, step, seed) = (self.first + id, self.played[id].rewards.len() as u32, self.seeds[id]);
        Err(EnvError::NotFinite { world: self.world.into(), what: what.into(), env, got: f64::from(got), step, seed })
    }
}

impl Environments for Episodes<'_> {
    fn action_space(&self) -> Space {
        self.actions.clone()
    }

    fn observe(&mut self, rows: &[usize]) -> (&[f32], Option<&[bool]>) {
        let Self { envs, played, current, masks, first, seeds, .. } = self;
        let mut are_masked = false;
        let n = self.actions.mask_width();
        if n > 0 {
            masks.clear();
            masks.resize(envs.len() * n, true);
            for ((env, mask), id) in envs.iter().zip(masks.chunks_mut(n)).zip(rows) {
                *current = Some((*id, played[*id].rewards.len() as u32));
                are_masked |= env.action_mask(mask);
                if !self.actions.is_possible(mask) {
                    let (step, seed) = (played[*id].rewards.len() as u32, seeds[*id]);
                    panics::raise(EnvError::Mask { world: self.world.into(), env: *first + id, step, seed });
                }
            }
            *current = None;
        }
        (&self.observations, are_masked.then_some(&self.masks))
    }

    fn step(&mut self, rows: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        for (row, id) in rows.iter().copied().enumerate() {
            let observation = &mut self.observations[row * self.width..(row + 1) * self.width];
            let count = self.played[id].rewards.len() as u32 + 1;
            self.current = Some((id, count));
            let step = self.envs[row].step(decisions.clipped.get(row), observation);
            let (episode, reward) = (&mut self.played[id], step.reward as f32);
            episode.rewards.push(reward);
            let place = (self.first + id, count, self.seeds[id]);
            if !reward.is_finite()
                && let Some(fault) = self.envs[row].fault()
            {
                let (env, step, seed) = place;
                return Err(EnvError::Fault { world: self.world.into(), fault, env, step, seed });
            }
            if step.done() {
                let (env, episode) = (&self.envs[row], &mut self.played[id]);
                episode.ending = Ending::new(step.terminated, step.truncated);
                episode.scores = vec![0.0; self.scores];
                env.scores(&mut episode.scores);
                episode.observation = self.observations[row * self.width..(row + 1) * self.width].to_vec();
                done.push(row);
            }
            self.current = None;
            self.check("reward", reward, id)?;
            self.check_observation(row, id)?;
            if !step.done() && count >= self.longest {
                let (env, step, seed) = place;
                return Err(EnvError::Endless { world: self.world.into(), env, episode: 1, step, seed });
            }
        }
        Ok(())
    }

    fn pass_on(&mut self, row: usize, _: usize, next: Option<usize>) -> Result<(), EnvError> {
        if let Some(next) = next {
            return self.reset(row, next);
        }
        self.envs.swap_remove(row);
        self.observations.copy_within(self.envs.len() * self.width.., row * self.width);
        self.observations.truncate(self.envs.len() * self.width);
        Ok(())
    }
}

/// Plays the first episode of each of the environments 0 to n - 1 of the run with seed `key`, in lockstep. An environment
/// continues until all first episodes of its thread are done; its later episodes are ignored.
pub fn play_first_episodes(
    policy: &dyn Behaviour,
    world: &EnvSpec,
    n: usize,
    key: u64,
    (sampling, stream): (&Sampling, &(dyn Fn(usize) -> Stream + Sync)),
) -> Result<Vec<Finished>, EnvError> {
    let mut shards: Vec<Range<usize>> = split(n, actors(policy)).collect();
    let results = threads::map(&mut shards, |_, ids| {
        let mut streams: Vec<Stream> = ids.clone().map(stream).collect();
        let envs = world.vec_env(ids.clone(), key)?;
        let mut envs = FirstEpisodes { envs, finished: ids.map(|_| None).collect(), steps: 0, longest: world.longest_episode() };
        act(policy, &mut envs, ActiveRows::lockstep(&mut streams), sampling)?;
        Ok(envs.finished.into_iter().flatten().collect())
    });
    Ok(results.into_iter().collect::<Result<Vec<Vec<_>>, _>>()?.concat())
}

struct FirstEpisodes {
    envs: VecEnv,
    finished: Vec<Option<Finished>>,
    steps: u32,
    /// Largest number of steps of an episode.
    longest: u32,
}

impl Environments for FirstEpisodes {
    fn action_space(&self) -> Space {
        self.envs.action_space()
    }

    fn observe(&mut self, _: &[usize]) -> (&[f32], Option<&[bool]>) {
        (self.envs.observation_rows(), self.envs.action_masks())
    }

    fn step(&mut self, _: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        for finished in &self.envs.step(decisions.clipped)?.finished {
            if self.finished[finished.env].is_none() {
                self.finished[finished.env] = Some(finished.clone());
                done.push(finished.env);
            }
        }
        self.steps += 1;
        // all first episodes began at once, so an unfinished one has had `steps` steps
        if self.steps >= self.longest { self.envs.check_lengths(self.longest) } else { Ok(()) }
    }
}
