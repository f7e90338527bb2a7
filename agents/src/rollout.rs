//! What was collected, cut into segments.

use std::ops::Range;

use gradus_nets::{Observations, Store};

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The Markov decision process ended: nothing comes after it.
    Terminated,
    /// A limit from outside ended the episode, whose return would have gone on.
    Truncated {
        /// The row of the store that holds the final observation.
        successor: usize,
    },
    /// The rollout's length was up in the middle of an episode.
    Cut {
        /// The row of the store that holds the next observation.
        successor: usize,
    },
}

/// The number of a group of episodes that began alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GroupId(pub u32);

/// A contiguous range of decisions of one episode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The decisions.
    pub range: Range<usize>,
    /// How it ended.
    pub end: End,
    /// The group of its episode: episodes of one group began alike. Where nobody asked for groups, each environment is one.
    pub group: GroupId,
}

impl Segment {
    /// The same, in a rollout where its first decision is number `first` more and its first successor `first_successor` more.
    pub fn moved(&self, first: usize, first_successor: usize) -> Self {
        let end = match self.end {
            End::Terminated => End::Terminated,
            End::Truncated { successor } => End::Truncated { successor: successor + first_successor },
            End::Cut { successor } => End::Cut { successor: successor + first_successor },
        };
        Self { range: self.range.start + first..self.range.end + first, end, group: self.group }
    }

    /// The value of what came after the segment, given the values of all rows of the store.
    pub fn bootstrap(&self, values: &[f32]) -> f32 {
        match self.end {
            End::Terminated => 0.0,
            End::Truncated { successor } | End::Cut { successor } => values[successor],
        }
    }
}

/// What a policy did and got, decision by decision, ordered by environment and then by time.
///
/// Observations and actions live in the store, into which only policies look; agents address them by index.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Observations and actions.
    pub store: Store,
    /// r, the reward of each decision.
    pub rewards: Vec<f32>,
    /// log pi_old(a|s), as it was when the action was taken.
    pub log_probs: Vec<f32>,
    /// The decisions, cut; every decision belongs to exactly one segment.
    pub segments: Vec<Segment>,
    /// Whether each decision ended a step of a longer solution; empty where nobody says so.
    pub step_ends: Vec<bool>,
    /// The rewards of the greedy episode that began like each group, by [`GroupId`], in the units of [`rewards`](Rollout::rewards); empty
    /// unless the agent asked for them. Their return is the agent's to take: it has a discount.
    pub greedy_rewards: Vec<Vec<f32>>,
}

impl Rollout {
    /// A rollout without steps of longer solutions and without greedy episodes.
    pub fn new(store: Store, rewards: Vec<f32>, log_probs: Vec<f32>, segments: Vec<Segment>) -> Self {
        Self { store, rewards, log_probs, segments, step_ends: Vec::new(), greedy_rewards: Vec::new() }
    }

    /// Puts a rollout of the same policy behind this one: its decisions behind these, its final observations behind all decisions, and
    /// its groups apart from those here.
    ///
    /// # Panics
    /// If the two are of different worlds.
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
        if !more.greedy_rewards.is_empty() {
            self.greedy_rewards.resize(groups as usize, Vec::new());
            self.greedy_rewards.extend(more.greedy_rewards);
        }
    }

    /// How many decisions there are.
    pub fn len(&self) -> usize {
        self.rewards.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rewards.is_empty()
    }

    /// Whether observations are texts.
    pub fn is_text(&self) -> bool {
        matches!(self.store.observations(), Observations::Texts(_) | Observations::TextsOnDevice(_))
    }

    /// Which segments have a score: all of them, but for texts with a reward that is NaN. Elsewhere such a reward is an error, which the
    /// advantages will show.
    pub fn scored(&self) -> Vec<bool> {
        let is_scored = |segment: &Segment| !self.rewards[segment.range.clone()].iter().any(|r| r.is_nan());
        self.segments.iter().map(|segment| !self.is_text() || is_scored(segment)).collect()
    }

    /// The texts that could not be scored.
    pub fn unscored(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().zip(self.scored()).filter(|(_, is_scored)| !is_scored).map(|(segment, _)| segment)
    }

    /// The decisions of the segments that have a score.
    pub fn scored_decisions(&self) -> impl Iterator<Item = usize> {
        self.segments.iter().zip(self.scored()).filter(|(_, is_scored)| *is_scored).flat_map(|(segment, _)| segment.range.clone())
    }

    /// The share of texts that could not be scored.
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

    /// Rows 0, 1, 2 are decisions and 3 is a successor; then 10, 11 and 12.
    #[test]
    fn what_is_appended_keeps_its_observations() {
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
                Observations::OnDevice { .. } | Observations::TextsOnDevice(_) => unreachable!("these are on the host"),
            };
            assert_eq!(observations, [0, 1, 2, 10, 11, 3, 12]);
            let ends: Vec<_> = first.segments.iter().map(|s| (s.range.clone(), s.end, s.group.0)).collect();
            let [truncated, late] = [5, 6].map(|successor| End::Truncated { successor });
            assert_eq!(ends, [(0..2, truncated, 0), (2..3, End::Terminated, 1), (3..4, End::Terminated, 3), (4..5, late, 2)]);
            assert_eq!((first.len(), first.step_ends.len(), first.greedy_rewards.len()), (5, 5, 4));
        }
    }
}
