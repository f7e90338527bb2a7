//! Generation of tokens with a key-value cache.
//!
//! Each row of a call has a slot, which caches the keys and values of the tokens that were read. If a row continues the text of its slot,
//! only the new token is read. For any other row, the actor searches the other slots. If a slot without a row has cached all tokens of the
//! text except the last, it becomes the row's slot. Otherwise, the longest common prefix is copied. A prompt that several rows share is
//! therefore read once, and callers need not manage the cache.

use super::Transformer;
use super::attention::Span;
use super::head::Distributions;
use super::layout::Layout;
use super::pass::Workspace;
use super::plan::Sizes;
use super::trunk::{Forward, Memory};
use crate::cpu::layer::padded;
use crate::policy::restore;
use crate::{ActionRows, Actor, ActorState, Choice, categorical};
use gradus_base::simd::{Kernel, Simd, dispatch};

/// Maximum number of tokens that are read together; a row with more new tokens is read alone.
const TILE_TOKENS: usize = 192;

/// The tokens that a slot has read, and their keys and values.
struct Slot {
    tokens: Vec<u32>,
    memory: Memory,
}

/// The actor of a [`Transformer`].
pub(super) struct TextActor<'a> {
    policy: &'a Transformer,
    slots: Vec<Slot>,
    workspace: Option<Workspace>,
}

/// Length of the common prefix of two texts.
fn common(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Which part of a row's text is cached.
enum Known {
    /// The row's slot has cached this many tokens of the text.
    Own(usize),
    /// The text equals that of this earlier row.
    SameAs(usize),
}

impl<'a> TextActor<'a> {
    pub fn new(policy: &'a Transformer) -> Self {
        Self { policy, slots: Vec::new(), workspace: None }
    }

    /// Gives each row's slot the longest cached prefix of the row's text; the text's last token is never part of it.
    fn recall(&mut self, texts: &[Vec<u32>]) -> Vec<Known> {
        let layout = &self.policy.layout;
        while self.slots.len() < texts.len() {
            self.slots.push(Slot { tokens: Vec::new(), memory: Memory::new(layout) });
        }
        let wanted = |text: &[u32]| text.len() - 1;
        // a row whose index has changed gets its old slot back
        for (row, text) in texts.iter().enumerate() {
            let knows_all = |slot: &Slot| slot.tokens.len() >= wanted(text) && common(&slot.tokens, text) >= wanted(text);
            if wanted(text) > 0
                && !knows_all(&self.slots[row])
                && let Some(free) = (texts.len()..self.slots.len()).find(|free| knows_all(&self.slots[*free]))
            {
                self.slots.swap(row, free);
            }
        }
        let own: Vec<usize> = texts.iter().zip(&self.slots).map(|(text, slot)| common(&slot.tokens, text).min(wanted(text))).collect();
        let mut known: Vec<Known> = Vec::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let goes_on = own[row] == wanted(text);
            if !goes_on && let Some(leader) = (0..row).rev().take(1).find(|before| texts[*before] == *text) {
                let first = if let Known::SameAs(first) = known[leader] { first } else { leader };
                known.push(Known::SameAs(first));
                continue;
            }
            let mut tokens = own[row];
            if !goes_on {
                // among the slots whose cached tokens stay valid in this call, finds the slot with the longest common prefix
                let others = (0..self.slots.len()).filter(|other| *other >= texts.len() || own[*other] == wanted(&texts[*other]));
                let best = others.map(|other| (common(&self.slots[other].tokens, text).min(wanted(text)), other)).max_by_key(|(n, _)| *n);
                if let Some((n, other)) = best.filter(|(n, _)| *n > tokens) {
                    let (to, from) = two(&mut self.slots, row, other);
                    to.memory.copy(layout, &from.memory, n);
                    tokens = n;
                }
            }
            known.push(Known::Own(tokens));
        }
        known
    }

    /// Reads the uncached tokens of each text, and passes the row and its log-probabilities to `each`. Afterwards the slot of every row
    /// holds the row's text.
    fn read(&mut self, texts: &[Vec<u32>], known: &[Known], mut each: impl FnMut(usize, &mut [f32]), masks: Option<&[bool]>) {
        let Transformer { layout, level, .. } = self.policy;
        let (parameters, transposed) = (self.policy.parameters(), self.policy.transposed());
        let n = layout.vocabulary;
        let mut followers: Vec<Vec<usize>> = vec![Vec::new(); texts.len()];
        let mut leaders = Vec::new();
        for (row, known) in known.iter().enumerate() {
            match known {
                Known::Own(tokens) => leaders.push((row, *tokens)),
                Known::SameAs(leader) => followers[*leader].push(row),
            }
        }
        let mut rest = &leaders[..];
        while !rest.is_empty() {
            // fill a tile
            let mut sizes = Sizes::default();
            let mut spans = Vec::new();
            for (row, before) in rest {
                let new = texts[*row].len() - before;
                if !spans.is_empty() && sizes.tokens + new > TILE_TOKENS {
                    break;
                }
                let span = Span { first: sizes.tokens, new, before: *before, shared: 0, probabilities: sizes.probabilities };
                sizes.tokens += new;
                sizes.probabilities += layout.heads * new * span.stride();
                spans.push(span);
            }
            let (now, later) = rest.split_at(spans.len());
            rest = later;
            // rows with the same text may have different masks
            let shares: Vec<(usize, usize)> = now
                .iter()
                .enumerate()
                .flat_map(|(i, (row, _))| std::iter::once(*row).chain(followers[*row].iter().copied()).map(move |r| (i, r)))
                .collect();
            sizes.asked = shares.len();
            let fits = self.workspace.as_ref().is_some_and(|workspace| workspace.fits(sizes, false));
            if !fits {
                let most = Sizes {
                    tokens: sizes.tokens.max(TILE_TOKENS),
                    asked: sizes.asked.max(TILE_TOKENS),
                    probabilities: sizes.probabilities.max(layout.heads * TILE_TOKENS * padded(layout.context)),
                    longest: 0, // the keys of all tokens are cached
                };
                self.workspace = Some(Workspace::new(layout, most, false));
            }
            let Some(workspace) = &mut self.workspace else { return };
            let tokens: Vec<u32> = now.iter().flat_map(|(row, before)| texts[*row][*before..].iter().copied()).collect();
            let rows: Vec<u32> = shares.iter().map(|(i, _)| (spans[*i].first + spans[*i].new - 1) as u32).collect();
            // the caches are collected in the order of the rows, so that each slot is borrowed once
            let mut wanted = now.iter().map(|(row, _)| *row).peekable();
            let mut memories: Vec<&mut Memory> = Vec::with_capacity(now.len());
            for (i, slot) in self.slots.iter_mut().enumerate() {
                if wanted.next_if_eq(&i).is_some() {
                    memories.push(&mut slot.memory);
                }
            }
            let forward = Forward {
                layout,
                trunk: &layout.policy,
                parameters,
                tokens: &tokens,
                spans: &spans,
                memories: Some(&mut memories),
                space: &mut workspace.policy,
            };
            dispatch(*level, forward);
            let masks: Option<Vec<bool>> = masks.map(|masks| shares.iter().flat_map(|(_, row)| &masks[row * n..][..n]).copied().collect());
            let masks = masks.as_deref();
            let Workspace { policy, head: space, .. } = workspace;
            dispatch(*level, Distributions { layout, parameters, transposed, stream: &policy.stream, rows: &rows, masks, space });
            for ((i, row), log_probs) in shares.iter().zip(space.log_probs.chunks_exact_mut(padded(n))) {
                each(*row, &mut log_probs[..n]);
                let leader = now[*i].0;
                if leader != *row {
                    let (to, from) = two(&mut self.slots, *row, leader);
                    to.memory.copy(layout, &from.memory, texts[leader].len());
                }
            }
        }
        for (slot, text) in self.slots.iter_mut().zip(texts) {
            slot.tokens.clone_from(text);
        }
    }
}

/// Borrows two slots at once.
fn two(slots: &mut [Slot], to: usize, from: usize) -> (&mut Slot, &Slot) {
    if to < from {
        let (before, behind) = slots.split_at_mut(from);
        (&mut before[to], &behind[0])
    } else {
        let (before, behind) = slots.split_at_mut(to);
        (&mut behind[0], &before[from])
    }
}

/// Chooses an action from log-probabilities.
struct Draw<'a, 'b> {
    log_probs: &'a [f32],
    choice: &'a mut Choice<'b>,
    row: usize,
}

impl Kernel for Draw<'_, '_> {
    /// The action and its log-probability.
    type Output = (u32, f32);

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (u32, f32) {
        let Self { log_probs, choice, row } = self;
        let action = categorical::choose(log_probs, choice, row);
        (action as u32, log_probs[action])
    }
}

impl Actor for TextActor<'_> {
    fn act(
        &mut self,
        observations: &[f32],
        masks: Option<&[bool]>,
        mut choice: Choice<'_>,
        actions: &mut ActionRows,
        log_probs: &mut [f32],
    ) {
        let Layout { vocabulary, context, .. } = self.policy.layout;
        assert!(observations.len().is_multiple_of(context + 1), "observations: expected rows of {} numbers", context + 1);
        let texts: Vec<Vec<u32>> = observations.chunks_exact(context + 1).map(|row| gradus_envs::text::tokens(row).collect()).collect();
        let rows = texts.len();
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        for text in &texts {
            assert!(!text.is_empty(), "text: expected at least 1 token before a decision, got 0");
            assert!(text.iter().all(|token| (*token as usize) < vocabulary), "texts: expected tokens below {vocabulary}");
        }
        if let Choice::Sample(streams) | Choice::Truncated(streams, _) = &choice {
            assert_eq!(streams.len(), rows, "streams: expected one per row");
        }
        if let Some(masks) = masks {
            assert_eq!(masks.len(), rows * vocabulary, "masks: expected {vocabulary} entries per row");
        }
        actions.resize(rows);
        let ActionRows::Discrete(actions) = actions else { panic!("actions: expected tokens, got rows of numbers") };
        let level = self.policy.level;
        let known = self.recall(&texts);
        let each = |row: usize, distribution: &mut [f32]| {
            (actions[row], log_probs[row]) = dispatch(level, Draw { log_probs: distribution, choice: &mut choice, row });
        };
        self.read(&texts, &known, each, masks);
    }

    fn take_state(&mut self) -> ActorState {
        Some(Box::new(std::mem::take(&mut self.slots)))
    }

    fn set_state(&mut self, state: ActorState) {
        restore(&mut self.slots, state);
    }
}
