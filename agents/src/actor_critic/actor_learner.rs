//! The parts that agents with a replay buffer, an actor of continuous actions and critics Q_k(s, a) share.

use gradus_base::random::{Purpose, Stream};
use gradus_base::range::above;
use gradus_base::{Settings, settings};
use gradus_nets::{ActorObjective, Batch, Evaluated, Evaluation, QActorCritic, QActorHead, QValues, Sums, ValueObjective};

use crate::agent::UpdateContext;
use crate::config::{AgentKind, Setup};
use crate::error::{AgentError, ConfigError};
use crate::exploration::Exploration;
use crate::parts::optimiser::OptimiserConfig;
use crate::replay::off_policy::{OffPolicy, OffPolicyAgent, OffPolicyConfig, OffPolicyLearner};
use crate::replay::{Kept, Sample};

settings! {
    /// The settings that agents with a replay buffer, an actor and critics share. Most names are those of Stable-Baselines3.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ActorLearnerConfig {
        /// Rate of the soft update of the target networks.
        pub tau: f32 = 0.005 => above(0.0).to(1.0),
        ..
        /// The settings that agents with a replay buffer share.
        pub off_policy: OffPolicyConfig,
    }
}

/// The state of an agent with a replay buffer, an actor and critics.
pub type ActorLearner = OffPolicyLearner<dyn QActorCritic>;

impl ActorLearnerConfig {
    /// Checks that every setting of `agent` is in range.
    pub fn check(&self, agent: &str, setup: &Setup<'_>) -> Result<(), ConfigError> {
        self.check_ranges(agent)?;
        self.off_policy.check(agent, setup)
    }

    /// Returns the agent with this update rule, which explores like this and learns with a network of these parts.
    pub fn built(
        &self,
        (head, exploration): (QActorHead, Exploration),
        setup: &Setup<'_>,
        agent: impl OffPolicyAgent<dyn QActorCritic> + 'static,
    ) -> AgentKind {
        let (config, optimiser, size) = (self.clone(), setup.optimiser.clone(), (setup.envs, setup.steps));
        let kept = Kept::of(setup.world);
        let make = move |network| {
            let learner = ActorLearner::new(config.off_policy, (optimiser, exploration), size, network).keeping(kept);
            Box::new(OffPolicy { agent: Box::new(agent), learner }) as _
        };
        AgentKind::ActorAndCritics { head, replay: self.off_policy.replay(setup), make: Box::new(make) }
    }

    /// Returns the state of an agent for a training of `steps` steps in `envs` environments.
    pub fn learner(&self, optimiser: OptimiserConfig, size: (usize, u64), network: Box<dyn QActorCritic>) -> ActorLearner {
        ActorLearner::new(self.off_policy.clone(), (optimiser, Exploration::Sampled), size, network)
    }
}

/// The loss of the critics of one decision: a multiple of the sum of (Q_k(s, a) - y)^2.
pub struct CriticObjective<'a> {
    /// Targets y.
    pub targets: &'a [f32],
    /// The multiple.
    pub factor: f32,
}

impl CriticObjective<'_> {
    /// Names of the diagnostics.
    pub const METRICS: &'static [&'static str] = &["train/q_value", "train/td_error"];
}

impl ValueObjective for CriticObjective<'_> {
    fn decision(&self, i: usize, q: QValues<'_>) -> Evaluation {
        let (y, share) = (self.targets[i], 1.0 / q.values().len() as f32);
        let mean: f32 = share * q.values().iter().sum::<f32>();
        let distance = share * q.values().iter().map(|q_k| (q_k - y).abs()).sum::<f32>();

        let loss = self.factor * q.sum(|_, q_k| (q_k - y).squared());
        loss.with_diagnostics([mean, distance]).with_error(distance)
    }
}

impl ActorLearner {
    /// The random numbers of the next update.
    pub fn noise(&self, context: UpdateContext) -> Stream {
        Stream::new(context.seed, Purpose::Noise, self.updates())
    }

    /// Returns the target actor's action after each segment of the sample, without noise.
    pub fn next_target_actions(&mut self, sample: &Sample) -> Vec<f32> {
        let (store, mut actions) = (&sample.rollout.store, Vec::new());
        self.target.actions(store, sample.rollout.len()..store.rows(), None, &mut actions, &mut Vec::new());
        actions
    }

    /// Samples the actor's action after each segment of the sample. Returns the actions and their log pi(a'|s').
    pub fn next_actions(&mut self, sample: &Sample, noise: &mut Stream) -> (Vec<f32>, Vec<f32>) {
        let (store, mut actions, mut log_probs) = (&sample.rollout.store, Vec::new(), Vec::new());
        self.network.actions(store, sample.rollout.len()..store.rows(), Some(noise), &mut actions, &mut log_probs);
        (actions, log_probs)
    }

    /// Returns Q_k(s', a') of the target critics, one row of numbers for each observation s' after a segment of the sample; `actions` has the
    /// action a' of each.
    pub fn next_target_values(&mut self, sample: &Sample, actions: &[f32]) -> Vec<f32> {
        let (store, mut values) = (&sample.rollout.store, Vec::new());
        self.target.q_values(store, sample.rollout.len()..store.rows(), actions, &mut values);
        values
    }

    /// Takes an optimiser step of the critics towards the targets: on the mean of `factor` times the squared errors over the drawn decisions,
    /// each with its importance weight. Returns an error unless loss and gradient are finite; otherwise returns the sums over the decisions
    /// and their errors.
    pub fn step_critics(&mut self, sample: &Sample, targets: &[f32], factor: f32, context: UpdateContext) -> Result<Evaluated, AgentError> {
        let weights = Self::weights(sample);
        let (store, batch) = (&sample.rollout.store, Batch::new(&sample.first, &weights));
        let mut evaluated = self.network.critic_gradient(store, batch, &CriticObjective { targets, factor });
        let sums = &mut evaluated.sums;
        let norm = f64::from(self.network.gradient_norm());
        context.check_gradient((sums.loss, norm), self.epoch)?;
        let total: f64 = weights.iter().map(|weight| f64::from(*weight)).sum();
        sums.diagnostics.iter_mut().for_each(|sum| *sum /= total);
        self.network.apply(&self.optimiser_step(context));
        self.record([("train/critic_loss", sums.loss), ("train/critic_grad_norm", norm)]);
        self.record(CriticObjective::METRICS.iter().copied().zip(sums.diagnostics));
        Ok(evaluated)
    }

    /// Takes an optimiser step of the actor on the mean of `objective` over the drawn decisions. With a stream, the actor samples its actions.
    /// Returns an error unless loss and gradient are finite; otherwise returns the sums over the decisions.
    pub fn step_actor(
        &mut self,
        sample: &Sample,
        noise: Option<&mut Stream>,
        objective: &dyn ActorObjective,
        context: UpdateContext,
    ) -> Result<Sums, AgentError> {
        let weights = vec![1.0 / sample.first.len() as f32; sample.first.len()];
        let sums = self.network.actor_gradient(&sample.rollout.store, Batch::new(&sample.first, &weights), noise, objective);
        let norm = f64::from(self.network.gradient_norm());
        context.check_gradient((sums.loss, norm), self.epoch)?;
        self.network.apply(&self.optimiser_step(context));
        self.record([("train/actor_loss", sums.loss), ("train/actor_grad_norm", norm)]);
        Ok(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_twin_critics_is_that_of_a_table() {
        // Q = 1 and 4, y = 2: errors -1 and 2
        let objective = CriticObjective { targets: &[9.0, 2.0], factor: 0.5 };
        let mut direction = [0.0; 2];
        let Evaluation { loss, diagnostics: [q, distance, ..], error } = objective.decision(1, QValues::new(&[1.0, 4.0], &mut direction));
        assert_eq!((loss.value, direction.map(|d| loss.q * d)), (2.5, [-1.0, 2.0]));
        assert_eq!((q, distance, error), (2.5, 1.5, 1.5), "means over the critics; the error becomes the priority");
    }
}
