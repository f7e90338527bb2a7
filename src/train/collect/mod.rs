//! The collector: a policy acts in many environments, and a rollout comes out.
//!
//! The environments are cut into shards, one per thread, and every shard runs through the whole rollout by itself. What happens in
//! an environment depends on the run's seed and on its number alone, and the rollout is put together by environment, so the shards
//! do not show in it.

#[cfg(feature = "tch")]
mod on_device;
#[cfg(not(feature = "tch"))]
#[path = "absent.rs"]
mod on_device;
mod shard;
mod trajectory;
#[cfg(feature = "tch")]
mod writer;

use gradus_agents::{Collection, Rollout};
use gradus_envs::random::Stream;
use gradus_envs::{Autoreset, Ending, EnvError, Starts, World};
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_nets::{ActionRows, Behaviour, Observations, Store, threads};

use crate::act::episodes::{Choosing, PlayedEpisode, play_episodes};
use crate::act::normaliser::Normaliser;
use crate::act::split;
use crate::config::WrapperConfig;
use on_device::OnDevice;
#[cfg(not(feature = "tch"))]
use on_device::Writer;
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
    resident: Option<OnDevice>,
    /// Where a device writes their texts.
    writer: Option<Writer>,
    envs: usize,
    slots: usize,
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
            resident: None,
            writer: None,
            envs,
            slots: 0,
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
        let resident = match OnDevice::new(world, (envs, seed), (collection, wrappers), policy) {
            Err(NotThere::Unsuited(_)) if world.text.is_some() => {
                let writer = Some(Writer::new(world, collection, policy)?);
                let on_host = Self::with_wrappers(world, envs, seed, collection, wrappers);
                return on_host.map(|on_host| Self { writer, ..on_host }).map_err(NotThere::World);
            }
            resident => resident?,
        };
        let normaliser = Normaliser::new(wrappers, envs, world.env().observation_space().width());
        let (world, shards, resident) = (world.clone(), Vec::new(), Some(resident));
        Ok(Self { world, shards, resident, writer: None, envs, slots: 0, collection, normaliser, steps: 0, greedy: Vec::new() })
    }

    /// Whether a device has the environments, or writes their texts.
    pub fn is_on_device(&self) -> bool {
        self.resident.is_some() || self.writer.is_some()
    }

    /// The same, with so many environments acting at once where observations are texts, at least one in each thread; 0: all. It shows in
    /// time and memory alone.
    pub fn with_slots(mut self, slots: usize) -> Self {
        self.slots = slots;
        let parts = self.shards.len();
        for (i, shard) in self.shards.iter_mut().enumerate() {
            shard.slots = ((i + 1) * slots / parts - i * slots / parts).max(slots.min(1));
        }
        self
    }

    /// Takes over the statistics of the observations, where there are some and they are wanted.
    pub(crate) fn begin_with(&mut self, tensors: &mut Tensors) -> Result<(), TensorsError> {
        self.normaliser.begin_with(tensors)
    }

    /// The names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        match &self.resident {
            Some(resident) => resident.score_names(),
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
        if let Some(resident) = &mut self.resident {
            let (mut rollout, episodes) = resident.collect(policy, &mut self.normaliser, (self.steps, self.slots))?;
            self.steps += rollout.len() as u64;
            if let Collection::Episodes { group, greedy: true, .. } = self.collection {
                let mut firsts: Vec<&Episode> = episodes.iter().filter(|episode| episode.env % group.max(1) == 0).collect();
                firsts.sort_by_key(|episode| episode.env);
                let seeds: Vec<u64> = firsts.iter().map(|episode| episode.seed).collect();
                self.greedy = play_episodes(policy, &self.normaliser.frozen(&self.world), &seeds, Choosing::Greedy, self.slots)?;
                rollout.greedy_rewards = self.greedy.iter().map(|episode| self.normaliser.scaled(episode.rewards.clone())).collect();
            }
            return Ok((rollout, episodes));
        }
        if let Some(writer) = &self.writer {
            writer.write(policy, &mut self.shards, self.slots).map_err(EnvError::State)?;
        }
        let greedy = |seeds: &[u64], normaliser: &Normaliser| {
            let world = normaliser.frozen(&self.world);
            play_episodes(policy, &world, seeds, Choosing::Greedy, self.slots)
        };
        let Self { shards, collection, normaliser, steps, .. } = self;
        let results = threads::map(shards, |_, shard| shard.collect(policy, *collection, normaliser));
        results.into_iter().collect::<Result<Vec<()>, _>>()?;

        let trajectories = || shards.iter().flat_map(|shard| &shard.trajectories);
        let greedy = match *collection {
            Collection::Episodes { per_env, group, greedy: true } => {
                let of_group =
                    |trajectory: &Trajectory| trajectory.episodes[..per_env].iter().map(|(_, episode)| episode.seed).collect::<Vec<_>>();
                greedy(&trajectories().step_by(group.max(1)).flat_map(of_group).collect::<Vec<_>>(), normaliser)?
            }
            _ => Vec::new(),
        };

        let n: usize = trajectories().map(Trajectory::len).sum();
        let rows = n + trajectories().map(|trajectory| trajectory.successors.len()).sum::<usize>();
        let space = shards[0].envs.observation_space();
        let mut observations = Observations::empty(&space);
        if let Observations::Rows { rows: numbers, width } = &mut observations {
            numbers.reserve_exact(rows * *width);
        }
        let mut actions = ActionRows::empty(&shards[0].envs.action_space());
        let (mut log_probs, mut rewards) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut masks, mut step_ends, mut segments, mut finished) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut first_successor = n;
        for (env, trajectory) in trajectories().enumerate() {
            let first = rewards.len();
            observations.extend(&trajectory.observations);
            masks.extend_from_slice(&trajectory.masks);
            actions.extend(&trajectory.actions);
            log_probs.extend_from_slice(&trajectory.log_probs);
            rewards.extend_from_slice(&trajectory.rewards);
            step_ends.extend_from_slice(&trajectory.step_ends);
            segments.extend(trajectory.segments.iter().map(|segment| segment.moved(first, first_successor)));
            normaliser.learn(env, &trajectory.raw, &mut rewards[first..], &trajectory.endings);
            first_successor += trajectory.successors.len();
            finished.extend_from_slice(&trajectory.episodes);
        }
        trajectories().for_each(|trajectory| observations.extend(&trajectory.successors));
        normaliser.scale_rewards(&mut rewards);
        // what the greedy episodes got, in the same units
        let greedy_rewards = greedy.iter().map(|episode| normaliser.scaled(episode.rewards.clone())).collect();

        let episodes = in_order(finished, trajectories().map(|trajectory| trajectory.len() as u64).collect(), *steps);
        *steps += n as u64;
        self.greedy = greedy;

        let mut store = Store::of(observations, actions);
        if !masks.is_empty() {
            store = store.with_masks(masks);
        }
        Ok((Rollout { step_ends, greedy_rewards, ..Rollout::new(store, rewards, log_probs, segments) }, episodes))
    }

    /// The greedy episodes of the last rollout, one for each group, where the agent asked for them.
    pub(crate) fn greedy_episodes(&self) -> &[PlayedEpisode] {
        &self.greedy
    }

    /// All that a checkpoint needs.
    pub fn save(&self) -> Tensors {
        let (envs, positions) = match &self.resident {
            Some(resident) => resident.save(),
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
        if let Some(resident) = &mut self.resident {
            envs = resident.load(envs, positions).map_err(TensorsError::State)?;
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

/// Episodes in the order in which they ended, given the number of each one's last step in its environment, how many steps each environment
/// made, and how many were made before.
fn in_order(mut finished: Vec<(usize, Episode)>, mut lengths: Vec<u64>, before: u64) -> Vec<Episode> {
    // when an environment had made so many steps, all had made as many, or all of theirs
    lengths.sort_unstable();
    let sums: Vec<u64> = std::iter::once(0).chain(lengths.iter().scan(0, |sum, length| Some(add(sum, *length)))).collect();
    let steps_at = |t: usize| {
        let shorter = lengths.partition_point(|length| *length <= t as u64);
        sums[shorter] + (lengths.len() - shorter) as u64 * (t as u64 + 1)
    };
    finished.sort_by_key(|(t, episode)| (*t, episode.env));
    finished.into_iter().map(|(t, episode)| Episode { step: before + steps_at(t), ..episode }).collect()
}

fn add(sum: &mut u64, length: u64) -> u64 {
    *sum += length;
    *sum
}
