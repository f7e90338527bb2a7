//! Lesson 7: the exact gradient, with answers.

use gradus_course::Table;

/// 7.1
pub fn visits(table: &Table, policy: &[Vec<f64>], gamma: f64) -> Vec<f64> {
    let mut flow = table.starts().to_vec();
    let mut all = flow.clone();
    while flow.iter().sum::<f64>() > 1e-9 {
        let mut next = vec![0.0; flow.len()];
        for s in 0..table.states() {
            for (a, probability) in policy[s].iter().enumerate() {
                for outcome in table.outcomes(s, a) {
                    if !outcome.terminated {
                        next[outcome.next as usize] += gamma * flow[s] * probability * outcome.probability;
                    }
                }
            }
        }
        for (sum, more) in all.iter_mut().zip(&next) {
            *sum += more;
        }
        flow = next;
    }
    all
}

/// 7.2
pub fn advantages(table: &Table, values: &[f64], gamma: f64) -> Vec<Vec<f64>> {
    let advantage = |s: usize, a: usize| {
        let mut value = 0.0;
        for outcome in table.outcomes(s, a) {
            let following = if outcome.terminated { 0.0 } else { values[outcome.next as usize] };
            value += outcome.probability * (outcome.reward + gamma * following);
        }
        value - values[s]
    };
    (0..table.states()).map(|s| (0..table.actions()).map(|a| advantage(s, a)).collect()).collect()
}

/// 7.3
pub fn exact_gradient(visits: &[f64], policy: &[Vec<f64>], advantages: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let entry = |s: usize, a: usize| visits[s] * policy[s][a] * advantages[s][a];
    (0..visits.len()).map(|s| (0..policy[s].len()).map(|a| entry(s, a)).collect()).collect()
}

/// 7.4
pub fn bias_and_variance(estimates: &[Vec<f64>], exact: &[f64]) -> (f64, f64) {
    let n = estimates.len() as f64;
    let mean: Vec<f64> = (0..exact.len()).map(|i| estimates.iter().map(|estimate| estimate[i]).sum::<f64>() / n).collect();
    let squared_distance = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum() };
    let spread: f64 = estimates.iter().map(|estimate| squared_distance(estimate, &mean)).sum();
    (squared_distance(&mean, exact), spread / (n - 1.0))
}
