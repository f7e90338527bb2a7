//! Some of the environments of a run, and how they run through a rollout.

use std::ops::Range;

use gradus_agents::{Collection, End};
use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{Autoreset, EnvError, Finished, Space, Starts, VecEnv, World};
use gradus_nets::{ActionRows, Behaviour, Choice};

use super::Episode;
use super::trajectory::Trajectory;
use crate::act::normaliser::Normaliser;
use crate::act::{Clipped, Slots};

/// What an environment will say in the next rollout, where that was written beforehand.
#[derive(Clone, Default)]
pub(super) struct Script {
    pub tokens: Vec<u32>,
    pub log_probs: Vec<f32>,
}

/// Some of the environments.
pub(super) struct Shard {
    pub ids: Range<usize>,
    pub envs: VecEnv,
    pub streams: Vec<Stream>,
    pub trajectories: Vec<Trajectory>,
    /// How many act at once where observations are texts; 0: all.
    pub slots: usize,
    /// One for each environment, or none at all.
    pub scripts: Vec<Script>,
}

impl Shard {
    /// The environments `ids` of a run, at the start of their first episodes.
    pub fn new(world: &World, ids: Range<usize>, starts: Starts, autoreset: Autoreset) -> Result<Self, EnvError> {
        let streams = ids.clone().map(|env| Stream::new(starts.seed, Purpose::Action, env as u64)).collect();
        let envs = world.vec_env_with(ids.clone(), starts, autoreset)?;
        let (observations, actions) = (envs.observation_space(), envs.action_space());
        let trajectories = ids.clone().map(|_| Trajectory::new(&observations, &actions)).collect();
        Ok(Self { envs, ids, streams, trajectories, slots: 0, scripts: Vec::new() })
    }

    /// Runs through a rollout.
    pub fn collect(&mut self, policy: &dyn Behaviour, collection: Collection, normaliser: &Normaliser) -> Result<(), EnvError> {
        self.trajectories.iter_mut().for_each(Trajectory::clear);
        match self.envs.observation_space() {
            Space::Text { .. } => self.collect_texts(policy, collection, normaliser)?,
            _ => self.collect_rows(policy, collection, normaliser)?,
        }
        if let Collection::Episodes { .. } = collection {
            // whoever stood still may have been shown or moved in the meantime: nothing of that is left
            return self.envs.reset_finished();
        }
        let width = self.envs.observation_space().width();
        for (env, trajectory) in self.trajectories.iter_mut().enumerate().filter(|(_, trajectory)| trajectory.is_open()) {
            let mut row = self.envs.observation_rows()[env * width..(env + 1) * width].to_vec();
            normaliser.show(&mut row);
            let successor = trajectory.successor(&row);
            trajectory.close(End::Cut { successor }, self.ids.start + env);
        }
        Ok(())
    }

    /// Where observations are rows of numbers: all act at every step, for that is what costs least.
    fn collect_rows(&mut self, policy: &dyn Behaviour, collection: Collection, normaliser: &Normaliser) -> Result<(), EnvError> {
        let n = self.envs.len();
        let mut actor = policy.actor();
        let mut actions = ActionRows::empty(&self.envs.action_space());
        let mut clipped = Clipped::to(self.envs.action_space());
        let mut log_probs = vec![0.0; n];
        let mut shown = Vec::new();
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
            let Self { envs, streams, trajectories, .. } = self;
            let rows = if normaliser.wants_observations() {
                shown.clear();
                shown.extend_from_slice(envs.observation_rows());
                normaliser.show(&mut shown);
                &shown
            } else {
                envs.observation_rows()
            };
            let (width, masks) = (rows.len() / n, envs.action_masks());
            actor.act(rows, masks, Choice::Sample(streams), &mut actions, &mut log_probs);
            for (env, trajectory) in trajectories.iter_mut().enumerate().filter(|(env, _)| resting[*env].is_none()) {
                trajectory.observations.push(&rows[env * width..(env + 1) * width]);
                if normaliser.wants_observations() {
                    trajectory.raw.extend_from_slice(&envs.observation_rows()[env * width..(env + 1) * width]);
                }
                if let Some(masks) = masks {
                    trajectory.masks.extend_from_slice(row_of(masks, n, env));
                }
                trajectory.log_probs.push(log_probs[env]);
                trajectory.actions.push(&actions, env);
            }
            let transition = envs.step_unfinished(clipped.clip(&actions))?;
            for (env, trajectory) in trajectories.iter_mut().enumerate().filter(|(env, _)| resting[*env].is_none()) {
                trajectory.rewards.push(transition.rewards[env]);
                trajectory.endings.push(transition.endings[env]);
            }
            for env in self.end_episodes(collection, normaliser)? {
                resting[env] = Some(self.streams[env].position());
            }
        }
        for (stream, position) in self.streams.iter_mut().zip(resting) {
            position.into_iter().for_each(|position| stream.seek(position));
        }
        Ok(())
    }

    /// Where observations are texts: only those act that have something to do and a slot to do it in. Whoever is done hands the slot to
    /// the next, so that long texts do not keep others waiting. Neither the slots nor the order shows in what is written.
    fn collect_texts(&mut self, policy: &dyn Behaviour, collection: Collection, normaliser: &Normaliser) -> Result<(), EnvError> {
        let (n, width) = (self.envs.len(), self.envs.observation_space().width());
        let mut actor = policy.actor();
        let mut slots = Slots::new(n, self.slots);
        (0..n).for_each(|env| self.envs.hold(env, slots.waiting().contains(&env)));
        let (mut rows, mut rows_masks, mut streams, mut log_probs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut chosen = ActionRows::empty(&self.envs.action_space());
        let mut actions = ActionRows::empty(&self.envs.action_space());
        actions.resize(n);
        while !slots.rows().is_empty() {
            let Self { envs, trajectories, .. } = self;
            let acting = slots.rows();
            rows.clear();
            rows_masks.clear();
            streams.clear();
            for env in acting {
                rows.extend_from_slice(&envs.observation_rows()[env * width..(env + 1) * width]);
                rows_masks.extend_from_slice(envs.action_masks().map_or(&[], |masks| row_of(masks, n, *env)));
                streams.push(self.streams[*env].clone());
            }
            let masks = envs.action_masks().is_some().then_some(&rows_masks[..]);
            log_probs.resize(acting.len(), 0.0);
            match &self.scripts[..] {
                [] => actor.act(&rows, masks, Choice::Sample(&mut streams), &mut chosen, &mut log_probs),
                scripts => {
                    let next = acting.iter().map(|env| (&scripts[*env], trajectories[*env].len()));
                    chosen = ActionRows::Discrete(next.clone().map(|(script, t)| script.tokens[t]).collect());
                    log_probs.iter_mut().zip(next).for_each(|(log_prob, (script, t))| *log_prob = script.log_probs[t]);
                    streams.iter_mut().for_each(|stream| stream.seek(stream.position() + 1));
                }
            }
            for (row, env) in acting.iter().copied().enumerate() {
                let trajectory = &mut trajectories[env];
                trajectory.observations.push(&rows[row * width..(row + 1) * width]);
                trajectory.masks.extend_from_slice(masks.map_or(&[], |masks| row_of(masks, acting.len(), row)));
                trajectory.log_probs.push(log_probs[row]);
                trajectory.actions.push(&chosen, row);
                actions.set(env, &chosen, row);
                self.streams[env] = streams[row].clone();
            }
            let transition = envs.step_unfinished(actions.view())?;
            for env in acting.iter().copied() {
                trajectories[env].rewards.push(transition.rewards[env]);
                trajectories[env].endings.push(transition.endings[env]);
                trajectories[env].step_ends.push(transition.step_ends[env]);
            }
            let mut is_done = vec![false; n];
            self.end_episodes(collection, normaliser)?.into_iter().for_each(|env| is_done[env] = true);
            if let Collection::Steps(steps) = collection {
                (0..n).for_each(|env| is_done[env] = self.trajectories[env].len() == steps);
            }
            for row in (0..slots.rows().len()).rev() {
                let env = slots.rows()[row];
                if is_done[env] {
                    // one that waits for its next episode stands still anyway
                    self.envs.hold(env, matches!(collection, Collection::Steps(_)));
                    slots.release(row).into_iter().for_each(|next| self.envs.hold(next, false));
                }
            }
        }
        (0..n).for_each(|env| self.envs.hold(env, false));
        Ok(())
    }

    /// Closes the episodes that ended in the last step, and begins the next ones. Returns the environments that have their quota.
    fn end_episodes(&mut self, collection: Collection, normaliser: &Normaliser) -> Result<Vec<usize>, EnvError> {
        let Self { ids, envs, trajectories, .. } = self;
        let starts = envs.starts();
        let mut complete = Vec::new();
        for Finished { env, seed, ending, episode_return, length, mut observation, scores } in envs.take_finished() {
            let trajectory = &mut trajectories[env];
            let end = if ending.terminated() {
                End::Terminated
            } else {
                normaliser.show(&mut observation);
                End::Truncated { successor: trajectory.successor(&observation) }
            };
            let group = match collection {
                Collection::Steps(_) => ids.start + env,
                // the n-th episodes of a group's environments are a group of their own
                Collection::Episodes { per_env, .. } => starts.group_of(ids.start + env) * per_env + trajectory.episodes.len(),
            };
            trajectory.close(end, group);
            let episode = Episode { step: 0, env: ids.start + env, seed, episode_return, length, ending, scores };
            trajectory.episodes.push((trajectory.len() - 1, episode));
            if let Collection::Episodes { per_env, .. } = collection {
                if trajectory.episodes.len() < per_env {
                    envs.begin_next(env)?;
                } else {
                    complete.push(env);
                }
            }
        }
        Ok(complete)
    }
}

/// Row number `row` of `rows` equally long ones.
fn row_of<T>(numbers: &[T], rows: usize, row: usize) -> &[T] {
    let width = numbers.len() / rows;
    &numbers[row * width..(row + 1) * width]
}
