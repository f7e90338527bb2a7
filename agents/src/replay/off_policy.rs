//! The loop of agents with a replay buffer, [`OffPolicy`], and the parts that they share: the settings, the buffer, the target network, the
//! number of updates, and the report.

use gradus_base::random::{Purpose, Stream};
use gradus_base::range::{above, at_least, from};
use gradus_base::tensors::{Tensor, Tensors, TensorsError, add_with_prefix, get_u64, with_prefix, without_prefix};
use gradus_base::{Settings, settings};
use gradus_nets::{Behaviour, Evaluated, Network, OptimiserStep, QActorCritic, QNetwork};

use crate::agent::{Collection, Report, UpdateContext};
use crate::algorithm::Algorithm;
use crate::config::Setup;
use crate::error::{AgentError, ConfigError};
use crate::exploration::Exploration;
use crate::parts::optimiser::OptimiserConfig;
use crate::replay::{Kept, REPLAY, Replay, Sample};
use crate::rollout::Rollout;

settings! {
    /// The settings that agents with a replay buffer share. Most names are those of Stable-Baselines3.
    #[derive(Clone, Debug, PartialEq)]
    pub struct OffPolicyConfig {
        /// Steps of each environment in a rollout; the updates follow the rollout.
        pub rollout_steps: usize = 4,
        /// Updates for each environment step, on average. With 0.1 and rollouts of 10 steps, one update follows every rollout.
        pub updates_per_step: f64 = 0.25 => above(0.0).to(1e6),
        /// Environment steps before the first update; their actions are random.
        pub learning_starts: u64 = 1_000,
        /// Decisions that the replay buffer keeps.
        pub buffer_size: usize = 100_000,
        /// Decisions in the sample of an update.
        pub batch_size: usize = 64 => at_least(1),
        /// Discount factor gamma.
        pub gamma: f32 = 0.99 => from(0.0).to(1.0),
        /// Number of rewards in a target before it bootstraps.
        pub n_step: usize = 1,
        /// Exponent alpha of the priorities with which decisions are sampled; 0: all decisions have the same probability.
        pub priority_exponent: f32 = 0.0 => from(0.0).to(1.0),
        /// Exponent beta of the importance weights that correct for priorities, at the beginning; it rises linearly to 1.
        pub importance_exponent: f32 = 0.4 => from(0.0).to(1.0),
    }
}

impl OffPolicyConfig {
    /// Checks that every setting of `agent` is in range.
    pub fn check(&self, agent: &str, setup: &Setup<'_>) -> Result<(), ConfigError> {
        self.check_ranges(agent)?;
        setup.reference.check_unused(agent)?;
        setup.optimiser.check()?;
        let envs = setup.envs;
        let key = |name: &str| format!("{agent}.{name}");
        ConfigError::unless_rollout(&key("rollout_steps"), self.rollout_steps, envs)?;
        let most = 1 << 31;
        let expected = format!("at least {envs}, one for each environment, and at most {most}");
        ConfigError::unless((envs..=most).contains(&self.buffer_size), &key("buffer_size"), &expected, self.buffer_size)?;
        let expected = format!("at least {}, the size of a batch", self.batch_size);
        ConfigError::unless(self.buffer_size >= self.batch_size, &key("buffer_size"), &expected, self.buffer_size)?;
        let room = self.buffer_size / envs;
        let expected = format!("1 to {room}, the decisions of each environment in the buffer");
        ConfigError::unless((1..=room).contains(&self.n_step), &key("n_step"), &expected, self.n_step)
    }

    /// Returns beta, if there are priorities: see [`AgentConfig::scheduled`](crate::AgentConfig::scheduled).
    pub fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        let beta = self.importance_exponent_at(done as f64 / steps as f64);
        if self.priority_exponent > 0.0 { vec![("importance_exponent", beta)] } else { Vec::new() }
    }

    /// Returns beta, which rises linearly to 1, after this fraction of the training.
    fn importance_exponent_at(&self, progress: f64) -> f64 {
        let beta = f64::from(self.importance_exponent);
        beta + (1.0 - beta) * progress
    }

    /// Returns the number of decisions that the buffer has room for in a training of `steps` environment steps: no more than it collects.
    fn decisions_kept(&self, envs: usize, steps: u64) -> usize {
        let rollout = (self.rollout_steps * envs) as u64;
        self.buffer_size.min(usize::try_from(steps.saturating_add(rollout).next_multiple_of(envs as u64)).unwrap_or(usize::MAX))
    }

    /// Returns the number of decisions in the buffer in a training of `setup`, and whether they have priorities.
    pub fn replay(&self, setup: &Setup<'_>) -> Option<(usize, bool)> {
        Some((self.decisions_kept(setup.envs, setup.steps), self.priority_exponent > 0.0))
    }
}

/// A network that an off-policy agent trains.
pub trait Learned: Send {
    /// Returns an independent copy.
    fn copied(&self) -> Box<Self>;

    /// Moves the parameters towards those of `online`; see [`QNetwork::track`].
    fn follow(&mut self, online: &Self, tau: f32);

    /// The network as a set of parameters.
    fn parameters(&mut self) -> &mut dyn Network;

    /// The network as a behaviour.
    fn behaviour(&self) -> &dyn Behaviour;

    /// The network as a behaviour, mutably.
    fn behaviour_mut(&mut self) -> &mut dyn Behaviour;

    /// Turns the network into a behaviour.
    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour>;
}

macro_rules! learned {
    ($network:ty) => {
        impl Learned for $network {
            fn copied(&self) -> Box<Self> {
                self.snapshot()
            }

            fn follow(&mut self, online: &Self, tau: f32) {
                self.track(online, tau);
            }

            fn parameters(&mut self) -> &mut dyn Network {
                self
            }

            fn behaviour(&self) -> &dyn Behaviour {
                self
            }

            fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
                self
            }

            fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
                self
            }
        }
    };
}

learned!(dyn QNetwork);
learned!(dyn QActorCritic);

/// Environment steps of an iteration, at least: the report is a mean over its updates.
const ITERATION: usize = 1_000;
/// Added to the absolute error in a priority, so that no decision has priority 0.
const PRIORITY_FLOOR: f32 = 1e-6;

/// The state of an agent with a replay buffer and networks of type `N`.
pub struct OffPolicyLearner<N: ?Sized> {
    /// The settings.
    pub config: OffPolicyConfig,
    /// The network that learns and acts.
    pub network: Box<N>,
    /// The target network.
    pub target: Box<N>,
    /// The replay buffer.
    pub replay: Replay,
    optimiser: OptimiserConfig,
    exploration: Exploration,
    envs: usize,
    /// Environment steps of the training.
    total_steps: u64,
    /// Environment steps and updates so far.
    steps: u64,
    updates: u64,
    /// Updates that the steps so far allow, minus those done; below 1 between two rollouts.
    owed: f64,
    /// Iteration of `metrics`.
    iteration: Option<u64>,
    /// Updates and reports of this iteration.
    pub(crate) epoch: usize,
    reports: usize,
    /// Sum and number of the values of each metric in this iteration.
    metrics: Vec<(&'static str, f64, f64)>,
}

impl<N: Learned + ?Sized> OffPolicyLearner<N> {
    /// Keeps observations in this form.
    pub fn keeping(self, kept: Kept) -> Self {
        Self { replay: self.replay.keeping(kept), ..self }
    }

    /// Creates the state of an agent for a training of `steps` steps in `envs` environments. The target network is a copy of the network.
    pub fn new(
        config: OffPolicyConfig,
        (optimiser, exploration): (OptimiserConfig, Exploration),
        (envs, steps): (usize, u64),
        network: Box<N>,
    ) -> Self {
        let replay = Replay::new(config.decisions_kept(envs, steps), envs);
        let replay = if config.priority_exponent > 0.0 { replay.with_priorities(config.priority_exponent) } else { replay };
        Self {
            target: network.copied(),
            network,
            replay,
            optimiser,
            exploration,
            envs,
            total_steps: steps,
            steps: 0,
            updates: 0,
            owed: 0.0,
            iteration: None,
            epoch: 0,
            reports: 0,
            metrics: Vec::new(),
            config,
        }
    }

    /// Updates so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// Adds a rollout to the buffer. Returns the environment steps before it.
    fn observe(&mut self, rollout: &Rollout) -> u64 {
        self.replay.extend(rollout);
        let before = self.steps;
        self.steps += rollout.len() as u64;
        if self.steps > self.config.learning_starts {
            self.owed += self.config.updates_per_step * rollout.len() as f64;
        }
        before
    }

    /// Number of rollouts in an iteration, at most.
    fn rollouts_per_iteration(&self) -> usize {
        ITERATION.div_ceil(self.config.rollout_steps * self.envs)
    }

    /// Returns the number of updates that are due after the last rollout.
    fn updates_due(&mut self) -> u64 {
        // the sum of many roundings may be a little less than a whole number
        let due = (self.owed + 1e-9).floor();
        self.owed -= due;
        due as u64
    }

    /// Moves the target network towards the network: p' <- tau p + (1 - tau) p'.
    fn track(&mut self, tau: f32) {
        self.target.follow(&self.network, tau);
    }

    /// Samples from the buffer.
    pub fn sample(&self, context: UpdateContext) -> Sample {
        let mut stream = Stream::new(context.seed, Purpose::Replay, self.updates);
        let mut sample = self.replay.sample(self.config.batch_size, self.config.n_step, &mut stream);
        self.replay.weigh(&mut sample, self.config.importance_exponent_at(context.progress) as f32);
        sample
    }

    /// Returns the weight of each drawn decision in the loss of a sample: its importance weight divided by the number of decisions.
    pub fn weights(sample: &Sample) -> Vec<f32> {
        let share = 1.0 / sample.first.len() as f32;
        sample.weights.iter().map(|weight| share * weight).collect()
    }

    /// Returns the settings of the optimiser's next step.
    pub fn optimiser_step(&self, context: UpdateContext) -> OptimiserStep {
        self.optimiser.step(context.progress)
    }

    /// Begins an update: forgets the metrics of an earlier iteration.
    fn begin_update(&mut self, context: UpdateContext) {
        if self.iteration != Some(context.iteration) {
            self.iteration = Some(context.iteration);
            (self.epoch, self.reports, self.metrics) = (0, 0, Vec::new());
        }
    }

    /// The absolute values of `errors`, one for each drawn decision, become the priorities.
    fn set_priorities(&mut self, sample: &Sample, errors: &[f32]) {
        if self.config.priority_exponent > 0.0 {
            let priorities: Vec<f32> = errors.iter().map(|error| error.abs() + PRIORITY_FLOOR).collect();
            self.replay.set_priorities(sample, &priorities);
        }
    }

    /// Adds values of metrics to the means of the iteration.
    pub fn record(&mut self, metrics: impl IntoIterator<Item = (&'static str, f64)>) {
        for (name, value) in metrics {
            match self.metrics.iter_mut().find(|(known, ..)| *known == name) {
                Some((_, sum, n)) => (*sum, *n) = (*sum + value, *n + 1.0),
                None => self.metrics.push((name, value, 1.0)),
            }
        }
    }

    /// Returns the report of the iteration so far: the metrics called `means`, as means over its updates (NaN before the first one), the
    /// learning rate, the number of updates of the training, and epsilon if there is one. At the end of an iteration, returns an error unless
    /// all parameters are finite; within an iteration, the next update would find a loss that is not.
    pub fn report_of(&mut self, context: UpdateContext, means: impl IntoIterator<Item = &'static str>) -> Result<Report, AgentError> {
        self.begin_update(context);
        self.reports += 1;
        if self.reports >= self.rollouts_per_iteration() || self.steps >= self.total_steps {
            context.check_parameters(self.network.parameters(), self.epoch)?;
        }
        let mean = |name| self.metrics.iter().find(|(known, ..)| *known == name).map_or(f64::NAN, |(_, sum, n)| sum / n);
        let mut report: Report = means.into_iter().map(|name| (name, mean(name))).collect();
        report.push(("train/learning_rate", f64::from(self.optimiser.step(context.progress).learning_rate)));
        report.push(("train/n_updates", self.updates as f64));
        if let Exploration::EpsilonGreedy(exploration) = self.exploration {
            report.push(("rollout/exploration_rate", exploration.epsilon(self.steps)));
        }
        Ok(report)
    }

    /// Returns the state for a checkpoint, without the network's parameters and the pages of the buffer.
    fn save(&self) -> Tensors {
        let mut tensors = with_prefix(self.target.behaviour().save(), "target.");
        add_with_prefix(&mut tensors, self.replay.save(), REPLAY);
        tensors.insert("counters".into(), Tensor::u64(vec![self.steps, self.updates, self.owed.to_bits()]));
        tensors
    }

    /// Restores the state that [`save`](OffPolicyLearner::save) returned.
    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let [steps, updates, owed] = *get_u64(tensors, "counters")? else {
            return Err(TensorsError::State("counters: expected three numbers".into()));
        };
        self.target.behaviour_mut().load(&without_prefix(tensors, "target."))?;
        self.replay.load(&without_prefix(tensors, REPLAY))?;
        (self.steps, self.updates, self.owed) = (steps, updates, f64::from_bits(owed));
        Ok(())
    }
}

/// When the target network moves towards the network, p' <- tau p + (1 - tau) p'.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TargetUpdate {
    /// After every `interval` environment steps.
    Steps {
        /// Environment steps between two moves.
        interval: u64,
        /// 1: the network is copied.
        tau: f32,
    },
    /// After every `interval` updates.
    Updates {
        /// Updates between two moves.
        interval: u64,
        /// 1: the network is copied.
        tau: f32,
    },
}

/// The update rule of an agent with a replay buffer: its targets and its optimiser steps. [`OffPolicy`] does everything else.
pub trait OffPolicyAgent<N: ?Sized>: Send {
    /// Learns from a sample. Returns the sums of the value loss over its decisions, and their errors.
    fn learn(&mut self, learner: &mut OffPolicyLearner<N>, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError>;

    /// Returns when the target network moves.
    fn target_update(&self) -> TargetUpdate;

    /// Returns the names of the metrics that are reported, as means over the updates of an iteration.
    fn metrics(&self) -> Vec<&'static str>;

    /// Returns the agent's own state for a checkpoint.
    fn save(&self) -> Tensors {
        Tensors::new()
    }

    /// Restores the state that [`save`](OffPolicyAgent::save) returned.
    fn load(&mut self, _: &Tensors) -> Result<(), TensorsError> {
        Ok(())
    }
}

/// An [`OffPolicyAgent`] together with its buffer and its networks.
pub struct OffPolicy<N: ?Sized> {
    /// The update rule.
    pub agent: Box<dyn OffPolicyAgent<N>>,
    /// The buffer and the networks.
    pub learner: OffPolicyLearner<N>,
}

impl<N: Learned + ?Sized> OffPolicy<N> {
    /// Observes a rollout, and learns as often as is due: the loop of every agent with a replay buffer.
    fn observe_and_learn(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        let before = self.learner.observe(rollout);
        if let TargetUpdate::Steps { interval, tau } = self.agent.target_update() {
            let ended = self.learner.steps / interval - before / interval;
            // a copy repeated is the same copy
            let times = if tau == 1.0 { ended.min(1) } else { ended };
            (0..times).for_each(|_| self.learner.track(tau));
        }
        for _ in 0..self.learner.updates_due() {
            let sample = self.learner.sample(context);
            self.learn_from(&sample, context)?;
        }
        self.learner.report_of(context, self.agent.metrics())
    }

    /// Makes one update with a sample: the agent learns, its errors become the priorities, and the target network moves if it is time.
    pub fn learn_from(&mut self, sample: &Sample, context: UpdateContext) -> Result<Evaluated, AgentError> {
        let Self { agent, learner } = self;
        learner.begin_update(context);
        let evaluated = agent.learn(learner, sample, context)?;
        learner.set_priorities(sample, &evaluated.errors);
        learner.updates += 1;
        learner.epoch += 1;
        if let TargetUpdate::Updates { interval, tau } = agent.target_update()
            && learner.updates.is_multiple_of(interval)
        {
            learner.track(tau);
        }
        Ok(evaluated)
    }
}

impl<N: Learned + ?Sized> Algorithm for OffPolicy<N> {
    fn behaviour(&self) -> &dyn Behaviour {
        self.learner.network.behaviour()
    }

    fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
        self.learner.network.behaviour_mut()
    }

    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
        self.learner.network.into_behaviour()
    }

    fn collection(&self) -> Collection {
        Collection::Steps(self.learner.config.rollout_steps)
    }

    fn exploration(&self) -> Exploration {
        self.learner.exploration
    }

    fn rollouts_per_iteration(&self) -> usize {
        self.learner.rollouts_per_iteration()
    }

    fn begin(&mut self) {
        self.learner.target = self.learner.network.copied();
    }

    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        self.observe_and_learn(rollout, context)
    }

    fn replay(&self) -> Option<&Replay> {
        Some(&self.learner.replay)
    }

    fn replay_mut(&mut self) -> Option<&mut Replay> {
        Some(&mut self.learner.replay)
    }

    fn save(&self) -> Tensors {
        let mut tensors = self.learner.save();
        add_with_prefix(&mut tensors, self.agent.save(), "agent.");
        tensors
    }

    fn load(&mut self, state: &Tensors) -> Result<(), TensorsError> {
        self.agent.load(&without_prefix(state, "agent."))?;
        self.learner.load(state)
    }
}
