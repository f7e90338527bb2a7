//! Texts as observations. Each text is stored once, even if several of its prefixes are observations.

/// A prefix: the first `length` tokens of text number `text`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// Number of the text.
    pub text: u32,
    /// Number of tokens in the prefix.
    pub length: u32,
}

/// Prefixes of texts: the states of episodes in which every action appends a token.
///
/// ```
/// use gradus_nets::{Prefix, Texts};
///
/// let mut texts = Texts::new(8);
/// for prefix in [&[5, 1][..], &[5, 1, 2], &[5, 1, 2, 3], &[5, 1]] {
///     texts.push(prefix.iter().copied());
/// }
/// assert_eq!((texts.len(), texts.text(0), texts.text(1)), (2, &[5, 1, 2, 3][..], &[5, 1][..]));
/// assert_eq!(texts.prefixes()[2], Prefix { text: 0, length: 4 });
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Texts {
    tokens: Vec<u32>,
    /// End of each text in `tokens`.
    ends: Vec<usize>,
    prefixes: Vec<Prefix>,
    context: usize,
    /// Whether a longer prefix can still extend the last text.
    open: bool,
}

/// A text with queried prefixes. `tokens` is the length of the longest of these prefixes.
pub(crate) struct Sequence {
    pub text: usize,
    pub tokens: usize,
    /// Range of the queried prefixes of this text in [`Asked::places`].
    pub asked: std::ops::Range<usize>,
}

/// Queried prefixes, grouped by text.
pub(crate) struct Asked {
    /// The position of each prefix in the query, text after text.
    pub places: Vec<u32>,
    /// Number of tokens of each prefix, in the order of `places`.
    pub lengths: Vec<u32>,
    pub sequences: Vec<Sequence>,
}

impl Asked {
    /// Groups the prefixes with the numbers `rows` by text.
    ///
    /// # Panics
    /// If a prefix is empty: a transformer needs at least one token.
    pub fn of(prefixes: &[Prefix], rows: impl Iterator<Item = usize>) -> Self {
        let mut asked: Vec<(u32, u32, u32)> =
            rows.enumerate().map(|(place, row)| (prefixes[row].text, place as u32, prefixes[row].length)).collect();
        assert!(asked.iter().all(|(_, _, length)| *length > 0), "text: expected at least 1 token before a decision, got 0");
        asked.sort_unstable();
        let mut sequences: Vec<Sequence> = Vec::new();
        for (i, (text, _, length)) in asked.iter().enumerate() {
            match sequences.last_mut().filter(|last| last.text == *text as usize) {
                Some(last) => {
                    last.tokens = last.tokens.max(*length as usize);
                    last.asked.end = i + 1;
                }
                None => sequences.push(Sequence { text: *text as usize, tokens: *length as usize, asked: i..i + 1 }),
            }
        }
        let (places, lengths) = asked.iter().map(|(_, place, length)| (*place, *length)).unzip();
        Self { places, lengths, sequences }
    }
}

impl Texts {
    /// Returns an empty collection for texts of at most `context` tokens.
    pub fn new(context: usize) -> Self {
        Self { tokens: Vec::new(), ends: Vec::new(), prefixes: Vec::new(), context, open: false }
    }

    /// Maximum length of a text, in tokens.
    pub fn context(&self) -> usize {
        self.context
    }

    /// Number of texts.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no texts.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The prefixes, in the order in which they were added.
    pub fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// The tokens of all texts, one after the other.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// The tokens of text number `text`, which are those of its longest prefix.
    pub fn text(&self, text: usize) -> &[u32] {
        &self.tokens[self.begin(text)..self.ends[text]]
    }

    /// The tokens of prefix number `row`.
    pub fn prefix(&self, row: usize) -> &[u32] {
        let Prefix { text, length } = self.prefixes[row];
        &self.text(text as usize)[..length as usize]
    }

    fn begin(&self, text: usize) -> usize {
        text.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    /// Appends a prefix. If it extends the last text, and [`end_text`](Self::end_text) has not completed that text, it belongs to the same
    /// text; otherwise it begins a new text.
    ///
    /// # Panics
    /// If the prefix has more than `context` tokens.
    pub fn push(&mut self, prefix: impl ExactSizeIterator<Item = u32> + Clone) {
        let length = prefix.len();
        assert!(length <= self.context, "text: expected at most {} tokens, got {length}", self.context);
        let grows = self.ends.len().checked_sub(1).is_some_and(|last| {
            let text = self.text(last);
            self.open && text.len() < length && prefix.clone().zip(text).all(|(new, old)| new == *old)
        });
        if grows {
            let text = self.ends.len() - 1;
            let known = self.ends[text] - self.begin(text);
            self.tokens.extend(prefix.skip(known));
            self.ends[text] = self.tokens.len();
        } else {
            self.tokens.extend(prefix);
            self.ends.push(self.tokens.len());
        }
        self.prefixes.push(Prefix { text: self.ends.len() as u32 - 1, length: length as u32 });
        self.open = true;
    }

    /// Marks the last text as complete: the next prefix begins a new text.
    pub fn end_text(&mut self) {
        self.open = false;
    }

    /// Appends the prefixes of `other`. The texts of `other` are not merged with those of `self`.
    pub fn extend(&mut self, other: &Texts) {
        let (tokens, texts) = (self.tokens.len(), self.ends.len() as u32);
        self.tokens.extend_from_slice(&other.tokens);
        self.ends.extend(other.ends.iter().map(|end| tokens + end));
        self.prefixes.extend(other.prefixes.iter().map(|prefix| Prefix { text: prefix.text + texts, ..*prefix }));
        self.context = self.context.max(other.context);
        self.open = false;
    }

    /// Inserts the first `decisions` prefixes of `other` at position `at`, and appends the rest.
    pub(crate) fn insert(&mut self, at: usize, other: &Texts, decisions: usize) {
        let n = self.prefixes.len();
        self.extend(other);
        // moves the prefixes from `at` to n behind the inserted ones
        self.prefixes[at..n + decisions].rotate_left(n - at);
    }
}
