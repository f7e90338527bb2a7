//! The path of a reward from the environment to the derivative that an objective returns.
//!
//! Before the update:
//!
//! | operation | where |
//! | --- | --- |
//! | the environment returns it; on texts at the last token: the verdict minus penalties for length and a missing EOS, or NaN if it could not be verified | `Env::step`; `TextEnv::reward` in `envs/src/text/env.rs` |
//! | it is converted from f64 to f32 | `envs/src/batch.rs` and the batches of the classic tasks |
//! | it is recorded, by environment | `src/train/collect/recording.rs` |
//! | it is clipped, then divided by the standard deviation of returns | `Normaliser::learn` and `scale_rewards` in `src/act/normaliser.rs` |
//! | a learned reward replaces it | `LearnedReward::replace` in `src/train/learned_reward.rs` |
//!
//! The result is [`Rollout::rewards`]. In the update:
//!
//! | operation | where |
//! | --- | --- |
//! | the KL penalty is subtracted (`reference.place = "reward"`) | [`KlPenalty::rewards`], called by [`penalised_rewards`] |
//! | rewards are whitened (`ppo.whiten_rewards`) | [`whiten`], called by [`penalised_rewards`] |
//! | returns, advantages, value targets and group comparisons are computed | [`Gae`](crate::Gae), [`returns`](crate::returns), [`groups`](crate::groups) |
//! | advantages are normalised | [`whiten_scored`]; in PPO, `loss_grad` |
//! | a clip may remove the derivative | [`surrogate`](crate::surrogate), [`value_loss`](crate::value_loss) |
//! | the derivative is multiplied by the decision's weight | [`aggregation`](crate::aggregation), [`Minibatches`](crate::Minibatches) |
//!
//! A text that could not be scored has a NaN reward ([`Rollout::scored`]). Means in this module and objectives over
//! [scored](crate::Minibatches::scored) minibatches skip it. GRPO keeps it with advantage 0, so its entropy and KL penalty count.

use crate::Rollout;
use crate::reference::KlPenalty;
use crate::returns::whiten;

/// Returns the rewards for an update: minus the KL penalty if it is in the reward, and whitened if `whitens` is true.
pub fn penalised_rewards(rollout: &Rollout, kl_penalty: &KlPenalty, whitens: bool) -> Vec<f32> {
    let mut rewards = kl_penalty.rewards(rollout);
    if whitens {
        whiten_scored(rollout, &mut rewards, true);
    }
    rewards
}

/// Applies [`whiten`] to all decisions except texts that could not be scored, which stay as they are.
pub fn whiten_scored(rollout: &Rollout, numbers: &mut [f32], keeps_mean: bool) {
    let mut scored: Vec<f32> = rollout.scored_decisions().map(|i| numbers[i]).collect();
    whiten(&mut scored, keeps_mean);
    rollout.scored_decisions().zip(scored).for_each(|(i, x)| numbers[i] = x);
}
