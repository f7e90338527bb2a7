//! A shard: some of the environments of a run, with their trajectories.

use std::ops::Range;

use gradus_base::random::{Purpose, Stream};
use gradus_envs::{Autoreset, EnvError, EnvSpec, Space, Starts, VecEnv};

use super::assemble::EnvShape;
use super::trajectory::Trajectory;

/// The tokens of an environment's next rollout, if they were generated in advance.
#[derive(Clone, Default)]
pub(super) struct Script {
    pub tokens: Vec<u32>,
    pub log_probs: Vec<f32>,
}

/// Some of the environments of a run.
pub(super) struct Shard {
    pub ids: Range<usize>,
    pub envs: VecEnv,
    pub streams: Vec<Stream>,
    pub trajectories: Vec<Trajectory>,
    /// Largest number of text environments that act at once; 0: all.
    pub max_concurrent: usize,
    /// One script for each environment; empty if tokens are not generated in advance.
    pub scripts: Vec<Script>,
    /// Largest number of steps of an episode, if whole episodes are collected.
    pub longest: u32,
    /// The last noise of every environment's actions; empty if actions are discrete.
    pub noise: Vec<f32>,
    /// What the policy remembers of every environment's episode; empty without a memory, and before the first rollout.
    pub memory: Vec<f32>,
}

impl Shard {
    /// Creates the environments `ids` of a run, at the start of their first episodes.
    pub fn new(world: &EnvSpec, ids: Range<usize>, starts: Starts, autoreset: Autoreset) -> Result<Self, EnvError> {
        let streams = ids.clone().map(|env| Stream::new(starts.seed, Purpose::Action, env as u64)).collect();
        let envs = world.vec_env_with(ids.clone(), starts, autoreset)?;
        let (observations, actions) = (envs.observation_space(), envs.action_space());
        let trajectories = ids.clone().map(|_| Trajectory::new(&observations, &actions)).collect();
        let noise = vec![0.0; if let Space::Box { low, .. } = actions { ids.len() * low.len() } else { 0 }];
        Ok(Self {
            envs,
            ids,
            streams,
            trajectories,
            max_concurrent: 0,
            scripts: Vec::new(),
            longest: world.longest_episode(),
            noise,
            memory: Vec::new(),
        })
    }

    pub fn shape(&self) -> EnvShape {
        let envs = &self.envs;
        EnvShape { observations: envs.observation_space(), actions: envs.action_space(), score_names: envs.score_names().to_vec() }
    }
}
