//! The collected data of an update, divided into segments.

use std::ops::Range;
use std::sync::Arc;

use gradus_envs::wrappers::RunningStatistics;
use gradus_nets::{Observations, Store};

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The Markov decision process terminated: the value after the segment is 0.
    Terminated,
    /// A time limit or another external limit truncated the episode.
    Truncated {
        /// Row of [`Rollout::store`] that holds the final observation.
        successor: usize,
    },
    /// The rollout ended in the middle of an episode.
    Cut {
        /// Row of [`Rollout::store`] that holds the next observation.
        successor: usize,
    },
}

impl End {
    /// Row of [`Rollout::store`] that holds the observation after the last decision.
    pub fn successor(self) -> Option<usize> {
        match self {
            End::Terminated => None,
            End::Truncated { successor } | End::Cut { successor } => Some(successor),
        }
    }
}

/// Number of a group of episodes with the same start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// A contiguous range of decisions of one episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The decisions.
    pub range: Range<usize>,
    /// How the segment ended.
    pub end: End,
    /// Group of the episode: episodes of one group have the same start. Without groups, the id is different for each environment or, if
    /// whole episodes are collected, for each episode.
    pub group: GroupId,
}

impl Segment {
    /// Returns the segment with its decisions shifted by `first` and its successor row by `first_successor`.
    pub fn moved(&self, first: usize, first_successor: usize) -> Self {
        let end = match self.end {
            End::Terminated => End::Terminated,
            End::Truncated { successor } => End::Truncated { successor: successor + first_successor },
            End::Cut { successor } => End::Cut { successor: successor + first_successor },
        };
        Self { range: self.range.start + first..self.range.end + first, end, group: self.group }
    }

    /// Returns the bootstrap value, which is the value after the segment, given the values of all rows of the store.
    pub fn bootstrap(&self, values: &[f32]) -> f32 {
        self.end.successor().map_or(0.0, |row| values[row])
    }
}

/// The normalisation that a rollout still lacks. Agents that keep observations for later updates get them as the environment gave them, and
/// normalise them with the statistics of each update.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaling {
    /// Statistics of the observations; `None`: they are not normalised.
    pub observations: Option<Arc<RunningStatistics>>,
    /// The number by which rewards are divided; `None`: they are not normalised.
    pub reward_scale: Option<f64>,
    /// Normalised numbers are clipped to [-clip, clip].
    pub clip: f32,
}

impl Scaling {
    /// Normalises rows of observations, and rewards, in place.
    pub fn apply(&self, observations: &mut [f32], rewards: &mut [f32]) {
        if let Some(statistics) = &self.observations {
            statistics.normalise_rows(observations, self.clip);
        }
        if let Some(scale) = self.reward_scale {
            rewards.iter_mut().for_each(|reward| *reward = ((f64::from(*reward) / scale) as f32).clamp(-self.clip, self.clip));
        }
    }
}

/// What a text task says of a completion besides its reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Whether the answer is fully correct: the score `exact` is 1. `None` if the task has no such score.
    pub is_correct: Option<bool>,
    /// Whether the completion was truncated at the maximum length, without EOS.
    pub is_truncated: bool,
}

impl Completion {
    /// Finds both among the scores of an episode; `None` if they are not those of a text task.
    pub fn of_scores(names: &[String], scores: &[f64]) -> Option<Self> {
        let score = |wanted: &str| names.iter().position(|name| name == wanted).and_then(|place| scores.get(place));
        Some(Self { is_correct: score("exact").map(|exact| *exact == 1.0), is_truncated: *score("finish/length")? == 1.0 })
    }
}

/// The decisions of a policy and their rewards, ordered by round of collection, then by environment, then by time.
///
/// The store holds observations and actions. Only policies read it; agents address its rows by index.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Observations and actions.
    pub store: Store,
    /// Reward r of each decision.
    pub rewards: Vec<f32>,
    /// log pi_old(a|s): the log-probability of each action when it was taken.
    pub log_probs: Vec<f32>,
    /// The segments; every decision belongs to exactly one.
    pub segments: Vec<Segment>,
    /// For each decision, whether it ends one of the steps into which a text task divides a solution. Empty if the environment does not
    /// report such steps.
    pub step_ends: Vec<bool>,
    /// What the text task says of each segment. Empty in other environments, and unless whole episodes are collected.
    pub completions: Vec<Completion>,
    /// Rewards of the greedy episode of each group, by [`GroupId`], in the units of [`rewards`](Rollout::rewards). Empty unless the agent
    /// requests greedy episodes. The agent computes their returns, because the discount factor is a setting of the agent.
    pub greedy_rewards: Vec<Vec<f32>>,
    /// The normalisation that observations and rewards still lack: none, unless the agent has a [replay buffer](crate::Algorithm::replay).
    pub scaling: Scaling,
}

impl Rollout {
    /// Bytes that an update needs for each decision in addition to the rollout: value, advantage, target and reward, and in the minibatches
    /// its episode's length, order, index and weight.
    pub const UPDATE_BYTES: usize = 8 * size_of::<f32>();

    /// Creates a rollout without step ends and without greedy episodes.
    pub fn new(store: Store, rewards: Vec<f32>, log_probs: Vec<f32>, segments: Vec<Segment>) -> Self {
        let (step_ends, completions, greedy_rewards) = (Vec::new(), Vec::new(), Vec::new());
        Self { store, rewards, log_probs, segments, step_ends, completions, greedy_rewards, scaling: Scaling::default() }
    }

    /// Appends another rollout of the same policy. In the store, the successor rows of both rollouts follow all decisions. Group ids of
    /// `more` are shifted, so that groups of the two rollouts stay separate.
    ///
    /// # Panics
    /// If the two rollouts have different kinds of observations or actions.
    pub fn append(&mut self, more: Rollout) {
        let (n, own_successors) = (self.len(), self.store.rows() - self.len());
        let groups = self.segments.iter().map(|segment| segment.group.0 + 1).max().unwrap_or(0).max(self.greedy_rewards.len() as u32);
        self.segments.iter_mut().for_each(|segment| *segment = segment.moved(0, more.len()));
        let behind = |segment: &Segment| {
            let moved = segment.moved(n, n + own_successors);
            Segment { group: GroupId(moved.group.0 + groups), ..moved }
        };
        self.segments.extend(more.segments.iter().map(behind));
        self.store.append(&more.store);
        self.rewards.extend(more.rewards);
        self.log_probs.extend(more.log_probs);
        self.step_ends.extend(more.step_ends);
        self.completions.extend(more.completions);
        if !more.greedy_rewards.is_empty() {
            self.greedy_rewards.resize(groups as usize, Vec::new());
            self.greedy_rewards.extend(more.greedy_rewards);
        }
    }

    /// Number of decisions.
    pub fn len(&self) -> usize {
        self.rewards.len()
    }

    /// Whether the rollout has no decisions.
    pub fn is_empty(&self) -> bool {
        self.rewards.is_empty()
    }

    /// Whether observations are texts.
    pub fn is_text(&self) -> bool {
        matches!(self.store.observations(), Observations::Texts(_) | Observations::TextsOnDevice(_))
    }

    /// Returns, for each segment, whether it has a score. Only a text can lack a score: its reward is then NaN. In other environments a NaN
    /// reward is an error, which the check of the advantages reports.
    pub fn scored(&self) -> Vec<bool> {
        let is_scored = |segment: &Segment| !self.rewards[segment.range.clone()].iter().any(|r| r.is_nan());
        self.segments.iter().map(|segment| !self.is_text() || is_scored(segment)).collect()
    }

    /// Iterates over the segments that could not be scored.
    pub fn unscored(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().zip(self.scored()).filter(|(_, is_scored)| !is_scored).map(|(segment, _)| segment)
    }

    /// Iterates over the decisions of the segments that have a score.
    pub fn scored_decisions(&self) -> impl Iterator<Item = usize> {
        self.segments.iter().zip(self.scored()).filter(|(_, is_scored)| *is_scored).flat_map(|(segment, _)| segment.range.clone())
    }

    /// Returns the fraction of segments that could not be scored.
    pub fn frac_unscored(&self) -> f64 {
        self.unscored().count() as f64 / self.segments.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use gradus_nets::{ActionRows, Observations, Texts};

    use super::*;

    fn rollout(observations: Observations, decisions: u32, segments: &[(Range<usize>, Option<usize>, u32)]) -> Rollout {
        let segment = |(range, successor, group): &(Range<usize>, Option<usize>, u32)| Segment {
            range: range.clone(),
            end: successor.map_or(End::Terminated, |successor| End::Truncated { successor }),
            group: GroupId(*group),
        };
        let numbers: Vec<f32> = (0..decisions).map(|i| i as f32).collect();
        let store = Store::of(observations, ActionRows::Discrete((0..decisions).collect()));
        let rollout = Rollout::new(store, numbers.clone(), numbers, segments.iter().map(segment).collect());
        Rollout { greedy_rewards: vec![vec![0.5]; 2], step_ends: vec![false; decisions as usize], ..rollout }
    }

    /// The first rollout has the decisions 0, 1 and 2 and the successor 3. The second has the decisions 10 and 11 and the successor 12.
    #[test]
    fn append_keeps_observations_in_order_and_groups_separate() {
        let rows = |numbers: &[u32]| Observations::Rows { rows: numbers.iter().map(|x| *x as f32).collect(), width: 1 };
        let texts = |numbers: &[u32]| {
            let mut texts = Texts::new(2);
            for x in numbers {
                texts.push([*x, *x].into_iter());
                texts.end_text();
            }
            Observations::Texts(texts)
        };
        for make in [&rows as &dyn Fn(&[u32]) -> Observations, &texts] {
            let mut first = rollout(make(&[0, 1, 2, 3]), 3, &[(0..2, Some(3), 0), (2..3, None, 1)]);
            first.append(rollout(make(&[10, 11, 12]), 2, &[(0..1, None, 1), (1..2, Some(2), 0)]));
            let observations: Vec<u32> = match first.store.observations() {
                Observations::Rows { rows, .. } => rows.iter().map(|x| *x as u32).collect(),
                Observations::Texts(texts) => (0..7).map(|row| texts.prefix(row)[1]).collect(),
                _ => unreachable!("the observations are rows or texts"),
            };
            assert_eq!(observations, [0, 1, 2, 10, 11, 3, 12]);
            let ends: Vec<_> = first.segments.iter().map(|s| (s.range.clone(), s.end, s.group.0)).collect();
            let [truncated, late] = [5, 6].map(|successor| End::Truncated { successor });
            assert_eq!(ends, [(0..2, truncated, 0), (2..3, End::Terminated, 1), (3..4, End::Terminated, 3), (4..5, late, 2)]);
            assert_eq!((first.len(), first.step_ends.len(), first.greedy_rewards.len()), (5, 5, 4));
        }
    }
}
