//! The interface between an update rule and the training loop.

use gradus_base::tensors::{Tensors, TensorsError};
use gradus_nets::{Behaviour, Policy};

use crate::error::AgentError;
use crate::rollout::Rollout;

/// How rollouts are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    /// This number of steps of every environment. An unfinished episode continues in the next rollout.
    Steps(usize),
    /// Whole episodes, the same number from every environment. Taking the episodes that finish first would favour short episodes.
    Episodes {
        /// Number of episodes of each environment.
        per_env: usize,
        /// Number of neighbouring environments in a group. The n-th episodes of these environments start from the same state. 1: no groups.
        group: usize,
        /// Whether one greedy episode is also played for each group. The rollout contains its rewards but not its decisions.
        greedy: bool,
    },
}

/// The position of an update in the training run.
#[derive(Clone, Copy, Debug)]
pub struct UpdateContext {
    /// Seed of the run.
    pub seed: u64,
    /// Number of the update, counted from 0.
    pub iteration: u64,
    /// Fraction of the training completed before this update, from 0 to 1. Schedules depend on it.
    pub progress: f64,
}

/// Metrics of one update, by name. Most names are those of Stable-Baselines3. They are columns of `metrics.csv`: every update reports the same ones in the same order, NaN
/// where there is nothing to report, and a name has neither commas nor quotes.
pub type Report = Vec<(&'static str, f64)>;

/// An update rule. It improves a policy with rollouts that the policy collects.
pub trait Agent: Send {
    /// Returns how rollouts are collected.
    fn collection(&self) -> Collection;

    /// Returns the largest number of decisions of which an update computes a gradient at once, if the rollout has `decisions` decisions.
    /// This number only improves the estimate of the memory; the default is 1.
    fn batch(&self, decisions: usize) -> usize {
        decisions.min(1)
    }

    /// Returns the number of policies that the agent keeps in addition to the one that it improves, for the estimate of the memory.
    fn kept_policies(&self) -> usize {
        0
    }

    /// Returns the number of action distributions that an update keeps of each decision, for the estimate of the memory.
    fn kept_distributions(&self) -> usize {
        0
    }

    /// Returns the number of workers, which divides the number of environments. Each rollout comes from the environments of one worker.
    fn workers(&self) -> usize {
        1
    }

    /// Returns the number of the worker that collects the next rollout.
    fn next_worker(&self) -> usize {
        0
    }

    /// Returns the behaviour that collects the next rollout: the policy itself, or an older version of it.
    fn acting<'a>(&'a self, policy: &'a dyn Policy) -> &'a dyn Behaviour {
        policy
    }

    /// Receives the initial policy, before the first update.
    fn begin(&mut self, policy: &dyn Policy) {
        let _ = policy;
    }

    /// Whether [`wants_more`](Agent::wants_more) can return true. If it can, the texts of rollouts stay in host memory, not on a GPU.
    fn may_want_more(&self) -> bool {
        false
    }

    /// Whether more episodes must be collected with the same policy before the update.
    fn wants_more(&self, rollout: &Rollout) -> bool {
        let _ = rollout;
        false
    }

    /// Improves `policy` with a rollout that this policy collected.
    fn update(&mut self, policy: &mut dyn Policy, rollout: &Rollout, context: UpdateContext) -> Result<Report, AgentError>;

    /// Returns the state that persists between updates, for a checkpoint.
    fn save(&self) -> Tensors {
        Tensors::new()
    }

    /// Restores the state that [`save`](Agent::save) returned. `policy` is the policy that the agent improves.
    fn load(&mut self, policy: &dyn Policy, state: &Tensors) -> Result<(), TensorsError> {
        let _ = policy;
        match state.keys().next() {
            Some(name) => Err(TensorsError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }
}
