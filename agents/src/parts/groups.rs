//! Advantages from groups of episodes with the same start: pure functions of one group, and of all groups of a rollout.
//!
//! A NaN return means that the episode could not be scored. The advantage of such an episode is 0. The mean and the standard deviation of
//! the group ignore it.

use serde::{Deserialize, Serialize};

use crate::parts::returns::discounted;
use crate::rollout::{Rollout, Segment};

/// The quantity that is compared within a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Supervision {
    /// Returns of whole episodes.
    Outcome,
    /// Rewards of the steps into which a text task divides a solution. The environment must mark where the steps end.
    Process,
}

/// The divisor of a group's centred returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupStd {
    /// Population standard deviation: for G numbers, the sum of squared deviations is divided by G.
    Population,
    /// Sample standard deviation: the sum of squares is divided by G - 1.
    Sample,
    /// Sample standard deviation of the whole batch. Groups in which nearly all or nearly no episodes succeed then have no extra weight.
    Batch,
    /// No division, as in "Dr. GRPO" (Liu et al., arXiv 2503.20783). Dr. GRPO also does not divide by the lengths of episodes.
    None,
}

/// The number that is added to a standard deviation before dividing by it, as in TRL.
pub const EPSILON: f64 = 1e-4;

/// Returns the segment indices of each group, ordered by group id.
pub fn by_id(segments: &[Segment]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..segments.len()).collect();
    order.sort_unstable_by_key(|i| (segments[*i].group, *i));
    order.chunk_by(|a, b| segments[*a].group == segments[*b].group).map(<[usize]>::to_vec).collect()
}

/// Whether the numbers differ by more than rounding errors. NaNs are ignored.
pub fn has_spread(numbers: &[f64]) -> bool {
    let scored = || numbers.iter().filter(|r| !r.is_nan());
    let (low, high) = scored().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), r| (low.min(*r), high.max(*r)));
    let mean = scored().sum::<f64>() / scored().count().max(1) as f64;
    // an infinite reward counts as spread; its advantage is not finite, and `check_advantages` reports that as an error
    !mean.is_finite() || high - low > 1e-6 * mean.abs().max(1.0)
}

/// Returns the standard deviation by which a group's centred numbers are divided. `batch` is the standard deviation of the whole batch.
fn deviation(numbers: &[f64], mean: f64, std: GroupStd, batch: f64) -> Option<f64> {
    let n = numbers.len() as f64;
    let squares: f64 = numbers.iter().map(|r| (r - mean) * (r - mean)).sum();
    match std {
        GroupStd::Population => Some((squares / n).sqrt()),
        GroupStd::Sample => Some((squares / (n - 1.0)).sqrt()),
        GroupStd::Batch => Some(batch),
        GroupStd::None => None,
    }
}

/// Computes (r - mean) / (std + eps) for every number r of a group (Shao et al., arXiv 2402.03300, section 4.1.2). The result is 0 if the
/// numbers have no spread.
///
/// `batch_std` is the standard deviation of the whole batch. Only [`GroupStd::Batch`] uses it.
///
/// ```
/// use gradus_agents::groups::{EPSILON, GroupStd, group_advantages};
///
/// let advantages = group_advantages(&[1.0, 0.8, 0.4, 0.2], GroupStd::Population, f64::NAN, EPSILON);
/// assert!(advantages.iter().zip([1.264_511, 0.632_256, -0.632_256, -1.264_511]).all(|(a, b)| (a - b).abs() < 1e-6));
/// assert_eq!(group_advantages(&[0.3, 0.3, 0.3], GroupStd::Sample, f64::NAN, EPSILON), [0.0; 3]); // no spread
/// ```
pub fn group_advantages(returns: &[f64], std: GroupStd, batch_std: f64, epsilon: f64) -> Vec<f64> {
    let scored: Vec<f64> = returns.iter().copied().filter(|r| !r.is_nan()).collect();
    if !has_spread(&scored) {
        return vec![0.0; returns.len()];
    }
    let mean = scored.iter().sum::<f64>() / scored.len() as f64;
    let divisor = deviation(&scored, mean, std, batch_std).map_or(1.0, |std| std + epsilon);
    returns.iter().map(|r| if r.is_nan() { 0.0 } else { (r - mean) / divisor }).collect()
}

/// Computes r_i minus the mean of the other numbers (Kool et al., 2019; Ahmadian et al., arXiv 2402.14740, "RLOO"). The result for a single
/// number is 0.
///
/// ```
/// let advantages = gradus_agents::groups::leave_one_out(&[1.0, 0.8, 0.4, 0.2]);
/// assert!(advantages.iter().zip([0.533_333, 0.266_667, -0.266_667, -0.533_333]).all(|(a, b)| (a - b).abs() < 1e-6));
/// ```
pub fn leave_one_out(returns: &[f64]) -> Vec<f64> {
    let scored = || returns.iter().filter(|r| !r.is_nan());
    let (sum, n) = (scored().sum::<f64>(), scored().count() as f64);
    returns.iter().map(|r| if r.is_nan() || n < 2.0 { 0.0 } else { r - (sum - r) / (n - 1.0) }).collect()
}

/// One of the steps into which a text task divides a solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Index of the step's last decision, counted from 0 at the start of the episode.
    pub end: usize,
    /// Sum of the rewards of the step's decisions.
    pub reward: f64,
}

/// Returns the steps of one episode. Rewards after the end of the last step belong to no step.
pub fn steps(rewards: &[f32], step_ends: &[bool]) -> Vec<Step> {
    let (mut steps, mut reward) = (Vec::new(), 0.0);
    for (t, (r, ends)) in rewards.iter().zip(step_ends).enumerate() {
        reward += f64::from(*r);
        if *ends {
            steps.push(Step { end: t, reward });
            reward = 0.0;
        }
    }
    steps
}

/// Computes advantages by process supervision (Shao et al., arXiv 2402.03300, section 4.1.3). The step rewards of all episodes of a group
/// are normalised together. The advantage of a decision is the sum of the normalised rewards of the steps that end at or after it. After
/// the last step the advantage is 0.
///
/// `episodes` holds the steps and the length of each episode. An episode with a NaN step reward has advantage 0.
pub fn process_advantages(episodes: &[(Vec<Step>, usize)], std: GroupStd, batch_std: f64, epsilon: f64) -> Vec<Vec<f64>> {
    // episodes that could not be scored are ignored
    let is_scored = |steps: &[Step]| steps.iter().all(|step| !step.reward.is_nan());
    let reward = |of: &(Vec<Step>, usize), step: &Step| if is_scored(&of.0) { step.reward } else { f64::NAN };
    let pool: Vec<f64> = episodes.iter().flat_map(|of| of.0.iter().map(move |step| reward(of, step))).collect();
    let mut normalised = group_advantages(&pool, std, batch_std, epsilon).into_iter();
    episodes
        .iter()
        .map(|(steps, length)| {
            let mut advantages = vec![0.0; *length];
            for (step, reward) in steps.iter().zip(&mut normalised) {
                advantages[..*length.min(&(step.end + 1))].iter_mut().for_each(|a| *a += reward);
            }
            advantages
        })
        .collect()
}

/// Returns the sample standard deviation of the numbers that are not NaN; 0 for fewer than two.
pub fn batch_std(numbers: &[f64]) -> f64 {
    let scored: Vec<f64> = numbers.iter().copied().filter(|r| !r.is_nan()).collect();
    let n = scored.len() as f64;
    let mean = scored.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = scored.iter().map(|r| (r - mean) * (r - mean)).sum();
    if n > 1.0 { (squares / (n - 1.0)).sqrt() } else { 0.0 }
}

/// Which groups dynamic sampling keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupFilter {
    /// Those whose returns differ.
    Spread,
    /// Those in which some answers are correct and some are not: 0 < correct < G (Yu et al., arXiv 2503.14476, equation 11, "DAPO").
    Correct,
}

/// Returns, for each segment, whether its group has both a correct and an incorrect answer.
pub fn has_both(rollout: &Rollout) -> Vec<bool> {
    let mut kept = vec![false; rollout.segments.len()];
    for group in by_id(&rollout.segments) {
        let correct = group.iter().filter(|i| rollout.completions[**i].is_correct == Some(true)).count();
        group.iter().for_each(|i| kept[*i] = 0 < correct && correct < group.len());
    }
    kept
}

/// The advantages of a rollout's groups.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupAdvantages {
    /// Advantage A of every decision.
    pub advantages: Vec<f32>,
    /// For each segment, whether its group has spread (see [`has_spread`]). This depends on the rewards before the KL penalty.
    pub has_spread: Vec<bool>,
    /// Number of groups.
    pub groups: usize,
    /// Number of groups with spread.
    pub groups_with_spread: usize,
    /// Number of episodes that could not be scored.
    pub unscored: usize,
}

impl GroupAdvantages {
    /// Compares the episodes of each group of `rollout` by `rewards`. Spread is computed from the rewards of `rollout` instead.
    ///
    /// With process supervision the rollout must have [`step_ends`](Rollout::step_ends).
    pub fn new(rollout: &Rollout, rewards: &[f32], supervision: Supervision, std: GroupStd) -> Self {
        let (raw, paid) = (compared(rollout, &rollout.rewards, supervision), compared(rollout, rewards, supervision));
        let pool = |of: &[Vec<Step>], segments: &[usize]| -> Vec<f64> {
            segments.iter().flat_map(|i| of[*i].iter().map(|step| step.reward)).collect()
        };
        let all: Vec<usize> = (0..paid.len()).collect();
        let batch_std = batch_std(&pool(&paid, &all));
        let groups = by_id(&rollout.segments);
        let mut grouped = Self {
            advantages: vec![0.0; rollout.len()],
            has_spread: vec![false; paid.len()],
            groups: groups.len(),
            groups_with_spread: 0,
            unscored: raw.iter().filter(|steps| steps.iter().any(|step| step.reward.is_nan())).count(),
        };
        for group in &groups {
            let episodes: Vec<(Vec<Step>, usize)> = group.iter().map(|i| (paid[*i].clone(), rollout.segments[*i].range.len())).collect();
            for (i, advantages) in group.iter().zip(process_advantages(&episodes, std, batch_std, EPSILON)) {
                let of_segment = &mut grouped.advantages[rollout.segments[*i].range.clone()];
                of_segment.iter_mut().zip(advantages).for_each(|(to, a)| *to = a as f32);
            }
            if has_spread(&pool(&raw, group)) {
                grouped.groups_with_spread += 1;
                group.iter().for_each(|i| grouped.has_spread[*i] = true);
            }
        }
        grouped
    }

    /// Returns the fraction of groups without spread.
    pub fn frac_zero_std(&self) -> f64 {
        1.0 - self.groups_with_spread as f64 / self.groups.max(1) as f64
    }

    /// Returns the fraction of episodes that could not be scored.
    pub fn frac_unscored(&self) -> f64 {
        self.unscored as f64 / self.has_spread.len().max(1) as f64
    }
}

/// Returns the steps of each segment; with outcome supervision, the whole episode is one step.
fn compared(rollout: &Rollout, rewards: &[f32], supervision: Supervision) -> Vec<Vec<Step>> {
    let of_segment = |segment: &Segment| {
        let rewards = &rewards[segment.range.clone()];
        match supervision {
            Supervision::Process => steps(rewards, &rollout.step_ends[segment.range.clone()]),
            Supervision::Outcome => {
                let reward = rewards.iter().map(|r| f64::from(*r)).sum();
                vec![Step { end: rewards.len().saturating_sub(1), reward }]
            }
        }
    };
    rollout.segments.iter().map(of_segment).collect()
}

/// Returns G_0, the return of a segment; 0 if the segment has no decisions.
fn whole_return(rollout: &Rollout, returns: &[f32], segment: usize) -> f32 {
    let range = &rollout.segments[segment].range;
    if range.is_empty() { 0.0 } else { returns[range.start] }
}

/// Returns each segment's return minus the return of the greedy episode of its group (Li et al., arXiv 2310.10505, equation 5). The greedy
/// return is discounted by `gamma`, and is not bootstrapped if the greedy episode was truncated.
///
/// # Panics
/// If a group has no greedy episode.
pub fn against_greedy(rollout: &Rollout, returns: &[f32], gamma: f32) -> Vec<f32> {
    let return_of = |rewards: &Vec<f32>| {
        let mut returns = vec![0.0; rewards.len()];
        discounted(rewards, 0.0, gamma, &mut returns);
        returns.first().copied().unwrap_or(0.0)
    };
    let greedy: Vec<f32> = rollout.greedy_rewards.iter().map(return_of).collect();
    let of_group = |i: usize| greedy[rollout.segments[i].group.0 as usize];
    (0..rollout.segments.len()).map(|i| whole_return(rollout, returns, i) - of_group(i)).collect()
}

/// Returns each segment's return minus the mean return of the other segments in its group (Ahmadian et al., arXiv 2402.14740, section
/// 3.2).
pub fn against_others(rollout: &Rollout, returns: &[f32]) -> Vec<f32> {
    let mut advantages = vec![0.0; rollout.segments.len()];
    for group in by_id(&rollout.segments) {
        let of_group: Vec<f64> = group.iter().map(|i| f64::from(whole_return(rollout, returns, *i))).collect();
        group.iter().zip(leave_one_out(&of_group)).for_each(|(i, a)| advantages[*i] = a as f32);
    }
    advantages
}

/// Returns an advantage for every decision: the advantage of its segment.
pub fn by_decision(rollout: &Rollout, of_segments: &[f32]) -> Vec<f32> {
    let mut advantages = vec![0.0; rollout.len()];
    for (segment, a) in rollout.segments.iter().zip(of_segments) {
        advantages[segment.range.clone()].fill(*a);
    }
    advantages
}
