//! [`Observer`]: the acting side of an agent, for environments that someone else steps.

use std::ops::Range;

use gradus_agents::{Collection, Exploration, Rollout};
use gradus_base::random::{Purpose, Stream};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_envs::{Actions, Finished, Outcome, Space, text};
use gradus_nets::{ActorState, Behaviour, Sampling};

use super::assemble::{EnvShape, assemble};
use super::plan::RolloutPlan;
use super::recording::row_of;
use super::trajectory::Trajectory;
use super::{Episode, SavedActing, save_acting, saved_acting};
use crate::acting::Chooser;
use crate::{Explores, Normaliser, WrapperConfig};

/// Chooses actions for environments that its caller steps, records what follows, and returns rollouts. In the same environments it chooses the
/// same actions and returns the same rollouts as a [`Collector`](crate::Collector), which steps its environments itself.
///
/// ```
/// use gradus_agents::Collection;
/// use gradus_envs::registry;
/// use gradus_nets::{Behaviour, NetworkConfig, cpu::ActorCritic};
/// use gradus_rollouts::{Observer, WrapperConfig};
///
/// let mut envs = registry::find("cartpole")?.vec_env(0..4, 1)?;
/// let spaces = (envs.observation_space(), envs.action_space());
/// let policy = ActorCritic::new(&NetworkConfig::default(), &spaces.0, &spaces.1, 1)?;
/// let mut observer = Observer::new(spaces, 4, 1, Collection::Steps(32), &WrapperConfig::default());
/// while !observer.is_complete() {
///     envs.step(observer.act(&policy, envs.observation_rows(), envs.action_masks()))?;
///     observer.observe(&envs.outcome());
/// }
/// let (rollout, _) = observer.take();
/// assert_eq!(rollout.len(), 4 * 32);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Observer {
    shape: EnvShape,
    /// Its `envs` are those of all workers.
    plan: RolloutPlan,
    workers: usize,
    /// The worker that collects the next rollout.
    worker: usize,
    normaliser: Normaliser,
    streams: Vec<Stream>,
    trajectories: Vec<Trajectory>,
    /// The last noise of every environment's actions; empty if actions are discrete.
    noise: Vec<f32>,
    /// What the policy remembers of every environment's episode; empty without a memory.
    memory: Vec<f32>,
    current: Vec<CurrentEpisode>,
    chooser: Chooser,
    state: ActorState,
    step: Step,
    /// Steps since the beginning of the rollout.
    steps: u32,
}

/// The name of the current episodes in [`Observer::save`].
const EPISODES: &str = "current_episodes";

/// The current episode of an environment.
#[derive(Clone, Default)]
struct CurrentEpisode {
    episode_return: f64,
    length: u32,
    /// Whether a step of it was not recorded. A rollout of whole episodes leaves it out.
    is_missed: bool,
}

/// The observations of a step that is not recorded yet, with one row per environment.
#[derive(Default)]
struct Step {
    raw: Vec<f32>,
    /// As the policy sees them.
    seen: Vec<f32>,
    masks: Option<Vec<bool>>,
    /// The positions of the streams before the step.
    positions: Vec<u64>,
    /// What the policy remembered before the step.
    memory: Vec<f32>,
    /// The noise of all environments before the step.
    noise: Vec<f32>,
}

impl Observer {
    /// Creates an observer for `envs` environments with these observation and action spaces.
    pub fn new((observations, actions): (Space, Space), envs: usize, seed: u64, collection: Collection, wrappers: &WrapperConfig) -> Self {
        let width = if let Space::Box { low, .. } = &actions { low.len() } else { 0 };
        Self {
            plan: RolloutPlan::new(collection, envs),
            workers: 1,
            worker: 0,
            normaliser: Normaliser::new(wrappers, envs, observations.width()),
            streams: (0..envs as u64).map(|env| Stream::new(seed, Purpose::Action, env)).collect(),
            trajectories: (0..envs).map(|_| Trajectory::new(&observations, &actions)).collect(),
            noise: vec![0.0; envs * width],
            memory: Vec::new(),
            current: vec![CurrentEpisode::default(); envs],
            chooser: Chooser::new(actions.clone()),
            state: None,
            step: Step::default(),
            steps: 0,
            shape: EnvShape { observations, actions, score_names: Vec::new() },
        }
    }

    /// Sets how actions are chosen; by default, they are sampled from the policy.
    pub fn with_exploration(self, exploration: Exploration) -> Self {
        Self { plan: RolloutPlan { exploration, ..self.plan }, ..self }
    }

    /// Divides the environments evenly among workers. Each rollout then comes from the environments of one worker.
    ///
    /// # Panics
    /// If the number of workers does not divide the number of environments.
    pub fn with_workers(self, workers: usize) -> Self {
        let envs = self.plan.envs;
        assert!(envs.is_multiple_of(workers), "workers: expected a number that divides {envs}, got {workers}");
        Self { workers, ..self }
    }

    /// Records observations and rewards as the environment gave them, except for clipped rewards. The rollouts say how to normalise them.
    pub fn with_raw_rollouts(self) -> Self {
        Self { plan: RolloutPlan { is_raw: true, ..self.plan }, ..self }
    }

    /// Names the scores of episodes, in the order of [`Finished::scores`].
    pub fn with_score_names(mut self, score_names: Vec<String>) -> Self {
        self.shape.score_names = score_names;
        self
    }

    /// Loads the statistics of the observations, if `tensors` has them and observations are normalised.
    pub fn begin_with(&mut self, tensors: &mut Tensors) -> Result<(), TensorsError> {
        self.normaliser.begin_with(tensors)
    }

    /// Returns the names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        &self.shape.score_names
    }

    /// Returns the observation space and the action space.
    pub fn spaces(&self) -> (&Space, &Space) {
        (&self.shape.observations, &self.shape.actions)
    }

    /// Returns the environment steps of all rollouts that were taken.
    pub fn steps(&self) -> u64 {
        self.plan.before
    }

    /// Returns the running statistics of observations and rewards.
    pub fn normaliser(&self) -> &Normaliser {
        &self.normaliser
    }

    /// Returns the environments that the current rollout comes from: all, or those of the worker.
    pub fn environments(&self) -> Range<usize> {
        let n = self.plan.envs / self.workers;
        self.worker * n..(self.worker + 1) * n
    }

    /// Chooses an action for each row of `observations`: one row for each of the [`environments`](Observer::environments), as the environment
    /// returned it. With `masks` (rows x actions), only actions whose entry is true can be chosen. The row of an environment whose part of the
    /// rollout is complete may have an empty text.
    ///
    /// # Panics
    /// If the number of rows is not that of the environments.
    pub fn act(&mut self, policy: &dyn Behaviour, observations: &[f32], masks: Option<&[bool]>) -> Actions<'_> {
        let envs = self.environments();
        self.plan = self.plan.of(policy, self.plan.envs);
        self.memory.resize(self.plan.envs * self.plan.memory, 0.0);
        assert_eq!(observations.len(), envs.len() * self.shape.observations.width(), "observations: expected one row per environment");
        let Self { shape, plan, normaliser, streams, noise, memory, chooser, state, step, .. } = self;
        let plan = RolloutPlan { envs: envs.len(), ..*plan };
        step.raw.clear();
        step.raw.extend_from_slice(observations);
        step.seen.clone_from(&step.raw);
        normaliser.show(&mut step.seen);
        if let Space::Text { .. } = shape.observations {
            // the row of an environment that waits has no text
            step.seen.chunks_exact_mut(shape.observations.width()).filter(|row| row[0] == 0.0).for_each(|row| text::write(&[0], row));
        }
        step.masks = masks.map(<[bool]>::to_vec);
        let rows = &mut streams[envs.clone()];
        step.positions.clear();
        step.positions.extend(rows.iter().map(Stream::position));

        let explores = plan.explores(self.steps);
        let mut actor = policy.actor();
        actor.set_state(state.take());
        let remembered = &mut memory[envs.start * plan.memory..envs.end * plan.memory];
        step.memory.clear();
        step.memory.extend_from_slice(remembered);
        if let Some(memory) = actor.memory() {
            memory.clone_from(&step.memory);
        }
        chooser.resize(envs.len());
        chooser.choose(actor.as_mut(), (&step.seen, masks), explores, &Sampling::default(), rows);
        if let Some(memory) = actor.memory() {
            remembered.copy_from_slice(memory);
        }
        *state = actor.take_state();
        step.noise.clone_from(noise);
        if let Explores::Noise(noisy) = explores {
            chooser.add_noise(noisy, (&envs.collect::<Vec<_>>(), rows), noise);
        }
        chooser.decisions().clipped
    }

    /// Records what followed the last actions, in the environments for which they were chosen. What follows in an environment whose part of
    /// the rollout is [complete](Observer::is_complete_in) is left out; of whole episodes, until its next episode begins in the next rollout. A
    /// rollout of steps ends there with [`End::Truncated`](gradus_agents::End::Truncated), because the next one does not continue it.
    ///
    /// # Panics
    /// If [`act`](Observer::act) was not called before.
    pub fn observe(&mut self, outcome: &Outcome<'_>) {
        let envs = self.environments();
        let n = envs.len();
        assert_eq!(self.step.positions.len(), n, "observe: expected to be called once after every `act`");
        let Self { plan, normaliser, streams, trajectories, noise, memory, current, chooser, step, .. } = self;
        let (plan, width) = (&RolloutPlan { envs: n, ..*plan }, noise.len() / plan.envs);
        let of_env = |env: usize| env * plan.memory..(env + 1) * plan.memory;
        let decisions = chooser.decisions();
        for (row, env) in envs.enumerate() {
            let (trajectory, episode) = (&mut trajectories[env], &mut current[env]);
            let is_idle = outcome.idle.get(row).is_some_and(|is_idle| *is_idle);
            let is_left_out = trajectory.is_complete(plan.collection) || plan.wants_whole_episodes() && episode.is_missed;
            let is_recorded = !is_idle && !is_left_out;
            if !is_recorded {
                streams[env].seek(step.positions[row]);
            }
            if is_idle {
                memory[of_env(env)].copy_from_slice(&step.memory[of_env(row)]);
                noise[env * width..(env + 1) * width].copy_from_slice(&step.noise[env * width..(env + 1) * width]);
                continue;
            }
            let (reward, ending) = (outcome.rewards[row], outcome.endings[row]);
            let mask = |masks: Option<&'_ [bool]>| masks.map_or(Vec::new(), |masks| row_of(masks, n, row).to_vec());
            if is_recorded {
                if plan.memory > 0 {
                    trajectory.remembered(&step.memory[of_env(row)], plan);
                }
                trajectory.saw((row_of(&step.raw, n, row), row_of(&step.seen, n, row)), &mask(step.masks.as_deref()), plan, normaliser);
                trajectory.decided(&decisions, row);
                trajectory.received(reward, ending, outcome.step_ends.get(row));
            }
            episode.episode_return += f64::from(reward);
            episode.length += 1;
            if !is_recorded {
                episode.is_missed = true;
                trajectory.interrupt();
            }
            if ending.done() {
                noise[env * width..(env + 1) * width].fill(0.0);
                memory[of_env(env)].fill(0.0);
                let CurrentEpisode { episode_return, length, .. } = std::mem::take(episode);
                let finished = || Finished {
                    env: row,
                    seed: 0,
                    ending,
                    episode_return,
                    length,
                    observation: row_of(outcome.observations, n, row).to_vec(),
                    mask: outcome.masks.map(|masks| row_of(masks, n, row).to_vec()),
                    scores: Vec::new(),
                };
                if is_recorded {
                    let known = outcome.finished.iter().find(|finished| finished.env == row).cloned();
                    trajectory.finish(env, known.unwrap_or_else(finished), plan, normaliser);
                }
            } else if is_recorded && !plan.wants_whole_episodes() && trajectory.is_complete(plan.collection) {
                trajectory.cut(env, row_of(outcome.observations, n, row), &mask(outcome.masks), plan, normaliser);
            }
        }
        self.step.positions.clear();
        self.steps += 1;
    }

    /// Returns whether environment `env` has taken the steps or episodes of its part of the rollout.
    pub fn is_complete_in(&self, env: usize) -> bool {
        self.trajectories[env].is_complete(self.plan.collection)
    }

    /// Returns whether the rollout has all its steps or episodes.
    pub fn is_complete(&self) -> bool {
        self.environments().all(|env| self.is_complete_in(env))
    }

    /// Returns the rollout and the episodes that ended in it, in the order in which they ended, and begins the next rollout. The policy may
    /// have changed when it begins.
    pub fn take(&mut self) -> (Rollout, Vec<Episode>) {
        let envs = self.environments();
        let plan = RolloutPlan { envs: envs.len(), ..self.plan };
        let numbered = envs.clone().map(|env| (env, &self.trajectories[env]));
        let (rollout, episodes) = assemble(numbered, &self.shape, &mut self.normaliser, &plan);
        self.plan.before += rollout.len() as u64;
        self.trajectories[envs].iter_mut().for_each(Trajectory::clear);
        (self.state, self.steps) = (None, 0);
        (rollout, episodes)
    }

    /// Sets the worker whose environments the next rollout comes from.
    ///
    /// # Panics
    /// If there is no such worker.
    pub fn turn_to(&mut self, worker: usize) {
        assert!(worker < self.workers, "worker: expected a number less than {}, got {worker}", self.workers);
        self.worker = worker;
    }

    /// Forgets the episodes that are going on and the steps of an unfinished rollout: every environment begins a new episode.
    pub fn interrupt(&mut self) {
        self.noise.fill(0.0);
        self.memory.fill(0.0);
        self.trajectories.iter_mut().for_each(Trajectory::clear);
        self.current.fill(CurrentEpisode::default());
        self.step.positions.clear();
        (self.state, self.steps) = (None, 0);
    }

    /// Whether the rollout has steps, and is not taken yet.
    pub fn is_within_rollout(&self) -> bool {
        self.steps > 0
    }

    /// Returns everything that a checkpoint needs of the observer, between two rollouts. Unfinished rollouts are not saved.
    pub fn save(&self) -> Tensors {
        let mut tensors = save_acting(
            &self.normaliser,
            &self.plan,
            self.streams.iter().map(Stream::position).collect(),
            (self.noise.clone(), self.memory.clone()),
        );
        let words = |episode: &CurrentEpisode| [episode.episode_return.to_bits(), episode.length.into(), episode.is_missed.into()];
        tensors.insert(EPISODES.into(), Tensor::u64(self.current.iter().flat_map(words).collect()));
        tensors
    }

    /// Loads the tensors of [`save`](Observer::save), to go on in environments that are where they were.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let SavedActing { steps, positions, noise, memory } = saved_acting(tensors, &self.plan, self.noise.len())?;
        self.normaliser.load(tensors)?;
        self.streams.iter_mut().zip(positions).for_each(|(stream, position)| stream.seek(*position));
        self.noise[..noise.len()].copy_from_slice(noise);
        self.memory = memory.to_vec();
        self.plan.before = steps;
        self.trajectories.iter_mut().for_each(Trajectory::clear);
        self.current.fill(CurrentEpisode::default());
        // earlier versions did not save them
        if tensors.contains_key(EPISODES) {
            let words = get_u64(tensors, EPISODES)?;
            if words.len() != 3 * self.current.len() {
                return Err(TensorsError::State(format!("{EPISODES}: expected three numbers for each environment")));
            }
            for (episode, words) in self.current.iter_mut().zip(words.chunks_exact(3)) {
                *episode = CurrentEpisode { episode_return: f64::from_bits(words[0]), length: words[1] as u32, is_missed: words[2] == 1 };
            }
        }
        (self.state, self.steps) = (None, 0);
        Ok(())
    }
}
