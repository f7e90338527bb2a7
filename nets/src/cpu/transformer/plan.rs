//! Which texts a batch needs, and how they are put into tiles.
//!
//! Neighbours that are first asked behind the same tokens, as a group's completions are behind their prompt, share these: in every tile the
//! beginning stands once, and each sequence goes on from there.

use std::ops::Range;

use super::attention::Span;
use crate::Texts;
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
    /// How each sequence begins.
    beginnings: Vec<Beginning>,
    /// Neighbouring sequences that are read together.
    pub tiles: Vec<Range<usize>>,
}

/// What a sequence begins with that all of its neighbours with this number begin with, too; no tokens: it stands alone.
#[derive(Clone, Copy, PartialEq)]
struct Beginning {
    number: usize,
    tokens: usize,
}

/// A piece of a tile: some tokens of a sequence, and the span that they are.
pub(super) struct Piece<'a> {
    pub sequence: &'a Sequence,
    pub tokens: Range<usize>,
    pub span: Span,
    /// Whether it is the beginning that the next sequences share; else it is the rest of this one, or all of it.
    pub is_shared: bool,
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
            // a long beginning is not read again for a few tokens: it takes half of a tile at most
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

    /// Shows the pieces of a tile to `each`, in the order of its rows; returns its size.
    pub fn lay<'a>(&'a self, tile: &Range<usize>, heads: usize, mut each: impl FnMut(Piece<'a>)) -> Sizes {
        let mut sizes = Sizes::default();
        // the rows of the beginning that the last sequence had
        let (mut last, mut shared) = (None, 0);
        for (sequence, beginning) in self.sequences[tile.clone()].iter().zip(&self.beginnings[tile.clone()]) {
            let mut piece = |tokens: Range<usize>, is_shared: bool, shared: usize| {
                let span =
                    Span { first: sizes.tokens, new: tokens.len(), before: tokens.start, shared, probabilities: sizes.probabilities };
                sizes.tokens += span.new;
                sizes.probabilities += heads * span.new * span.stride();
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

    /// The size of the largest tile, in each respect.
    pub fn largest(&self, heads: usize) -> Sizes {
        self.tiles.iter().map(|tile| self.lay(tile, heads, |_| {})).fold(Sizes::default(), |a, b| Sizes {
            tokens: a.tokens.max(b.tokens),
            asked: a.asked.max(b.asked),
            probabilities: a.probabilities.max(b.probabilities),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many rows each tile has, for groups of four texts that share so many tokens and have ten of their own.
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
    fn a_shared_beginning_stands_once_in_a_tile() {
        assert_eq!(rows(&[6, 6, 7]), [46 + 46 + 47]);
        // the second group's beginning is read again in the second tile
        assert_eq!(rows(&[130, 6]), [170 + 16, 6 + 30]);
        // a long one is not: not even where its texts fill more than a tile
        assert_eq!(rows(&[160, 300]), [200, 340]);
    }
}
