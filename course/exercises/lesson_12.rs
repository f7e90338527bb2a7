//! Lesson 12: preferences. `check 12` says how far you are.
//!
//! Logarithms are natural.

/// 12.1 The loss of a reward model for a pair, from the scores of the completion that was chosen and of the one that was rejected: minus
/// the logarithm of the probability of the choice (Bradley and Terry).
pub fn preference_loss(chosen: f64, rejected: f64) -> f64 {
    todo!() // for you to write
}

/// 12.2 The rewards of the tokens of a completion: the score of the text with the last token, and at each token beta times the difference
/// of its log-probability in the policy from that in the reference, as a price.
pub fn penalised_rewards(log_probs: &[f64], reference: &[f64], score: f64, beta: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 12.3 The policy with the largest mean of reward - beta KL(policy || reference), over a few completions.
pub fn best_policy(reference: &[f64], rewards: &[f64], beta: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 12.4 DPO's loss of a pair. `chosen` and `rejected` are the log-probabilities of the whole completion in the policy and in the reference:
/// `[policy, reference]`.
pub fn dpo_loss(chosen: [f64; 2], rejected: [f64; 2], beta: f64) -> f64 {
    todo!() // for you to write
}

/// 12.5 The mean true reward of the best of n: over all ways to choose n different completions, of which the one with the highest score is
/// taken. No two scores are the same.
pub fn best_of_n(scores: &[f64], rewards: &[f64], n: usize) -> f64 {
    todo!() // for you to write
}
