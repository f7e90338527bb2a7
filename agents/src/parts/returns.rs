//! Returns and advantages: pure functions of one segment, and of all segments of a rollout.
//!
//! Time steps are numbered from 0 to T - 1. `bootstrap` is the value after the last step: 0 if the episode terminated, else V(s_T).

use gradus_base::threads;
use serde::{Deserialize, Serialize};

use crate::rollout::{End, Rollout};

/// Computes advantages by generalised advantage estimation (Schulman et al., arXiv 1506.02438, equation 16):
/// delta_t = r_t + gamma V(s_{t+1}) - V(s_t), and A_t = delta_t + gamma lambda A_{t+1}.
///
/// ```
/// let mut advantages = [0.0; 2];
/// gradus_agents::returns::gae(&[0.0, 0.5], &[0.25, 0.3], 0.0, 0.99, 0.95, &mut advantages);
/// assert!((advantages[0] - 0.2351_f32).abs() < 1e-6 && (advantages[1] - 0.2_f32).abs() < 1e-6);
/// ```
///
/// # Panics
/// If the slices differ in length.
pub fn gae(rewards: &[f32], values: &[f32], bootstrap: f32, gamma: f32, lambda: f32, advantages: &mut [f32]) {
    assert!(rewards.len() == values.len() && rewards.len() == advantages.len(), "gae: expected slices of equal length");
    let (mut value_tp1, mut advantage_tp1) = (bootstrap, 0.0);
    for t in (0..rewards.len()).rev() {
        let delta_t = rewards[t] + gamma * value_tp1 - values[t];
        advantages[t] = delta_t + gamma * lambda * advantage_tp1;
        (value_tp1, advantage_tp1) = (values[t], advantages[t]);
    }
}

/// Computes returns to go, G_t = r_t + gamma G_{t+1} (Sutton and Barto, equation 3.9). G_T is `bootstrap`.
///
/// ```
/// let mut returns = [0.0; 3];
/// gradus_agents::returns::discounted(&[1.0, 0.0, 2.0], 4.0, 0.5, &mut returns);
/// assert_eq!(returns, [2.0, 2.0, 4.0]);
/// ```
///
/// # Panics
/// If the slices differ in length.
pub fn discounted(rewards: &[f32], bootstrap: f32, gamma: f32, returns: &mut [f32]) {
    assert_eq!(rewards.len(), returns.len(), "returns: expected slices of equal length");
    let mut return_tp1 = bootstrap;
    for t in (0..rewards.len()).rev() {
        returns[t] = rewards[t] + gamma * return_tp1;
        return_tp1 = returns[t];
    }
}

/// Computes Q(lambda) targets (Peng and Williams 1996; Gallici et al., arXiv 2407.04811, equation 6):
/// G_t = r_t + gamma ((1 - lambda) V(s_{t+1}) + lambda G_{t+1}), where V(s) is max_a Q(s, a). The last target is r + gamma `bootstrap`.
/// `values` has V(s_t) of every step.
///
/// ```
/// let mut targets = [0.0; 3];
/// gradus_agents::returns::q_lambda(&[1.0, 0.0, 2.0], &[9.0, 4.0, 6.0], 8.0, 0.5, 0.75, &mut targets);
/// // G_2 = 2 + 4 = 6, G_1 = (6 + 3 x 6) / 8 = 3, G_0 = 1 + (4 + 3 x 3) / 8
/// assert_eq!(targets, [2.625, 3.0, 6.0]);
/// ```
///
/// # Panics
/// If the slices differ in length.
pub fn q_lambda(rewards: &[f32], values: &[f32], bootstrap: f32, gamma: f32, lambda: f32, targets: &mut [f32]) {
    assert!(rewards.len() == values.len() && rewards.len() == targets.len(), "Q(lambda): expected slices of equal length");
    let (mut value_tp1, mut target_tp1) = (bootstrap, bootstrap);
    for t in (0..rewards.len()).rev() {
        targets[t] = rewards[t] + gamma * ((1.0 - lambda) * value_tp1 + lambda * target_tp1);
        (value_tp1, target_tp1) = (values[t], targets[t]);
    }
}

/// How the return of a truncated episode is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncated {
    /// The value of the final observation is added in place of the missing rewards. This is correct.
    Bootstraps,
    /// Nothing is added, as if the Markov decision process had terminated. This is wrong, but CleanRL's `ppo.py` does it.
    Ends,
}

/// Computes returns to go of a whole rollout from `rewards`, given the values of all rows of its store.
///
/// Without a critic `values` is empty, and nothing is added after a segment that did not terminate.
pub fn returns_to_go(rollout: &Rollout, rewards: &[f32], values: &[f32], (gamma, truncated): (f32, Truncated)) -> Vec<f32> {
    let mut returns = vec![0.0; rollout.len()];
    for segment in &rollout.segments {
        let bootstrap = match (segment.end, truncated) {
            (End::Truncated { .. }, Truncated::Ends) => 0.0,
            _ if values.is_empty() => 0.0,
            _ => segment.bootstrap(values),
        };
        let range = segment.range.clone();
        discounted(&rewards[range.clone()], bootstrap, gamma, &mut returns[range]);
    }
    returns
}

/// Returns the mean and the sample standard deviation (divisor n - 1; 0 for fewer than two numbers).
///
/// ```
/// let (mean, std) = gradus_agents::returns::mean_and_sample_std([1.0, 0.8, 0.4, 0.2].into_iter());
/// assert!((mean - 0.6).abs() < 1e-7 && (std - 0.365_148_4).abs() < 1e-7);
/// ```
pub fn mean_and_sample_std(numbers: impl Iterator<Item = f32>) -> (f64, f64) {
    let numbers: Vec<f64> = numbers.map(f64::from).collect();
    let n = numbers.len() as f64;
    let mean = sum(&numbers, |x| x) / n.max(1.0);
    let squares = sum(&numbers, |x| (x - mean) * (x - mean));
    (mean, if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 })
}

/// Returns the sum of f(x) over all numbers, from eight interleaved partial sums. In a single sum, each addition would wait for the
/// previous addition.
fn sum(numbers: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    let (groups, rest) = numbers.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for group in groups {
        for (sum, x) in sums.iter_mut().zip(group) {
            *sum += f(*x);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|x| f(*x)).sum::<f64>()
}

/// From this number of numbers on, all threads compute a sum, and the advantages of a rollout. Each thread sums whole blocks, so the sum does not depend on the number of
/// threads.
pub(crate) const SHARED_FROM: usize = 1 << 17;

/// Number of numbers in a block.
const BLOCK: usize = 1 << 15;

/// Returns the sum of f(x) over the numbers x(i) for all i below `n`, with all threads.
fn shared_sum(n: usize, x: impl Fn(usize) -> f64 + Sync, f: impl Fn(f64) -> f64 + Sync) -> f64 {
    let of_block = |block: usize, (): &mut ()| {
        let numbers: Vec<f64> = (block * BLOCK..((block + 1) * BLOCK).min(n)).map(&x).collect();
        sum(&numbers, &f)
    };
    threads::map(&mut vec![(); n.div_ceil(BLOCK)], of_block).iter().sum()
}

/// The scope over which advantages are normalised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormaliseOver {
    /// Each minibatch separately, as in CleanRL and Stable-Baselines3.
    Minibatch,
    /// The whole rollout, as is usual for texts.
    Rollout,
}

/// Returns the mean and the divisor of the normalisation (x - mean) / divisor. The divisor is the sample standard deviation + 1e-8. For
/// fewer than two numbers, the mean is 0 and the divisor is 1.
///
/// ```
/// let (mean, divisor) = gradus_agents::returns::standardisation([1.0, 3.0].into_iter());
/// assert!((mean, divisor) == (2.0, 2.0_f32.sqrt() + 1e-8));
/// assert_eq!(gradus_agents::returns::standardisation([5.0].into_iter()), (0.0, 1.0));
/// ```
pub fn standardisation(numbers: impl ExactSizeIterator<Item = f32>) -> (f32, f32) {
    if numbers.len() < 2 {
        return (0.0, 1.0);
    }
    let (mean, std) = mean_and_sample_std(numbers);
    (mean as f32, std as f32 + 1e-8)
}

/// Returns the [`standardisation`] of the numbers of these decisions.
pub fn standardisation_of(numbers: &[f32], decisions: &[u32]) -> (f32, f32) {
    let (n, x) = (decisions.len(), |i: usize| numbers[decisions[i] as usize]);
    if n < SHARED_FROM {
        return standardisation((0..n).map(x));
    }
    let mean = shared_sum(n, |i| f64::from(x(i)), |x| x) / n as f64;
    let squares = shared_sum(n, |i| f64::from(x(i)), |x| (x - mean) * (x - mean));
    (mean as f32, (squares / (n as f64 - 1.0)).sqrt() as f32 + 1e-8)
}

/// Scales numbers to sample standard deviation 1. Their mean becomes 0. If `keeps_mean` is true, the mean is unchanged instead, as when
/// Ziegler et al. (arXiv 1909.08593) whiten rewards. Fewer than two numbers are left as they are.
///
/// ```
/// let mut numbers = [1.0, 3.0];
/// gradus_agents::returns::whiten(&mut numbers, true);
/// assert!((numbers[0] - 1.292_893).abs() < 1e-6 && (numbers[1] - 2.707_107).abs() < 1e-6);
/// ```
pub fn whiten(numbers: &mut [f32], keeps_mean: bool) {
    if numbers.len() < 2 {
        return;
    }
    let (mean, std) = standardisation(numbers.iter().copied());
    let shift = if keeps_mean { mean } else { 0.0 };
    numbers.iter_mut().for_each(|x| *x = (*x - mean) / std + shift);
}

/// Returns the fraction of the targets' variance that the values explain: 1 - var(targets - values) / var(targets). 1 means that the
/// values equal the targets up to a constant, and 0 that they are no better than a constant. The result is NaN if the targets do not vary.
///
/// ```
/// use gradus_agents::returns::explained_variance;
/// assert_eq!(explained_variance(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1.0);
/// assert_eq!(explained_variance(&[2.0, 2.0, 2.0], &[1.0, 2.0, 3.0]), 0.0);
/// ```
pub fn explained_variance(values: &[f32], targets: &[f32]) -> f64 {
    let n = targets.len();
    let shared_variance = |x: &(dyn Fn(usize) -> f64 + Sync)| {
        let mean = shared_sum(n, x, |x| x) / n as f64;
        shared_sum(n, x, |x| (x - mean) * (x - mean)) / n as f64
    };
    let variance = |x: &(dyn Fn(usize) -> f64 + Sync)| {
        if n >= SHARED_FROM {
            return shared_variance(x);
        }
        let numbers: Vec<f64> = (0..n).map(x).collect();
        let mean = sum(&numbers, |x| x) / n.max(1) as f64;
        sum(&numbers, |x| (x - mean) * (x - mean)) / n.max(1) as f64
    };
    let of_targets = variance(&|i| f64::from(targets[i]));
    let of_errors = variance(&|i| f64::from(targets[i]) - f64::from(values[i]));
    if of_targets == 0.0 { f64::NAN } else { 1.0 - of_errors / of_targets }
}
