//! The training loop: collect, update, count. It writes nothing; see [`Run`](crate::Run) for runs that leave a folder.

pub mod collect;
mod learned_reward;
pub mod metrics;
pub(crate) mod preferences;

use std::collections::VecDeque;

use gradus_agents::{Algorithm, Collection, ConfigError, Rollout, UpdateContext};
use gradus_envs::random::episode_seed;
use gradus_envs::text::Split;
use gradus_envs::{EnvError, TensorEnvSpec, World};
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64};
use gradus_nets::{Behaviour, Device, Policy, Worlds, threads};

use crate::config::{RewardConfig, is_text};
use crate::evaluate::{Mode, evaluate};
use crate::saved::{POLICY_PREFIX, REWARD_PREFIX, initial, without_prefix};
use crate::statistics::numbers::{mean_and_error, with_error};
use crate::{Config, Error};
use collect::{Collector, Episode, NotThere};
pub use learned_reward::LearnedReward;
use metrics::Metrics;

/// Over how many of the latest episodes the training's mean return is taken.
pub const WINDOW: usize = 100;

/// One iteration: a rollout and an update.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// The number of environment steps so far.
    pub steps: u64,
    /// Figures under Stable-Baselines3's names, on texts under those that are used there; NaN where there is none yet.
    pub metrics: Metrics,
    /// The episodes that ended in it, in the order in which they did.
    pub episodes: Vec<Episode>,
}

/// A training in progress, on the threads set by [`threads::with`], whose number changes nothing but the time.
pub struct Trainer {
    config: Config,
    world: World,
    algorithm: Box<dyn Algorithm>,
    collector: Collector,
    iteration: u64,
    recent: VecDeque<(f64, u32)>,
    last_evaluation: f64,
    is_text: bool,
    learned: Option<LearnedReward>,
}

impl Trainer {
    /// A training that has not begun, in the world that the configuration names.
    pub fn new(config: Config) -> Result<Self, Error> {
        let world = gradus_envs::registry::find(&config.environment)?;
        Self::in_world(config, world)
    }

    /// A training that has not begun, in a world of your own.
    pub fn in_world(config: Config, world: World) -> Result<Self, Error> {
        let mut trainer = Self::unbegun(config, world)?;
        if let Some(mut tensors) = initial(&trainer.config, &trainer.world, trainer.algorithm.behaviour_mut())? {
            let damaged = |source| Error::Tensors { path: (&trainer.config.init).into(), source };
            trainer.collector.begin_with(&mut tensors).map_err(damaged)?;
        }
        trainer.begin()?;
        Ok(trainer)
    }

    /// Initialises the agent and the reward model from the policy that training begins with.
    fn begin(&mut self) -> Result<(), Error> {
        self.algorithm.begin();
        self.learned = LearnedReward::new(&self.config, &self.world, self.algorithm.policy())?;
        self.learned.as_mut().map_or(Ok(()), LearnedReward::begin)
    }

    /// As [`in_world`](Trainer::in_world), with these parameters to begin with, as [`Behaviour::save`] gives them.
    pub fn with_parameters(config: Config, world: World, parameters: &Tensors) -> Result<Self, Error> {
        let mut trainer = Self::unbegun(config, world)?;
        trainer.algorithm.behaviour_mut().load(parameters).map_err(|source| Error::Tensors { path: "parameters".into(), source })?;
        trainer.begin()?;
        Ok(trainer)
    }

    /// A training that is about to be loaded: the parameters it has until then are ignored.
    pub(crate) fn to_resume(config: Config, world: World) -> Result<Self, Error> {
        let mut trainer = Self::unbegun(config, world)?;
        trainer.algorithm.begin();
        trainer.learned = LearnedReward::new(&trainer.config, &trainer.world, trainer.algorithm.policy())?;
        Ok(trainer)
    }

    fn unbegun(config: Config, world: World) -> Result<Self, Error> {
        config.check()?;
        let world = config.wrap(world)?;
        let algorithm = config.algorithm(&world)?;
        let collector = collector(&config, &world, algorithm.as_ref())?;
        let (collector, is_text) = (collector.with_max_concurrent(config.max_concurrent), is_text(&world));
        let recent = VecDeque::with_capacity(WINDOW);
        Ok(Self { config, world, algorithm, collector, iteration: 0, recent, last_evaluation: f64::NAN, is_text, learned: None })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The world as the policy sees it now: with what is normalised, by statistics that no longer move.
    pub fn world(&self) -> World {
        self.collector.normaliser().frozen(&self.world)
    }

    /// The world of what is reported: the same, on a task of text with the problems of the test split.
    pub fn evaluation_world(&self) -> World {
        self.world().on_split(Split::Test)
    }

    /// What the policy's files hold: its parameters, and the statistics of the observations it has learnt with.
    pub fn export(&self) -> Tensors {
        let mut tensors = self.policy().save();
        tensors.extend(self.collector.normaliser().save_observations());
        tensors
    }

    /// The policy as it is now.
    pub fn policy(&self) -> &dyn Behaviour {
        self.algorithm.behaviour()
    }

    /// The same as the actor-critic network that it is, if it is one.
    pub fn actor_critic(&self) -> Option<&dyn Policy> {
        self.algorithm.policy()
    }

    /// Whether observations are texts.
    pub fn is_text(&self) -> bool {
        self.is_text
    }

    /// The names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        self.collector.score_names()
    }

    /// Environment steps so far.
    pub fn steps(&self) -> u64 {
        self.collector.steps()
    }

    /// Environment steps of the whole training; one of whole episodes ends with the first rollout that reaches it.
    pub fn total_steps(&self) -> u64 {
        match self.algorithm.collection() {
            Collection::Steps(steps) => self.config.steps.next_multiple_of((steps * self.config.envs) as u64),
            Collection::Episodes { .. } => self.config.steps,
        }
    }

    /// Iterations so far.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Whether the training is over: all steps are made, or an evaluation was good enough.
    pub fn is_finished(&self) -> bool {
        self.steps() >= self.total_steps() || self.last_evaluation >= self.config.stop_at
    }

    /// The episodes that [`recent_return`](Trainer::recent_return) is of: [`WINDOW`] at most, on texts those of a whole rollout.
    pub fn recent_episodes(&self) -> usize {
        self.recent.len()
    }

    /// Mean return of the latest episodes; NaN before the first has ended.
    pub fn recent_return(&self) -> f64 {
        self.recent.iter().map(|(episode_return, _)| episode_return).sum::<f64>() / self.recent.len() as f64
    }

    /// The same for people, with the digits that its standard error leaves; nothing before the first episode has ended.
    pub fn recent_return_shown(&self) -> Option<String> {
        let (mean, error) = mean_and_error(self.recent.iter().map(|(episode_return, _)| *episode_return));
        (!self.recent.is_empty()).then(|| with_error(mean, error))
    }

    /// One more rollout and update.
    pub fn iterate(&mut self) -> Result<Iteration, Error> {
        let iterated = self.collect_and_update();
        // whatever else went wrong, it began with the device
        Error::unless_sound(self.policy())?;
        iterated
    }

    fn collect_and_update(&mut self) -> Result<Iteration, Error> {
        let before = self.steps();
        let iteration = self.iteration;
        let trained = self.learned.as_mut().map(|learned| learned.retrain_if_due(self.algorithm.behaviour(), iteration)).transpose()?;
        let (mut rollout, mut episodes, mut learned) = self.collect()?;
        while self.algorithm.wants_more(&rollout) {
            let (more, others, others_learned) = self.collect()?;
            rollout.append(more);
            episodes.extend(others);
            learned.extend(others_learned);
        }
        // of texts the last hundred of a rollout would be its longest ones: all of the rollout count
        let window = if self.is_text { WINDOW.max(episodes.len()) } else { WINDOW };
        for episode in &episodes {
            while self.recent.len() >= window {
                self.recent.pop_front();
            }
            self.recent.push_back((episode.episode_return, episode.length));
        }
        let progress = before as f64 / self.total_steps() as f64;
        let context = UpdateContext { seed: self.config.seed, iteration: self.iteration, progress };
        Error::unless_sound(self.policy())?; // nothing is learnt from what a failing device drew
        let report = self.algorithm.update(&rollout, context)?;
        self.iteration += 1;

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
        metrics.push(("eval/mean_reward".into(), self.evaluate_if_due(before)?));
        Ok(Iteration { steps: self.steps(), metrics, episodes })
    }

    /// A rollout, the episodes that ended in it, and what a reward model says of them.
    fn collect(&mut self) -> Result<(Rollout, Vec<Episode>, Vec<f64>), EnvError> {
        let (mut rollout, episodes) = self.collector.collect(self.algorithm.behaviour())?;
        let learned = match &mut self.learned {
            Some(learned) => learned.replace(&mut rollout, &episodes, self.collector.greedy_episodes()),
            None => Vec::new(),
        };
        Ok((rollout, episodes, learned))
    }

    /// The mean return of an evaluation where one is due, NaN elsewhere.
    fn evaluate_if_due(&mut self, steps_before: u64) -> Result<f64, Error> {
        let every = self.config.evaluate_every;
        if every == 0 || self.steps() / every == steps_before / every {
            return Ok(f64::NAN);
        }
        // other episodes than an evaluation with the run's seed plays: what decides when to stop must not be what is reported
        let seed = episode_seed(self.config.seed, u64::from(u32::MAX), 1);
        let world = self.world().on_split(Split::Validation);
        let evaluation = evaluate(self.policy(), &world, self.config.evaluate_episodes, seed, Mode::Greedy)?;
        self.last_evaluation = evaluation.mean;
        Ok(evaluation.mean)
    }

    /// Iterates to the end.
    pub fn finish(&mut self) -> Result<(), Error> {
        threads::with_default(|| {
            while !self.is_finished() {
                self.iterate()?;
            }
            Ok(())
        })
    }

    /// All that is needed to go on bit for bit.
    pub fn save(&self) -> Tensors {
        let recent = self.recent.iter().flat_map(|(episode_return, length)| [episode_return.to_bits(), u64::from(*length)]).collect();
        let mut tensors = self.collector.save();
        tensors.insert("recent_episodes".into(), Tensor::u64(recent));
        tensors.insert("progress".into(), Tensor::u64(vec![self.iteration, self.last_evaluation.to_bits()]));
        let prefixed = |prefix: &'static str, tensors: Tensors| tensors.into_iter().map(move |(name, t)| (format!("{prefix}{name}"), t));
        tensors.extend(prefixed(POLICY_PREFIX, self.policy().save()));
        tensors.extend(prefixed(OPTIMISER, self.policy().save_optimiser()));
        tensors.extend(prefixed(AGENT, self.algorithm.save()));
        tensors.extend(self.learned.iter().flat_map(|learned| prefixed(REWARD_PREFIX, learned.save())));
        tensors
    }

    /// Goes on from what [`save`](Trainer::save) saved; after an error the training is of no use.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.algorithm.behaviour_mut().load(&without_prefix(tensors, POLICY_PREFIX))?;
        self.algorithm.behaviour_mut().load_optimiser(&without_prefix(tensors, OPTIMISER))?;
        self.algorithm.load(&without_prefix(tensors, AGENT))?;
        if let Some(learned) = &mut self.learned {
            learned.load(&without_prefix(tensors, REWARD_PREFIX))?;
        }
        self.collector.load(tensors)?;
        let (recent, rest) = get_u64(tensors, "recent_episodes")?.as_chunks::<2>();
        let progress = get_u64(tensors, "progress")?;
        match *progress {
            [iteration, evaluation] if rest.is_empty() && (recent.len() <= WINDOW || self.is_text) => {
                self.iteration = iteration;
                self.last_evaluation = f64::from_bits(evaluation);
                self.recent = recent.iter().map(|[bits, length]| (f64::from_bits(*bits), *length as u32)).collect();
                Ok(())
            }
            _ => Err(TensorsError::State(format!("progress: expected an iteration and an evaluation, got {progress:?}"))),
        }
    }
}

/// Whether a training needs its texts on the host: a reward model reads them, dynamic sampling puts those of several rollouts together.
fn reads_texts(config: &Config, algorithm: &dyn Algorithm) -> bool {
    config.reward_model.as_ref().is_some_and(RewardConfig::is_on) || algorithm.may_want_more()
}

/// The environments of a training with this configuration, where the setting `torch.worlds` wants them.
pub(crate) fn collector(config: &Config, world: &World, algorithm: &dyn Algorithm) -> Result<Collector, Error> {
    let (collection, policy) = (algorithm.collection(), algorithm.behaviour());
    let Config { envs, seed, device, wrappers, .. } = config;
    let (is_asked_for, is_gpu) = (config.torch.worlds == Worlds::Device, matches!(device, Device::Cuda(_) | Device::Mps));
    // a step on a device costs so many launches whatever their size, which few environments do not repay; that texts are written there does
    let repays = *envs >= 1024;
    if is_asked_for || config.torch.worlds == Worlds::Auto && is_gpu && (repays || world.text.is_some()) {
        let mut world = world.clone();
        if let Some(TensorEnvSpec::TargetSum(_)) = world.tensor_spec
            && (reads_texts(config, algorithm) || !(is_asked_for || repays))
        {
            world.tensor_spec = Some(TensorEnvSpec::Text); // the host judges
        }
        match Collector::on_device(&world, *envs, *seed, (collection, wrappers), policy) {
            Ok(collector) => return Ok(collector),
            Err(NotThere::Failed(problem)) => return Err(Error::Device(format!("device {device}: {problem}"))),
            Err(NotThere::World(error)) => return Err(error.into()),
            Err(NotThere::Unsuited(reason)) => {
                ConfigError::unless(!is_asked_for, "torch.worlds", &format!("auto or host, for {reason}"), "device")?;
            }
        }
    }
    let on_host = || Collector::with_wrappers(world, *envs, *seed, collection, wrappers);
    Ok(if policy.wants_one_actor() { threads::with(1, on_host) } else { on_host() }?)
}

const OPTIMISER: &str = "optimiser.";
const AGENT: &str = "agent.";
