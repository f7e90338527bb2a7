//! A rollout cut into minibatches.

use std::ops::Range;
use std::slice::Chunks;

use gradus_envs::random::Stream;
use gradus_nets::Sums;

use crate::{Aggregation, Rollout};

/// From this number of decisions on, minibatches of single decisions are sorted. Their members are as random as before, but are read in the
/// order in which they lie in memory: reading here and there would take as long as half of the arithmetic.
const SORTED_FROM: usize = 1 << 14;

/// Decisions that one step learns from, each with its weight.
#[derive(Clone, Debug, PartialEq)]
pub struct Minibatch {
    /// Which decisions.
    pub indices: Vec<u32>,
    /// Their weights.
    pub weights: Vec<f32>,
    /// What the weights sum up to: 1 where the loss is a mean.
    pub total: f64,
}

impl Minibatch {
    /// Diagnostics as means over decisions, whatever the aggregation makes of the loss, which stays as it is.
    pub fn averaged(&self, mut sums: Sums) -> Sums {
        sums.diagnostics.iter_mut().for_each(|sum| *sum /= self.total);
        sums
    }
}

/// The decisions of a rollout, shuffled before every pass and cut into minibatches: of whole segments where observations are texts, so
/// that every text is computed once per pass, and of single decisions elsewhere.
pub struct Minibatches {
    /// What is shuffled: decisions, or the numbers of segments.
    order: Vec<u32>,
    whole: bool,
    /// The segments that take part.
    ranges: Vec<Range<usize>>,
    /// The length of each decision's segment.
    lengths: Vec<u32>,
    how: Aggregation,
    constant_length: usize,
}

impl Minibatches {
    /// All decisions of `rollout`, but for texts that [could not be scored](Rollout::scored).
    pub fn scored(rollout: &Rollout, how: Aggregation, constant_length: usize) -> Self {
        Self::new(rollout, &rollout.scored(), how, constant_length)
    }

    /// All decisions of the segments of `rollout` that `keep` has a true for; all of them, where it is empty.
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

    /// How many decisions there are.
    pub fn decisions(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// Another order, drawn from the one before.
    pub fn shuffle(&mut self, stream: &mut Stream) {
        stream.shuffle(&mut self.order);
    }

    /// Minibatches of `size` decisions, the last of which may be smaller; whole segments come together as long as they fit, one at least.
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

    /// So many minibatches, nearly equal in decisions or, where segments stay whole, in segments.
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

    /// The same parts, each in ascending order.
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

    /// All decisions at once, in order.
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
            let weights = vec![self.how.weight(0, indices.len(), 0.0, 0); indices.len()]; // lengths do not matter
            return Minibatch { indices, weights, total: 1.0 };
        }
        // single decisions are parts of an episode; one without decisions has nothing to learn from, and counts
        let episodes = if self.whole { part.len() as f32 } else { indices.iter().map(|i| 1.0 / length(i) as f64).sum::<f64>() as f32 };
        let weight = |i: &u32| self.how.weight(length(i), indices.len(), episodes, self.constant_length);
        let weights: Vec<f32> = indices.iter().map(weight).collect();
        let is_mean = self.how == Aggregation::SequenceMean;
        let total = if is_mean { 1.0 } else { weights.iter().map(|w| f64::from(*w)).sum() };
        Minibatch { indices, weights, total }
    }
}
