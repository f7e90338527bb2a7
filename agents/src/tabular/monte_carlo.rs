//! Monte Carlo methods: values are means of returns.

use super::Trajectory;

/// Returns the return from each step of an episode that terminated: G_t = R_{t+1} + gamma G_{t+1} (equation 3.9).
///
/// ```
/// assert_eq!(gradus_agents::tabular::returns(&[1.0, 0.0, 4.0], 0.5), [2.0, 2.0, 4.0]);
/// ```
pub fn returns(rewards: &[f64], gamma: f64) -> Vec<f64> {
    let mut all = rewards.to_vec();
    (0..all.len().saturating_sub(1)).rev().for_each(|t| all[t] += gamma * all[t + 1]);
    all
}

/// Whether a mean takes the return of each visit to a state, or that of its first visit in an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visits {
    /// The first visit in each episode.
    First,
    /// Every visit.
    Every,
}

/// Moves the mean return of every pair that an episode visits, by the incremental mean V <- V + (G - V) / n (section 5.1 and equation 2.3). `place` gives
/// the place of step t in `means` and `counts`: that of a state for prediction, or of a state and an action for control.
///
/// ```
/// use gradus_agents::tabular::{Trajectory, Visits, monte_carlo};
///
/// let episode = Trajectory { states: vec![0, 1, 0], actions: vec![0, 0, 0], rewards: vec![1.0, 2.0, 3.0] };
/// let (mut values, mut counts) = ([0.0; 2], [0; 2]);
/// monte_carlo((&mut values, &mut counts), &episode, |t| episode.states[t], Visits::Every, 1.0);
/// assert_eq!((values, counts), ([4.5, 5.0], [2, 1])); // the mean of 6 and 3, and 5
/// ```
pub fn monte_carlo(
    (means, counts): (&mut [f64], &mut [u64]),
    episode: &Trajectory,
    place: impl Fn(usize) -> usize,
    visits: Visits,
    gamma: f64,
) {
    for (t, value) in returns(&episode.rewards, gamma).into_iter().enumerate() {
        let at = place(t);
        if visits == Visits::Every || (0..t).all(|earlier| place(earlier) != at) {
            counts[at] += 1;
            means[at] += (value - means[at]) / counts[at] as f64;
        }
    }
}

/// Off-policy estimates of a value by importance sampling: from returns of a behaviour policy, each with its ratio rho, the product of
/// pi(A|S) / b(A|S) over the rest of the episode (equation 5.3).
///
/// ```
/// use gradus_agents::tabular::ImportanceSampling;
///
/// let mut estimate = ImportanceSampling::default();
/// [(4.0, 1.0), (0.0, 0.0), (2.0, 3.0)].into_iter().for_each(|(value, ratio)| estimate.add(value, ratio));
/// assert_eq!((estimate.ordinary(), estimate.weighted()), (10.0 / 3.0, 2.5));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImportanceSampling {
    count: u64,
    ratios: f64,
    products: f64,
}

impl ImportanceSampling {
    /// Adds the return of an episode.
    pub fn add(&mut self, value: f64, ratio: f64) {
        self.count += 1;
        self.ratios += ratio;
        self.products += ratio * value;
    }

    /// Returns the ordinary estimate, the sum of rho G divided by the number of episodes (equation 5.5): unbiased, with a variance that may be infinite.
    pub fn ordinary(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.products / self.count as f64 }
    }

    /// Returns the weighted estimate, the sum of rho G divided by the sum of rho (equation 5.6): biased, with a small variance. It is 0 while all ratios are 0.
    pub fn weighted(&self) -> f64 {
        if self.ratios == 0.0 { 0.0 } else { self.products / self.ratios }
    }
}
