//! What every agent is to the training loop.

use gradus_nets::Policy;
use gradus_nets::tensors::{Tensors, TensorsError};

use crate::{AgentError, Rollout};

/// How an agent wants its rollouts collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// So many steps of every environment, wherever episodes end.
    Steps(usize),
    /// Whole episodes, so many of every environment: never the first to finish, which would favour short ones.
    Episodes {
        /// Episodes of each environment.
        per_env: usize,
        /// So many neighbouring environments begin each episode alike, as a group; 1: every environment for itself.
        group: usize,
        /// Whether one more episode is played for each group, with the most probable actions: its return comes with the rollout, its
        /// decisions do not.
        greedy: bool,
    },
}

/// Where in the training an update stands.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext {
    /// The run's seed.
    pub seed: u64,
    /// The number of this update, counted from 0.
    pub iteration: u64,
    /// The fraction of the training that was done before this update, 0 to 1, as schedules see it.
    pub progress: f64,
}

/// Figures of one update, under Stable-Baselines3's names.
pub type Report = Vec<(&'static str, f64)>;

/// An algorithm: turns rollouts into better policies.
pub trait Agent: Send {
    /// How rollouts are to be collected.
    fn collection(&self) -> Collection;

    /// Sees the policy that training begins with, before the first update.
    fn begin(&mut self, policy: &dyn Policy) {
        let _ = policy;
    }

    /// Whether [`wants_more`](Agent::wants_more) can ever say so: then the rollouts' texts stay on the host.
    fn may_want_more(&self) -> bool {
        false
    }

    /// Whether more episodes are to be collected, with the same policy, before it can learn from these.
    fn wants_more(&self, rollout: &Rollout) -> bool {
        let _ = rollout;
        false
    }

    /// Improves `policy` with a rollout that it has collected.
    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError>;

    /// What it remembers from update to update, for a checkpoint.
    fn save(&self) -> Tensors {
        Tensors::new()
    }

    /// Takes over what [`save`](Agent::save) saved, for `policy`.
    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        let _ = policy;
        match state.keys().next() {
            Some(name) => Err(TensorsError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }
}
