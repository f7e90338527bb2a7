//! A reward's way from the environment to the derivative that an objective returns.
//!
//! Until the rollout is complete:
//!
//! | what | where |
//! | --- | --- |
//! | the environment pays it; on texts the verdict, less what length and a missing EOS cost, at the last token, and NaN where nobody could verify | `Env::step`; `TextEnv::reward` in `envs/src/text/env.rs` |
//! | f64 becomes f32 | `envs/src/batch.rs` and the batches of the classic tasks |
//! | it is recorded, environment by environment | `src/train/collect/recording.rs` |
//! | it is clipped, then divided by the standard deviation of returns | `Normaliser::learn` and `scale_rewards` in `src/act/normaliser.rs` |
//! | a learned reward takes its place | `LearnedReward::replace` in `src/train/learned_reward.rs` |
//!
//! What is left is [`Rollout::rewards`]. In an update:
//!
//! | what | where |
//! | --- | --- |
//! | the KL penalty is subtracted (`reference.place = "reward"`) | [`KlPenalty::rewards`], called by [`penalised_rewards`] |
//! | rewards are whitened (`ppo.whiten_rewards`) | [`whiten`], called by [`penalised_rewards`] |
//! | returns, advantages, value targets, comparisons within a group | [`Gae`](crate::Gae), [`returns`](crate::returns), [`groups`](crate::groups) |
//! | advantages are normalised | [`whiten_scored`]; in PPO by each minibatch, in `loss_grad` |
//! | a clip may take the derivative away | [`surrogate`](crate::surrogate), [`value_loss`](crate::value_loss) |
//! | it is multiplied by the decision's weight | [`aggregation`](crate::aggregation), [`Minibatches`](crate::Minibatches) |
//!
//! A text whose score is missing has a reward that is NaN ([`Rollout::scored`]). It takes part in no mean here, nor in an objective that learns
//! from [scored](crate::Minibatches::scored) minibatches. GRPO keeps it: its advantage is 0, but entropy and KL penalty count.

use crate::Rollout;
use crate::reference::KlPenalty;
use crate::returns::whiten;

/// The reward of every decision in an update: less the KL penalty, where it is in the reward; whitened, where `whitens` says so.
pub fn penalised_rewards(rollout: &Rollout, kl_penalty: &KlPenalty, whitens: bool) -> Vec<f32> {
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
