//! The collector: a policy acts in many environments, and a rollout comes out.
//!
//! The environments are cut into shards, one per thread, and every shard runs through the whole rollout by itself. What happens in
//! an environment depends on the run's seed and on its number alone, and the rollout is put together by environment, so the shards
//! do not show in it.

use std::ops::Range;

use gradus_agents::{End, Rollout, Segment};
use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{Ending, EnvError, VecEnv, World};
use gradus_nets::{ActionRows, Choice, Policy, Store, threads};

/// A finished episode of the training.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Environment steps of the whole run when it ended.
    pub step: u64,
    /// The environment.
    pub env: usize,
    /// The seed of the episode.
    pub seed: u64,
    /// The undiscounted return.
    pub episode_return: f64,
    /// The number of its steps.
    pub length: u32,
    /// How it ended.
    pub ending: Ending,
}

/// Some of the environments.
struct Shard {
    ids: Range<usize>,
    envs: VecEnv,
    streams: Vec<Stream>,
}

/// What a shard collected; indices count from its own first decision, and successors from its own first successor.
struct Part {
    observations: Vec<f32>,
    successors: Vec<f32>,
    actions: Vec<u32>,
    log_probs: Vec<f32>,
    rewards: Vec<f32>,
    segments: Vec<Segment>,
    /// Each with the step of the rollout, counted from 0.
    episodes: Vec<(usize, Episode)>,
}

/// All environments of a run.
pub struct Collector {
    shards: Vec<Shard>,
    envs: usize,
    width: usize,
}

/// The numbers 0 to n - 1 in `parts` ranges of nearly equal length.
pub(crate) fn split(n: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(move |i| i * n / parts..(i + 1) * n / parts)
}

impl Collector {
    /// `envs` environments of `world`, at the start of their first episodes, in as many shards as there are threads here.
    pub fn new(world: &World, envs: usize, seed: u64) -> Result<Self, EnvError> {
        let shard = |ids: Range<usize>| {
            let streams = ids.clone().map(|env| Stream::new(seed, Purpose::Action, env as u64)).collect();
            Ok(Shard { envs: world.vec_env(ids.clone(), seed)?, ids, streams })
        };
        let shards: Vec<Shard> = split(envs, threads::count()).map(shard).collect::<Result<_, EnvError>>()?;
        let width = shards[0].envs.observation_space().width();
        Ok(Self { shards, envs, width })
    }

    /// `steps` steps of every environment. `steps_before` is what the run had made before.
    pub fn collect(&mut self, policy: &dyn Policy, steps: usize, steps_before: u64) -> Result<(Rollout, Vec<Episode>), EnvError> {
        let parts = threads::map(&mut self.shards, |_, shard| shard.collect(policy, steps));
        let parts: Vec<Part> = parts.into_iter().collect::<Result<_, _>>()?;

        let n = steps * self.envs;
        let mut observations = Vec::with_capacity((n + self.envs) * self.width);
        let (mut actions, mut log_probs, mut rewards) = (Vec::with_capacity(n), Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut segments, mut finished) = (Vec::new(), Vec::new());
        let mut first_successor = n;
        for part in &parts {
            let first = rewards.len();
            observations.extend_from_slice(&part.observations);
            actions.extend_from_slice(&part.actions);
            log_probs.extend_from_slice(&part.log_probs);
            rewards.extend_from_slice(&part.rewards);
            segments.extend(part.segments.iter().map(|Segment { range, end }| Segment {
                range: range.start + first..range.end + first,
                end: match *end {
                    End::Terminated => End::Terminated,
                    End::Truncated { successor } => End::Truncated { successor: successor + first_successor },
                    End::Cut { successor } => End::Cut { successor: successor + first_successor },
                },
            }));
            first_successor += part.successors.len() / self.width;
            finished.extend_from_slice(&part.episodes);
        }
        for part in &parts {
            observations.extend_from_slice(&part.successors);
        }

        finished.sort_by_key(|(t, episode)| (*t, episode.env));
        let step = |t: usize| steps_before + (t as u64 + 1) * self.envs as u64;
        let episodes = finished.into_iter().map(|(t, episode)| Episode { step: step(t), ..episode }).collect();
        let store = Store::new(self.width, observations, ActionRows::Discrete(actions));
        Ok((Rollout { store, rewards, log_probs, segments }, episodes))
    }

    /// All that a checkpoint needs: the environments, and how far each stream of actions has come.
    pub fn save(&self) -> (Vec<u64>, Vec<u64>) {
        let envs = self.shards.iter().flat_map(|shard| shard.envs.save()).collect();
        let positions = self.shards.iter().flat_map(|shard| shard.streams.iter().map(Stream::position)).collect();
        (envs, positions)
    }

    /// Continues what [`save`](Collector::save) saved.
    pub fn load(&mut self, mut envs: &[u64], positions: &[u64]) -> Result<(), EnvError> {
        if positions.len() != self.envs {
            return Err(EnvError::State(format!("expected {} streams of actions, got {}", self.envs, positions.len())));
        }
        for shard in &mut self.shards {
            envs = shard.envs.load(envs)?;
            shard.streams.iter_mut().zip(&positions[shard.ids.clone()]).for_each(|(stream, position)| stream.seek(*position));
        }
        match envs.len() {
            0 => Ok(()),
            rest => Err(EnvError::State(format!("expected nothing after the last environment, got {rest} words"))),
        }
    }
}

impl Shard {
    fn collect(&mut self, policy: &dyn Policy, steps: usize) -> Result<Part, EnvError> {
        let (n, width) = (self.envs.len(), policy.observation_width());
        let mut part = Part {
            observations: vec![0.0; n * steps * width],
            successors: Vec::new(),
            actions: vec![0; n * steps],
            log_probs: vec![0.0; n * steps],
            rewards: vec![0.0; n * steps],
            segments: Vec::new(),
            episodes: Vec::new(),
        };
        let mut actor = policy.actor();
        let mut actions = ActionRows::Discrete(vec![0; n]);
        let mut log_probs = vec![0.0; n];
        let mut begins = vec![0; n];
        for t in 0..steps {
            let rows = self.envs.observation_rows();
            actor.act(rows, None, Choice::Sample(&mut self.streams), &mut actions, &mut log_probs);
            for (env, row) in rows.chunks_exact(width).enumerate() {
                let i = env * steps + t;
                part.observations[i * width..(i + 1) * width].copy_from_slice(row);
                part.log_probs[i] = log_probs[env];
                let ActionRows::Discrete(actions) = &actions else { panic!("expected discrete actions") };
                part.actions[i] = actions[env];
            }
            let transition = self.envs.step(actions.view())?;
            for (env, reward) in transition.rewards.iter().enumerate() {
                part.rewards[env * steps + t] = *reward;
            }
            for finished in &transition.finished {
                let env = finished.env;
                let end = if finished.ending.terminated() {
                    End::Terminated
                } else {
                    part.successors.extend_from_slice(&finished.observation);
                    End::Truncated { successor: part.successors.len() / width - 1 }
                };
                part.segments.push(Segment { range: env * steps + begins[env]..env * steps + t + 1, end });
                begins[env] = t + 1;
                let episode = Episode {
                    step: 0,
                    env: self.ids.start + env,
                    seed: finished.seed,
                    episode_return: finished.episode_return,
                    length: finished.length,
                    ending: finished.ending,
                };
                part.episodes.push((t, episode));
            }
        }
        for (env, row) in self.envs.observation_rows().chunks_exact(width).enumerate() {
            if begins[env] < steps {
                part.successors.extend_from_slice(row);
                let end = End::Cut { successor: part.successors.len() / width - 1 };
                part.segments.push(Segment { range: env * steps + begins[env]..(env + 1) * steps, end });
            }
        }
        part.segments.sort_by_key(|segment| segment.range.start);
        Ok(part)
    }
}
