//! Lesson 6: REINFORCE and baselines. `check 6` says how far you are.
//!
//! A policy's logits become probabilities by softmax (exercise 1.4).

/// 6.1 The derivative of the log-probability of an action with respect to each logit.
pub fn log_softmax_gradient(logits: &[f64], action: usize) -> Vec<f64> {
    todo!() // for you to write
}

/// 6.2 The return from each step on, to the end of its episode, discounted by gamma.
///
/// The list has several episodes, one after the other; `is_last[t]` says whether step t is the last one of its episode, and is true for
/// the last step of the list.
pub fn returns_to_go(rewards: &[f64], is_last: &[bool], gamma: f64) -> Vec<f64> {
    todo!() // for you to write
}

/// 6.3 The derivative of the mean over the steps of weight times log-probability, with respect to each logit of each step.
///
/// It is the estimate of the gradient that goes up, and not that of a loss. `logits[t]` are the logits of step t, `actions[t]` its action, `weights[t]` its return or advantage. The result has the shape of `logits`.
pub fn policy_gradient(logits: &[Vec<f64>], actions: &[usize], weights: &[f64]) -> Vec<Vec<f64>> {
    todo!() // for you to write
}

/// 6.4 The baseline of each episode: the mean return of all other episodes. There are at least two.
pub fn leave_one_out(returns: &[f64]) -> Vec<f64> {
    todo!() // for you to write
}

/// 6.5 The numbers, moved and scaled to mean 0 and standard deviation 1 (over all n of them, not n - 1); zeros if all are the same.
pub fn whitened(numbers: &[f64]) -> Vec<f64> {
    todo!() // for you to write
}

/// 6.6 The derivative of the policy's entropy with respect to each logit, also where a probability is rounded to 0.
pub fn entropy_gradient(logits: &[f64]) -> Vec<f64> {
    todo!() // for you to write
}
