//! How a rollout is collected.

use std::ops::Range;

use gradus_agents::{ActionNoise, Collection, Exploration, Noisy};
use gradus_nets::Behaviour;

use crate::Explores;

/// How a rollout is collected.
#[derive(Clone, Copy)]
pub(crate) struct RolloutPlan {
    pub collection: Collection,
    pub exploration: Exploration,
    /// Whether observations and rewards are recorded as the environment gave them.
    pub is_raw: bool,
    /// Environment steps before the rollout, and in each step of the rollout.
    pub before: u64,
    pub envs: usize,
    /// Numbers that the policy remembers of an episode, and the largest number of decisions of a sequence that it reads; 0: no memory, and no
    /// largest number.
    pub memory: usize,
    pub sequence: usize,
}

impl RolloutPlan {
    /// A plan of sampled actions, at the beginning of a run.
    pub fn new(collection: Collection, envs: usize) -> Self {
        Self { collection, exploration: Exploration::Sampled, is_raw: false, before: 0, envs, memory: 0, sequence: 0 }
    }

    /// The same plan, for a policy that acts in `envs` environments.
    pub fn of(self, policy: &dyn Behaviour, envs: usize) -> Self {
        Self { envs, memory: policy.memory_width(), sequence: policy.sequence_length(), ..self }
    }

    /// Divides decisions into the sequences that the policy reads.
    pub fn sequences(&self, decisions: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (end, length) = (decisions.end, if self.sequence == 0 { decisions.len().max(1) } else { self.sequence });
        decisions.step_by(length).map(move |begin| begin..end.min(begin + length))
    }

    /// Whether a decision is the first of a sequence. `number` counts from the beginning of its segment.
    pub fn begins_sequence(&self, number: usize) -> bool {
        if self.sequence == 0 { number == 0 } else { number.is_multiple_of(self.sequence) }
    }

    /// Whether the rollout is one of whole episodes.
    pub fn wants_whole_episodes(&self) -> bool {
        matches!(self.collection, Collection::Episodes { .. })
    }

    /// Whether the noise of an action depends on that of the action before.
    pub fn noise_is_correlated(&self) -> bool {
        matches!(self.exploration, Exploration::Noisy(Noisy { noise: ActionNoise::OrnsteinUhlenbeck, .. }))
    }

    /// Returns how the actions of step `step` of the rollout differ from those of the policy.
    pub fn explores(&self, step: u32) -> Explores {
        let step = self.before + u64::from(step) * self.envs as u64;
        match self.exploration {
            Exploration::Sampled => Explores::Not,
            Exploration::EpsilonGreedy(exploration) => Explores::Epsilon(exploration.epsilon(step)),
            Exploration::Noisy(Noisy { random_steps, .. }) if step < random_steps => Explores::Uniform,
            Exploration::Noisy(noisy) => Explores::Noise(noisy),
        }
    }

    /// Returns the group of environment `env`'s episode number `episode` of the rollout.
    pub fn group(&self, env: usize, episode: usize) -> usize {
        match self.collection {
            Collection::Steps(_) => env,
            // environments of a group start alike; their n-th episodes form one group of the rollout
            Collection::Episodes { per_env, group, .. } => env / group.max(1) * per_env + episode,
        }
    }
}
