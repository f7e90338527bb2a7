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
    /// The return of the greedy episode that began like each group, by [`GroupId`]; empty unless the agent asked for them.
    pub greedy_returns: Vec<f32>,
}

impl Rollout {
    /// A rollout without steps of longer solutions and without greedy episodes.
    pub fn new(store: Store, rewards: Vec<f32>, log_probs: Vec<f32>, segments: Vec<Segment>) -> Self {
        Self { store, rewards, log_probs, segments, step_ends: Vec::new(), greedy_returns: Vec::new() }
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
        matches!(self.store.observations(), Observations::Texts(_))
    }

    /// Which segments have a score: all of them, but for texts with a reward that is NaN. Elsewhere such a reward is an error, which the
    /// advantages will show.
    pub fn scored(&self) -> Vec<bool> {
        let is_scored = |segment: &Segment| !self.rewards[segment.range.clone()].iter().any(|r| r.is_nan());
        self.segments.iter().map(|segment| !self.is_text() || is_scored(segment)).collect()
    }
}
