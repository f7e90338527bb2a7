//! Compares the advantages and gradients of all estimators on one set of rollouts.

use gradus_agents::estimators::{Comparison, Estimate, compare, side_by_side};
use gradus_agents::{Aggregation, Collection, Rollout, UpdateContext};
use gradus_envs::EnvSpec;
use gradus_nets::{ActionRows, Policy};
use gradus_rollouts::Collector;

use crate::{Config, Error, LearnedReward, memory};

/// The result of [`inspect()`].
pub struct Inspection {
    /// Groups of episodes, collected with the current policy. The episodes of a group start in the same state.
    pub rollout: Rollout,
    /// The environment's reward of each decision, if the rewards of the rollout are from a reward model.
    pub true_rewards: Option<Vec<f32>>,
    /// V(s) of every row of the rollout's store.
    pub values: Vec<f32>,
    /// The advantages of each estimator.
    pub estimates: Vec<Estimate>,
    /// The gradients of the estimators.
    pub comparison: Comparison,
    /// Largest difference between a log-probability at sampling and at the start of the update. If it is not close to 0, the probability
    /// ratios of the first gradient step are not 1.
    pub mismatch: f32,
}

/// The episodes to collect and the discounts of the estimators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looked {
    /// Number of groups.
    pub groups: usize,
    /// Episodes per group.
    pub group_size: usize,
    /// Seed of the episodes.
    pub seed: u64,
    /// Discount factor.
    pub gamma: f32,
    /// Lambda of GAE.
    pub lambda: f32,
}

/// Collects groups of episodes and computes the advantages and gradients of every estimator, with the rewards of `learned` if there is a
/// reward model. The parameters of the policy do not change.
pub fn inspect(
    policy: &mut dyn Policy,
    world: &EnvSpec,
    config: &Config,
    looked: Looked,
    learned: Option<&mut LearnedReward>,
) -> Result<Inspection, Error> {
    let Looked { groups, group_size, seed, gamma, lambda } = looked;
    let bytes = memory::of_episodes(config, world)?;
    memory::expect("--groups", groups, &format!("of {group_size} episodes"), |groups| bytes(groups * group_size as f64))?;
    let collection = Collection::Episodes { per_env: 1, group: group_size, greedy: true };
    let mut collector = Collector::new(world, groups * group_size, seed, collection)?.with_max_concurrent(config.max_concurrent);
    let (mut rollout, episodes) = collector.collect(policy)?;
    let true_rewards = learned.map(|learned| {
        let of_world = rollout.rewards.clone();
        learned.replace(&mut rollout, &episodes, collector.greedy_episodes());
        of_world
    });
    let mut values = Vec::new();
    policy.values(&rollout.store, &mut values);
    let estimates = side_by_side(&rollout, Some(&values), gamma, lambda);
    let context = UpdateContext { seed, iteration: 0, progress: 0.0 };
    let comparison = compare(policy, &rollout, &estimates, Aggregation::TokenMean, context)?;
    let mut log_probs = Vec::new();
    policy.log_probs(&rollout.store, &mut log_probs);
    let mismatch = log_probs.iter().zip(&rollout.log_probs).fold(0.0, |most: f32, (now, then)| most.max((now - then).abs()));
    Ok(Inspection { rollout, true_rewards, values, estimates, comparison, mismatch })
}

impl Inspection {
    /// Returns the discrete actions (on text tasks, the tokens) of all decisions; empty for continuous actions and for actions on a
    /// device.
    pub fn tokens(&self) -> &[u32] {
        match &self.rollout.store.actions {
            ActionRows::Discrete(actions) => actions,
            ActionRows::Continuous { .. } | ActionRows::OnDevice(_) => &[],
        }
    }
}
