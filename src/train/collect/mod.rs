//! The collector: a policy acts in many environments, and a rollout comes out.
//!
//! The environments are cut into shards, one per thread, and every shard runs through the whole rollout by itself. What happens in
//! an environment depends on the run's seed and on its number alone, and the rollout is put together by environment, so the shards
//! do not show in it.

mod assemble;
#[cfg(feature = "tch")]
mod on_device;
#[cfg(not(feature = "tch"))]
#[path = "absent.rs"]
mod on_device;
mod recording;
mod shard;
mod trajectory;
#[cfg(feature = "tch")]
mod writer;

use gradus_agents::{Collection, Rollout};
use gradus_envs::random::Stream;
use gradus_envs::{Autoreset, Ending, EnvError, Starts, World};
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_nets::{Behaviour, threads};

use crate::act::episodes::{PlayedEpisode, play_greedily};
use crate::act::normaliser::Normaliser;
use crate::act::split;
use crate::config::WrapperConfig;
use assemble::assemble;
use on_device::OnDevice;
#[cfg(not(feature = "tch"))]
use on_device::Writer;
use recording::record;
use shard::Shard;
use trajectory::Trajectory;
#[cfg(feature = "tch")]
use writer::Writer;

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
    /// What it was like besides, one number for each of the world's score names.
    pub scores: Vec<f64>,
}

/// Why environments cannot be on a policy's device.
#[derive(Clone, Debug, PartialEq)]
pub enum NotThere {
    /// For this reason, in a few words.
    Unsuited(&'static str),
    /// The device failed, in one line.
    Failed(String),
    /// The world failed.
    World(EnvError),
}

/// All environments of a run.
pub struct Collector {
    world: World,
    /// None where a device has the environments.
    shards: Vec<Shard>,
    on_device: Option<OnDevice>,
    /// Where a device writes their texts.
    writer: Option<Writer>,
    envs: usize,
    max_concurrent: usize,
    collection: Collection,
    normaliser: Normaliser,
    steps: u64,
    /// Of the last rollout, by group.
    greedy: Vec<PlayedEpisode>,
}

impl Collector {
    /// `envs` environments of `world`, at the start of their first episodes, in as many shards as there are threads here.
    pub fn new(world: &World, envs: usize, seed: u64, collection: Collection) -> Result<Self, EnvError> {
        Self::with_wrappers(world, envs, seed, collection, &WrapperConfig::default())
    }

    /// As [`new`](Collector::new), with observations and rewards normalised as `wrappers` says.
    pub fn with_wrappers(
        world: &World,
        envs: usize,
        seed: u64,
        collection: Collection,
        wrappers: &WrapperConfig,
    ) -> Result<Self, EnvError> {
        let (starts, autoreset) = match collection {
            Collection::Steps(_) => (Starts::from(seed), Autoreset::SameStep),
            Collection::Episodes { group, .. } => (Starts { seed, group }, Autoreset::Disabled),
        };
        let shard = |ids| Shard::new(world, ids, starts, autoreset);
        let shards: Vec<Shard> = split(envs, threads::count()).map(shard).collect::<Result<_, EnvError>>()?;
        let width = shards[0].envs.observation_space().width();
        let normaliser = Normaliser::new(wrappers, envs, width);
        Ok(Self {
            world: world.clone(),
            shards,
            on_device: None,
            writer: None,
            envs,
            max_concurrent: 0,
            collection,
            normaliser,
            steps: 0,
            greedy: Vec::new(),
        })
    }

    /// As [`with_wrappers`](Collector::with_wrappers), with the environments on the device of `policy`, where they stay, or with texts that are
    /// written there; or why that cannot be.
    pub fn on_device(
        world: &World,
        envs: usize,
        seed: u64,
        (collection, wrappers): (Collection, &WrapperConfig),
        policy: &dyn Behaviour,
    ) -> Result<Self, NotThere> {
        let on_device = match OnDevice::new(world, (envs, seed), (collection, wrappers), policy) {
            Err(NotThere::Unsuited(_)) if world.text.is_some() => {
                let writer = Some(Writer::new(world, collection, policy)?);
                let on_host = Self::with_wrappers(world, envs, seed, collection, wrappers);
                return on_host.map(|on_host| Self { writer, ..on_host }).map_err(NotThere::World);
            }
            on_device => on_device?,
        };
        let normaliser = Normaliser::new(wrappers, envs, world.env().observation_space().width());
        let (world, shards, on_device) = (world.clone(), Vec::new(), Some(on_device));
        Ok(Self { world, shards, on_device, writer: None, envs, max_concurrent: 0, collection, normaliser, steps: 0, greedy: Vec::new() })
    }

    /// Whether a device has the environments, or writes their texts.
    pub fn is_on_device(&self) -> bool {
        self.on_device.is_some() || self.writer.is_some()
    }

    /// The same, where at most `max_concurrent` environments act at once if observations are texts, but at least one in each thread; 0: all.
    /// It shows in time and memory alone.
    pub fn with_max_concurrent(mut self, max_concurrent: usize) -> Self {
        self.max_concurrent = max_concurrent;
        let parts = self.shards.len();
        for (i, shard) in self.shards.iter_mut().enumerate() {
            let share = (i + 1) * max_concurrent / parts - i * max_concurrent / parts;
            shard.max_concurrent = share.max(max_concurrent.min(1));
        }
        self
    }

    /// Takes over the statistics of the observations, where there are some and they are wanted.
    pub(crate) fn begin_with(&mut self, tensors: &mut Tensors) -> Result<(), TensorsError> {
        self.normaliser.begin_with(tensors)
    }

    /// The names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        match &self.on_device {
            Some(on_device) => on_device.score_names(),
            None => self.shards.first().map_or(&[], |shard| shard.envs.score_names()),
        }
    }

    /// Environment steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// What is known of the size of observations and rewards.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// The next rollout: steps or whole episodes of every environment, as the agent's [`Collection`] has it; and the episodes that ended
    /// in it, in the order in which they did.
    pub fn collect(&mut self, policy: &dyn Behaviour) -> Result<(Rollout, Vec<Episode>), EnvError> {
        if let Some(on_device) = &mut self.on_device {
            let (mut rollout, episodes) = on_device.collect(policy, &mut self.normaliser, (self.steps, self.max_concurrent))?;
            self.steps += rollout.len() as u64;
            if let Collection::Episodes { group, greedy: true, .. } = self.collection {
                let mut firsts: Vec<&Episode> = episodes.iter().filter(|episode| episode.env % group.max(1) == 0).collect();
                firsts.sort_by_key(|episode| episode.env);
                let seeds: Vec<u64> = firsts.iter().map(|episode| episode.seed).collect();
                self.greedy = self.play_greedily(policy, &seeds)?;
                rollout.greedy_rewards = self.scaled_greedy_rewards();
            }
            return Ok((rollout, episodes));
        }
        if let Some(writer) = &self.writer {
            writer.write(policy, &mut self.shards, self.max_concurrent).map_err(EnvError::State)?;
        }
        let Self { shards, collection, normaliser, .. } = self;
        let results = threads::map(shards, |_, shard| record(shard, policy, *collection, normaliser));
        results.into_iter().collect::<Result<Vec<()>, _>>()?;

        // by the statistics that the rollout was collected with
        self.greedy = match self.collection {
            Collection::Episodes { per_env, group, greedy: true } => {
                let of_group =
                    |trajectory: &Trajectory| trajectory.episodes[..per_env].iter().map(|(_, episode)| episode.seed).collect::<Vec<_>>();
                let trajectories = self.shards.iter().flat_map(|shard| &shard.trajectories);
                self.play_greedily(policy, &trajectories.step_by(group.max(1)).flat_map(of_group).collect::<Vec<_>>())?
            }
            _ => Vec::new(),
        };
        let (rollout, episodes) = assemble(&self.shards, &mut self.normaliser, self.steps);
        self.steps += rollout.len() as u64;
        Ok((Rollout { greedy_rewards: self.scaled_greedy_rewards(), ..rollout }, episodes))
    }

    /// The episodes of these seeds, played with the most probable actions.
    fn play_greedily(&self, policy: &dyn Behaviour, seeds: &[u64]) -> Result<Vec<PlayedEpisode>, EnvError> {
        play_greedily(policy, &self.normaliser.frozen(&self.world), seeds, self.max_concurrent)
    }

    /// The rewards of the greedy episodes, in the same units as those of the rollout.
    fn scaled_greedy_rewards(&self) -> Vec<Vec<f32>> {
        self.greedy.iter().map(|episode| self.normaliser.scaled(episode.rewards.clone())).collect()
    }

    /// The greedy episodes of the last rollout, one for each group, where the agent asked for them.
    pub(crate) fn greedy_episodes(&self) -> &[PlayedEpisode] {
        &self.greedy
    }

    /// All that a checkpoint needs.
    pub fn save(&self) -> Tensors {
        let (envs, positions) = match &self.on_device {
            Some(on_device) => on_device.save(),
            None => (
                self.shards.iter().flat_map(|shard| shard.envs.save()).collect(),
                self.shards.iter().flat_map(|shard| shard.streams.iter().map(Stream::position)).collect(),
            ),
        };
        let mut tensors = self.normaliser.save();
        tensors.insert("environments".into(), Tensor::u64(envs));
        tensors.insert("action_streams".into(), Tensor::u64(positions));
        tensors.insert("steps".into(), Tensor::u64(vec![self.steps]));
        tensors
    }

    /// Continues what [`save`](Collector::save) saved.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let (mut envs, positions) = (get_u64(tensors, "environments")?, get_u64(tensors, "action_streams")?);
        let [steps] = *get_u64(tensors, "steps")? else { return Err(TensorsError::State("steps: expected one number".into())) };
        if positions.len() != self.envs {
            return Err(TensorsError::State(format!("expected {} streams of actions, got {}", self.envs, positions.len())));
        }
        if let Some(on_device) = &mut self.on_device {
            envs = on_device.load(envs, positions).map_err(TensorsError::State)?;
        }
        for shard in &mut self.shards {
            envs = shard.envs.load(envs).map_err(|error| TensorsError::State(error.to_string()))?;
            shard.streams.iter_mut().zip(&positions[shard.ids.clone()]).for_each(|(stream, position)| stream.seek(*position));
        }
        self.normaliser.load(tensors)?;
        self.steps = steps;
        match envs.len() {
            0 => Ok(()),
            rest => Err(TensorsError::State(format!("expected nothing after the last environment, got {rest} words"))),
        }
    }
}
