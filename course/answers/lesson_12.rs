//! Lesson 12: preferences, with answers.

/// 12.1
pub fn preference_loss(chosen: f64, rejected: f64) -> f64 {
    // ln(1 + e^-x), in a form that does not overflow
    let x = chosen - rejected;
    if x > 0.0 { (-x).exp().ln_1p() } else { -x + x.exp().ln_1p() }
}

/// 12.2
pub fn penalised_rewards(log_probs: &[f64], reference: &[f64], score: f64, beta: f64) -> Vec<f64> {
    let mut rewards: Vec<f64> = log_probs.iter().zip(reference).map(|(l, r)| -beta * (l - r)).collect();
    *rewards.last_mut().unwrap() += score;
    rewards
}

/// 12.3
pub fn best_policy(reference: &[f64], rewards: &[f64], beta: f64) -> Vec<f64> {
    // of the completions that the reference writes
    let largest = reference.iter().zip(rewards).filter(|(p, _)| **p > 0.0).fold(f64::NEG_INFINITY, |largest, (_, r)| largest.max(*r));
    let weight = |(p, r): (&f64, &f64)| if *p > 0.0 { p * ((r - largest) / beta).exp() } else { 0.0 };
    let weights: Vec<f64> = reference.iter().zip(rewards).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// 12.4
pub fn dpo_loss(chosen: [f64; 2], rejected: [f64; 2], beta: f64) -> f64 {
    let score = |[policy, reference]: [f64; 2]| beta * (policy - reference);
    preference_loss(score(chosen), score(rejected))
}

/// 12.5
pub fn best_of_n(scores: &[f64], rewards: &[f64], n: usize) -> f64 {
    let ways = |all: usize, k: usize| -> f64 { if k > all { 0.0 } else { (0..k).map(|i| (all - i) as f64 / (k - i) as f64).product() } };
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*a].total_cmp(&scores[*b]));
    // with k below it, a completion is the best of as many choices as there are of n - 1 of those
    let sum: f64 = order.iter().enumerate().map(|(k, i)| ways(k, n - 1) * rewards[*i]).sum();
    sum / ways(scores.len(), n)
}
