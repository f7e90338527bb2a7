//! The parts that agents with a replay buffer and a network of action values share: the settings, the buffer, the target network, the number
//! of updates, and the report.
//!
//! ```text
//! learner.observe(rollout)                      adds the rollout to the buffer; updates the target network if it is time
//! for each of learner.updates_due(rollout):
//!     sample = learner.sample(context)
//!     values = ..                               from learner.next_target_values(sample)
//!     targets = learner.targets(sample, values)
//!     learner.step(sample, objective, ..)?      gradient and optimiser step
//! learner.report(context)?
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use gradus_envs::random::{Purpose, Stream};
use gradus_nets::tensors::{Tensor, Tensors, TensorsError, get_u64, with_prefix, without_prefix};
use gradus_nets::{Batch, Behaviour, QHead, QNetwork, Store, Sums, ValueObjective, greedy, settings};

use crate::{
    AgentError, Algorithm, Built, Collection, ConfigError, End, EpsilonGreedy, Exploration, OptimiserConfig, Replay, Report, Rollout,
    Sample, Setup, UpdateContext,
};

settings! {
    /// The settings that agents with a replay buffer and a network of action values share. Most names are those of Stable-Baselines3.
    #[derive(Clone, Debug, PartialEq)]
    pub struct QLearnerConfig {
        /// Steps of each environment in a rollout; the updates follow the rollout.
        pub rollout_steps: usize = 4,
        /// Updates for each environment step, on average. With 0.1 and rollouts of 10 steps, one update follows every rollout.
        pub updates_per_step: f64 = 0.25,
        /// Environment steps before the first update; their actions are random.
        pub learning_starts: u64 = 1_000,
        /// Decisions that the replay buffer keeps.
        pub buffer_size: usize = 100_000,
        /// Decisions in the sample of an update.
        pub batch_size: usize = 64,
        /// Discount factor gamma, 0 to 1.
        pub gamma: f32 = 0.99,
        /// Number of rewards in a target before it bootstraps.
        pub n_step: usize = 1,
        /// Environment steps between two updates of the target network.
        pub target_update_interval: u64 = 500,
        /// How far the target network moves towards the network in such an update, above 0, to 1: a copy.
        pub tau: f32 = 1.0,
        /// Fraction of the training in which epsilon, the probability of a random action, changes linearly, 0 to 1.
        pub exploration_fraction: f64 = 0.2,
        /// Epsilon at the beginning, 0 to 1.
        pub exploration_initial_eps: f64 = 1.0,
        /// Epsilon after `exploration_fraction`, 0 to 1.
        pub exploration_final_eps: f64 = 0.05,
        /// Exponent alpha of the priorities with which decisions are sampled; 0: all decisions have the same probability.
        pub priority_exponent: f32 = 0.0,
        /// Exponent beta of the importance weights that correct for priorities, at the beginning; it rises linearly to 1. From 0 to 1.
        pub importance_exponent: f32 = 0.4,
    }
}

impl QLearnerConfig {
    /// Checks that every setting of `agent` is in range.
    pub fn check(&self, agent: &str, setup: &Setup<'_>) -> Result<(), ConfigError> {
        setup.reference.check_unused(agent)?;
        setup.optimiser.check()?;
        let envs = setup.envs;
        let key = |name: &str| format!("{agent}.{name}");
        let fraction = |name: &str, x: f64| ConfigError::unless((0.0..=1.0).contains(&x), &key(name), "a number from 0 to 1", x);
        ConfigError::unless_rollout(&key("rollout_steps"), self.rollout_steps, envs)?;
        let is_rate = self.updates_per_step > 0.0 && self.updates_per_step <= 1e6;
        ConfigError::unless(is_rate, &key("updates_per_step"), "a number above 0, to 1000000", self.updates_per_step)?;
        ConfigError::unless_at_least_one(&key("batch_size"), self.batch_size)?;
        let most = 1 << 31;
        let expected = format!("at least {envs}, one for each environment, and at most {most}");
        ConfigError::unless((envs..=most).contains(&self.buffer_size), &key("buffer_size"), &expected, self.buffer_size)?;
        let expected = format!("at least {}, the size of a batch", self.batch_size);
        ConfigError::unless(self.buffer_size >= self.batch_size, &key("buffer_size"), &expected, self.buffer_size)?;
        ConfigError::unless_fraction(&key("gamma"), self.gamma)?;
        let room = self.buffer_size / envs;
        let expected = format!("1 to {room}, the decisions of each environment in the buffer");
        ConfigError::unless((1..=room).contains(&self.n_step), &key("n_step"), &expected, self.n_step)?;
        ConfigError::unless(self.target_update_interval > 0, &key("target_update_interval"), "at least 1", self.target_update_interval)?;
        ConfigError::unless(self.tau > 0.0 && self.tau <= 1.0, &key("tau"), "a number above 0, to 1", self.tau)?;
        fraction("exploration_fraction", self.exploration_fraction)?;
        fraction("exploration_initial_eps", self.exploration_initial_eps)?;
        fraction("exploration_final_eps", self.exploration_final_eps)?;
        ConfigError::unless_not_negative(&key("priority_exponent"), self.priority_exponent)?;
        ConfigError::unless_fraction(&key("importance_exponent"), self.importance_exponent)
    }

    /// Returns the number of decisions that the buffer has room for in a training of `steps` environment steps: no more than it collects.
    fn decisions_kept(&self, envs: usize, steps: u64) -> usize {
        let rollout = (self.rollout_steps * envs) as u64;
        self.buffer_size.min(usize::try_from(steps.saturating_add(rollout).next_multiple_of(envs as u64)).unwrap_or(usize::MAX))
    }

    /// Returns the agent with this update rule, which learns with a network of these outputs.
    pub fn built(&self, head: QHead, setup: &Setup<'_>, agent: impl QAgent + 'static) -> Built {
        let (config, optimiser, setup) = (self.clone(), setup.optimiser.clone(), (setup.envs, setup.steps));
        let make =
            move |network| Box::new(OffPolicy { agent: Box::new(agent), learner: QLearner::new(config, optimiser, setup, network) }) as _;
        let kept = self.decisions_kept(setup.0, setup.1);
        Built::Values { head, replay: Some((kept, self.priority_exponent > 0.0)), make: Box::new(make) }
    }

    /// How the agent explores in a training of `steps` environment steps.
    pub fn exploration(&self, steps: u64) -> EpsilonGreedy {
        EpsilonGreedy {
            random_steps: self.learning_starts,
            first: self.exploration_initial_eps,
            last: self.exploration_final_eps,
            over: (self.exploration_fraction * steps as f64).round() as u64,
        }
    }
}

/// Environment steps of an iteration, at least: the report is a mean over its updates.
const ITERATION: usize = 1_000;
/// Added to the absolute error in a priority, so that no decision has priority 0.
const PRIORITY_FLOOR: f32 = 1e-6;

/// The state of an agent with a replay buffer and a network of action values.
pub struct QLearner {
    /// The settings.
    pub config: QLearnerConfig,
    /// The network that learns and acts.
    pub network: Box<dyn QNetwork>,
    /// The target network.
    pub target: Box<dyn QNetwork>,
    /// The replay buffer.
    pub replay: Replay,
    optimiser: OptimiserConfig,
    exploration: EpsilonGreedy,
    envs: usize,
    /// Environment steps and updates so far.
    steps: u64,
    updates: u64,
    /// Updates that the steps so far allow, minus those done; below 1 between two rollouts.
    owed: f64,
    /// Iteration of `totals`.
    iteration: Option<u64>,
    totals: Totals,
}

/// Sums over the updates of an iteration.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    updates: u64,
    sums: Sums,
    norms: f64,
}

impl QLearner {
    /// Creates the state of an agent. The target network is a copy of the network.
    pub fn new(config: QLearnerConfig, optimiser: OptimiserConfig, (envs, steps): (usize, u64), network: Box<dyn QNetwork>) -> Self {
        let replay = Replay::new(config.decisions_kept(envs, steps), envs);
        let replay = if config.priority_exponent > 0.0 { replay.with_priorities(config.priority_exponent) } else { replay };
        Self {
            exploration: config.exploration(steps),
            target: network.snapshot(),
            network,
            replay,
            optimiser,
            envs,
            steps: 0,
            updates: 0,
            owed: 0.0,
            iteration: None,
            totals: Totals::default(),
            config,
        }
    }

    /// Adds a rollout to the buffer. Updates the target network for each interval that ended in the rollout.
    pub fn observe(&mut self, rollout: &Rollout) {
        self.replay.extend(rollout);
        let intervals = |steps: u64| steps / self.config.target_update_interval;
        let before = intervals(self.steps);
        self.steps += rollout.len() as u64;
        let ended = intervals(self.steps) - before;
        // a copy repeated is the same copy
        let times = if self.config.tau == 1.0 { ended.min(1) } else { ended };
        (0..times).for_each(|_| self.target.track(self.network.as_ref(), self.config.tau));
        if self.steps > self.config.learning_starts {
            self.owed += self.config.updates_per_step * rollout.len() as f64;
        }
    }

    /// Returns the number of updates that are due after the last rollout.
    pub fn updates_due(&mut self) -> u64 {
        // the sum of many roundings may be a little less than a whole number
        let due = (self.owed + 1e-9).floor();
        self.owed -= due;
        due as u64
    }

    /// Samples from the buffer.
    pub fn sample(&self, context: UpdateContext) -> Sample {
        let mut stream = Stream::new(context.seed, Purpose::Replay, self.updates);
        let mut sample = self.replay.sample(self.config.batch_size, self.config.n_step, &mut stream);
        let beta = f64::from(self.config.importance_exponent);
        self.replay.weigh(&mut sample, (beta + (1.0 - beta) * context.progress) as f32);
        sample
    }

    /// Returns the target network's values of all actions after each segment of the sample: an empty row if the episode terminated.
    pub fn next_target_values(&mut self, sample: &Sample) -> Vec<f32> {
        let mut values = Vec::new();
        self.target.q_values(&sample.rollout.store, sample.rollout.len()..sample.rollout.store.rows(), &mut values);
        values
    }

    /// As [`next_target_values`](QLearner::next_target_values), but the network's values.
    pub fn next_values(&mut self, sample: &Sample) -> Vec<f32> {
        let mut values = Vec::new();
        self.network.q_values(&sample.rollout.store, sample.rollout.len()..sample.rollout.store.rows(), &mut values);
        values
    }

    /// Returns the greedy action after each segment of the sample: the allowed action of the greatest value. `values` is a result of
    /// [`next_values`](QLearner::next_values) or [`next_target_values`](QLearner::next_target_values).
    pub fn greedy_actions(&self, sample: &Sample, values: &[f32]) -> Vec<usize> {
        let (n, atoms, masks) = (self.network.actions(), self.network.head().atoms, sample.rollout.store.next_masks.as_ref());
        let mask = |row: usize| masks.map(|masks| &masks[row * n..(row + 1) * n]);
        values.chunks(n * atoms).enumerate().map(|(row, q)| greedy(q, atoms, mask(row))).collect()
    }

    /// Returns the targets of the drawn decisions, each at the index of its decision: the discounted rewards of the segment and, unless the
    /// episode terminated, the value after it. `values` has `atoms` values for each observation after a segment, in the order of
    /// [`next_target_values`](QLearner::next_target_values). A decision then has `atoms` targets.
    pub fn targets(&self, sample: &Sample, values: &[f32], atoms: usize) -> Vec<f32> {
        let Rollout { segments, rewards, .. } = &sample.rollout;
        let mut targets = vec![0.0; rewards.len() * atoms];
        for segment in segments {
            let own = &mut targets[segment.range.start * atoms..(segment.range.start + 1) * atoms];
            if let End::Truncated { successor } | End::Cut { successor } = segment.end {
                own.copy_from_slice(&values[(successor - rewards.len()) * atoms..][..atoms]);
            }
            // G_t = r_t + gamma G_{t+1}, from the last reward to the first
            for reward in rewards[segment.range.clone()].iter().rev() {
                own.iter_mut().for_each(|target| *target = reward + self.config.gamma * *target);
            }
        }
        targets
    }

    /// Takes an optimiser step on the mean of `objective` over the drawn decisions, each with its importance weight. Returns an error unless
    /// loss and gradient are finite; otherwise returns the sums over the decisions. The absolute values of `errors`, which the objective
    /// writes, become the priorities.
    pub fn step(
        &mut self,
        sample: &Sample,
        objective: &dyn ValueObjective,
        errors: &Errors,
        context: UpdateContext,
    ) -> Result<Sums, AgentError> {
        if self.iteration != Some(context.iteration) {
            (self.iteration, self.totals) = (Some(context.iteration), Totals::default());
        }
        let share = 1.0 / sample.first.len() as f32;
        let weights: Vec<f32> = sample.weights.iter().map(|weight| share * weight).collect();
        let data = (&sample.rollout.store, Batch::new(&sample.first, &weights));
        let (mut sums, norm) = checked_gradient(self.network.as_mut(), data, objective, (context, self.totals.updates as usize))?;
        // diagnostics are means, whatever the importance weights
        let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        sums.diagnostics.iter_mut().for_each(|sum| *sum /= total);
        self.network.apply(&self.optimiser.step(context.progress));
        if self.config.priority_exponent > 0.0 {
            let priorities: Vec<f32> = sample.first.iter().map(|i| errors.get(*i as usize).abs() + PRIORITY_FLOOR).collect();
            self.replay.set_priorities(sample, &priorities);
        }
        self.updates += 1;
        self.totals.updates += 1;
        self.totals.sums.add(&sums);
        self.totals.norms += norm;
        Ok(sums)
    }

    /// Returns the report of the iteration so far: the loss and the objective's diagnostics, called `figures`, as means over its updates (NaN
    /// before the first update), the gradient norm, the learning rate, the number of updates of the training, and epsilon. Returns an error
    /// unless all parameters are finite.
    pub fn report(&self, context: UpdateContext, figures: &[&'static str]) -> Result<Report, AgentError> {
        checked_parameters(self.network.as_ref(), (context, self.totals.updates as usize))?;
        let is_current = self.iteration == Some(context.iteration);
        let n = if is_current { self.totals.updates as f64 } else { 0.0 };
        let Totals { sums, norms, .. } = self.totals;
        let mut report = vec![("train/loss", sums.loss / n)];
        report.extend(figures.iter().zip(sums.diagnostics).map(|(name, sum)| (*name, sum / n)));
        report.push(("train/grad_norm", norms / n));
        report.push(("train/learning_rate", f64::from(self.optimiser.step(context.progress).learning_rate)));
        report.push(("train/n_updates", self.updates as f64));
        report.push(("rollout/exploration_rate", self.exploration.epsilon(self.steps)));
        Ok(report.into_iter().map(|(name, x)| (name, if n == 0.0 && is_mean(name) { f64::NAN } else { x })).collect())
    }

    /// Returns the state for a checkpoint, without the network's parameters and the pages of the buffer.
    pub fn save(&self) -> Tensors {
        let mut tensors = with_prefix(self.target.save(), "target.");
        tensors.append(&mut with_prefix(self.replay.save(), "replay."));
        tensors.insert("counters".into(), Tensor::u64(vec![self.steps, self.updates, self.owed.to_bits()]));
        tensors
    }

    /// Restores the state that [`save`](QLearner::save) returned.
    pub fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let [steps, updates, owed] = *get_u64(tensors, "counters")? else {
            return Err(TensorsError::State("counters: expected three numbers".into()));
        };
        self.target.load(&without_prefix(tensors, "target."))?;
        self.replay.load(&without_prefix(tensors, "replay."))?;
        (self.steps, self.updates, self.owed) = (steps, updates, f64::from_bits(owed));
        Ok(())
    }
}

/// An update rule for a [`QLearner`].
pub trait QAgent: Send {
    /// Adds the rollout to the buffer, and learns as often as is due.
    fn update(&mut self, learner: &mut QLearner, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError>;
}

/// A [`QAgent`] together with its buffer and its networks. The network acts greedily, and the collector explores.
pub struct OffPolicy {
    agent: Box<dyn QAgent>,
    learner: QLearner,
}

impl Algorithm for OffPolicy {
    fn behaviour(&self) -> &dyn Behaviour {
        self.learner.network.as_ref()
    }

    fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
        self.learner.network.as_mut()
    }

    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
        self.learner.network
    }

    fn collection(&self) -> Collection {
        Collection::Steps(self.learner.config.rollout_steps)
    }

    fn exploration(&self) -> Exploration {
        Exploration::EpsilonGreedy(self.learner.exploration)
    }

    fn rollouts_per_iteration(&self) -> usize {
        ITERATION.div_ceil(self.learner.config.rollout_steps * self.learner.envs)
    }

    fn begin(&mut self) {
        self.learner.target = self.learner.network.snapshot();
    }

    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        self.agent.update(&mut self.learner, rollout, context)
    }

    fn replay(&self) -> Option<&Replay> {
        Some(&self.learner.replay)
    }

    fn replay_mut(&mut self) -> Option<&mut Replay> {
        Some(&mut self.learner.replay)
    }

    fn save(&self) -> Tensors {
        self.learner.save()
    }

    fn load(&mut self, state: &Tensors) -> Result<(), TensorsError> {
        self.learner.load(state)
    }
}

/// The errors of the decisions of a batch. Many threads may write, each for its own decisions.
pub struct Errors(Vec<AtomicU32>);

impl Errors {
    /// Creates `n` errors of 0.
    pub fn new(n: usize) -> Self {
        Self((0..n).map(|_| AtomicU32::new(0)).collect())
    }

    /// Sets the error of decision `i`.
    pub fn set(&self, i: usize, error: f32) {
        self.0[i].store(error.to_bits(), Ordering::Relaxed);
    }

    /// Returns the error of decision `i`.
    pub fn get(&self, i: usize) -> f32 {
        f32::from_bits(self.0[i].load(Ordering::Relaxed))
    }
}

/// Computes the gradient of `objective` over a batch. Returns the sums and the gradient's norm. Returns an error unless the loss and the norm
/// are finite; `epoch` is the number of the pass in the update.
pub(crate) fn checked_gradient(
    network: &mut dyn QNetwork,
    (store, batch): (&Store, Batch<'_>),
    objective: &dyn ValueObjective,
    (context, epoch): (UpdateContext, usize),
) -> Result<(Sums, f64), AgentError> {
    let sums = network.gradient(store, batch, objective);
    let norm = f64::from(network.gradient_norm());
    match [("loss", sums.loss), ("gradient norm", norm)].into_iter().find(|(_, got)| !got.is_finite()) {
        Some((what, got)) => Err(context.not_finite(what, got, epoch)),
        None => Ok((sums, norm)),
    }
}

/// Returns an error unless all parameters are finite.
pub(crate) fn checked_parameters(network: &dyn QNetwork, (context, epoch): (UpdateContext, usize)) -> Result<(), AgentError> {
    if network.is_finite() {
        return Ok(());
    }
    let parameter = network.parameters().iter().find(|parameter| !parameter.is_finite());
    Err(context.not_finite("parameter", parameter.map_or(f64::NAN, |parameter| f64::from(*parameter)), epoch))
}

/// Whether a metric is a mean over updates.
fn is_mean(name: &str) -> bool {
    !["train/learning_rate", "train/n_updates", "rollout/exploration_rate"].contains(&name)
}
