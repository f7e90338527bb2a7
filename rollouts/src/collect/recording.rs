//! Steps the environments of a shard and records their trajectories.

use gradus_agents::Collection;
use gradus_envs::{EnvError, Space, VecEnv};
use gradus_nets::{ActionRows, Behaviour, Sampling};

use super::plan::RolloutPlan;
use super::shard::{Script, Shard};
use super::trajectory::Trajectory;
use crate::normaliser::Normaliser;
use crate::{ActiveRows, Decisions, Environments, Explores, act};

/// Lets `policy` act in the environments of a shard until every trajectory is complete, then closes the trajectories.
pub(super) fn record(shard: &mut Shard, policy: &dyn Behaviour, plan: &RolloutPlan, normaliser: &Normaliser) -> Result<(), EnvError> {
    let collection = plan.collection;
    shard.memory.resize(shard.ids.len() * plan.memory, 0.0);
    shard.trajectories.iter_mut().for_each(Trajectory::clear);
    if shard.trajectories.iter().any(|trajectory| !trajectory.is_complete(collection)) {
        run(shard, policy, plan, normaliser)?;
    }
    if let Collection::Episodes { .. } = collection {
        // environments that waited for the others begin their next episode; they have acted too
        shard.memory.fill(0.0);
        return shard.envs.reset_finished();
    }
    let Shard { ids, envs, trajectories, .. } = shard;
    for (env, trajectory) in trajectories.iter_mut().enumerate() {
        let mask = envs.action_masks().map_or(&[][..], |masks| row_of(masks, envs.len(), env));
        trajectory.cut(ids.start + env, row_of(envs.observation_rows(), envs.len(), env), mask, plan, normaliser);
    }
    Ok(())
}

/// Steps the environments of a shard until every trajectory is complete. If observations are rows of numbers, all environments act at every
/// step, which is cheapest. If they are texts, only unfinished environments act, `max_concurrent` at once, so that long texts do not delay
/// other texts. `max_concurrent` does not change the trajectories.
fn run(shard: &mut Shard, policy: &dyn Behaviour, plan: &RolloutPlan, normaliser: &Normaliser) -> Result<(), EnvError> {
    let Shard { ids, envs, streams, trajectories, max_concurrent, scripts, longest, noise, memory } = shard;
    let is_lockstep = !matches!(envs.observation_space(), Space::Text { .. });
    let active = match is_lockstep {
        true => ActiveRows::lockstep(streams),
        false => ActiveRows::concurrent(streams, *max_concurrent),
    };
    if !is_lockstep {
        (0..envs.len()).for_each(|env| envs.hold(env, active.waiting().contains(&env)));
    }
    let mut actions = ActionRows::empty(&envs.action_space());
    actions.resize(envs.len());
    let mut recording = Recording {
        first: ids.start,
        envs,
        trajectories,
        scripts,
        plan,
        normaliser,
        is_lockstep,
        observations: Vec::new(),
        masks: Vec::new(),
        actions,
        recorded: Vec::new(),
        steps: 0,
        longest: *longest,
        noise,
        memory,
    };
    act(policy, &mut recording, active, &Sampling::default())?;
    if !is_lockstep {
        (0..envs.len()).for_each(|env| envs.hold(env, false));
    }
    Ok(())
}

/// The environments of a shard while a rollout is recorded.
struct Recording<'a> {
    /// Number of the shard's first environment in the run.
    first: usize,
    envs: &'a mut VecEnv,
    trajectories: &'a mut [Trajectory],
    scripts: &'a [Script],
    plan: &'a RolloutPlan,
    normaliser: &'a Normaliser,
    /// Whether all environments act at every step.
    is_lockstep: bool,
    /// Observations for the policy, if they are normalised or if only some environments act; otherwise `envs` has them.
    observations: Vec<f32>,
    masks: Vec<bool>,
    /// Actions of all environments, if only some environments act.
    actions: ActionRows,
    /// The recorded rows of this step, with their environments. In lockstep, environments with complete trajectories are not recorded.
    recorded: Vec<(usize, usize)>,
    /// Steps so far.
    steps: u32,
    /// Largest number of steps of an episode, if whole episodes are collected.
    longest: u32,
    /// The last noise of every environment's actions.
    noise: &'a mut [f32],
    /// What the policy remembers of every environment's episode.
    memory: &'a mut Vec<f32>,
}

impl Recording<'_> {
    /// Closes the episodes that ended in the last step, and begins the next episodes that belong to the rollout.
    fn end_episodes(&mut self) -> Result<(), EnvError> {
        let Self { first, envs, trajectories, plan, normaliser, noise, memory, .. } = self;
        let (width, remembered) = (noise.len() / envs.len(), plan.memory);
        for finished in envs.take_finished() {
            let env = finished.env;
            noise[env * width..(env + 1) * width].fill(0.0);
            memory[env * remembered..(env + 1) * remembered].fill(0.0);
            let trajectory = &mut trajectories[env];
            trajectory.finish(*first + env, finished, plan, normaliser);
            if let Collection::Episodes { .. } = plan.collection
                && !trajectory.is_complete(plan.collection)
            {
                envs.begin_next(env)?;
            }
        }
        Ok(())
    }
}

impl Environments for Recording<'_> {
    fn action_space(&self) -> Space {
        self.envs.action_space()
    }

    /// Returns the observations and masks of the rows, and records them in the trajectories.
    fn observe(&mut self, rows: &[usize]) -> (&[f32], Option<&[bool]>) {
        let Self { envs, trajectories, plan, normaliser, observations, masks, recorded, memory, .. } = self;
        let (n, width) = (envs.len(), envs.observation_rows().len() / envs.len());
        let all_masks = envs.action_masks();
        let (seen, seen_masks) = if !self.is_lockstep {
            observations.clear();
            masks.clear();
            for env in rows.iter().copied() {
                observations.extend_from_slice(&envs.observation_rows()[env * width..(env + 1) * width]);
                masks.extend_from_slice(all_masks.map_or(&[], |masks| row_of(masks, n, env)));
            }
            (&observations[..], all_masks.map(|_| &masks[..]))
        } else if normaliser.wants_observations() {
            observations.clear();
            observations.extend_from_slice(envs.observation_rows());
            normaliser.show(observations);
            (&observations[..], all_masks)
        } else {
            (envs.observation_rows(), all_masks)
        };
        recorded.clear();
        recorded.extend(rows.iter().copied().enumerate().filter(|(_, env)| !trajectories[*env].is_complete(plan.collection)));
        for (row, env) in recorded.iter().copied() {
            let raw = &envs.observation_rows()[env * width..(env + 1) * width];
            let mask = seen_masks.map_or(&[][..], |masks| row_of(masks, rows.len(), row));
            if plan.memory > 0 {
                trajectories[env].remembered(row_of(memory, n, env), plan);
            }
            trajectories[env].saw((raw, &seen[row * width..(row + 1) * width]), mask, plan, normaliser);
        }
        (seen, seen_masks)
    }

    fn explores(&self) -> Explores {
        self.plan.explores(self.steps)
    }

    fn noise(&mut self) -> &mut [f32] {
        self.noise
    }

    fn memory(&mut self) -> Option<&mut Vec<f32>> {
        Some(self.memory)
    }

    fn scripted(&self, rows: &[usize], actions: &mut ActionRows, log_probs: &mut [f32]) -> bool {
        if self.scripts.is_empty() {
            return false;
        }
        let next = || rows.iter().map(|env| (&self.scripts[*env], self.trajectories[*env].len()));
        *actions = ActionRows::Discrete(next().map(|(script, t)| script.tokens[t]).collect());
        log_probs.iter_mut().zip(next()).for_each(|(log_prob, (script, t))| *log_prob = script.log_probs[t]);
        true
    }

    fn step(&mut self, rows: &[usize], decisions: &Decisions<'_>, done: &mut Vec<usize>) -> Result<(), EnvError> {
        for (row, env) in self.recorded.iter().copied() {
            self.trajectories[env].decided(decisions, row);
        }
        let actions = if self.is_lockstep {
            decisions.clipped
        } else {
            rows.iter().enumerate().for_each(|(row, env)| self.actions.set(*env, decisions.drawn, row));
            self.actions.view()
        };
        let transition = self.envs.step_unfinished(actions)?;
        for (_, env) in self.recorded.iter().copied() {
            self.trajectories[env].received(transition.rewards[env], transition.endings[env], transition.step_ends.get(env));
        }
        self.end_episodes()?;
        self.steps += 1;
        // whole episodes begin in the rollout, so none has more steps than the rollout
        if matches!(self.plan.collection, Collection::Episodes { .. }) && self.steps >= self.longest {
            self.envs.check_lengths(self.longest)?;
        }
        let completed = self.recorded.iter().filter(|(_, env)| self.trajectories[*env].is_complete(self.plan.collection));
        done.extend(completed.map(|(row, _)| *row));
        Ok(())
    }

    fn pass_on(&mut self, _: usize, done: usize, next: Option<usize>) -> Result<(), EnvError> {
        if !self.is_lockstep {
            // if whole episodes are collected, an environment pauses by itself when its episode has ended
            self.envs.hold(done, matches!(self.plan.collection, Collection::Steps(_)));
            next.into_iter().for_each(|next| self.envs.hold(next, false));
        }
        Ok(())
    }
}

/// Returns row number `row` of `rows` rows of equal length.
pub(super) fn row_of<T>(numbers: &[T], rows: usize, row: usize) -> &[T] {
    let width = numbers.len() / rows;
    &numbers[row * width..(row + 1) * width]
}
