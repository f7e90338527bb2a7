//! The path of a reward from the environment to the loss that an objective returns.
//!
//! Before the update:
//!
//! | operation | code |
//! | --- | --- |
//! | the environment returns the reward | `Env::step`; `TextEnv::reward` in `envs/src/text/env.rs` |
//! | the reward is converted from f64 to f32 | `envs/src/batch.rs` and the batches of the classic tasks |
//! | the reward is added to the trajectory of its environment | `rollouts/src/collect/recording.rs` |
//! | the reward is multiplied by `wrappers.reward_scale`, clipped, then divided by the standard deviation of returns | `Normaliser::learn` and `scale_rewards` in `rollouts/src/normaliser.rs` |
//! | a learned reward replaces the environment's reward | `LearnedReward::replace` in `src/train/learned_reward.rs` |
//!
//! The result is [`Rollout::rewards`]. On texts, the environment's rewards of all tokens sum to the reward that `Task::verify` returns for
//! the text, minus the penalties for length, for tokens beyond the longest text without one, and for a missing EOS. A text that could not be verified ends the run, or has the reward 0
//! (`text.reward_errors = "zero"`).
//!
//! In the update:
//!
//! | operation | code |
//! | --- | --- |
//! | the KL penalty is subtracted (`reference.place = "reward"`) | [`KlPenalty::rewards`], called by [`penalised_rewards`] |
//! | rewards are whitened (`ppo.whiten_rewards`) | [`whiten`], called by [`penalised_rewards`] |
//! | returns, advantages, value targets and group comparisons are computed | [`Gae`](crate::Gae), [`returns`](crate::parts::returns), [`groups`](crate::parts::groups) |
//! | advantages are normalised | [`whiten_scored`]; in PPO, `PpoObjective::loss` |
//! | a clip may remove the derivative | `PpoObjective::loss`, `GrpoObjective::surrogate`, [`surrogate`](crate::parts::surrogate) |
//! | the derivative is multiplied by the decision's weight | [`aggregation`](crate::parts::aggregation), [`Minibatches`](crate::Minibatches) |
//!
//! A text for which the reward model returned NaN could not be scored and has a NaN reward ([`Rollout::scored`]). [`whiten_scored`] and the
//! minibatches of [`Minibatches::scored`](crate::Minibatches::scored) skip such texts. GRPO keeps these texts with advantage 0, so their
//! entropy and KL penalty are part of the loss.

use crate::parts::reference::KlPenalty;
use crate::parts::returns::whiten;
use crate::rollout::Rollout;

/// Returns the rewards for an update. If the KL penalty is in the reward, it is subtracted. If `whitens` is true, the rewards are whitened.
pub fn penalised_rewards(rollout: &Rollout, kl_penalty: &KlPenalty, whitens: bool) -> Vec<f32> {
    let mut rewards = kl_penalty.rewards(rollout);
    if whitens {
        whiten_scored(rollout, &mut rewards, true);
    }
    rewards
}

/// Applies [`whiten`] to all decisions except those in texts that could not be scored, which are unchanged.
pub fn whiten_scored(rollout: &Rollout, numbers: &mut [f32], keeps_mean: bool) {
    let mut scored: Vec<f32> = rollout.scored_decisions().map(|i| numbers[i]).collect();
    whiten(&mut scored, keeps_mean);
    rollout.scored_decisions().zip(scored).for_each(|(i, x)| numbers[i] = x);
}
