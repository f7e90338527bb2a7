//! How a rollout is collected.

use gradus_agents::{ActionNoise, Collection, Exploration, Noisy};

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
}

impl RolloutPlan {
    /// A plan of sampled actions, at the beginning of a run.
    pub fn new(collection: Collection, envs: usize) -> Self {
        Self { collection, exploration: Exploration::Sampled, is_raw: false, before: 0, envs }
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
