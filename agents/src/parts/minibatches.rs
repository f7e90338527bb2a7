//! A rollout cut into minibatches.

use std::ops::Range;
use std::slice::Chunks;

use gradus_base::random::Stream;
use gradus_base::threads;
use gradus_nets::Sums;

use crate::parts::aggregation::Aggregation;
use crate::rollout::Rollout;

/// In rollouts with at least this number of decisions, [`Minibatches::of_size`] sorts each minibatch of single decisions by index. Its
/// decisions are still drawn at random, but they are read in memory order. Reading them in random order would take half as long as the
/// arithmetic of the update.
const SORTED_FROM: usize = 1 << 14;

/// In rollouts with at least this number of single decisions, all threads draw the minibatches.
const DRAWN_FROM: usize = 1 << 17;

/// Number of decisions that a thread draws at once.
const BLOCK: usize = 1 << 15;

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
/// the network reads every text once per pass, and for a policy with a memory whole sequences, so that it reads them in order. Otherwise it
/// holds single decisions.
pub struct Minibatches {
    /// Shuffled indices of `ranges` if `whole`, else of decisions.
    order: Vec<u32>,
    /// The random numbers of the current pass, if all threads draw its minibatches; then `order` is not shuffled.
    keys: Option<Stream>,
    whole: bool,
    /// Whether a range is a whole episode.
    are_episodes: bool,
    /// The decisions of each segment that is used or, for a policy with a memory, of each sequence.
    ranges: Vec<Range<usize>>,
    /// Length of each decision's segment; 0 if the segment is not used. Empty if the weights do not depend on it.
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
        let kept = rollout.segments.iter().enumerate().filter(|(i, _)| keep.get(*i).copied().unwrap_or(true));
        let mut ranges: Vec<Range<usize>> = kept.map(|(_, segment)| segment.range.clone()).collect();
        let mut lengths = Vec::new();
        if how != Aggregation::TokenMean {
            lengths.resize(rollout.len(), 0);
            ranges.iter().for_each(|range| lengths[range.clone()].fill(range.len() as u32));
        }
        if let Some(sequences) = &rollout.store.sequences {
            ranges.sort_unstable_by_key(|range| range.start);
            let is_kept = |decision: usize| {
                ranges[..ranges.partition_point(|range| range.start <= decision)].last().is_some_and(|range| decision < range.end)
            };
            let all = sequences.list.iter().map(|sequence| sequence.decisions.clone());
            ranges = all.filter(|decisions| is_kept(decisions.start)).collect();
        }
        let whole = rollout.is_text() || rollout.store.sequences.is_some();
        let order = if whole {
            (0..ranges.len() as u32).collect()
        } else {
            let mut order: Vec<u32> = ranges.iter().flat_map(|range| range.start as u32..range.end as u32).collect();
            // segments may be in another order than their decisions
            order.sort_unstable();
            order
        };
        Self { order, keys: None, whole, are_episodes: rollout.is_text(), ranges, lengths, how, constant_length }
    }

    /// Number of decisions.
    pub fn decisions(&self) -> usize {
        self.ranges.iter().map(Range::len).sum()
    }

    /// Shuffles the order of the decisions or, on texts, of the segments.
    pub fn shuffle(&mut self, stream: &mut Stream) {
        if self.whole || self.order.len() < DRAWN_FROM {
            return stream.shuffle(&mut self.order);
        }
        self.keys = Some(stream.clone());
        stream.seek(stream.position() + self.order.len() as u64);
    }

    /// Returns minibatches of `size` decisions; the last minibatch may be smaller. On texts each minibatch holds as many whole
    /// segments as fit into `size` decisions, but at least one segment.
    pub fn of_size(&self, size: usize) -> Vec<Minibatch> {
        if !self.whole {
            let parts = self.order.chunks(size.max(1));
            return match self.order.len() {
                n if self.keys.is_some() => self.drawn((size.max(1)..n).step_by(size.max(1))),
                ..SORTED_FROM => parts.map(|part| self.minibatch(part.to_vec())).collect(),
                _ => self.sorted(parts).into_iter().map(|part| self.minibatch(part)).collect(),
            };
        }
        let (mut minibatches, mut begin, mut decisions) = (Vec::new(), 0, 0);
        for (i, segment) in self.order.iter().enumerate() {
            let length = self.ranges[*segment as usize].len();
            if i > begin && decisions + length > size {
                minibatches.push(self.minibatch(self.order[begin..i].to_vec()));
                (begin, decisions) = (i, 0);
            }
            decisions += length;
        }
        minibatches.push(self.minibatch(self.order[begin..].to_vec()));
        minibatches.retain(|minibatch| !minibatch.indices.is_empty());
        minibatches
    }

    /// Returns `parts` minibatches of nearly equal numbers of decisions, of sequences with a cell, or on texts of segments; fewer if there are not so many, because none is empty.
    pub fn parts(&self, parts: usize) -> Vec<Minibatch> {
        let n = self.order.len();
        let parts = parts.min(n).max(1);
        if self.keys.is_some() {
            return self.drawn((1..parts).map(|i| i * n / parts));
        }
        let part = |i: usize| self.order[i * n / parts..(i + 1) * n / parts].to_vec();
        let mut minibatches: Vec<Minibatch> = (0..parts).map(|i| self.minibatch(part(i))).collect();
        minibatches.retain(|minibatch| !minibatch.indices.is_empty());
        minibatches
    }

    /// Returns `parts`, each sorted in ascending order.
    fn sorted(&self, parts: Chunks<'_, u32>) -> Vec<Vec<u32>> {
        let mut sorted: Vec<Vec<u32>> = parts.clone().map(|part| Vec::with_capacity(part.len())).collect();
        let decisions = self.ranges.iter().map(|range| range.end).max().unwrap_or(0);
        let mut part_of = vec![u32::MAX; decisions];
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

    /// Draws minibatches with all threads, each sorted in ascending order. Every decision has a random key. The first minibatch has the decisions with the smallest keys, the second
    /// those with the next keys, and so on; `begins` has for each minibatch but the first the number of decisions before it. Of equal keys that of the earlier decision is the smaller.
    fn drawn(&self, begins: impl Iterator<Item = usize>) -> Vec<Minibatch> {
        struct Block<'a> {
            /// Number of the first decision in `order`.
            first: usize,
            decisions: &'a [u32],
            keys: Vec<u32>,
            counts: Vec<u32>,
            /// The keys in the buckets that a border cuts, each with the number of its decision in `order`.
            cut: Vec<(u32, u32)>,
            /// The decisions of each minibatch.
            parts: Vec<Vec<u32>>,
        }
        const BUCKETS: usize = 1 << 12;
        let bucket = |key: u32| key as usize >> 20;
        let Some(stream) = &self.keys else { return Vec::new() };
        let blocks = self.order.chunks(BLOCK).enumerate().map(|(number, decisions)| {
            let (keys, counts) = (vec![0; decisions.len()], vec![0; BUCKETS]);
            Block { first: number * BLOCK, decisions, keys, counts, cut: Vec::new(), parts: Vec::new() }
        });
        let mut blocks: Vec<Block<'_>> = blocks.collect();
        threads::for_each(&mut blocks, |_, block| {
            let mut stream = stream.clone();
            stream.seek(stream.position() + block.first as u64);
            stream.fill(&mut block.keys);
            block.keys.iter().for_each(|key| block.counts[bucket(*key)] += 1);
        });

        // a border is the key at which a minibatch begins; first find its bucket, then its rank in the bucket
        let (mut begin, mut ranks, mut begins) = (0, Vec::new(), begins.peekable());
        for number in 0..BUCKETS {
            let end = begin + blocks.iter().map(|block| block.counts[number] as usize).sum::<usize>();
            while let Some(place) = begins.next_if(|place| *place < end) {
                ranks.push((number, place - begin));
            }
            begin = end;
        }
        let mut is_cut = vec![false; BUCKETS];
        ranks.iter().for_each(|(number, _)| is_cut[*number] = true);
        threads::for_each(&mut blocks, |_, block| {
            let keys = block.keys.iter().zip(block.first as u32..);
            block.cut = keys.filter(|(key, _)| is_cut[bucket(**key)]).map(|(key, i)| (*key, i)).collect();
        });
        let mut cut: Vec<(u32, u32)> = blocks.iter_mut().flat_map(|block| std::mem::take(&mut block.cut)).collect();
        cut.sort_unstable();
        let in_buckets = ranks.iter().map(|(number, rank)| cut[cut.partition_point(|(key, _)| bucket(*key) < *number) + rank]);
        let borders: Vec<(u32, u32)> = in_buckets.collect();

        let parts = borders.len() + 1;
        threads::for_each(&mut blocks, |_, block| {
            block.parts = (0..parts).map(|_| Vec::with_capacity(2 * block.decisions.len() / parts)).collect();
            for ((key, i), decision) in block.keys.iter().zip(block.first as u32..).zip(block.decisions) {
                block.parts[borders.partition_point(|border| *border <= (*key, i))].push(*decision);
            }
        });
        threads::map(&mut vec![(); parts], |number, ()| {
            let parts: Vec<&[u32]> = blocks.iter().map(|block| block.parts[number].as_slice()).collect();
            self.minibatch(parts.concat())
        })
    }

    /// Returns all decisions as one minibatch, in order.
    pub fn all(&self) -> Minibatch {
        let mut part = self.order.clone();
        part.sort_unstable();
        self.minibatch(part)
    }

    /// Creates a minibatch of these segments, on texts, or of these decisions.
    fn minibatch(&self, part: Vec<u32>) -> Minibatch {
        let segments = part.len();
        let indices: Vec<u32> = if self.whole {
            part.iter().flat_map(|segment| self.ranges[*segment as usize].clone()).map(|i| i as u32).collect()
        } else {
            part
        };
        if self.how == Aggregation::TokenMean {
            let weights = vec![self.how.weight(0, indices.len(), 0.0, 0); indices.len()]; // token-mean ignores lengths
            return Minibatch { indices, weights, total: 1.0 };
        }
        let length = |i: &u32| self.lengths[*i as usize] as usize;
        // a single decision counts as the fraction 1 / length of an episode; a whole episode counts as 1, even if it has no decisions
        let episodes = if self.are_episodes { segments as f32 } else { indices.iter().map(|i| 1.0 / length(i) as f64).sum::<f64>() as f32 };
        let weight = |i: &u32| self.how.weight(length(i), indices.len(), episodes, self.constant_length);
        let weights: Vec<f32> = indices.iter().map(weight).collect();
        let is_mean = self.how == Aggregation::SequenceMean;
        let total = if is_mean { 1.0 } else { weights.iter().map(|w| f64::from(*w)).sum() };
        Minibatch { indices, weights, total }
    }
}
