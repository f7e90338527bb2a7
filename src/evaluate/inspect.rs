//! One set of rollouts as every estimator sees it: advantages and gradients side by side.

use gradus_agents::estimators::{Comparison, Estimate, compare, side_by_side};
use gradus_agents::{Aggregation, Collection, Rollout, UpdateContext};
use gradus_envs::World;
use gradus_nets::{ActionRows, Policy};

use crate::train::collect::Collector;
use crate::{Config, Error, LearnedReward};

/// What is compared.
pub struct Inspection {
    /// Groups of episodes that began alike, collected with the policy as it is.
    pub rollout: Rollout,
    /// What the world itself paid for each decision, where the rewards of the rollout are learned ones.
    pub true_rewards: Option<Vec<f32>>,
    /// V of every row of its store.
    pub values: Vec<f32>,
    /// What each estimator says of each decision.
    pub estimates: Vec<Estimate>,
    /// The gradients they make.
    pub comparison: Comparison,
    /// By how much, at most, the log-probabilities of sampling differ from those that learning begins with. Where this is not next to
    /// nothing, the ratio of a first step is not 1.
    pub mismatch: f32,
}

/// Which rollouts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Looked {
    /// Groups.
    pub groups: usize,
    /// Episodes of each.
    pub group_size: usize,
    /// The seed of the episodes.
    pub seed: u64,
    /// Discount.
    pub gamma: f32,
    /// GAE's lambda.
    pub lambda: f32,
}

/// Collects groups of episodes and lets every estimator say what it makes of them, paid by the learned reward where there is one. The policy
/// stays as it is.
pub fn inspect(
    policy: &mut dyn Policy,
    world: &World,
    config: &Config,
    looked: Looked,
    learned: Option<&mut LearnedReward>,
) -> Result<Inspection, Error> {
    let Looked { groups, group_size, seed, gamma, lambda } = looked;
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
    /// The tokens of decisions, where there are such.
    pub fn tokens(&self) -> &[u32] {
        match &self.rollout.store.actions {
            ActionRows::Discrete(actions) => actions,
            ActionRows::Continuous { .. } | ActionRows::OnDevice(_) => &[],
        }
    }
}
