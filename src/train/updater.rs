//! [`Updater`]: an algorithm with its settings. It learns from rollouts, whoever has collected them.

use gradus_agents::replay::{Page, REPLAY};
use gradus_agents::{AgentError, Algorithm, Collection, ConfigError, Report, Rollout, UpdateContext};
use gradus_base::panics;
use gradus_base::tensors::{Tensors, TensorsError, add_with_prefix, without_prefix};
use gradus_envs::text::{TextOptions, TextWorld};
use gradus_envs::{EnvSpec, registry};

use super::examples;
use crate::config::{EarlierSteps, RewardConfig, inputs};
use crate::memory;
use crate::saved::POLICY_PREFIX;
use crate::{Config, Error};

const OPTIMISER: &str = "optimiser.";
const AGENT: &str = "agent.";

/// An algorithm with its settings and the number of its updates: what [`Trainer`](crate::Trainer) and [`Agent`](crate::Agent) share.
pub(crate) struct Updater {
    pub config: Config,
    /// The steps that the schedules follow at the moment, and until when; see [`Config::plan`].
    pub plan: EarlierSteps,
    pub algorithm: Box<dyn Algorithm>,
    /// Number of iterations that are done.
    pub iteration: u64,
}

/// Checks what an agent says about its rollouts: one of another crate may say anything.
fn check_collection(algorithm: &dyn Algorithm, envs: usize) -> Result<(), ConfigError> {
    let workers = algorithm.workers();
    let divides = |number: usize| number > 0 && envs.is_multiple_of(number);
    ConfigError::unless(divides(workers), "workers of the agent", &format!("a number that divides {envs} environments"), workers)?;
    match algorithm.collection() {
        Collection::Steps(steps) => ConfigError::unless(steps > 0, "collection of the agent", "at least one step", "Steps(0)"),
        Collection::Episodes { per_env, group, .. } => {
            ConfigError::unless(per_env > 0, "collection of the agent", "at least one episode of each environment", "none")?;
            ConfigError::unless(divides(group), "collection of the agent", &format!("a group that divides {envs} environments"), group)
        }
    }
}

impl Updater {
    /// Creates the algorithm for environments of `plain_world`, of which `done` steps are done. Also returns the environment with the
    /// configured wrappers.
    pub fn new(config: Config, plain_world: &EnvSpec, done: u64) -> Result<(Self, EnvSpec), Error> {
        config.check()?;
        // a file may be named by another path
        let of = |name: &str| registry::without_folder(name);
        let is_named = of(&plain_world.name) == of(&config.environment)
            || registry::find(&config.environment).is_ok_and(|world| world.name == plain_world.name);
        let expected = format!("{}, the name of the environment that is passed beside the settings", plain_world.name);
        ConfigError::unless(is_named, "environment", &expected, &config.environment)?;
        plain_world.checked_env()?;
        let world = config.wrap(plain_world.clone())?;
        memory::check_training(&config, &world)?;
        config.check_inputs(|key| key != inputs::ENVIRONMENT)?;
        let plan = config.plan(done);
        let planned = Config { steps: plan.steps, earlier_steps: Vec::new(), ..config.clone() };
        let pairs = examples::pairs_of(&config, &world)?;
        let algorithm = planned.algorithm_with(&world, &pairs)?;
        let penalises =
            |options: &TextOptions| options.overlong_buffer > 0 || options.missing_eos_penalty != 0.0 || options.length_penalty != 0.0;
        let of_text = |text: &TextWorld| text.task.has_rewards() || text.rewards.is_some() || penalises(&text.options);
        let is_rewarded =
            world.text.as_ref().is_none_or(of_text) || !pairs.is_empty() || config.reward_model.as_ref().is_some_and(RewardConfig::is_on);
        let expected = "reward functions, because no problem has a verifier";
        ConfigError::unless(is_rewarded, "text.rewards", expected, "none")?;
        check_collection(algorithm.as_ref(), config.envs)?;
        Ok((Self { config, plan, algorithm, iteration: 0 }, world))
    }

    /// Returns the environment steps of the whole training. Training on whole episodes ends with the first rollout that reaches this number.
    pub fn total_steps(&self) -> u64 {
        self.in_rollouts(self.config.steps)
    }

    /// Returns the environment steps that the schedules follow at the moment.
    pub fn planned_steps(&self) -> u64 {
        self.in_rollouts(self.plan.steps)
    }

    /// Returns the environment steps of a training that is planned for `steps` steps.
    pub fn in_rollouts(&self, steps: u64) -> u64 {
        match self.algorithm.collection() {
            Collection::Steps(length) => steps.next_multiple_of((length * self.config.envs / self.algorithm.workers()) as u64),
            Collection::Episodes { .. } => steps,
        }
    }

    /// Learns from a rollout that began after `before` steps.
    pub fn update(&mut self, rollout: &Rollout, before: u64) -> Result<Report, Error> {
        let Config { seed, agent, .. } = &self.config;
        let (seed, iteration, progress) = (*seed, self.iteration, (before as f64 / self.planned_steps() as f64).min(1.0));
        Error::unless_sound(self.algorithm.behaviour())?; // no update with samples of a failed device
        let report = panics::catch(|| self.algorithm.update(rollout, UpdateContext { seed, iteration, progress }));
        Ok(report.unwrap_or_else(|panic| Err(AgentError::Panicked { agent: agent.clone(), iteration, seed, message: panic.message() }))?)
    }

    /// Adds what the next updates depend on to `tensors`, except for the pages of the replay buffer.
    pub fn save(&self, tensors: &mut Tensors) {
        let behaviour = self.algorithm.behaviour();
        add_with_prefix(tensors, behaviour.save(), POLICY_PREFIX);
        add_with_prefix(tensors, behaviour.save_optimiser(), OPTIMISER);
        add_with_prefix(tensors, self.algorithm.save(), AGENT);
    }

    /// Adds the pages of the replay buffer to `tensors`.
    pub fn save_pages(&self, tensors: &mut Tensors) {
        let Some(replay) = self.algorithm.replay() else { return };
        for page in replay.pages() {
            add_with_prefix(tensors, replay.page(page), &page_prefix(page));
        }
    }

    /// Loads what [`save`](Updater::save) added.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.algorithm.behaviour_mut().load(&without_prefix(tensors, POLICY_PREFIX))?;
        self.algorithm.behaviour_mut().load_optimiser(&without_prefix(tensors, OPTIMISER))?;
        self.algorithm.load(&without_prefix(tensors, AGENT))
    }

    /// As [`load`](Updater::load), but the replay buffer stays this algorithm's.
    pub fn load_learnt(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let Some(replay) = self.algorithm.replay() else { return self.load(tensors) };
        let prefix = format!("{AGENT}{REPLAY}");
        let mut learnt: Tensors =
            tensors.iter().filter(|(name, _)| !name.starts_with(&prefix)).map(|(name, tensor)| (name.clone(), tensor.clone())).collect();
        add_with_prefix(&mut learnt, replay.save(), &prefix);
        self.load(&learnt)
    }

    /// Loads the pages that [`save_pages`](Updater::save_pages) added.
    pub fn load_pages(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let Some(replay) = self.algorithm.replay_mut() else { return Ok(()) };
        for page in replay.pages() {
            replay.load_page(page, &without_prefix(tensors, &page_prefix(page)))?;
        }
        replay.finish_loading()
    }
}

/// Returns the prefix of the tensors of a page of the replay buffer.
fn page_prefix(page: Page) -> String {
    format!("replay_page.{}.", page.number)
}
