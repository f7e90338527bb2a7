//! What the training loop drives.

use gradus_nets::tensors::{Tensors, TensorsError};
use gradus_nets::{Behaviour, Policy};

use crate::{Agent, AgentError, Collection, Report, Rollout, UpdateContext};

/// An agent together with what it acts with.
///
/// Most agents improve an actor-critic network that the configuration describes: they are written as an [`Agent`], and [`OnPolicy`] makes an
/// algorithm of agent and network. An agent that brings something else to act with, such as a table, a rule, or a greedy policy over values
/// with exploration and a replay buffer, implements this trait itself.
pub trait Algorithm: Send {
    /// What acts in the environments.
    fn behaviour(&self) -> &dyn Behaviour;

    /// The same, for loading what was saved.
    fn behaviour_mut(&mut self) -> &mut dyn Behaviour;

    /// The same alone, for those who only act.
    fn into_behaviour(self: Box<Self>) -> Box<dyn Behaviour>;

    /// The actor-critic network, where there is one: on texts a reward model can begin as its copy.
    fn policy(&self) -> Option<&dyn Policy> {
        None
    }

    /// How rollouts are to be collected.
    fn collection(&self) -> Collection;

    /// Called once, when the parameters that training begins with are known.
    fn begin(&mut self) {}

    /// Whether [`wants_more`](Algorithm::wants_more) can ever say so.
    fn may_want_more(&self) -> bool {
        false
    }

    /// Whether more episodes are to be collected, with the same behaviour, before it can learn from these.
    fn wants_more(&self, rollout: &Rollout) -> bool {
        let _ = rollout;
        false
    }

    /// Learns from a rollout that its behaviour has collected.
    fn update(&mut self, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError>;

    /// What it remembers from update to update beside its behaviour, for a checkpoint.
    fn save(&self) -> Tensors {
        Tensors::new()
    }

    /// Takes over what [`save`](Algorithm::save) saved.
    fn load(&mut self, state: &Tensors) -> Result<(), TensorsError> {
        match state.keys().next() {
            Some(name) => Err(TensorsError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }
}

/// An [`Agent`] and the network that it improves, which is also what acts.
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
