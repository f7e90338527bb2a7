//! The parts that agents with a replay buffer and a network of action values share.

use gradus_base::range::{above, at_least, from};
use gradus_base::{Settings, settings};
use gradus_nets::{Batch, Evaluated, QHead, QNetwork, Store, ValueObjective, greedy};

use crate::agent::UpdateContext;
use crate::config::{AgentKind, Setup};
use crate::error::{AgentError, ConfigError};
use crate::exploration::{EpsilonGreedy, Exploration};
use crate::parts::optimiser::OptimiserConfig;
use crate::replay::off_policy::{OffPolicy, OffPolicyAgent, OffPolicyConfig, OffPolicyLearner, TargetUpdate};
use crate::replay::{Kept, Sample};

settings! {
    /// The settings that agents with a replay buffer and a network of action values share. Most names are those of Stable-Baselines3.
    #[derive(Clone, Debug, PartialEq)]
    pub struct QLearnerConfig {
        /// Environment steps between two updates of the target network.
        pub target_update_interval: u64 = 500 => at_least(1),
        /// Rate of the soft update of the target network, above 0, to 1; 1 is a copy.
        pub tau: f32 = 1.0 => above(0.0).to(1.0),
        /// Fraction of the training in which epsilon, the probability of a random action, changes linearly.
        pub exploration_fraction: f64 = 0.2 => from(0.0).to(1.0),
        /// Epsilon at the beginning.
        pub exploration_initial_eps: f64 = 1.0 => from(0.0).to(1.0),
        /// Epsilon after `exploration_fraction`.
        pub exploration_final_eps: f64 = 0.05 => from(0.0).to(1.0),
        ..
        /// The settings that agents with a replay buffer share.
        pub off_policy: OffPolicyConfig,
    }
}

/// The state of an agent with a replay buffer and a network of action values.
pub type QLearner = OffPolicyLearner<dyn QNetwork>;

impl QLearnerConfig {
    /// Checks that every setting of `agent` is in range.
    pub fn check(&self, agent: &str, setup: &Setup<'_>) -> Result<(), ConfigError> {
        self.check_ranges(agent)?;
        self.off_policy.check(agent, setup)
    }

    /// Returns the agent with this update rule, which learns with a network of these outputs.
    pub fn built(&self, head: QHead, setup: &Setup<'_>, agent: impl OffPolicyAgent<dyn QNetwork> + 'static) -> AgentKind {
        let (config, optimiser, size) = (self.clone(), setup.optimiser.clone(), (setup.envs, setup.steps));
        let kept = Kept::of(setup.world);
        let make = move |network| {
            let learner = config.learner(optimiser, size, network).keeping(kept);
            Box::new(OffPolicy { agent: Box::new(agent), learner }) as _
        };
        AgentKind::ActionValues { head, replay: self.off_policy.replay(setup), make: Box::new(make) }
    }

    /// Returns the state of an agent for a training of `steps` steps in `envs` environments.
    pub fn learner(&self, optimiser: OptimiserConfig, (envs, steps): (usize, u64), network: Box<dyn QNetwork>) -> QLearner {
        let exploration = Exploration::EpsilonGreedy(self.exploration(steps));
        QLearner::new(self.off_policy.clone(), (optimiser, exploration), (envs, steps), network)
    }

    /// Returns when the target network moves.
    pub fn target_update(&self) -> TargetUpdate {
        TargetUpdate::Steps { interval: self.target_update_interval, tau: self.tau }
    }

    /// Returns epsilon and, if there are priorities, beta: see [`AgentConfig::scheduled`](crate::AgentConfig::scheduled).
    pub fn scheduled(&self, steps: u64, done: u64) -> Vec<(&'static str, f64)> {
        [vec![("epsilon", self.exploration(steps).epsilon(done))], self.off_policy.scheduled(steps, done)].concat()
    }

    /// How the agent explores in a training of `steps` environment steps.
    pub fn exploration(&self, steps: u64) -> EpsilonGreedy {
        EpsilonGreedy {
            random_steps: self.off_policy.learning_starts,
            first: self.exploration_initial_eps,
            last: self.exploration_final_eps,
            over: (self.exploration_fraction * steps as f64).round() as u64,
        }
    }
}

impl QLearner {
    /// Returns the target network's values of all actions after each segment of the sample that has not terminated, in the order of the segments.
    pub fn next_target_values(&mut self, sample: &Sample) -> Vec<f32> {
        let mut values = Vec::new();
        self.target.q_values(&sample.rollout.store, sample.rollout.len()..sample.rollout.store.rows(), &mut values);
        values
    }

    /// Returns the target network's values of all actions in the observation of every decision of the sample.
    pub fn target_values(&mut self, sample: &Sample) -> Vec<f32> {
        let mut values = Vec::new();
        self.target.q_values(&sample.rollout.store, 0..sample.rollout.len(), &mut values);
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
        let (n, atoms) = (self.network.actions(), self.network.head().atoms);
        values.chunks(n * atoms).enumerate().map(|(row, q)| greedy(q, atoms, sample.next_mask(row))).collect()
    }

    /// Takes an optimiser step on the mean of `objective` over the drawn decisions, each with its importance weight. Returns an error unless
    /// loss and gradient are finite; otherwise returns the sums over the decisions and their errors. `metrics` are the names of the
    /// objective's diagnostics.
    pub fn step(
        &mut self,
        sample: &Sample,
        (objective, metrics): (&dyn ValueObjective, &'static [&'static str]),
        context: UpdateContext,
    ) -> Result<Evaluated, AgentError> {
        let weights = Self::weights(sample);
        let data = (&sample.rollout.store, Batch::new(&sample.first, &weights));
        let (mut evaluated, norm) = checked_gradient(self.network.as_mut(), data, objective, (context, self.epoch))?;
        let sums = &mut evaluated.sums;
        // diagnostics are means, whatever the importance weights
        let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        sums.diagnostics.iter_mut().for_each(|sum| *sum /= total);
        self.network.apply(&self.optimiser_step(context));
        self.record([("train/loss", sums.loss), ("train/grad_norm", norm)]);
        self.record(metrics.iter().copied().zip(sums.diagnostics));
        Ok(evaluated)
    }

    /// Returns the names of the metrics that [`step`](QLearner::step) records: the loss, the objective's diagnostics, called `metrics`, and the
    /// gradient norm.
    pub fn metrics(metrics: &[&'static str]) -> Vec<&'static str> {
        [&["train/loss"], metrics, &["train/grad_norm"]].concat()
    }
}

/// Computes the gradient of `objective` over a batch. Returns the value and the gradient's norm. Returns an error unless the loss and the norm
/// are finite; `epoch` is the number of the pass in the update.
pub(crate) fn checked_gradient(
    network: &mut dyn QNetwork,
    (store, batch): (&Store, Batch<'_>),
    objective: &dyn ValueObjective,
    (context, epoch): (UpdateContext, usize),
) -> Result<(Evaluated, f64), AgentError> {
    let evaluated = network.gradient(store, batch, objective);
    let norm = f64::from(network.gradient_norm());
    context.check_gradient((evaluated.sums.loss, norm), epoch)?;
    Ok((evaluated, norm))
}
