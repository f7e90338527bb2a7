//! Environments that are stepped on the policy's device. The host receives only rewards, log-probabilities and endings of a rollout.
//!
//! Seeds, returns and lengths of episodes are computed from these numbers on the host, as in [`VecEnv`](gradus_envs::VecEnv). A checkpoint
//! has the same words as a checkpoint of environments on the host.

use gradus_agents::{Collection, End, GroupId, Rollout, Segment};
use gradus_base::random::episode_seed;
use gradus_base::threads;
use gradus_envs::{EnvError, EnvSpec};
use gradus_nets::Behaviour;
use gradus_nets::torch::ActorCritic;
use gradus_nets::torch::worlds::{Record, Standing, Worlds, knows};

use super::{OnDevice, as_type};
use crate::WrapperConfig;
use crate::collect::{Episode, NotThere};
use crate::normaliser::Normaliser;

/// Number of environments whose steps a thread cuts at once.
const AT_ONCE: usize = 1 << 12;

/// The environments of a run on a device.
pub struct Rows {
    /// Name of the environment, for errors.
    world: String,
    worlds: Worlds,
    seed: u64,
    /// Steps of each environment in a rollout.
    steps: usize,
    /// Numbers per observation.
    width: usize,
    running: Vec<Running>,
}

/// The current episode of an environment.
#[derive(Clone, Copy, Default)]
struct Running {
    /// Number of episodes begun so far.
    episodes: u64,
    seed: u64,
    episode_return: f64,
    length: u32,
}

impl Running {
    /// Begins the next episode of environment `env`; `run` is the seed of the run.
    fn begin(&mut self, run: u64, env: usize) {
        *self = Self { seed: episode_seed(run, env as u64, self.episodes), episodes: self.episodes + 1, ..Self::default() };
    }
}

/// The segments and episodes of a rollout.
#[derive(Default)]
struct Cut {
    segments: Vec<Segment>,
    /// Rows of the observations that follow truncated and unfinished segments, for [`Record::store`].
    after: Vec<usize>,
    /// Finished episodes, each with the index of its last step among its environment's steps in the rollout.
    finished: Vec<(usize, Episode)>,
}

impl Cut {
    /// Adds the steps of environment `env`. Rows after segments are numbered from 0. A reward that is not finite is an error.
    fn add(&mut self, (run, env): (u64, usize), episode: &mut Running, (record, steps): (&Record, usize)) -> Result<(), f32> {
        let (all, group) = (env * steps..(env + 1) * steps, GroupId(env as u32));
        let (mut begin, mut truncations) = (all.start, 0);
        for i in all.clone() {
            let (reward, ending) = (record.rewards[i], record.endings[i]);
            episode.episode_return += f64::from(reward);
            episode.length += 1;
            if !reward.is_finite() {
                return Err(reward);
            }
            if !ending.done() {
                continue;
            }
            let end = if ending.terminated() {
                End::Terminated
            } else {
                self.after.push(record.after_truncation(env, truncations));
                End::Truncated { successor: self.after.len() - 1 }
            };
            truncations += usize::from(ending.truncated());
            self.segments.push(Segment { range: begin..i + 1, end, group });
            begin = i + 1;
            let Running { seed, episode_return, length, .. } = *episode;
            self.finished.push((i % steps, Episode { step: 0, env, seed, episode_return, length, ending, scores: Vec::new() }));
            episode.begin(run, env);
        }
        if begin < all.end {
            self.after.push(record.after_all(env));
            self.segments.push(Segment { range: begin..all.end, end: End::Cut { successor: self.after.len() - 1 }, group });
        }
        Ok(())
    }
}

impl Rows {
    pub fn new(
        world: &EnvSpec,
        (envs, seed): (usize, u64),
        (collection, wrappers): (Collection, &WrapperConfig),
        policy: &dyn Behaviour,
    ) -> Result<Self, NotThere> {
        let Collection::Steps(steps) = collection else { return Err(NotThere::Unsuited("this agent collects whole episodes")) };
        if wrappers.normalise_observations {
            return Err(NotThere::Unsuited("observations are normalised on the host"));
        }
        if policy.memory_width() > 0 {
            return Err(NotThere::Unsuited("the policy has a memory"));
        }
        let policy = as_type::<ActorCritic>(policy).ok_or(NotThere::Unsuited("the policy is not a perceptron on libtorch"))?;
        if !knows(world, policy) {
            return Err(NotThere::Unsuited("this environment with its wrappers has no tensor program"));
        }
        let worlds = Worlds::new(world, envs, seed, policy).map_err(NotThere::Failed)?;
        let mut running = vec![Running::default(); envs];
        running.iter_mut().enumerate().for_each(|(env, episode)| episode.begin(seed, env));
        Ok(Self { world: world.name.clone(), worlds, seed, steps, width: world.env().observation_space().width(), running })
    }

    /// Cuts the record into segments and episodes, with all threads.
    fn cut(&mut self, record: &Record) -> Result<Cut, EnvError> {
        let (world, seed, steps, decisions) = (&self.world, self.seed, self.steps, record.rewards.len());
        let mut parts: Vec<&mut [Running]> = self.running.chunks_mut(AT_ONCE).collect();
        let cut_part = |part: usize, running: &mut &mut [Running]| {
            let mut cut = Cut::default();
            for (env, episode) in (part * AT_ONCE..).zip(running.iter_mut()) {
                cut.add((seed, env), episode, (record, steps)).map_err(|reward| EnvError::NotFinite {
                    world: world.clone(),
                    what: "reward".into(),
                    env,
                    got: f64::from(reward),
                    step: episode.length,
                    seed: episode.seed,
                })?;
            }
            Ok(cut)
        };
        let mut all = Cut::default();
        for cut in threads::map(&mut parts, cut_part) {
            let cut: Cut = cut?;
            // until here successors are numbered from 0
            let first = decisions + all.after.len();
            all.segments.extend(cut.segments.iter().map(|segment| segment.moved(0, first)));
            all.after.extend(cut.after);
            all.finished.extend(cut.finished);
        }
        Ok(all)
    }
}

impl OnDevice for Rows {
    fn collect(
        &mut self,
        policy: &dyn Behaviour,
        normaliser: &mut Normaliser,
        (before, _): (u64, usize),
    ) -> Result<(Rollout, Vec<Episode>), EnvError> {
        let policy = as_type::<ActorCritic>(policy).expect("the policy that these environments were made for");
        let record = self.worlds.roll(policy, self.steps).map_err(EnvError::State)?;
        let Cut { segments, after, finished } = self.cut(&record)?;
        let store = record.store(policy, &after).map_err(EnvError::State)?;

        let Record { mut rewards, log_probs, endings, .. } = record;
        for (env, rewards) in rewards.chunks_exact_mut(self.steps).enumerate() {
            normaliser.learn(env, &[], rewards, &endings[env * self.steps..][..self.steps]);
        }
        normaliser.scale_rewards(&mut rewards);
        // by step, then by environment
        let mut by_step: Vec<Vec<Episode>> = vec![Vec::new(); self.steps];
        finished.into_iter().for_each(|(step, episode)| by_step[step].push(episode));
        let steps_at = |step: usize| before + self.running.len() as u64 * (step as u64 + 1);
        let at_step =
            |(step, episodes): (usize, Vec<Episode>)| episodes.into_iter().map(move |episode| Episode { step: steps_at(step), ..episode });
        let episodes = by_step.into_iter().enumerate().flat_map(at_step).collect();
        Ok((Rollout::new(store, rewards, log_probs, segments), episodes))
    }

    /// Returns no words if the device fails.
    fn save(&self) -> (Vec<u64>, Vec<u64>) {
        let standing = self.worlds.save().unwrap_or_default();
        let mut words = Vec::with_capacity(standing.len() * (self.width + 16));
        for (Standing { observation, state, .. }, running) in standing.iter().zip(&self.running) {
            let Running { episodes, seed, episode_return, length } = *running;
            words.extend([episodes, seed, episode_return.to_bits(), u64::from(length), 0]);
            words.extend(observation.iter().map(|x| u64::from(x.to_bits())));
            words.push(state.len() as u64);
            words.extend(state);
        }
        (words, vec![self.worlds.position(); self.running.len()])
    }

    fn load<'a>(&mut self, mut words: &'a [u64], positions: &[u64]) -> Result<&'a [u64], String> {
        let position = positions.first().copied().unwrap_or(0);
        if let Some(other) = positions.iter().find(|other| **other != position) {
            return Err(format!("expected all action streams at position {position}, got one at {other}"));
        }
        let mut standing = Vec::with_capacity(self.running.len());
        for (env, running) in self.running.iter_mut().enumerate() {
            let short = || format!("environment {env}: the saved state is too short");
            let (header, rest) = words.split_at_checked(6 + self.width).ok_or_else(short)?;
            let (state, rest) = rest.split_at_checked(header[5 + self.width] as usize).ok_or_else(short)?;
            let (seed, length) = (header[1], header[3] as u32);
            let episode_return = f64::from_bits(header[2]);
            if u64::from(length) != header[3] || header[4] != 0 || !episode_return.is_finite() {
                return Err(format!("environment {env}: expected a running episode's length and return, got {:?}", &header[..5]));
            }
            *running = Running { episodes: header[0], seed, episode_return, length };
            standing.push(Standing { episodes: header[0], seed, length, state: state.into(), observation: Vec::new() });
            words = rest;
        }
        self.worlds.load(&standing, position)?;
        Ok(words)
    }
}
