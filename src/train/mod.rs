//! The training loop: collect a rollout, update the agent, compute metrics. It writes no files; see [`Run`](crate::Run) for runs with a
//! folder.

pub(crate) mod examples;
mod learned_reward;
pub mod metrics;
mod updater;

use std::collections::VecDeque;

use gradus_agents::replay::Replay;
use gradus_agents::{Algorithm, Collection, ConfigError, Exploration, Report, Rollout};
use gradus_base::panics;
use gradus_base::random::episode_seed;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, add_with_prefix, get_u64, without_prefix};
use gradus_base::threads;
use gradus_envs::text::Split;
use gradus_envs::{EnvError, EnvSpec, TensorEnvSpec};
use gradus_nets::{Behaviour, Device, Policy, Worlds};
use gradus_rollouts::{Collector, Episode, NotThere};

use crate::config::{RewardConfig, effect, is_text};
use crate::evaluate::{Mode, evaluate};
use crate::numbers::{mean_and_error, with_error};
use crate::saved::{REWARD_PREFIX, initial};
use crate::{Config, Error};
pub use examples::Quality;
pub use learned_reward::LearnedReward;
use metrics::Metrics;
pub(crate) use updater::Updater;

/// Number of latest episodes in the mean return of a training run; on text tasks, the number of episodes in a rollout if that is larger.
pub const WINDOW: usize = 100;

/// One iteration: a rollout and an update.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// Environment steps so far.
    pub steps: u64,
    /// Metrics with Stable-Baselines3's names or, on text tasks, with the names that are usual for them; NaN if there is no value.
    pub metrics: Metrics,
    /// Episodes that ended in the iteration, in the order in which they ended.
    pub episodes: Vec<Episode>,
    /// The mean return of the evaluation after this iteration, if there was one.
    pub evaluation: Option<f64>,
    /// Whether this is the best evaluation of the training so far.
    pub is_best: bool,
}

/// A training in progress, on the threads set by [`threads::with`]. The number of threads does not change the results.
pub struct Trainer {
    updater: Updater,
    /// The environment without the configured wrappers.
    plain_world: EnvSpec,
    world: EnvSpec,
    collector: Collector,
    recent: VecDeque<(f64, u32)>,
    last_evaluation: f64,
    best_evaluation: f64,
    is_text: bool,
    learned: Option<LearnedReward>,
    after_rollouts: Option<AfterRollout>,
}

impl std::fmt::Debug for Trainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer").field("config", &self.updater.config).field("iteration", &self.updater.iteration).finish_non_exhaustive()
    }
}

/// What is called after each rollout.
type AfterRollout = Box<dyn FnMut(&Trainer) + Send>;

impl Trainer {
    /// Creates a training in the environment that the configuration names.
    pub fn new(config: Config) -> Result<Self, Error> {
        let world = gradus_envs::registry::find(&config.environment)?;
        Self::in_world(config, world)
    }

    /// Creates a training in a custom environment.
    pub fn in_world(config: Config, world: EnvSpec) -> Result<Self, Error> {
        let mut trainer = Self::uninitialised(config, world, 0)?;
        if let Some(mut tensors) = initial(&trainer.updater.config, &trainer.world, trainer.updater.algorithm.behaviour_mut())? {
            let damaged = |source| Error::Tensors { path: (&trainer.updater.config.init).into(), source };
            trainer.collector.begin_with(&mut tensors).map_err(damaged)?;
        }
        trainer.begin()?;
        trainer.updater.config = trainer.updater.config.settled()?;
        Ok(trainer)
    }

    /// Initialises the agent and the reward model from the policy that training begins with.
    fn begin(&mut self) -> Result<(), Error> {
        self.updater.algorithm.begin();
        self.learned = LearnedReward::new(&self.updater.config, &self.world, self.updater.algorithm.policy())?;
        self.learned.as_mut().map_or(Ok(()), LearnedReward::begin)
    }

    /// Same as [`in_world`](Trainer::in_world), but with initial parameters from [`Behaviour::save`], in the place of those of the setting `init`.
    pub fn with_parameters(config: Config, world: EnvSpec, parameters: &Tensors) -> Result<Self, Error> {
        let config = Config { init: String::new(), ..config };
        let mut trainer = Self::uninitialised(config, world, 0)?;
        trainer
            .updater
            .algorithm
            .behaviour_mut()
            .load(parameters)
            .map_err(|source| Error::Tensors { path: "parameters".into(), source })?;
        trainer.begin()?;
        trainer.updater.config = trainer.updater.config.settled()?;
        Ok(trainer)
    }

    /// Creates a training whose state [`load`](Trainer::load) is about to replace, with one of `done` steps. Ignores the setting `init`.
    pub(crate) fn to_resume(config: Config, world: EnvSpec, done: u64) -> Result<Self, Error> {
        let mut trainer = Self::uninitialised(config, world, done)?;
        trainer.updater.algorithm.begin();
        trainer.learned = LearnedReward::new(&trainer.updater.config, &trainer.world, trainer.updater.algorithm.policy())?;
        Ok(trainer)
    }

    /// Creates a training whose policy `wrap` puts into another one; `None` for an agent without an actor-critic network.
    pub fn around(config: Config, wrap: &dyn Fn(Box<dyn Policy>) -> Box<dyn Policy>) -> Result<Option<Self>, Error> {
        let mut trainer = Self::new(config)?;
        let Some(mut algorithm) = trainer.updater.config.algorithm_around(&trainer.world, wrap)? else { return Ok(None) };
        // the parameters may be those of the setting `init`
        let parameters = trainer.updater.algorithm.behaviour().save();
        algorithm.behaviour_mut().load(&parameters).map_err(|source| Error::Tensors { path: "parameters".into(), source })?;
        trainer.updater.algorithm = algorithm;
        trainer.begin()?;
        Ok(Some(trainer))
    }

    fn uninitialised(config: Config, plain_world: EnvSpec, done: u64) -> Result<Self, Error> {
        let (updater, world) = Updater::new(config, &plain_world, done)?;
        let collector = collector(&updater.config, &world, updater.algorithm.as_ref())?;
        let (collector, is_text) = (collector.with_max_concurrent(updater.config.max_concurrent), is_text(&world));
        let recent = VecDeque::with_capacity(WINDOW);
        Ok(Self {
            updater,
            plain_world,
            world,
            collector,
            recent,
            last_evaluation: f64::NAN,
            best_evaluation: f64::NEG_INFINITY,
            is_text,
            learned: None,
            after_rollouts: None,
        })
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.updater.config
    }

    /// Returns the environment as the policy sees it now: with observations normalised by frozen statistics.
    pub fn world(&self) -> EnvSpec {
        self.collector.normaliser().frozen(&self.world)
    }

    /// Returns the environment for reported evaluations: like [`world`](Trainer::world), but a text task uses the test split.
    pub fn evaluation_world(&self) -> EnvSpec {
        self.world().on_split(Split::Test)
    }

    /// Returns the tensors of a policy file: the parameters, and the statistics that normalise observations.
    pub fn export(&self) -> Tensors {
        let mut tensors = self.policy().save();
        tensors.extend(self.collector.normaliser().save_observations());
        tensors
    }

    /// Returns the current policy.
    pub fn policy(&self) -> &dyn Behaviour {
        self.updater.algorithm.behaviour()
    }

    /// Returns the policy as an actor-critic network, if it is one.
    pub fn actor_critic(&self) -> Option<&dyn Policy> {
        self.updater.algorithm.policy()
    }

    /// Returns a copy of the current policy, with what it needs to act without the trainer.
    pub fn to_policy(&self) -> Result<crate::Policy, Error> {
        crate::Policy::copy(&self.updater.config, &self.world, self.policy(), self.collector.normaliser())
    }

    /// Returns the policy with what it needs to act without the trainer.
    pub fn into_policy(self) -> crate::Policy {
        let Self { updater: Updater { config, algorithm, .. }, world, collector, .. } = self;
        crate::Policy::new(config, world, algorithm.into_behaviour(), collector.normaliser())
    }

    /// Ends the training with the steps that are done. Returns whether it was unfinished.
    pub(crate) fn end(&mut self) -> bool {
        let is_unfinished = !self.is_finished();
        if is_unfinished {
            self.updater.config = self.updater.config.clone().replanned(self.steps(), self.steps());
        }
        is_unfinished
    }

    /// Returns whether observations are texts.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// Returns the names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        self.collector.score_names()
    }

    /// Returns the environment steps so far.
    pub fn steps(&self) -> u64 {
        self.collector.steps()
    }

    /// Returns the environment steps of the whole training. Training on whole episodes ends with the first rollout that reaches this
    /// number.
    pub fn total_steps(&self) -> u64 {
        self.updater.total_steps()
    }

    /// If the number of steps was changed at the step where the training is now, returns the quantities whose schedules start anew: the name of
    /// each, its value in the last update, and its value in the next one.
    pub fn jumps(&self) -> Vec<(String, f64, f64)> {
        let (done, updater, config) = (self.steps(), &self.updater, &self.updater.config);
        if !config.earlier_steps.iter().any(|earlier| earlier.until == done) {
            return Vec::new();
        }
        // the plan of the last update: others may have been made since, without an update
        let (before, now) = (config.plan(done.saturating_sub(1)).steps, config.steps);
        let last = match self.updater.algorithm.collection() {
            Collection::Steps(length) => done.saturating_sub((length * config.envs / self.updater.algorithm.workers()) as u64),
            Collection::Episodes { .. } => done,
        };
        // epsilon is that of a step, everything else that of an update
        let scheduled = |steps: u64, update: u64, step: u64| {
            let learning_rate = config.optimiser.step(update as f64 / updater.in_rollouts(steps) as f64).learning_rate;
            let of_updates = config.algorithm.scheduled(updater.in_rollouts(steps), update);
            let of_steps = config.algorithm.scheduled(steps, step);
            let own = of_updates.into_iter().zip(of_steps).map(|((name, of_update), (_, of_step))| {
                (format!("{}.{name}", config.agent), if name == "epsilon" { of_step } else { of_update })
            });
            std::iter::once(("optimiser.learning_rate".to_string(), f64::from(learning_rate))).chain(own).collect::<Vec<_>>()
        };
        let foreign = config.foreign(&self.world);
        let pairs = scheduled(before, last, done.saturating_sub(1)).into_iter().zip(scheduled(now, done, done));
        // a line is not a jump: epsilon moves a little with every step
        let is_jump = |before: f64, now: f64| (before - now).abs() > 1e-3 * before.abs().max(now.abs());
        let is_read = |name: &str| !foreign.iter().any(|(own, _)| effect::covers(own, name));
        let all = pairs.map(|((name, before), (_, now))| (name, before, now));
        all.filter(|(name, before, now)| is_jump(*before, *now) && is_read(name)).collect()
    }

    /// Returns the iterations so far.
    pub fn iteration(&self) -> u64 {
        self.updater.iteration
    }

    /// Returns whether training is over: all steps are done, or an evaluation reached `stop_at`.
    pub fn is_finished(&self) -> bool {
        self.updater.plan.until == u64::MAX && (self.steps() >= self.total_steps() || self.last_evaluation >= self.updater.config.stop_at)
    }

    /// Returns the number of episodes in [`recent_return`](Trainer::recent_return): at most [`WINDOW`] or, on text tasks, the number of
    /// episodes in a rollout if that is larger.
    pub fn recent_episodes(&self) -> usize {
        self.recent.len()
    }

    /// Returns the environment steps of an iteration, at whose end an evaluation can take place; `None` if its episodes decide them.
    pub fn steps_per_iteration(&self) -> Option<u64> {
        let algorithm = &self.updater.algorithm;
        let Collection::Steps(steps) = algorithm.collection() else { return None };
        let envs = self.updater.config.envs / algorithm.workers().max(1);
        Some((algorithm.rollouts_per_iteration() * steps * envs) as u64)
    }

    /// Returns the mean return of the latest episodes; NaN if no episode has ended.
    pub fn recent_return(&self) -> f64 {
        self.recent.iter().map(|(episode_return, _)| episode_return).sum::<f64>() / self.recent.len() as f64
    }

    /// Returns [`recent_return`](Trainer::recent_return) as text, rounded by its standard error; `None` if no episode has ended.
    pub fn recent_return_shown(&self) -> Option<String> {
        let (mean, error) = mean_and_error(self.recent.iter().map(|(episode_return, _)| *episode_return));
        (!self.recent.is_empty()).then(|| with_error(mean, error))
    }

    /// Calls `listener` after each rollout and its update. An iteration of an agent that learns from single steps has many of them.
    pub fn after_rollouts(&mut self, listener: impl FnMut(&Self) + Send + 'static) {
        self.after_rollouts = Some(Box::new(listener));
    }

    /// Collects a rollout, and more if the agent wants more, and updates the agent. Outside of [`threads::with`] this is the work of one thread, because starting others
    /// takes longer than many updates: put the loop around it into [`threads::with_default`].
    pub fn iterate(&mut self) -> Result<Iteration, Error> {
        let iterated = self.collect_and_update();
        // a device error is reported first, because a failed device causes other errors
        Error::unless_sound(self.policy())?;
        let iterated = iterated?;
        if self.steps() >= self.updater.plan.until.min(self.updater.planned_steps()) && self.updater.plan.until < u64::MAX {
            self.follow_the_next_plan()?;
        }
        Ok(iterated)
    }

    /// Repeats what resuming a run with another number of steps did: builds everything for this number, and loads the state.
    fn follow_the_next_plan(&mut self) -> Result<(), Error> {
        let until = self.steps().max(self.updater.plan.until);
        let state = self.checkpoint()?;
        let mut next = Self::to_resume(self.updater.config.clone(), self.plain_world.clone(), until)?;
        let load = |next: &mut Self| {
            next.load_state(&state)?;
            // page by page, so that the buffer is in memory twice and not three times
            if let (Some(from), Some(to)) = (self.updater.algorithm.replay(), next.updater.algorithm.replay_mut()) {
                from.pages().into_iter().try_for_each(|page| to.load_page(page, &from.page(page)))?;
                to.finish_loading()?;
            }
            next.begin_again();
            Ok(())
        };
        load(&mut next).map_err(|source| Error::Tensors { path: "checkpoint".into(), source })?;
        next.after_rollouts = self.after_rollouts.take();
        *self = next;
        Ok(())
    }

    fn collect_and_update(&mut self) -> Result<Iteration, Error> {
        let before = self.steps();
        let iteration = self.updater.iteration;
        let trained =
            self.learned.as_mut().map(|learned| learned.retrain_if_due(self.updater.algorithm.behaviour(), iteration)).transpose()?;
        let (mut report, mut episodes, mut learned) = self.rollout_and_update()?;
        for _ in 1..self.updater.algorithm.rollouts_per_iteration() {
            if self.steps() >= self.updater.planned_steps() {
                break;
            }
            let (new, more, more_learned) = self.rollout_and_update()?;
            report = new;
            episodes.extend(more);
            learned.extend(more_learned);
        }
        self.updater.iteration += 1;

        let report: Metrics = report.into_iter().map(|(name, x)| (name.into(), x)).collect();
        let mut metrics = if self.is_text {
            let known = self.learned.as_ref().map(|_| &learned[..]);
            let completions = metrics::of_completions(self.score_names(), &episodes, known);
            [completions, trained.unwrap_or_default(), metrics::renamed(report)].concat()
        } else {
            let mean_length = self.recent.iter().map(|(_, length)| f64::from(*length)).sum::<f64>() / self.recent.len() as f64;
            let rollout = [("rollout/ep_rew_mean", self.recent_return()), ("rollout/ep_len_mean", mean_length)];
            [rollout.map(|(name, x)| (name.into(), x)).into(), report].concat()
        };
        metrics.extend(metrics::of_scores(self.score_names(), &episodes));
        let evaluation = self.evaluate_if_due(before)?;
        metrics.push(("eval/mean_reward".into(), evaluation.unwrap_or(f64::NAN)));
        let is_best = evaluation.is_some_and(|mean| mean > self.best_evaluation);
        if let Some(mean) = evaluation {
            self.last_evaluation = mean;
            self.best_evaluation = self.best_evaluation.max(mean);
        }
        Ok(Iteration { steps: self.steps(), metrics, episodes, evaluation, is_best })
    }

    /// Collects a rollout, and more if the agent wants more, and updates the agent. Returns the report of the update, the episodes that ended,
    /// and the rewards of a reward model, if there is one.
    fn rollout_and_update(&mut self) -> Result<(Report, Vec<Episode>, Vec<f64>), Error> {
        let before = self.steps();
        let (mut rollout, mut episodes, mut learned) = self.collect()?;
        while self.updater.algorithm.wants_more(&rollout) {
            let (more, others, others_learned) = self.collect()?;
            rollout.append(more);
            episodes.extend(others);
            learned.extend(others_learned);
        }
        // the window includes the whole rollout, because the last 100 texts of a rollout are its longest texts
        let window = if self.is_text { WINDOW.max(episodes.len()) } else { WINDOW };
        for episode in &episodes {
            while self.recent.len() >= window {
                self.recent.pop_front();
            }
            self.recent.push_back((episode.episode_return, episode.length));
        }
        let report = self.updater.update(&rollout, before)?;
        if let Some(mut listener) = self.after_rollouts.take() {
            listener(self);
            self.after_rollouts = Some(listener);
        }
        Ok((report, episodes, learned))
    }

    /// Returns a rollout, the episodes that ended in it, and the rewards of a reward model, if there is one.
    fn collect(&mut self) -> Result<(Rollout, Vec<Episode>, Vec<f64>), EnvError> {
        let (worker, workers) = (self.updater.algorithm.next_worker(), self.updater.algorithm.workers());
        assert!(worker < workers, "next_worker of the agent: expected a number below {workers}, got {worker}");
        let (mut rollout, episodes) = self.collector.collect_of(self.updater.algorithm.acting(), worker)?;
        let learned = match &mut self.learned {
            Some(learned) => learned.replace(&mut rollout, &episodes, self.collector.greedy_episodes()),
            None => Vec::new(),
        };
        Ok((rollout, episodes, learned))
    }

    /// Returns the mean return of an evaluation if one is due.
    fn evaluate_if_due(&self, steps_before: u64) -> Result<Option<f64>, Error> {
        let every = self.updater.config.evaluate_every;
        if every == 0 || self.steps() / every == steps_before / every {
            return Ok(None);
        }
        // a separate seed, because the episodes that decide when to stop must differ from the episodes of reported evaluations
        let seed = episode_seed(self.updater.config.seed, u64::from(u32::MAX), 1);
        let world = self.world().on_split(Split::Validation);
        let evaluation = evaluate(self.policy(), &world, self.updater.config.evaluate_episodes, seed, Mode::Greedy)?;
        Ok(Some(evaluation.mean))
    }

    /// Trains to the end.
    pub fn finish(&mut self) -> Result<(), Error> {
        threads::with_default(|| {
            while !self.is_finished() {
                self.iterate()?;
            }
            Ok(())
        })
    }

    /// As [`save`](Trainer::save), but without the pages of the replay buffer. If an environment panics, returns the error.
    pub(crate) fn checkpoint(&self) -> Result<Tensors, Error> {
        self.sound(|| self.save_state())
    }

    /// As [`save`](Trainer::save). If an environment panics, returns the error.
    pub fn whole_checkpoint(&self) -> Result<Tensors, Error> {
        self.sound(|| self.save())
    }

    fn sound(&self, save: impl FnOnce() -> Tensors) -> Result<Tensors, Error> {
        let saved = panics::catch(save)?;
        Error::unless_sound(self.policy())?;
        Ok(saved)
    }

    /// Saves everything that is needed to resume bit for bit.
    ///
    /// # Panics
    /// If an environment panics, see [`VecEnv::save`](gradus_envs::VecEnv::save).
    pub fn save(&self) -> Tensors {
        let mut tensors = self.save_state();
        self.updater.save_pages(&mut tensors);
        tensors
    }

    /// As [`save`](Trainer::save), but without the pages of the replay buffer.
    fn save_state(&self) -> Tensors {
        let recent = self.recent.iter().flat_map(|(episode_return, length)| [episode_return.to_bits(), u64::from(*length)]).collect();
        let mut tensors = self.collector.save();
        tensors.insert("recent_episodes".into(), Tensor::u64(recent));
        tensors.insert("progress".into(), Tensor::u64(vec![self.updater.iteration, self.last_evaluation.to_bits()]));
        tensors.insert("best_evaluation".into(), Tensor::u64(vec![self.best_evaluation.to_bits()]));
        self.updater.save(&mut tensors);
        if let Some(learned) = &self.learned {
            add_with_prefix(&mut tensors, learned.save(), REWARD_PREFIX);
        }
        tensors
    }

    /// Loads the tensors of [`save`](Trainer::save), to resume the training. After an error the trainer must not be used.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.load_state(tensors)?;
        self.updater.load_pages(tensors)?;
        self.begin_again();
        Ok(())
    }

    /// Environments that cannot be saved have begun new episodes: ends those of the agent. Call it when everything is loaded.
    pub(crate) fn begin_again(&mut self) {
        if !self.world.can_be_saved() {
            self.updater.algorithm.interrupt();
        }
    }

    /// Returns the replay buffer, if the agent has one.
    pub fn replay(&self) -> Option<&Replay> {
        self.updater.algorithm.replay()
    }

    /// Returns the replay buffer mutably, to load its pages.
    pub(crate) fn replay_mut(&mut self) -> Option<&mut Replay> {
        self.updater.algorithm.replay_mut()
    }

    /// As [`load`](Trainer::load), but without the pages of the replay buffer, which must then be loaded.
    pub(crate) fn load_state(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.updater.load(tensors)?;
        if let Some(learned) = &mut self.learned {
            learned.load(&without_prefix(tensors, REWARD_PREFIX))?;
        }
        self.collector.load(tensors)?;
        let (recent, rest) = get_u64(tensors, "recent_episodes")?.as_chunks::<2>();
        let progress = get_u64(tensors, "progress")?;
        match *progress {
            [iteration, evaluation] if rest.is_empty() && (recent.len() <= WINDOW || self.is_text) => {
                self.updater.iteration = iteration;
                // the evaluation that ended a training does not end its continuation
                let is_continued = self.updater.config.earlier_steps.iter().any(|earlier| earlier.until == self.steps());
                self.last_evaluation = if is_continued { f64::NAN } else { f64::from_bits(evaluation) };
                // checkpoints of older versions have no best evaluation
                let best = tensors.contains_key("best_evaluation").then(|| get_u64(tensors, "best_evaluation")).transpose()?;
                self.best_evaluation = best.and_then(|bits| bits.first()).map_or(f64::NEG_INFINITY, |bits| f64::from_bits(*bits));
                self.recent = recent.iter().map(|[bits, length]| (f64::from_bits(*bits), *length as u32)).collect();
                Ok(())
            }
            [_, _] => Err(TensorsError::State(format!(
                "recent_episodes: expected pairs of a return and a length, {WINDOW} at most, got {} numbers",
                2 * recent.len() + rest.len()
            ))),
            _ => Err(TensorsError::State(format!("progress: expected an iteration and an evaluation, got {progress:?}"))),
        }
    }
}

/// Returns whether training needs its texts on the host: a reward model reads them, and dynamic sampling combines several rollouts.
fn reads_texts(config: &Config, algorithm: &dyn Algorithm) -> bool {
    config.reward_model.as_ref().is_some_and(RewardConfig::is_on) || algorithm.may_want_more()
}

/// Creates the environments of a training, on the device or on the host according to the setting `torch.worlds`.
pub fn collector(config: &Config, world: &EnvSpec, algorithm: &dyn Algorithm) -> Result<Collector, Error> {
    let (collection, policy) = (algorithm.collection(), algorithm.behaviour());
    let Config { envs, seed, device, wrappers, .. } = config;
    let (is_asked_for, is_gpu) = (config.torch.worlds == Worlds::Device, matches!(device, Device::Cuda(_) | Device::Mps));
    // a step on a device has a fixed launch cost, so it pays off only with many environments; generating texts on a device always pays off
    let pays_off = *envs >= 1024;
    if is_asked_for || config.torch.worlds == Worlds::Auto && is_gpu && (pays_off || world.text.is_some()) {
        let mut world = world.clone();
        if let Some(TensorEnvSpec::TargetSum(_)) = world.tensor_spec
            && (reads_texts(config, algorithm) || !(is_asked_for || pays_off))
        {
            world.tensor_spec = Some(TensorEnvSpec::Text); // the texts are verified on the host
        }
        let samples_itself = algorithm.exploration() == Exploration::Sampled && algorithm.workers() == 1 && algorithm.replay().is_none();
        let collector = match samples_itself {
            true => Collector::on_device(&world, *envs, *seed, (collection, wrappers), policy),
            false => Err(NotThere::Unsuited("this agent's rollouts are collected on the host")),
        };
        match collector {
            Ok(collector) => return Ok(collector),
            Err(NotThere::Failed(problem)) => return Err(Error::Device(format!("device {device}: {problem}"))),
            Err(NotThere::Environment(error)) => return Err(error.into()),
            Err(NotThere::Unsuited(reason)) => {
                ConfigError::unless(!is_asked_for, "torch.worlds", &format!("auto or host, because {reason}"), "device")?;
            }
        }
    }
    let on_host = || Collector::with_wrappers(world, *envs, *seed, collection, wrappers);
    let collector = if policy.wants_one_actor() { threads::with(1, on_host) } else { on_host() }?;
    let collector = collector.with_exploration(algorithm.exploration()).with_workers(algorithm.workers())?;
    Ok(if algorithm.replay().is_some() { collector.with_raw_rollouts() } else { collector })
}
