//! Which texts a batch needs, and how they are packed into tiles.
//!
//! Neighbouring sequences whose first decision follows the same tokens, such as completions of the same prompt, share these tokens: a tile
//! holds the shared prefix once, and each sequence continues it.

use std::ops::Range;

use super::attention::Span;
use super::layout::TILE_TOKENS;
use crate::Texts;
use crate::texts::{Asked, Sequence};

/// The queried prefixes of a batch, grouped by text and packed into tiles.
pub(super) struct Plan {
    /// The position of each prefix in the batch, text after text.
    pub places: Vec<u32>,
    /// Number of tokens of each prefix, in the order of `places`.
    pub lengths: Vec<u32>,
    pub sequences: Vec<Sequence>,
    /// The shared prefix of each sequence.
    beginnings: Vec<Beginning>,
    /// Ranges of neighbouring sequences, one per tile.
    pub tiles: Vec<Range<usize>>,
}

/// The prefix that neighbouring sequences with the same `number` share; 0 tokens if a sequence shares none.
#[derive(Clone, Copy, PartialEq)]
struct Beginning {
    number: usize,
    tokens: usize,
}

/// A piece of a tile: some tokens of a sequence, and their span.
pub(super) struct Piece<'a> {
    pub sequence: &'a Sequence,
    pub tokens: Range<usize>,
    pub span: Span,
    /// Whether the piece is the prefix that the next sequences share. Otherwise it is the rest of this sequence, or the whole sequence.
    pub is_shared: bool,
}

/// Sizes of a tile: its numbers of tokens, queried prefixes and attention probabilities, and the padded length of its longest sequence.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    pub tokens: usize,
    pub asked: usize,
    pub probabilities: usize,
    pub longest: usize,
}

impl Plan {
    /// Creates a plan for the prefixes of `texts` with the numbers `rows`.
    pub fn new(texts: &Texts, rows: impl Iterator<Item = usize>) -> Self {
        let Asked { places, lengths, sequences } = Asked::of(texts.prefixes(), rows);
        let prompt = |sequence: &Sequence| {
            let first = lengths[sequence.asked.clone()].iter().min().map_or(0, |length| *length as usize);
            &texts.text(sequence.text)[..first]
        };
        let mut beginnings = Vec::with_capacity(sequences.len());
        for (number, alike) in sequences.chunk_by(|a, b| prompt(a) == prompt(b)).enumerate() {
            let tokens = if alike.len() > 1 { prompt(&alike[0]).len() } else { 0 };
            beginnings.extend(alike.iter().map(|_| Beginning { number, tokens }));
        }
        let (mut tiles, mut begin, mut tokens) = (Vec::new(), 0, 0);
        for (i, sequence) in sequences.iter().enumerate() {
            let has_begun = i > begin && beginnings[i] == beginnings[i - 1];
            let shared = if has_begun { beginnings[i].tokens } else { 0 };
            let new = sequence.tokens - shared;
            // a tile may grow to twice its shared prefix, so that a long prefix is not repeated in the next tile for a few tokens
            if i > begin && tokens + new > TILE_TOKENS.max(2 * shared) {
                tiles.push(begin..i);
                (begin, tokens) = (i, sequence.tokens);
            } else {
                tokens += new;
            }
        }
        if begin < sequences.len() {
            tiles.push(begin..sequences.len());
        }
        Self { places, lengths, sequences, beginnings, tiles }
    }

    /// Returns at most `most` lanes as ranges of tiles; they depend only on the batch.
    pub fn lanes(&self, most: usize) -> Vec<Range<usize>> {
        let n = self.tiles.len().min(most);
        (0..n).map(|i| i * self.tiles.len() / n..(i + 1) * self.tiles.len() / n).collect()
    }

    /// Returns the range, in `places`, of the queried prefixes that these tiles hold.
    pub fn asked(&self, tiles: &Range<usize>) -> Range<usize> {
        let first = |tile: usize| self.sequences[self.tiles[tile].start].asked.start;
        let end = self.tiles[tiles.end - 1].end;
        first(tiles.start)..self.sequences[end - 1].asked.end
    }

    /// Passes the pieces of a tile to `each`, in the order of its rows; returns the size of the tile.
    pub fn lay<'a>(&'a self, tile: &Range<usize>, heads: usize, mut each: impl FnMut(Piece<'a>)) -> Sizes {
        let mut sizes = Sizes::default();
        // `shared`: the first row of the last sequence's shared prefix
        let (mut last, mut shared) = (None, 0);
        for (sequence, beginning) in self.sequences[tile.clone()].iter().zip(&self.beginnings[tile.clone()]) {
            let mut piece = |tokens: Range<usize>, is_shared: bool, shared: usize| {
                let span =
                    Span { first: sizes.tokens, new: tokens.len(), before: tokens.start, shared, probabilities: sizes.probabilities };
                sizes.tokens += span.new;
                sizes.probabilities += heads * span.new * span.stride();
                sizes.longest = sizes.longest.max(span.stride());
                each(Piece { sequence, tokens, span, is_shared });
                span.first
            };
            if beginning.tokens > 0 && last != Some(*beginning) {
                shared = piece(0..beginning.tokens, true, 0);
            }
            piece(beginning.tokens..sequence.tokens, false, shared);
            last = Some(*beginning);
            sizes.asked += sequence.asked.len();
        }
        sizes
    }

    /// Returns the maximum of each size over all tiles.
    pub fn largest(&self, heads: usize) -> Sizes {
        self.tiles.iter().map(|tile| self.lay(tile, heads, |_| {})).fold(Sizes::default(), |a, b| Sizes {
            tokens: a.tokens.max(b.tokens),
            asked: a.asked.max(b.asked),
            probabilities: a.probabilities.max(b.probabilities),
            longest: a.longest.max(b.longest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of rows of each tile. For each length in `prompts`, four texts share a prompt of this length, followed by ten
    /// tokens.
    fn rows(prompts: &[usize]) -> Vec<usize> {
        let mut texts = Texts::new(500);
        for (group, prompt) in prompts.iter().enumerate() {
            for text in 0..4 {
                for length in [*prompt, prompt + 10] {
                    texts.push((0..length as u32).map(|i| if i < *prompt as u32 { group as u32 } else { 10 + text }));
                }
                texts.end_text();
            }
        }
        let plan = Plan::new(&texts, 0..texts.prefixes().len());
        plan.tiles.iter().map(|tile| plan.lay(tile, 1, |_| {}).tokens).collect()
    }

    #[test]
    fn a_shared_prefix_is_stored_once_per_tile() {
        assert_eq!(rows(&[6, 6, 7]), [46 + 46 + 47]);
        // the second tile repeats the second group's prefix
        assert_eq!(rows(&[130, 6]), [170 + 16, 6 + 30]);
        // a long prefix is not repeated, even if its texts fill more than a tile
        assert_eq!(rows(&[160, 300]), [200, 340]);
    }
}
