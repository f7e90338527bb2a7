//! Homework 3: language. `check h3` compares your functions with the examples of the assignment; the grade is decided by other numbers. The
//! assignment: `gradus guide homework-3`.

/// h3.1 The probabilities that are left by nucleus sampling: tokens from the likeliest on, until their sum is p or more, divided by this sum.
/// One token is always kept.
pub fn top_p(logits: &[f64], p: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// h3.2 The loss of Plackett and Luce for a ranking: `scores` are those of the completions, the best first.
pub fn ranking_loss(scores: &[f64]) -> f64 {
    todo!() // for you to write
}

/// h3.3 The next coefficient of a divergence: beta (1 + e texts / horizon), where e is kl / target - 1, held between -0.2 and 0.2.
pub fn adaptive_beta(beta: f64, kl: f64, target: f64, texts: usize, horizon: f64) -> f64 {
    todo!() // for you to write
}

/// h3.4 The advantages of GRPO with process supervision. Completion i has steps with the rewards `rewards[i]`, which end with the tokens
/// `ends[i]`, and `lengths[i]` tokens. All rewards of the group are normalised together: less their mean, divided by their standard deviation
/// (of the population) plus 1e-4. The advantage of a token is the sum over the steps that end with it or later.
pub fn process_advantages(rewards: &[Vec<f64>], ends: &[Vec<usize>], lengths: &[usize]) -> Vec<Vec<f64>> {
    todo!() // for you to write
}
