//! The interface between an algorithm and the training loop.

use gradus_base::tensors::{Tensors, TensorsError};
use gradus_nets::{Behaviour, Policy};

use crate::agent::{Agent, Collection, Report, UpdateContext};
use crate::error::AgentError;
use crate::exploration::Exploration;
use crate::replay::Replay;
use crate::rollout::Rollout;

/// An agent together with the behaviour that acts in the environments.
///
/// Most agents improve an actor-critic network described by the configuration. They implement [`Agent`], and [`OnPolicy`] combines agent
/// and network into an algorithm. An agent with a custom behaviour implements this trait directly. Examples of such behaviours are a table
/// of action values, a fixed rule, and an epsilon-greedy policy over a Q-network that learns from a replay buffer.
pub trait Algorithm: Send {
    /// Returns the behaviour that acts in the environments.
    fn behaviour(&self) -> &dyn Behaviour;

    /// Returns the behaviour mutably, to load saved parameters.
    fn behaviour_mut(&mut self) -> &mut dyn Behaviour;

    /// Returns the behaviour alone, for use without training.
    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour>;

    /// Returns the actor-critic network, if there is one. In text environments, a reward model can be initialised from this network.
    fn policy(&self) -> Option<&dyn Policy> {
        None
    }

    /// Returns how rollouts are collected.
    fn collection(&self) -> Collection;

    /// Returns how actions are chosen while rollouts are collected.
    fn exploration(&self) -> Exploration {
        Exploration::Sampled
    }

    /// Returns the number of workers, which divides the number of environments. Each rollout comes from the environments of one worker.
    fn workers(&self) -> usize {
        1
    }

    /// Returns the number of the worker that collects the next rollout.
    fn next_worker(&self) -> usize {
        0
    }

    /// Returns the behaviour that collects the next rollout.
    fn acting(&self) -> &dyn Behaviour {
        self.behaviour()
    }

    /// Returns the number of rollouts in an iteration, each with its update: more than 1 if rollouts are so short that a report of each
    /// would take longer than the update. The report of the last one is the report of the iteration.
    fn rollouts_per_iteration(&self) -> usize {
        1
    }

    /// Called once, after the initial parameters are set.
    fn begin(&mut self) {}

    /// Whether [`wants_more`](Algorithm::wants_more) can return true.
    fn may_want_more(&self) -> bool {
        false
    }

    /// Whether more episodes must be collected with the same behaviour before the update.
    fn wants_more(&self, rollout: &Rollout) -> bool {
        let _ = rollout;
        false
    }

    /// Learns from a rollout that the behaviour collected.
    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError>;

    /// Returns the replay buffer, if there is one. Observations and rewards of rollouts are then not normalised yet; see
    /// [`Scaling`](crate::Scaling).
    fn replay(&self) -> Option<&Replay> {
        None
    }

    /// Returns the replay buffer mutably, to load its pages.
    fn replay_mut(&mut self) -> Option<&mut Replay> {
        None
    }

    /// Called when all environments begin new episodes before those that are going on have ended. What is kept of these must not be joined to what follows: in a replay buffer
    /// they end as if they had been truncated.
    fn interrupt(&mut self) {
        if let Some(replay) = self.replay_mut() {
            replay.interrupt();
        }
    }

    /// Returns the state that persists between updates, except the behaviour's parameters and the pages of the replay buffer. A checkpoint
    /// stores this state.
    fn save(&self) -> Tensors {
        Tensors::new()
    }

    /// Restores the state that [`save`](Algorithm::save) returned.
    fn load(&mut self, state: &Tensors) -> Result<(), TensorsError> {
        match state.keys().next() {
            Some(name) => Err(TensorsError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }
}

/// An [`Agent`] and the network that it improves. The network is also the behaviour.
pub struct OnPolicy {
    /// The update rule.
    pub agent: Box<dyn Agent>,
    /// The network.
    pub policy: Box<dyn Policy>,
}

impl Algorithm for OnPolicy {
    fn behaviour(&self) -> &dyn Behaviour {
        self.policy.as_ref()
    }

    fn behaviour_mut(&mut self) -> &mut dyn Behaviour {
        self.policy.as_mut()
    }

    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour> {
        self.policy
    }

    fn policy(&self) -> Option<&dyn Policy> {
        Some(self.policy.as_ref())
    }

    fn collection(&self) -> Collection {
        self.agent.collection()
    }

    fn workers(&self) -> usize {
        self.agent.workers()
    }

    fn next_worker(&self) -> usize {
        self.agent.next_worker()
    }

    fn acting(&self) -> &dyn Behaviour {
        self.agent.acting(self.policy.as_ref())
    }

    /// Every worker collects about one rollout.
    fn rollouts_per_iteration(&self) -> usize {
        self.agent.workers()
    }

    fn begin(&mut self) {
        self.agent.begin(self.policy.as_ref());
    }

    fn may_want_more(&self) -> bool {
        self.agent.may_want_more()
    }

    fn wants_more(&self, rollout: &Rollout) -> bool {
        self.agent.wants_more(rollout)
    }

    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError> {
        self.agent.update(self.policy.as_mut(), rollout, context)
    }

    fn save(&self) -> Tensors {
        self.agent.save()
    }

    fn load(&mut self, state: &Tensors) -> Result<(), TensorsError> {
        self.agent.load(self.policy.as_ref(), state)
    }
}
