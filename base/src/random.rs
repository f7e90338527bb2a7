//! Keyed random streams: every number is a pure function of (seed, purpose, index, position).
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Its only state
//! is a counter, so a stream is cheap to create and can continue at any position. No two streams share a pair of key and counter, so they
//! are statistically independent. The values of a stream are guaranteed by this crate and pinned by tests.

use rand::rand_core::{Infallible, TryRng};
use rand_distr::{Distribution, StandardNormal};

use crate::simd::{Kernel, Level, Simd, dispatch, of_lane};

/// The purpose of a stream. Streams with different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// The start and the dynamics of one episode, keyed by the episode's seed; also the noise of one problem of a testbed.
    Environment = 1,
    /// The seeds of episodes (see [`episode_seed`]).
    Episode = 2,
    /// Sampling of actions, one stream per environment.
    Action = 3,
    /// The initial parameters of a network.
    Initialisation = 4,
    /// The order of the minibatches, one stream per iteration.
    Shuffle = 5,
    /// Sampling of actions during evaluation.
    Evaluation = 6,
    /// The resamples of a bootstrap, one stream per resample.
    Bootstrap = 9,
    /// The dynamics seeds of the episodes in a group (see [`dynamics_seed`]).
    EpisodeRng = 8,
    /// The random parameters of an environment, such as the values of a bandit's arms.
    Problem = 7,
    /// Sampling from a replay buffer, one stream per update.
    Replay = 10,
    /// The simulated durations of rollouts, one stream per worker.
    Duration = 11,
    /// The noise of an update, one stream per update.
    Noise = 12,
    /// The settings that a study varies, one stream per point.
    Design = 13,
}

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Computes Philox4x32-10: four random words for each key and counter.
pub fn philox(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    philox_inline(key, counter)
}

/// As [`philox`], for vectorised loops.
#[inline(always)]
fn philox_inline(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let ([mut k0, mut k1], mut c) = (key, counter);
    for _ in 0..10 {
        let p0 = MULTIPLIERS[0] * u64::from(c[0]);
        let p1 = MULTIPLIERS[1] * u64::from(c[2]);
        c = [(p1 >> 32) as u32 ^ c[1] ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c[3] ^ k1, p0 as u32];
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    c
}

#[inline(always)]
fn key(seed: u64) -> [u32; 2] {
    [seed as u32, (seed >> 32) as u32]
}

/// Returns the counter of block `block` of stream (`purpose`, `index`). Indices have 56 bits.
#[inline(always)]
fn counter(purpose: Purpose, index: u64, block: u64) -> [u32; 4] {
    [block as u32, (block >> 32) as u32, index as u32, (index >> 32) as u32 & 0x00FF_FFFF | (purpose as u32) << 24]
}

/// Returns the seed of episode number `episode` of environment `env` in a run with seed `seed`.
pub fn episode_seed(seed: u64, env: u64, episode: u64) -> u64 {
    episode_seed_inline(seed, env, episode)
}

/// As [`episode_seed`], for vectorised loops.
#[inline(always)]
pub fn episode_seed_inline(seed: u64, env: u64, episode: u64) -> u64 {
    let [a, b, ..] = philox_inline(key(seed), counter(Purpose::Episode, env, episode));
    u64::from(a) | u64::from(b) << 32
}

/// Returns the seed of the dynamics after the start, for episode number `episode` of environment `env`. It is used when the episodes of
/// a group share their start.
pub fn dynamics_seed(seed: u64, env: u64, episode: u64) -> u64 {
    let [a, b, ..] = philox(key(seed), counter(Purpose::EpisodeRng, env, episode));
    u64::from(a) | u64::from(b) << 32
}

/// Converts a random word to a uniform number in [0, 1) with 24 random bits.
#[inline]
pub fn unit_f32(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Converts two random words to a uniform number in [0, 1) with 53 random bits.
#[inline(always)]
fn unit_f64(low: u32, high: u32) -> f64 {
    let bits = u64::from(low) | u64::from(high) << 32;
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Returns the first `N` numbers that [`Stream::unit_f64`] draws in the episode with seed `seed`, for vectorised loops.
#[inline(always)]
pub fn first_units<const N: usize>(seed: u64) -> [f64; N] {
    let mut units = [0.0; N];
    for (block, units) in units.chunks_mut(2).enumerate() {
        let [a, b, c, d] = philox_inline(key(seed), counter(Purpose::Environment, 0, block as u64));
        for (unit, (low, high)) in units.iter_mut().zip([(a, b), (c, d)]) {
            *unit = unit_f64(low, high);
        }
    }
    units
}

/// A keyed stream of random numbers. It is also a generator for the crates `rand` and `rand_distr`.
///
/// ```
/// use gradus_base::random::{Purpose, Stream};
///
/// let mut a = Stream::new(7, Purpose::Action, 0);
/// let first: Vec<u32> = (0..10).map(|_| a.word()).collect();
/// a.seek(3);
/// assert_eq!(a.word(), first[3]);
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    seed: u64,
    purpose: Purpose,
    index: u64,
    position: u64,
    /// The words of block number `block`.
    words: [u32; 4],
    block: u64,
}

impl Stream {
    /// Creates the stream of (`seed`, `purpose`, `index`), at position 0.
    pub fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Self { seed, purpose, index, position: 0, words: [0; 4], block: u64::MAX }
    }

    /// The position of the next word: the number of words of the stream before it.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Moves to `position`: the next word is the one after the first `position` words of the stream.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
    }

    /// Computes the block that contains the next word.
    fn fill_block(&mut self) {
        self.block = self.position / 4;
        self.words = philox(key(self.seed), counter(self.purpose, self.index, self.block));
    }

    /// Draws 32 random bits.
    #[inline]
    pub fn word(&mut self) -> u32 {
        if self.block != self.position / 4 {
            self.fill_block();
        }
        let word = self.words[(self.position % 4) as usize];
        self.position += 1;
        word
    }

    /// Draws many words at once: the same words as repeated calls of [`word`](Stream::word), but faster.
    pub fn fill(&mut self, words: &mut [u32]) {
        let unaligned = (self.position.next_multiple_of(4) - self.position).min(words.len() as u64) as usize;
        let (first, rest) = words.split_at_mut(unaligned);
        first.iter_mut().for_each(|word| *word = self.word());
        let (blocks, last) = rest.as_chunks_mut::<4>();
        self.position += 4 * blocks.len() as u64;
        dispatch(Level::best(), Blocks { stream: self, blocks });
        last.iter_mut().for_each(|word| *word = self.word());
    }

    /// Draws a uniform number in [0, 1) with 24 random bits.
    #[inline]
    pub fn unit_f32(&mut self) -> f32 {
        unit_f32(self.word())
    }

    /// Draws a uniform number in [0, 1) with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        let (low, high) = (self.word(), self.word());
        unit_f64(low, high)
    }

    /// Draws a uniform number in [low, high); rounding can give `high`.
    #[inline]
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit_f64()
    }

    /// Draws a standard normal number.
    pub fn normal(&mut self) -> f32 {
        StandardNormal.sample(self)
    }

    /// Draws a uniform integer below `n`, without bias (Lemire, arXiv 1805.10941).
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "random integer: expected a bound of at least 1, got 0");
        below(n, || self.word())
    }

    /// Draws many uniform integers below `n`: the same as repeated calls of [`below`](Stream::below), but faster.
    ///
    /// # Panics
    /// If `n` is 0.
    pub fn fill_below(&mut self, n: u32, numbers: &mut [u32]) {
        assert!(n > 0, "random integers: expected a bound of at least 1, got 0");
        let least = n.wrapping_neg() % n; // the same condition as in `below`
        let mut rest = numbers;
        while !rest.is_empty() {
            let before = self.position;
            self.fill(rest);
            let product = |word: u32| u64::from(word) * u64::from(n);
            let accepted = rest.iter().position(|word| (product(*word) as u32) < least).unwrap_or(rest.len());
            rest[..accepted].iter_mut().for_each(|word| *word = (product(*word) >> 32) as u32);
            if accepted < rest.len() {
                self.seek(before + accepted as u64 + 1); // after the rejected word
            }
            rest = &mut rest[accepted..];
        }
    }

    /// Shuffles `items` uniformly (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        let (mut words, mut next, mut end) = ([0; 256], 0, 0);
        for i in (1..items.len()).rev() {
            let other = below(i as u32 + 1, || {
                if next == end {
                    // each of the `i` remaining swaps needs at least one word, so no word is drawn in vain
                    (next, end) = (0, i.min(words.len()));
                    self.fill(&mut words[..end]);
                }
                next += 1;
                words[next - 1]
            });
            items.swap(i, other as usize);
        }
    }
}

/// Computes [`Stream::below`] with words from any source.
#[inline]
fn below(n: u32, mut word: impl FnMut() -> u32) -> u32 {
    loop {
        let product = u64::from(word()) * u64::from(n);
        // a product is rejected if its low 32 bits are below 2^32 mod n. This remainder is below n, so a product whose low bits are n or
        // more is accepted without a division
        if product as u32 >= n || product as u32 >= n.wrapping_neg() % n {
            return (product >> 32) as u32;
        }
    }
}

/// Number of blocks computed in parallel.
const LANES: usize = 8;

/// Computes consecutive blocks, the last of which ends at a stream's position.
struct Blocks<'a> {
    stream: &'a Stream,
    blocks: &'a mut [[u32; 4]],
}

impl Kernel for Blocks<'_> {
    type Output = ();
    #[inline(always)]
    #[allow(clippy::needless_range_loop)] // the compiler vectorises plain loops over lanes
    fn run<S: Simd>(self, _: S) {
        let Stream { seed, purpose, index, position, .. } = *self.stream;
        let mut number = position / 4 - self.blocks.len() as u64;
        for blocks in self.blocks.chunks_mut(LANES) {
            let mut columns = [[0; LANES]; 4];
            for lane in 0..LANES {
                let block = philox_inline(key(seed), counter(purpose, index, number + lane as u64));
                for i in 0..4 {
                    columns[i][lane] = block[i];
                }
            }
            for (lane, block) in blocks.iter_mut().enumerate() {
                *block = of_lane(&columns, lane);
            }
            number += LANES as u64;
        }
    }
}

impl TryRng for Stream {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from(self.word()) | u64::from(self.word()) << 32)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(4) {
            chunk.copy_from_slice(&self.word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with Random123 (`kat_vectors`, philox4x32 10).
    #[test]
    fn philox_gives_the_published_answers() {
        assert_eq!(philox([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 2], [u32::MAX; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = philox([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]);
        assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let first = |seed, purpose, index| Stream::new(seed, purpose, index).word();
        let words = [
            first(1, Purpose::Action, 0),
            first(2, Purpose::Action, 0),
            first(1, Purpose::Shuffle, 0),
            first(1, Purpose::Action, 1),
            first(1 << 40, Purpose::Action, 0),
            first(1, Purpose::Action, 1 << 40),
        ];
        for (i, a) in words.iter().enumerate() {
            assert!(words[i + 1..].iter().all(|b| a != b), "{words:x?}");
        }
    }

    #[test]
    fn seeking_equals_drawing() {
        let mut drawn = Stream::new(5, Purpose::Environment, 3);
        for position in 0..23 {
            let mut sought = Stream::new(5, Purpose::Environment, 3);
            sought.seek(position);
            assert_eq!(sought.word(), drawn.word(), "position {position}");
        }
    }

    /// A bound of 3 x 2^30 rejects every fourth word.
    #[test]
    fn drawing_many_integers_equals_drawing_each() {
        for n in [1, 2, 10, 1000, 3 << 30, u32::MAX] {
            let (mut many, mut each) = (Stream::new(5, Purpose::Bootstrap, 7), Stream::new(5, Purpose::Bootstrap, 7));
            for length in [0, 1, 3, 10, 101] {
                let mut numbers = vec![0; length];
                many.fill_below(n, &mut numbers);
                assert!(numbers.iter().all(|number| *number == each.below(n)), "below {n}: {numbers:?}");
                assert_eq!(many.position(), each.position());
            }
        }
    }

    #[test]
    fn drawing_many_words_equals_drawing_each() {
        for (skip, n) in [(0, 0), (1, 2), (0, 4), (3, 1), (2, 33), (5, 200), (7, 35)] {
            let (mut many, mut each) = (Stream::new(5, Purpose::Shuffle, 1 << 33), Stream::new(5, Purpose::Shuffle, 1 << 33));
            (0..skip).for_each(|_| assert_eq!(many.word(), each.word()));
            let mut words = vec![0; n];
            many.fill(&mut words);
            words.iter().enumerate().for_each(|(i, word)| assert_eq!(*word, each.word(), "word {i} of {n}, drawn after {skip} words"));
            assert_eq!((many.position(), many.word()), (each.position(), each.word()), "after {skip} single words and {n} words at once");
        }
    }

    /// Chi-squared with 9 degrees of freedom exceeds 27.9 with probability 0.001.
    #[test]
    fn whole_numbers_are_uniform() {
        let mut stream = Stream::new(11, Purpose::Shuffle, 0);
        let mut counts = [0.0_f64; 10];
        for _ in 0..100_000 {
            counts[stream.below(10) as usize] += 1.0;
        }
        let chi2: f64 = counts.iter().map(|c| (c - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi2 < 27.9, "chi-squared {chi2}");
    }

    /// Counts the 24 orders of four items. Chi-squared with 23 degrees of freedom exceeds 49.7 with probability 0.001.
    #[test]
    fn shuffles_are_uniform() {
        let mut stream = Stream::new(13, Purpose::Shuffle, 0);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            stream.shuffle(&mut items);
            *counts.entry(items).or_insert(0.0_f64) += 1.0;
        }
        let chi2: f64 = counts.values().map(|c| (c - 1000.0).powi(2) / 1000.0).sum();
        assert!(counts.len() == 24 && chi2 < 49.7, "chi-squared {chi2}");
    }

    /// A shuffle draws its words in bulk. It must draw exactly the words that single draws would.
    #[test]
    fn shuffles_equal_shuffles_with_single_draws() {
        for n in [0, 1, 2, 3, 256, 257, 258, 1000] {
            let (mut shuffling, mut drawing) = (Stream::new(3, Purpose::Shuffle, n), Stream::new(3, Purpose::Shuffle, n));
            let (mut items, mut expected): (Vec<u64>, Vec<u64>) = ((0..n).collect(), (0..n).collect());
            shuffling.shuffle(&mut items);
            for i in (1..n as usize).rev() {
                expected.swap(i, drawing.below(i as u32 + 1) as usize);
            }
            assert_eq!((items, shuffling.position()), (expected, drawing.position()), "{n} items");
        }
    }
}
