//! The collector: a policy acts in many environments, and the collector returns a rollout.
//!
//! The environments are divided into shards, one per thread. Every shard collects its part of the rollout independently. A trajectory does
//! not depend on the other environments of its rollout, and the rollout is assembled environment by environment. The result therefore does
//! not depend on the shards.

mod assemble;
mod observer;
mod on_device;
mod plan;
mod recording;
mod rewards;
mod shard;
mod trajectory;

use std::ops::Range;

use gradus_agents::{Collection, Exploration, Rollout, Segment};
use gradus_base::random::Stream;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_f32, get_u64};
use gradus_base::threads;
use gradus_envs::{Autoreset, Ending, EnvError, EnvSpec, Space, Starts, VecEnv};
use gradus_nets::{Behaviour, Prefix};

use crate::{Normaliser, PlayedEpisode, WrapperConfig, play_greedily, split};
use assemble::assemble;

pub use observer::Observer;
use on_device::{OnDevice, Writer};
use plan::RolloutPlan;
use recording::record;
use rewards::reward_together;
use shard::Shard;
use trajectory::Trajectory;

/// Name of the last noise of the actions in a checkpoint; only noise that depends on the last one is saved.
const NOISE: &str = "action_noise";
/// Name of what the policy remembers of every environment's episode in a checkpoint.
const MEMORY: &str = "memory";

/// A finished episode of the training.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// Environment steps of the whole run at the end of the episode.
    pub step: u64,
    /// Number of the environment.
    pub env: usize,
    /// Seed of the episode.
    pub seed: u64,
    /// Undiscounted return.
    pub episode_return: f64,
    /// Number of steps.
    pub length: u32,
    /// How the episode ended.
    pub ending: Ending,
    /// Further scores, one for each of the environment's score names.
    pub scores: Vec<f64>,
}

/// The reason why environments cannot be on a policy's device.
#[derive(Clone, Debug, PartialEq)]
pub enum NotThere {
    /// The device does not support the environments with this policy, agent or wrappers. The text is the reason, in a few words.
    Unsuited(&'static str),
    /// The device failed. The text is the error, in one line.
    Failed(String),
    /// The environment failed.
    Environment(EnvError),
}

/// The memory of environments and of their rollouts, in bytes. The numbers count only what every environment needs, so they are rather too
/// low than too high.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RolloutBytes {
    /// Each environment, with its trajectory but without its decisions.
    pub env: f64,
    /// Each decision of a trajectory.
    pub decision: f64,
    /// Each environment's part of the rollout, without its decisions. The rollout is freed after the update.
    pub env_in_rollout: f64,
    /// Each decision of the rollout.
    pub decision_in_rollout: f64,
    /// Each environment's part of a checkpoint.
    pub saved: f64,
}

impl RolloutBytes {
    /// Returns the memory of environments of `world`, with these wrappers.
    pub fn of(world: &EnvSpec, wrappers: &WrapperConfig) -> Self {
        let env = world.env();
        let (space, actions) = (env.observation_space(), env.action_space());
        let width = space.width();
        // a text is stored once, with the length of each prefix
        let observation = match space {
            Space::Text { .. } => size_of::<u32>() + size_of::<Prefix>(),
            Space::Image(_) => width,
            _ => 4 * width,
        };
        let raw = if wrappers.normalise_observations { 4 * width } else { 0 };
        // a discrete action, a log-probability and a reward have four bytes each; a mask is not counted
        let decision = observation + 4 * actions.width() + 8;
        // a trajectory ends with a segment and the observation after it
        let end = size_of::<Segment>() + if let Space::Image(_) = space { width } else { 4 * width };
        // the environment's own state has at least the size of an observation
        let trajectory = size_of::<Trajectory>() + SMALL_ALLOCATIONS + end;
        let env = VecEnv::bytes_per_env(width) + 4 * width + 2 * size_of::<Stream>() + trajectory;
        Self {
            env: env as f64,
            decision: (decision + raw + size_of::<Ending>()) as f64,
            env_in_rollout: end as f64,
            decision_in_rollout: decision as f64,
            // three copies of eight bytes for each number: the numbers, their bytes, and the file
            saved: (3 * 8 * (SAVED + width)) as f64,
        }
    }
}

/// Bytes that the allocator adds to the vectors of a trajectory.
const SMALL_ALLOCATIONS: usize = 128;
/// Numbers in a checkpoint for each environment besides its observation.
const SAVED: usize = 12;

/// All environments of a run.
pub struct Collector {
    world: EnvSpec,
    /// Empty if the environments are on a device.
    shards: Vec<Shard>,
    on_device: Option<Box<dyn OnDevice>>,
    /// Set if a device generates the completions for environments on the host.
    writer: Option<Box<dyn Writer>>,
    max_concurrent: usize,
    plan: RolloutPlan,
    workers: usize,
    normaliser: Normaliser,
    /// The greedy episodes of the last rollout, in the order of the groups.
    greedy: Vec<PlayedEpisode>,
}

impl Collector {
    /// Creates `envs` environments of `world`, at the start of their first episodes, in one shard per thread.
    pub fn new(world: &EnvSpec, envs: usize, seed: u64, collection: Collection) -> Result<Self, EnvError> {
        Self::with_wrappers(world, envs, seed, collection, &WrapperConfig::default())
    }

    /// Same as [`new`](Collector::new), but normalises observations and rewards according to `wrappers`.
    pub fn with_wrappers(
        world: &EnvSpec,
        envs: usize,
        seed: u64,
        collection: Collection,
        wrappers: &WrapperConfig,
    ) -> Result<Self, EnvError> {
        let (starts, autoreset) = match collection {
            Collection::Steps(_) => (Starts::from(seed), Autoreset::SameStep),
            Collection::Episodes { group, .. } => (Starts { seed, group }, Autoreset::Disabled),
        };
        let of_shards = world.deferred();
        let shard = |ids| Shard::new(&of_shards, ids, starts, autoreset);
        let shards: Vec<Shard> = split(envs, threads::count()).map(shard).collect::<Result<_, EnvError>>()?;
        let width = shards[0].envs.observation_space().width();
        let normaliser = Normaliser::new(wrappers, envs, width);
        Ok(Self {
            world: world.clone(),
            shards,
            on_device: None,
            writer: None,
            max_concurrent: 0,
            plan: RolloutPlan::new(collection, envs),
            workers: 1,
            normaliser,
            greedy: Vec::new(),
        })
    }

    /// Sets how actions are chosen; by default, they are sampled from the policy.
    ///
    /// # Panics
    /// If the environments are on a device, which can only sample.
    pub fn with_exploration(self, exploration: Exploration) -> Self {
        assert!(self.on_device.is_none() || exploration == Exploration::Sampled, "exploration: expected environments on the host");
        Self { plan: RolloutPlan { exploration, ..self.plan }, ..self }
    }

    /// Divides the environments evenly among workers. Each rollout then comes from the environments of one worker; see
    /// [`collect_of`](Collector::collect_of). Call it before the first rollout. With one worker, changes nothing.
    ///
    /// # Panics
    /// If the number of workers does not divide the number of environments, or if the environments are on a device.
    pub fn with_workers(mut self, workers: usize) -> Result<Self, EnvError> {
        if workers > 1 {
            let envs = self.plan.envs;
            assert!(envs.is_multiple_of(workers), "workers: expected a number that divides {envs}, got {workers}");
            let first = self.shards.first().expect("environments on the host");
            let (starts, autoreset) = (first.envs.starts(), first.envs.autoreset());
            let of_shards = self.world.deferred();
            self.shards = split(envs, workers).map(|ids| Shard::new(&of_shards, ids, starts, autoreset)).collect::<Result<_, _>>()?;
        }
        Ok(Self { workers, ..self })
    }

    /// Records observations and rewards as the environment gave them, except for clipped rewards. The rollouts say how to normalise them.
    pub fn with_raw_rollouts(self) -> Self {
        Self { plan: RolloutPlan { is_raw: true, ..self.plan }, ..self }
    }

    /// Same as [`with_wrappers`](Collector::with_wrappers), but with the environments on the device of `policy`. Text environments that
    /// cannot run on the device stay on the host, and only their completions are generated on the device. The error is the reason why the
    /// device can do neither.
    pub fn on_device(
        world: &EnvSpec,
        envs: usize,
        seed: u64,
        (collection, wrappers): (Collection, &WrapperConfig),
        policy: &dyn Behaviour,
    ) -> Result<Self, NotThere> {
        let on_device = match on_device::environments(world, (envs, seed), (collection, wrappers), policy) {
            Err(NotThere::Unsuited(_)) if world.text.is_some() => {
                let writer = Some(on_device::writer(world, collection, policy)?);
                let on_host = Self::with_wrappers(world, envs, seed, collection, wrappers);
                return on_host.map(|on_host| Self { writer, ..on_host }).map_err(NotThere::Environment);
            }
            on_device => on_device?,
        };
        let normaliser = Normaliser::new(wrappers, envs, world.env().observation_space().width());
        let (world, shards, on_device) = (world.clone(), Vec::new(), Some(on_device));
        Ok(Self {
            world,
            shards,
            on_device,
            writer: None,
            max_concurrent: 0,
            plan: RolloutPlan::new(collection, envs),
            workers: 1,
            normaliser,
            greedy: Vec::new(),
        })
    }

    /// Returns whether the environments are on a device, or a device generates their completions.
    pub fn is_on_device(&self) -> bool {
        self.on_device.is_some() || self.writer.is_some()
    }

    /// Limits the number of text environments that act at once to `max_concurrent`, but to at least one per thread; 0: no limit. The limit
    /// changes only time and memory.
    pub fn with_max_concurrent(mut self, max_concurrent: usize) -> Self {
        self.max_concurrent = max_concurrent;
        let parts = self.shards.len();
        for (i, shard) in self.shards.iter_mut().enumerate() {
            let share = (i + 1) * max_concurrent / parts - i * max_concurrent / parts;
            shard.max_concurrent = share.max(max_concurrent.min(1));
        }
        self
    }

    /// Loads the statistics of the observations, if `tensors` has them and observations are normalised.
    pub fn begin_with(&mut self, tensors: &mut Tensors) -> Result<(), TensorsError> {
        self.normaliser.begin_with(tensors)
    }

    /// Returns the names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        match &self.on_device {
            Some(on_device) => on_device.score_names(),
            None => self.shards.first().map_or(&[], |shard| shard.envs.score_names()),
        }
    }

    /// Returns the environment steps so far.
    pub fn steps(&self) -> u64 {
        self.plan.before
    }

    /// Returns the running statistics of observations and rewards.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// Collects the next rollout: steps or whole episodes of every environment, according to the agent's [`Collection`]. Also returns the
    /// episodes that ended in it, in the order in which they ended.
    pub fn collect(&mut self, policy: &dyn Behaviour) -> Result<(Rollout, Vec<Episode>), EnvError> {
        self.collect_from(policy, 0..self.shards.len())
    }

    /// As [`collect`](Collector::collect), but only from the environments of one worker, which must be less than the number of workers.
    pub fn collect_of(&mut self, policy: &dyn Behaviour, worker: usize) -> Result<(Rollout, Vec<Episode>), EnvError> {
        let shards = if self.workers == 1 { 0..self.shards.len() } else { worker..worker + 1 };
        self.collect_from(policy, shards)
    }

    fn collect_from(&mut self, policy: &dyn Behaviour, part: Range<usize>) -> Result<(Rollout, Vec<Episode>), EnvError> {
        if let Some(on_device) = &mut self.on_device {
            let (mut rollout, episodes) = on_device.collect(policy, &mut self.normaliser, (self.plan.before, self.max_concurrent))?;
            self.plan.before += rollout.len() as u64;
            if let Collection::Episodes { group, greedy: true, .. } = self.plan.collection {
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
        let Self { shards, normaliser, plan, .. } = self;
        let shards = &mut shards[part.clone()];
        let plan = plan.of(policy, shards.iter().map(|shard| shard.ids.len()).sum());
        let results = threads::map(shards, |_, shard| record(shard, policy, &plan, normaliser));
        results.into_iter().collect::<Result<Vec<()>, _>>()?;
        reward_together(&self.world, shards)?;

        // plays the greedy episodes before `assemble` updates the statistics that the rollout was collected with
        self.greedy = match plan.collection {
            Collection::Episodes { per_env, group, greedy: true } => {
                let of_group =
                    |trajectory: &Trajectory| trajectory.episodes[..per_env].iter().map(|(_, episode)| episode.seed).collect::<Vec<_>>();
                let trajectories = self.shards.iter().flat_map(|shard| &shard.trajectories);
                self.play_greedily(policy, &trajectories.step_by(group.max(1)).flat_map(of_group).collect::<Vec<_>>())?
            }
            _ => Vec::new(),
        };
        let shards = &self.shards[part];
        let numbered = shards.iter().flat_map(|shard| shard.ids.clone().zip(&shard.trajectories));
        let (rollout, episodes) = assemble(numbered, &shards[0].shape(), &mut self.normaliser, &plan);
        self.plan.before += rollout.len() as u64;
        Ok((Rollout { greedy_rewards: self.scaled_greedy_rewards(), ..rollout }, episodes))
    }

    /// Plays the episodes of these seeds with the most probable actions.
    fn play_greedily(&self, policy: &dyn Behaviour, seeds: &[u64]) -> Result<Vec<PlayedEpisode>, EnvError> {
        play_greedily(policy, &self.normaliser.frozen(&self.world), seeds, self.max_concurrent)
    }

    /// Returns the rewards of the greedy episodes, scaled like the rewards of the rollout.
    fn scaled_greedy_rewards(&self) -> Vec<Vec<f32>> {
        self.greedy.iter().map(|episode| self.normaliser.scaled(episode.rewards.clone())).collect()
    }

    /// Returns the greedy episodes of the last rollout, one for each group, if the agent's [`Collection`] includes them.
    pub fn greedy_episodes(&self) -> &[PlayedEpisode] {
        &self.greedy
    }

    /// Returns everything that a checkpoint needs of the collector.
    pub fn save(&self) -> Tensors {
        let (envs, positions) = match &self.on_device {
            Some(on_device) => on_device.save(),
            None => (
                self.shards.iter().flat_map(|shard| shard.envs.save()).collect(),
                self.shards.iter().flat_map(|shard| shard.streams.iter().map(Stream::position)).collect(),
            ),
        };
        let noise = self.shards.iter().flat_map(|shard| shard.noise.iter().copied()).collect();
        // a worker that has not begun has no memory yet
        let width = self.shards.iter().map(|shard| shard.memory.len() / shard.ids.len()).max().unwrap_or(0);
        let mut memory = vec![0.0; self.plan.envs * width];
        for shard in self.shards.iter().filter(|shard| !shard.memory.is_empty()) {
            memory[shard.ids.start * width..shard.ids.end * width].copy_from_slice(&shard.memory);
        }
        let mut tensors = save_acting(&self.normaliser, &self.plan, positions, (noise, memory));
        tensors.insert("environments".into(), Tensor::u64(envs));
        tensors
    }

    /// Loads the tensors of [`save`](Collector::save), to resume the training.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let mut envs = get_u64(tensors, "environments")?;
        let width = self.shards.iter().map(|shard| shard.noise.len()).sum();
        let SavedActing { steps, positions, mut noise, memory } = saved_acting(tensors, &self.plan, width)?;
        let remembered = memory.len() / self.plan.envs;
        if let Some(on_device) = &mut self.on_device {
            envs = on_device.load(envs, positions).map_err(TensorsError::State)?;
        }
        for shard in &mut self.shards {
            envs = shard.envs.load(envs).map_err(|error| TensorsError::State(error.to_string()))?;
            shard.streams.iter_mut().zip(&positions[shard.ids.clone()]).for_each(|(stream, position)| stream.seek(*position));
        }
        for Shard { noise: own, memory: own_memory, ids, .. } in &mut self.shards {
            *own_memory = memory[ids.start * remembered..ids.end * remembered].to_vec();
            let (first, rest) = noise.split_at(own.len().min(noise.len()));
            own[..first.len()].copy_from_slice(first);
            noise = rest;
        }
        self.normaliser.load(tensors)?;
        // what belonged to the episodes before
        if self.shards.iter().any(|shard| !shard.envs.can_be_saved()) {
            self.shards
                .iter_mut()
                .for_each(|shard| [&mut shard.noise, &mut shard.memory].into_iter().for_each(|numbers| numbers.fill(0.0)));
            self.normaliser.begin_again();
        }
        self.plan.before = steps;
        match envs.len() {
            0 => Ok(()),
            rest => Err(TensorsError::State(format!("expected nothing after the last environment, got {rest} words"))),
        }
    }
}

/// Returns what a checkpoint needs to act on as before: the statistics, the number of steps, the positions of the environments' random streams
/// and, if it depends on the last one, the noise.
fn save_acting(normaliser: &Normaliser, plan: &RolloutPlan, positions: Vec<u64>, (noise, memory): (Vec<f32>, Vec<f32>)) -> Tensors {
    let mut tensors = normaliser.save();
    tensors.insert("action_streams".into(), Tensor::u64(positions));
    tensors.insert("steps".into(), Tensor::u64(vec![plan.before]));
    if plan.noise_is_correlated() {
        tensors.insert(NOISE.into(), Tensor::f32(&[noise.len()], noise));
    }
    if !memory.is_empty() {
        tensors.insert(MEMORY.into(), Tensor::f32(&[plan.envs, memory.len() / plan.envs], memory));
    }
    tensors
}

/// The numbers that [`save_acting`] wrote.
struct SavedActing<'a> {
    steps: u64,
    positions: &'a [u64],
    /// Empty unless the noise depends on the last one.
    noise: &'a [f32],
    /// What the policy remembers of every environment's episode; empty without a memory.
    memory: &'a [f32],
}

/// Reads what [`save_acting`] wrote, except for the statistics. `width` is the number of numbers of the noise.
fn saved_acting<'a>(tensors: &'a Tensors, plan: &RolloutPlan, width: usize) -> Result<SavedActing<'a>, TensorsError> {
    let positions = get_u64(tensors, "action_streams")?;
    let [steps] = *get_u64(tensors, "steps")? else { return Err(TensorsError::State("steps: expected one number".into())) };
    if positions.len() != plan.envs {
        return Err(TensorsError::State(format!("expected {} action streams, got {}", plan.envs, positions.len())));
    }
    let noise = if plan.noise_is_correlated() { get_f32(tensors, NOISE, &[width])? } else { &[] };
    let memory = match tensors.get(MEMORY).map(|tensor| &tensor.shape[..]) {
        Some(shape @ [envs, _]) if *envs == plan.envs => get_f32(tensors, MEMORY, shape)?,
        Some(shape) => {
            return Err(TensorsError::State(format!(
                "{MEMORY}: expected a row for each of {} environments, got shape {shape:?}",
                plan.envs
            )));
        }
        None => &[],
    };
    Ok(SavedActing { steps, positions, noise, memory })
}
