//! A reward's way from the environment to the objective. It is rewritten in four places, in this order:
//!
//! | what | where | when |
//! | --- | --- | --- |
//! | it is clipped and divided by the standard deviation of returns | `src/act/normaliser.rs` | when a rollout is collected |
//! | a learned reward takes its place | `src/train/learned_reward.rs` | when the rollout is complete |
//! | the KL penalty is subtracted, `reference.place = "reward"` | [`KlPenalty::rewards`], in `reference.rs` | when the update begins |
//! | it is whitened, `ppo.whiten_rewards` | [`whiten`], in `returns.rs` | when the update begins |
//!
//! [`Rollout::rewards`] is what the first two have left. Advantages and returns are computed from the [`rewards`] of the update.
//!
//! A text whose score is missing has a reward that is NaN ([`Rollout::scored`]). It takes part in none of these means, nor in an objective
//! that learns from [scored](crate::Minibatches::scored) minibatches.

use crate::Rollout;
use crate::reference::KlPenalty;
use crate::returns::whiten;

/// The reward of every decision in an update: less the KL penalty, where it is in the reward; whitened, where `whitens` says so.
pub fn rewards(rollout: &Rollout, kl_penalty: &KlPenalty, whitens: bool) -> Vec<f32> {
    let mut rewards = kl_penalty.rewards(rollout);
    if whitens {
        whiten_scored(rollout, &mut rewards, true);
    }
    rewards
}

/// [`whiten`] over all decisions, but for texts that could not be scored, which stay as they are.
pub fn whiten_scored(rollout: &Rollout, numbers: &mut [f32], keeps_mean: bool) {
    let mut scored: Vec<f32> = rollout.scored_decisions().map(|i| numbers[i]).collect();
    whiten(&mut scored, keeps_mean);
    rollout.scored_decisions().zip(scored).for_each(|(i, x)| numbers[i] = x);
}
