//! A rollout cut into minibatches.

use std::ops::Range;
use std::slice::Chunks;

use gradus_base::random::Stream;
use gradus_nets::Sums;

use crate::parts::aggregation::Aggregation;
use crate::rollout::Rollout;

/// In rollouts with at least this number of decisions, [`Minibatches::of_size`] sorts each minibatch of single decisions by index. Its
/// decisions are still drawn at random, but they are read in memory order. Reading them in random order would take half as long as the
/// arithmetic of the update.
const SORTED_FROM: usize = 1 << 14;

/// The decisions of one optimiser step, each with its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Minibatch {
    /// Indices of the decisions.
    pub indices: Vec<u32>,
    /// Weights of the decisions.
    pub weights: Vec<f32>,
    /// Sum of the weights; 1 if the loss is a mean.
    pub total: f64,
}

impl Minibatch {
    /// Divides the diagnostics by the sum of the weights, which makes them weighted means for any aggregation. The loss is unchanged.
    pub fn averaged(&self, mut sums: Sums) -> Sums {
        sums.diagnostics.iter_mut().for_each(|sum| *sum /= self.total);
        sums
    }
}

/// The decisions of a rollout, shuffled before every pass and cut into minibatches. On texts a minibatch holds whole segments, so that
/// the network reads every text once per pass. In other environments it holds single decisions.
pub struct Minibatches {
    /// Shuffled indices of segments if `whole`, else of decisions.
    order: Vec<u32>,
    whole: bool,
    /// The decisions of each segment that is used.
    ranges: Vec<Range<usize>>,
    /// Length of each decision's segment; 0 if the segment is not used.
    lengths: Vec<u32>,
    how: Aggregation,
    constant_length: usize,
}

impl Minibatches {
    /// Uses all decisions of `rollout` except texts that [could not be scored](Rollout::scored).
    pub fn scored(rollout: &Rollout, how: Aggregation, constant_length: usize) -> Self {
        Self::new(rollout, &rollout.scored(), how, constant_length)
    }

    /// Uses the segments of `rollout` for which `keep` is true. If `keep` is empty, all segments are used.
    pub fn new(rollout: &Rollout, keep: &[bool], how: Aggregation, constant_length: usize) -> Self {
        let whole = rollout.is_text();
        let kept = rollout.segments.iter().enumerate().filter(|(i, _)| keep.get(*i).copied().unwrap_or(true));
        let ranges: Vec<Range<usize>> = kept.map(|(_, segment)| segment.range.clone()).collect();
        let mut lengths = vec![0; rollout.len()];
        for range in &ranges {
            lengths[range.clone()].fill(range.len() as u32);
        }
        let order = if whole {
            (0..ranges.len() as u32).collect()
        } else {
            (0..rollout.len() as u32).filter(|i| lengths[*i as usize] > 0).collect()
        };
        Self { order, whole, ranges, lengths, how, constant_length }
    }

    /// Number of decisions.
    pub fn decisions(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// Shuffles the order of the decisions or, on texts, of the segments.
    pub fn shuffle(&mut self, stream: &mut Stream) {
        stream.shuffle(&mut self.order);
    }

    /// Returns minibatches of `size` decisions; the last minibatch may be smaller. On texts each minibatch holds as many whole
    /// segments as fit into `size` decisions, but at least one segment.
    pub fn of_size(&self, size: usize) -> Vec<Minibatch> {
        if !self.whole {
            let parts = self.order.chunks(size.max(1));
            return match self.order.len() {
                ..SORTED_FROM => parts.map(|part| self.minibatch(part)).collect(),
                _ => self.sorted(parts).iter().map(|part| self.minibatch(part)).collect(),
            };
        }
        let (mut minibatches, mut begin, mut decisions) = (Vec::new(), 0, 0);
        for (i, segment) in self.order.iter().enumerate() {
            let length = self.ranges[*segment as usize].len();
            if i > begin && decisions + length > size {
                minibatches.push(self.minibatch(&self.order[begin..i]));
                (begin, decisions) = (i, 0);
            }
            decisions += length;
        }
        minibatches.push(self.minibatch(&self.order[begin..]));
        minibatches.retain(|minibatch| !minibatch.indices.is_empty());
        minibatches
    }

    /// Returns at most `parts` minibatches, none of them empty. All have the same number of decisions, except that the last may be smaller.
    /// On texts they have nearly equal numbers of segments.
    pub fn parts(&self, parts: usize) -> Vec<Minibatch> {
        let n = self.order.len();
        let mut minibatches: Vec<Minibatch> = if self.whole {
            (0..parts).map(|i| self.minibatch(&self.order[i * n / parts..(i + 1) * n / parts])).collect()
        } else {
            self.order.chunks(n.div_ceil(parts).max(1)).map(|part| self.minibatch(part)).collect()
        };
        minibatches.retain(|minibatch| !minibatch.indices.is_empty());
        minibatches
    }

    /// Returns `parts`, each sorted in ascending order.
    fn sorted(&self, parts: Chunks<'_, u32>) -> Vec<Vec<u32>> {
        let mut sorted: Vec<Vec<u32>> = parts.clone().map(|part| Vec::with_capacity(part.len())).collect();
        let mut part_of = vec![u32::MAX; self.lengths.len()];
        for (number, part) in parts.enumerate() {
            part.iter().for_each(|i| part_of[*i as usize] = number as u32);
        }
        for (i, number) in part_of.iter().enumerate() {
            if let Some(part) = sorted.get_mut(*number as usize) {
                part.push(i as u32);
            }
        }
        sorted
    }

    /// Returns all decisions as one minibatch, in order.
    pub fn all(&self) -> Minibatch {
        let mut part = self.order.clone();
        part.sort_unstable();
        self.minibatch(&part)
    }

    fn minibatch(&self, part: &[u32]) -> Minibatch {
        let indices: Vec<u32> = if self.whole {
            part.iter().flat_map(|segment| self.ranges[*segment as usize].clone()).map(|i| i as u32).collect()
        } else {
            part.to_vec()
        };
        let length = |i: &u32| self.lengths[*i as usize] as usize;
        if self.how == Aggregation::TokenMean {
            let weights = vec![self.how.weight(0, indices.len(), 0.0, 0); indices.len()]; // token-mean ignores lengths
            return Minibatch { indices, weights, total: 1.0 };
        }
        // a single decision counts as the fraction 1 / length of an episode; a whole episode counts as 1, even if it has no decisions
        let episodes = if self.whole { part.len() as f32 } else { indices.iter().map(|i| 1.0 / length(i) as f64).sum::<f64>() as f32 };
        let weight = |i: &u32| self.how.weight(length(i), indices.len(), episodes, self.constant_length);
        let weights: Vec<f32> = indices.iter().map(weight).collect();
        let is_mean = self.how == Aggregation::SequenceMean;
        let total = if is_mean { 1.0 } else { weights.iter().map(|w| f64::from(*w)).sum() };
        Minibatch { indices, weights, total }
    }
}
