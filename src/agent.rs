//! [`Agent`]: any agent, for a loop that is written by hand.

use std::ops::Range;

use gradus_agents::{Collection, ConfigError, Report, Rollout};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_base::threads;
use gradus_envs::{Actions, Autoreset, EnvSpec, Finished, Outcome, Space, Starts, VecEnv};
use gradus_nets::Behaviour;
use gradus_rollouts::{Episode, InputError, Inputs, Observer};

use crate::saved::initial;
use crate::train::Updater;
use crate::{Config, Error, Policy};

/// An agent that acts, observes and learns when it is told to. Its caller owns the loop and the environments: ours, or any others.
///
/// ```
/// use gradus::{Agent, Config};
///
/// let config = Config { steps: 20_000, ..Config::preset("ppo", "CartPole-v1", None)? };
/// let mut agent = Agent::new(config)?;
/// let mut envs = agent.vec_env(agent.environments())?;
/// while !agent.is_finished() {
///     agent.begin_episodes(&mut envs)?;
///     let actions = agent.act(envs.observation_rows(), envs.action_masks())?;
///     envs.step_unfinished(actions)?;
///     agent.observe(&envs.outcome())?;
///     if let Some(metrics) = agent.update()? {
///         assert!(metrics.iter().any(|(name, _)| *name == "train/value_loss"));
///     }
/// }
/// let policy = agent.into_policy();
/// assert!(policy.evaluate(20, gradus::Mode::Greedy)?.mean > 100.0);
/// # Ok::<(), gradus::Error>(())
/// ```
///
/// The loop above does, step by step, what [`Trainer`](crate::Trainer) does for all agents and on all threads. In the environments of
/// [`vec_env`](Agent::vec_env), the two learn the same parameters, bit for bit; on texts and the engine `torch`, up to rounding. An agent here
/// plays no evaluations, so `evaluate_every` and `stop_at` have no effect, and has no reward model.
///
/// A foreign environment needs only its spaces, [`EnvSpec::of_spaces`], and an [`Outcome`] after every step.
pub struct Agent {
    updater: Updater,
    /// The environment with the configured wrappers.
    world: EnvSpec,
    observer: Observer,
    inputs: Inputs,
    /// A rollout to which the agent wants more, and the steps before it.
    begun: Option<(Rollout, u64)>,
    /// Number of rollouts in the current iteration.
    rollouts: usize,
    /// Episodes that have ended since the last update.
    episodes: Vec<Episode>,
    has_acted: bool,
    /// Whether the steps have action masks, once there was one.
    has_masks: Option<bool>,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent").field("config", &self.updater.config).field("iteration", &self.updater.iteration).finish_non_exhaustive()
    }
}

impl Agent {
    /// Creates an agent for the environment that the configuration names.
    pub fn new(config: Config) -> Result<Self, Error> {
        let world = gradus_envs::registry::find(&config.environment)?;
        Self::in_world(config, &world)
    }

    /// Creates an agent for a custom environment, or for one that is stepped elsewhere: see [`EnvSpec::of_spaces`]. `config.envs` is the number
    /// of environments that act at once.
    pub fn in_world(config: Config, world: &EnvSpec) -> Result<Self, Error> {
        let (mut updater, world) = Updater::new(config, world, 0)?;
        let (config, algorithm) = (&updater.config, updater.algorithm.as_mut());
        let has_reward_model = config.reward_model.as_ref().is_some_and(crate::config::RewardConfig::is_on);
        let expected = "no reward model: only the training loop has one";
        ConfigError::unless(!has_reward_model, "reward_model", expected, "one")?;
        let replanned = config.earlier_steps.len();
        ConfigError::unless(
            replanned == 0,
            "earlier_steps",
            "none: only the training loop follows changes of the number of steps",
            replanned,
        )?;
        if let Collection::Episodes { greedy: true, .. } = algorithm.collection() {
            let expected = "no greedy episodes beside those of a rollout: only the training loop plays them";
            return Err(ConfigError::unless(false, &config.agent, expected, "a baseline of greedy episodes").unwrap_err().into());
        }
        let env = world.env();
        let spaces = (env.observation_space(), env.action_space());
        let mut observer = Observer::new(spaces, config.envs, config.seed, algorithm.collection(), &config.wrappers)
            .with_exploration(algorithm.exploration())
            .with_workers(algorithm.workers())
            .with_score_names(env.score_names());
        if algorithm.replay().is_some() {
            observer = observer.with_raw_rollouts();
        }
        if let Some(mut tensors) = initial(config, &world, algorithm.behaviour_mut())? {
            let damaged = |source| Error::Tensors { path: (&config.init).into(), source };
            observer.begin_with(&mut tensors).map_err(damaged)?;
        }
        algorithm.begin();
        observer.turn_to(algorithm.next_worker());
        let inputs = Inputs::of(&world, &config.wrappers);
        updater.config = updater.config.settled()?;
        Ok(Self { updater, world, observer, inputs, begun: None, rollouts: 0, episodes: Vec::new(), has_acted: false, has_masks: None })
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.updater.config
    }

    /// Returns the environment with the configured wrappers.
    pub fn world(&self) -> &EnvSpec {
        &self.world
    }

    /// Makes some of the environments 0 to `envs`, as the training loop makes them: with the same seeds, and if the agent learns from whole
    /// episodes, with groups and without [`Autoreset`]. Environments without it wait for [`begin_episodes`](Agent::begin_episodes), and are stepped with
    /// [`step_unfinished`](VecEnv::step_unfinished).
    pub fn vec_env(&self, envs: Range<usize>) -> Result<VecEnv, Error> {
        let seed = self.updater.config.seed;
        let (starts, autoreset) = match self.updater.algorithm.collection() {
            Collection::Steps(_) => (Starts::from(seed), Autoreset::SameStep),
            Collection::Episodes { group, .. } => (Starts { seed, group }, Autoreset::Disabled),
        };
        Ok(self.world.vec_env_with(envs, starts, autoreset)?)
    }

    /// Begins the next episodes of finished environments that the agent learns from now: of all of them after an update, and before it of those
    /// whose part of the rollout lacks episodes. `envs` are the agent's [`environments`](Agent::environments).
    pub fn begin_episodes(&self, envs: &mut VecEnv) -> Result<(), Error> {
        for (row, env) in self.observer.environments().enumerate() {
            if !self.observer.is_complete_in(env) {
                envs.begin_next(row)?;
            }
        }
        Ok(())
    }

    /// Returns the environments that act next, numbered from 0: all or, with several workers (A3C), those of the next worker.
    pub fn environments(&self) -> Range<usize> {
        self.observer.environments()
    }

    /// Chooses an action for each of the [`environments`](Agent::environments). `observations` has one row for each, as the environment returned
    /// it; discrete observations may be their numbers. With `masks` (rows x actions), only actions whose entry is true can be chosen; all steps have masks, or none. Actions
    /// are clipped to their bounds.
    ///
    /// Returns an error if the rows are not those of the environments, if a number is not finite, or if a rollout is complete and
    /// [`update`](Agent::update) was not called.
    pub fn act(&mut self, observations: &[f32], masks: Option<&[bool]>) -> Result<Actions<'_>, Error> {
        if self.has_acted {
            return Err(InputError::new("act", "`observe` after every `act`", "a second `act`").into());
        }
        if self.observer.is_complete() {
            return Err(InputError::new("act", "`update` after every `observe`", "a complete rollout without an update").into());
        }
        let n = self.environments().len();
        let rows = self.inputs.rows_of(n, observations)?;
        self.inputs.check_masks(masks, n, |_| true)?;
        self.expect_masks(masks.is_some())?;
        if let Space::Text { .. } = self.observer.spaces().0 {
            let is_empty = |(row, env): (&[f32], usize)| row[0] == 0.0 && !self.observer.is_complete_in(env);
            if rows.chunks_exact(rows.len() / n).zip(self.environments()).any(is_empty) {
                return Err(InputError::new("observation", "a text of at least 1 token", "none").into());
            }
        }
        let behaviour = self.updater.algorithm.acting();
        let actions = self.observer.act(behaviour, &rows, masks);
        Error::unless_sound(behaviour)?;
        (self.has_acted, self.has_masks) = (true, Some(masks.is_some()));
        Ok(actions)
    }

    /// Checks that a step has masks if those before had, and otherwise none.
    fn expect_masks(&self, has: bool) -> Result<(), InputError> {
        let words = |has: bool| if has { "one" } else { "none" };
        match self.has_masks {
            Some(had) if had != has => Err(InputError::new("action mask", format!("{}, as in the steps before", words(had)), words(has))),
            _ => Ok(()),
        }
    }

    /// Records what the last actions led to. What follows in an environment whose part of the rollout is complete is ignored.
    ///
    /// Returns an error, and records nothing, if the outcome has not one entry or row for each of the
    /// [`environments`](Agent::environments), if a number is not finite, or if an entry of `finished` is not one of an environment whose episode has ended. A final observation
    /// without a mask allows every action.
    pub fn observe(&mut self, outcome: &Outcome<'_>) -> Result<(), Error> {
        if !self.has_acted {
            return Err(InputError::new("observe", "`act` before every `observe`", "no `act`").into());
        }
        let n = self.environments().len();
        let entries = |what: &str, got: usize, may_be_empty: bool| {
            let holds = got == n || may_be_empty && got == 0;
            if holds { Ok(()) } else { Err(InputError::new(what, format!("{n} entries, one for each environment"), got)) }
        };
        entries("rewards", outcome.rewards.len(), false)?;
        entries("endings", outcome.endings.len(), false)?;
        entries("idle", outcome.idle.len(), true)?;
        entries("step_ends", outcome.step_ends.len(), true)?;
        if let Some(env) = outcome.rewards.iter().position(|reward| !reward.is_finite()) {
            return Err(InputError::new(format!("rewards[{env}]"), "a finite number", outcome.rewards[env]).into());
        }
        self.inputs.check_masks(outcome.masks, n, |row| !outcome.endings[row].terminated())?;
        self.expect_masks(outcome.masks.is_some())?;
        for (at, Finished { env, ending, .. }) in outcome.finished.iter().enumerate() {
            let has_ended = outcome.endings.get(*env).is_some_and(|own| own == ending && own.done());
            if !has_ended || outcome.finished[..at].iter().any(|other| other.env == *env) {
                let expected = "each environment whose episode has ended, once, with its ending";
                return Err(InputError::new(format!("finished[{at}]"), expected, format!("environment {env}, {ending:?}")).into());
            }
        }
        let every_action = || outcome.masks.map(|masks| vec![true; masks.len() / n]);
        let observations = self.inputs.rows_of(n, outcome.observations)?;
        let final_rows = |finished: &Finished| {
            let observation = self.inputs.rows(&finished.observation, finished.observation.len())?.into_owned();
            self.inputs.check_masks(finished.mask.as_deref(), 1, |_| !finished.ending.terminated())?;
            Ok(Finished { observation, mask: finished.mask.clone().or_else(every_action), ..finished.clone() })
        };
        let finished = outcome.finished.iter().map(final_rows).collect::<Result<Vec<_>, Error>>()?;
        self.observer.observe(&Outcome { observations: &observations, finished: &finished, ..*outcome });
        self.has_acted = false;
        Ok(())
    }

    /// Whether the steps or episodes for an update are complete, from which [`update`](Agent::update) learns.
    pub fn is_complete(&self) -> bool {
        !self.has_acted && self.observer.is_complete()
    }

    /// Learns, if the steps or episodes for an update are complete, and returns the metrics of the update, most with the names of
    /// Stable-Baselines3. Call it after every [`observe`](Agent::observe). A large rollout is learned from on all cores, unless the loop runs
    /// within [`threads::with`]; the number of threads does not change the results. An agent that [is finished](Agent::is_finished) goes on with its schedules at their ends.
    pub fn update(&mut self) -> Result<Option<Report>, Error> {
        if !self.is_complete() {
            return Ok(None);
        }
        let Self { updater, observer, .. } = self;
        let before = observer.steps();
        let (rollout, episodes) = observer.take();
        let (rollout, before) = match self.begun.take() {
            Some((mut begun, before)) => {
                begun.append(rollout);
                self.episodes.extend(episodes);
                (begun, before)
            }
            None => {
                self.episodes = episodes;
                (rollout, before)
            }
        };
        if updater.algorithm.wants_more(&rollout) {
            self.begun = Some((rollout, before));
            return Ok(None);
        }
        let mut learn = || updater.update(&rollout, before);
        let updated = if rollout.len() >= LARGE { threads::with_default(learn) } else { learn() };
        // a device error is reported first, because a failed device causes other errors
        Error::unless_sound(updater.algorithm.behaviour())?;
        let report = updated?;
        self.rollouts += 1;
        if self.rollouts >= updater.algorithm.rollouts_per_iteration() || observer.steps() >= updater.planned_steps() {
            updater.iteration += 1;
            self.rollouts = 0;
        }
        observer.turn_to(updater.algorithm.next_worker());
        Ok(Some(report))
    }

    /// Returns the episodes that ended before the last update and after the one before it, in the order in which they ended.
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// Returns the names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        self.observer.score_names()
    }

    /// Returns the observation space, as the network sees it, and the action space.
    pub fn spaces(&self) -> (&Space, &Space) {
        self.observer.spaces()
    }

    /// Returns the number of iterations so far: of updates or, for agents with very short rollouts, of groups of updates.
    pub fn iterations(&self) -> u64 {
        self.updater.iteration
    }

    /// Returns the environment steps of all complete rollouts.
    pub fn steps(&self) -> u64 {
        self.observer.steps()
    }

    /// Returns the environment steps of the whole training, which the schedules follow: `config.steps`, rounded up to whole rollouts.
    pub fn total_steps(&self) -> u64 {
        self.updater.total_steps()
    }

    /// Returns whether all steps are done.
    pub fn is_finished(&self) -> bool {
        self.begun.is_none() && self.steps() >= self.total_steps()
    }

    /// Returns the current policy.
    pub fn behaviour(&self) -> &dyn Behaviour {
        self.updater.algorithm.behaviour()
    }

    /// Replaces the parameters of the policy, and of the critics that it learns with, by those of [`Behaviour::save`]. Target networks become copies. On an error,
    /// nothing changes.
    pub fn set_parameters(&mut self, parameters: &Tensors) -> Result<(), TensorsError> {
        self.updater.algorithm.behaviour_mut().load(parameters)?;
        // the reference of an agent without a replay buffer stays
        if self.updater.algorithm.replay().is_some() {
            self.updater.algorithm.begin();
        }
        Ok(())
    }

    /// Returns a copy of the current policy, with what it needs to act without the agent.
    pub fn policy(&self) -> Result<Policy, Error> {
        let (config, behaviour) = (&self.updater.config, self.updater.algorithm.behaviour());
        Policy::copy(config, &self.world, behaviour, self.observer.normaliser())
    }

    /// Returns the policy with what it needs to act without the agent.
    pub fn into_policy(self) -> Policy {
        Policy::new(self.updater.config, self.world, self.updater.algorithm.into_behaviour(), self.observer.normaliser())
    }

    /// Forgets the steps since the last update, and ends the episodes that are going on, as if they had been truncated: all environments begin new ones. For
    /// owners of environments who reset them before an episode is over, or who load a saved agent without its environments. A table (Q-learning and
    /// others) learns nothing from the steps of these episodes that wait for a later one.
    pub fn interrupt(&mut self) {
        self.observer.interrupt();
        self.updater.algorithm.interrupt();
        (self.begun, self.has_acted) = (None, false);
        self.episodes.clear();
    }

    /// Whether steps were observed since the last update, which [`save`](Agent::save) leaves out.
    pub fn is_between_updates(&self) -> bool {
        self.has_acted || self.begun.is_some() || self.observer.is_within_rollout()
    }

    /// Saves everything that the agent needs to go on as it would have gone on, right after an update. Steps that were observed since are left
    /// out. The environments are their owner's, who saves them, too. If they are elsewhere after loading, [`interrupt`](Agent::interrupt) says so.
    pub fn save(&self) -> Tensors {
        let mut tensors = self.observer.save();
        tensors.insert(ITERATION.into(), Tensor::u64(vec![self.updater.iteration, self.rollouts as u64]));
        self.updater.save(&mut tensors);
        self.updater.save_pages(&mut tensors);
        tensors
    }

    /// Loads the tensors of [`save`](Agent::save). After an error the agent must not be used.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.updater.load(tensors)?;
        self.updater.load_pages(tensors)?;
        self.observer.load(tensors)?;
        let [iteration, rollouts] = *get_u64(tensors, ITERATION)? else {
            return Err(TensorsError::State(format!("{ITERATION}: expected two numbers")));
        };
        (self.updater.iteration, self.rollouts) = (iteration, rollouts as usize);
        self.observer.turn_to(self.updater.algorithm.next_worker());
        (self.begun, self.has_acted) = (None, false);
        // decisions with masks and without do not go together
        self.has_masks = self.updater.algorithm.replay().and_then(|replay| replay.has_masks()).or(self.has_masks);
        self.episodes.clear();
        Ok(())
    }

    /// Loads of the tensors of [`save`](Agent::save) what was learnt: parameters, and the state of the optimiser and of the updates. Episodes, steps and transitions stay
    /// this agent's, so the number of environments may be another one. After an error the agent must not be used.
    pub fn load_learnt(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.updater.load_learnt(tensors)
    }
}

/// Number of decisions in a rollout from which on an update takes far longer than to start threads.
const LARGE: usize = 256;
/// Name of the number of iterations in [`Agent::save`].
const ITERATION: &str = "iteration";
