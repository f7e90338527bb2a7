//! Lesson 11: a text is a Markov decision process. `check 11` says how far you are.
//!
//! Logarithms are natural. A completion is what the policy writes after a prompt, token by token.

/// 11.1 The log-probability of a token that is drawn with a temperature, from the logits.
pub fn token_log_prob(logits: &[f64], token: usize, temperature: f64) -> f64 {
    todo!() // for you to write
}

/// 11.2 The log-probability of a completion. `log_probs` has a number for each token of a text: the prompt, the completion, and padding.
/// `is_completion` says which of them are the completion's.
pub fn completion_log_prob(log_probs: &[f64], is_completion: &[bool]) -> f64 {
    todo!() // for you to write
}

/// 11.3 GRPO's advantages of the completions of one prompt, from their rewards: less their mean, divided by their standard deviation (of
/// the population) plus 1e-4.
pub fn group_advantages(rewards: &[f64]) -> Vec<f64> {
    todo!() // for you to write
}

/// 11.4 GRPO's objective, which is to become large. `log_ratios[i][t]` is the log-probability of token t of completion i now, less that
/// when it was sampled. All tokens of a completion have its advantage. Of min(ratio * advantage, the ratio held between 1 - clip and 1 + clip,
/// times the advantage), take the mean over the tokens of each completion, and then the mean over the completions.
pub fn grpo_objective(log_ratios: &[Vec<f64>], advantages: &[f64], clip: f64) -> f64 {
    todo!() // for you to write
}

/// 11.5 PPO's advantage of each token of a completion, by GAE without a discount. `values[t]` is the critic's value before token t. The
/// reward of the text comes with the last token, and ends the episode.
pub fn token_advantages(values: &[f64], reward: f64, lambda: f64) -> Vec<f64> {
    todo!() // for you to write
}
