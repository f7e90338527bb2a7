//! The collector: a policy acts in many environments, and a rollout comes out.
//!
//! The environments are cut into shards, one per thread, and every shard runs through the whole rollout by itself. What happens in
//! an environment depends on the run's seed and on its number alone, and the rollout is put together by environment, so the shards
//! do not show in it.

use std::ops::Range;

use gradus_agents::{Collection, End, GroupId, Rollout, Segment};
use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{Actions, Autoreset, Ending, EnvError, Finished, Space, Starts, VecEnv, World};
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_nets::{ActionRows, Choice, Policy, Store, threads};

use crate::normaliser::{Normaliser, WrapperConfig};

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

/// Some of the environments.
struct Shard {
    ids: Range<usize>,
    envs: VecEnv,
    streams: Vec<Stream>,
    tracks: Vec<Track>,
}

/// What one environment went through in a rollout; indices count from its own first decision, successors from its own first one.
struct Track {
    observations: Vec<f32>,
    /// The observations as they came, where they are normalised.
    raw: Vec<f32>,
    masks: Vec<bool>,
    actions: ActionRows,
    log_probs: Vec<f32>,
    rewards: Vec<f32>,
    endings: Vec<Ending>,
    segments: Vec<Segment>,
    successors: Vec<f32>,
    /// Each with the number of its last decision.
    episodes: Vec<(usize, Episode)>,
}

/// All environments of a run.
pub struct Collector {
    shards: Vec<Shard>,
    envs: usize,
    width: usize,
    collection: Collection,
    normaliser: Normaliser,
    steps: u64,
}

/// The numbers 0 to n - 1 in `parts` ranges of nearly equal length.
pub(crate) fn split(n: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = parts.clamp(1, n.max(1));
    (0..parts).map(move |i| i * n / parts..(i + 1) * n / parts)
}

/// Actions as a world takes them: a policy's continuous actions know no bounds and are clipped to the world's, as in
/// Stable-Baselines3. What is learnt from are the actions as they were drawn.
pub(crate) struct Clipped {
    space: Space,
    rows: Vec<f32>,
}

impl Clipped {
    pub fn to(space: Space) -> Self {
        Self { space, rows: Vec::new() }
    }

    pub fn clip<'a>(&'a mut self, actions: &'a ActionRows) -> Actions<'a> {
        match actions {
            ActionRows::Continuous { rows, width } => {
                self.rows.clone_from(rows);
                self.space.clip(&mut self.rows);
                Actions::Continuous { rows: &self.rows, width: *width }
            }
            discrete => discrete.view(),
        }
    }
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
        let shard = |ids: Range<usize>| {
            let streams = ids.clone().map(|env| Stream::new(seed, Purpose::Action, env as u64)).collect();
            let envs = world.vec_env_with(ids.clone(), starts, autoreset)?;
            let tracks = ids.clone().map(|_| Track::new(&envs.action_space())).collect();
            Ok(Shard { envs, ids, streams, tracks })
        };
        let shards: Vec<Shard> = split(envs, threads::count()).map(shard).collect::<Result<_, EnvError>>()?;
        let width = shards[0].envs.observation_space().width();
        Ok(Self { shards, envs, width, collection, normaliser: Normaliser::new(wrappers, envs, width), steps: 0 })
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
    pub fn collect(&mut self, policy: &dyn Policy) -> Result<(Rollout, Vec<Episode>), EnvError> {
        let Self { shards, envs, width, collection, normaliser, steps } = self;
        let results = threads::map(shards, |_, shard| shard.collect(policy, *collection, normaliser));
        results.into_iter().collect::<Result<Vec<()>, _>>()?;

        let tracks = || shards.iter().flat_map(|shard| &shard.tracks);
        let n: usize = tracks().map(Track::len).sum();
        let rows = n + tracks().map(|track| track.successors.len() / *width).sum::<usize>();
        let mut observations = Vec::with_capacity(rows * *width);
        let mut actions = ActionRows::empty(&shards[0].envs.action_space());
        let (mut log_probs, mut rewards) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let (mut masks, mut segments, mut finished) = (Vec::new(), Vec::new(), Vec::new());
        let mut first_successor = n;
        for (env, track) in tracks().enumerate() {
            let first = rewards.len();
            observations.extend_from_slice(&track.observations);
            masks.extend_from_slice(&track.masks);
            actions.extend(&track.actions);
            log_probs.extend_from_slice(&track.log_probs);
            rewards.extend_from_slice(&track.rewards);
            segments.extend(track.segments.iter().map(|segment| segment.moved(first, first_successor)));
            normaliser.learn(env, &track.raw, &mut rewards[first..], &track.endings);
            first_successor += track.successors.len() / *width;
            finished.extend_from_slice(&track.episodes);
        }
        tracks().for_each(|track| observations.extend_from_slice(&track.successors));
        normaliser.scale_rewards(&mut rewards);

        // when an environment had made so many steps, all had made as many, or all of theirs
        let mut lengths: Vec<u64> = tracks().map(|track| track.len() as u64).collect();
        lengths.sort_unstable();
        let sums: Vec<u64> = std::iter::once(0).chain(lengths.iter().scan(0, |sum, length| Some(add(sum, *length)))).collect();
        let steps_at = |t: usize| {
            let shorter = lengths.partition_point(|length| *length <= t as u64);
            sums[shorter] + (*envs - shorter) as u64 * (t as u64 + 1)
        };
        finished.sort_by_key(|(t, episode)| (*t, episode.env));
        let episodes = finished.into_iter().map(|(t, episode)| Episode { step: *steps + steps_at(t), ..episode }).collect();
        *steps += n as u64;

        let mut store = Store::new(*width, observations, actions);
        if !masks.is_empty() {
            store = store.with_masks(masks);
        }
        Ok((Rollout::new(store, rewards, log_probs, segments), episodes))
    }

    /// All that a checkpoint needs.
    pub fn save(&self) -> Tensors {
        let envs = self.shards.iter().flat_map(|shard| shard.envs.save()).collect();
        let positions = self.shards.iter().flat_map(|shard| shard.streams.iter().map(Stream::position)).collect();
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

fn add(sum: &mut u64, length: u64) -> u64 {
    *sum += length;
    *sum
}

impl Track {
    fn new(actions: &Space) -> Self {
        Self {
            observations: Vec::new(),
            raw: Vec::new(),
            masks: Vec::new(),
            actions: ActionRows::empty(actions),
            log_probs: Vec::new(),
            rewards: Vec::new(),
            endings: Vec::new(),
            segments: Vec::new(),
            successors: Vec::new(),
            episodes: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.rewards.len()
    }

    fn clear(&mut self) {
        self.observations.clear();
        self.raw.clear();
        self.masks.clear();
        self.actions.resize(0);
        self.log_probs.clear();
        self.rewards.clear();
        self.endings.clear();
        self.segments.clear();
        self.successors.clear();
        self.episodes.clear();
    }

    /// Closes the segment that is open.
    fn close(&mut self, end: End, group: usize) {
        let begin = self.segments.last().map_or(0, |segment| segment.range.end);
        self.segments.push(Segment { range: begin..self.len(), end, group: GroupId(group as u32) });
    }
}

impl Shard {
    fn collect(&mut self, policy: &dyn Policy, collection: Collection, normaliser: &Normaliser) -> Result<(), EnvError> {
        let Self { ids, envs, streams, tracks } = self;
        let (n, width) = (envs.len(), policy.observation_width());
        tracks.iter_mut().for_each(Track::clear);
        let mut actor = policy.actor();
        let mut actions = ActionRows::empty(&envs.action_space());
        let mut clipped = Clipped::to(envs.action_space());
        let mut log_probs = vec![0.0; n];
        let mut shown = Vec::new();
        let starts = envs.starts();
        // an environment that has its quota of episodes stands still, and so does its stream
        let mut resting: Vec<Option<u64>> = vec![None; n];
        for t in 0.. {
            let is_complete = match collection {
                Collection::Steps(steps) => t == steps,
                Collection::Episodes { .. } => resting.iter().all(Option::is_some),
            };
            if is_complete {
                break;
            }
            let rows = if normaliser.wants_observations() {
                shown.clear();
                shown.extend_from_slice(envs.observation_rows());
                normaliser.show(&mut shown);
                &shown
            } else {
                envs.observation_rows()
            };
            actor.act(rows, envs.action_masks(), Choice::Sample(streams), &mut actions, &mut log_probs);
            for (env, track) in tracks.iter_mut().enumerate().filter(|(env, _)| resting[*env].is_none()) {
                track.observations.extend_from_slice(&rows[env * width..(env + 1) * width]);
                if normaliser.wants_observations() {
                    track.raw.extend_from_slice(&envs.observation_rows()[env * width..(env + 1) * width]);
                }
                if let Some(masks) = envs.action_masks() {
                    let actions = masks.len() / n;
                    track.masks.extend_from_slice(&masks[env * actions..(env + 1) * actions]);
                }
                track.log_probs.push(log_probs[env]);
                track.actions.push(&actions, env);
            }
            let transition = envs.step_unfinished(clipped.clip(&actions))?;
            for (env, track) in tracks.iter_mut().enumerate().filter(|(env, _)| resting[*env].is_none()) {
                track.rewards.push(transition.rewards[env]);
                track.endings.push(transition.endings[env]);
            }
            for Finished { env, seed, ending, episode_return, length, mut observation, scores } in envs.take_finished() {
                let track = &mut tracks[env];
                let end = if ending.terminated() {
                    End::Terminated
                } else {
                    normaliser.show(&mut observation);
                    track.successors.extend_from_slice(&observation);
                    End::Truncated { successor: track.successors.len() / width - 1 }
                };
                let group = match collection {
                    Collection::Steps(_) => ids.start + env,
                    // the n-th episodes of a group's environments are a group of their own
                    Collection::Episodes { per_env, .. } => starts.group_of(ids.start + env) * per_env + track.episodes.len(),
                };
                track.close(end, group);
                let episode = Episode { step: 0, env: ids.start + env, seed, episode_return, length, ending, scores };
                track.episodes.push((track.len() - 1, episode));
                if let Collection::Episodes { per_env, .. } = collection {
                    if track.episodes.len() < per_env {
                        envs.begin_next(env)?;
                    } else {
                        resting[env] = Some(streams[env].position());
                    }
                }
            }
        }
        for (stream, position) in streams.iter_mut().zip(resting) {
            position.into_iter().for_each(|position| stream.seek(position));
        }
        if let Collection::Episodes { .. } = collection {
            // whoever stood still may have been shown or moved in the meantime: nothing of that is left
            return envs.reset_finished();
        }
        for (env, track) in tracks.iter_mut().enumerate() {
            if track.segments.last().map_or(0, |segment| segment.range.end) < track.len() {
                let mut row = envs.observation_rows()[env * width..(env + 1) * width].to_vec();
                normaliser.show(&mut row);
                track.successors.extend_from_slice(&row);
                track.close(End::Cut { successor: track.successors.len() / width - 1 }, ids.start + env);
            }
        }
        Ok(())
    }
}
