//! Which texts a batch needs, and how they are put into tiles.

use std::ops::Range;

use super::attention::Span;
use crate::Texts;
use crate::cpu::layer::padded;
use crate::texts::{Asked, Sequence};

/// Tokens of a tile, about: a longer text has a tile to itself.
const TILE_TOKENS: usize = 192;
/// Into how many lanes a batch is cut at most, each with a gradient of its own. It bounds the cores that can share a batch, and must not
/// depend on their number.
const MAX_LANES: usize = 8;

/// The prefixes that something is asked of, by text.
pub(super) struct Plan {
    /// The place of each in the batch, text after text.
    pub places: Vec<u32>,
    /// How many tokens each prefix has, in the order of the places.
    pub lengths: Vec<u32>,
    pub sequences: Vec<Sequence>,
    /// Neighbouring sequences that are read together.
    pub tiles: Vec<Range<usize>>,
}

/// Tiles that are worked through one after the other.
#[derive(Clone, Copy, Default)]
pub(super) struct Sizes {
    pub tokens: usize,
    pub asked: usize,
    pub probabilities: usize,
}

impl Plan {
    /// A plan for these prefixes of `texts`, given by number.
    pub fn new(texts: &Texts, rows: impl Iterator<Item = usize>) -> Self {
        let Asked { places, lengths, sequences } = Asked::of(texts.prefixes(), rows);
        let (mut tiles, mut begin, mut tokens) = (Vec::new(), 0, 0);
        for (i, sequence) in sequences.iter().enumerate() {
            if i > begin && tokens + sequence.tokens > TILE_TOKENS {
                tiles.push(begin..i);
                (begin, tokens) = (i, 0);
            }
            tokens += sequence.tokens;
        }
        if begin < sequences.len() {
            tiles.push(begin..sequences.len());
        }
        Self { places, lengths, sequences, tiles }
    }

    /// The lanes, as ranges of tiles: a function of the batch alone.
    pub fn lanes(&self) -> Vec<Range<usize>> {
        let n = self.tiles.len().min(MAX_LANES);
        (0..n).map(|i| i * self.tiles.len() / n..(i + 1) * self.tiles.len() / n).collect()
    }

    /// What is asked in some tiles.
    pub fn asked(&self, tiles: &Range<usize>) -> Range<usize> {
        let first = |tile: usize| self.sequences[self.tiles[tile].start].asked.start;
        let end = self.tiles[tiles.end - 1].end;
        first(tiles.start)..self.sequences[end - 1].asked.end
    }

    /// The spans of a tile, and its size.
    pub fn spans(&self, tile: &Range<usize>, heads: usize) -> (Vec<Span>, Sizes) {
        let mut sizes = Sizes::default();
        let span = |sequence: &Sequence| {
            let span = Span { first: sizes.tokens, new: sequence.tokens, before: 0, probabilities: sizes.probabilities };
            sizes.tokens += sequence.tokens;
            sizes.asked += sequence.asked.len();
            sizes.probabilities += heads * sequence.tokens * padded(sequence.tokens);
            span
        };
        let spans = self.sequences[tile.clone()].iter().map(span).collect();
        (spans, sizes)
    }

    /// The size of the largest tile, in each respect.
    pub fn largest(&self, heads: usize) -> Sizes {
        self.tiles.iter().map(|tile| self.spans(tile, heads).1).fold(Sizes::default(), |a, b| Sizes {
            tokens: a.tokens.max(b.tokens),
            asked: a.asked.max(b.asked),
            probabilities: a.probabilities.max(b.probabilities),
        })
    }
}
