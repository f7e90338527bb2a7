//! Generation of tokens with a key-value cache on the device.

use std::collections::HashMap;

use tch::{Kind, TchError, Tensor, no_grad};

use super::super::distribution::Distribution;
use super::super::library::use_threads;
use super::super::parameters::{to_device, to_host};
use super::Transformer;
use super::trunk::{Attend, Memory, Weights};
use crate::policy::restore;
use crate::{ActionRows, Actor, ActorState, Choice, categorical};

/// The actor of a [`Transformer`].
pub(super) struct TextActor<'a> {
    policy: &'a Transformer,
    pub(super) weights: Option<Weights>,
    /// For each row of the cache, the tokens whose keys and values it has.
    known: Vec<Vec<u32>>,
    /// Keys and values of each layer: [rows, heads, context, width per head].
    pub(super) memories: Vec<Memory>,
}

/// Converts row numbers to i64, the type of an index on the device.
fn numbers(rows: impl Iterator<Item = usize>) -> Vec<i64> {
    rows.map(|row| row as i64).collect()
}

impl<'a> TextActor<'a> {
    pub fn new(policy: &'a Transformer) -> Self {
        Self { policy, weights: None, known: Vec::new(), memories: Vec::new() }
    }

    /// Returns for each text the row of the cache whose tokens are the text without its last token, if there is such a row.
    fn sources(&self, texts: &[Vec<u32>]) -> Vec<Option<usize>> {
        // it is nearly always the row with the text's own number, so the map `others` is rarely built
        let own = |row: usize, before: &[u32]| self.known.get(row).is_some_and(|known| known == before) && !before.is_empty();
        let mut others: Option<HashMap<&[u32], usize>> = None;
        let source = |(row, text): (usize, &Vec<u32>)| {
            let before = &text[..text.len() - 1];
            if own(row, before) {
                return Some(row);
            }
            let index = || self.known.iter().enumerate().map(|(row, tokens)| (tokens.as_slice(), row)).collect();
            others.get_or_insert_with(index).get(before).copied()
        };
        texts.iter().enumerate().map(source).collect()
    }

    /// Copies row `sources[i]` of the cache to row i, for each i that has a source. Resizes the cache to one row per entry of `sources`.
    fn move_rows(&mut self, sources: &[Option<usize>]) -> Result<(), TchError> {
        let (device, n) = (self.policy.parameters.device(), sources.len());
        let moved: Vec<(usize, usize)> = sources
            .iter()
            .enumerate()
            .filter_map(|(row, source)| source.filter(|source| *source != row).map(|source| (row, source)))
            .collect();
        if self.known.is_empty() || (moved.is_empty() && self.known.len() == n) {
            return Ok(());
        }
        let grown = n.saturating_sub(self.known.len()) as i64;
        let to = to_device(&numbers(moved.iter().map(|(row, _)| *row)), device)?;
        let from = to_device(&numbers(moved.iter().map(|(_, source)| *source)), device)?;
        for memory in self.memories.iter_mut().flat_map(|(keys, values)| [keys, values]) {
            let [_, heads, context, width] = memory.size()[..] else { continue };
            if grown > 0 {
                let more = Tensor::f_zeros([grown, heads, context, width], (memory.f_kind()?, device))?;
                *memory = Tensor::f_cat(&[&*memory, &more], 0)?;
            }
            if !moved.is_empty() {
                // all source rows are copied before one is overwritten, because two rows may swap
                let kept = memory.f_index_select(0, &from)?;
                let _ = memory.f_index_copy_(0, &to, &kept)?;
            }
            *memory = memory.f_narrow(0, 0, n as i64)?;
        }
        Ok(())
    }

    /// Returns the policy's logits after each text.
    pub(super) fn read(&mut self, texts: &[Vec<u32>]) -> Result<Tensor, TchError> {
        let policy = self.policy;
        let (device, config) = (policy.parameters.device(), &policy.config);
        let weights = self.weights.take().map_or_else(|| policy.weights(), Ok)?;
        let sources = self.sources(texts);
        self.move_rows(&sources)?;
        let (heads, width) = (config.key_value_heads() as i64, config.numbers_per_head() as i64);
        if self.memories.is_empty() {
            let kind = weights.kind();
            let empty = || Tensor::f_zeros([texts.len() as i64, heads, policy.context as i64, width], (kind, device));
            self.memories = (0..config.layers).map(|_| Ok((empty()?, empty()?))).collect::<Result<_, TchError>>()?;
        }

        use_threads(policy.size(), texts.len());
        let (next, fresh): (Vec<usize>, Vec<usize>) = (0..texts.len()).partition(|row| sources[*row].is_some());
        let (mut parts, mut order) = (Vec::new(), Vec::<usize>::new());
        if !next.is_empty() {
            parts.push(self.read_next(&weights, texts, &next)?);
            order.extend(&next);
        }
        if !fresh.is_empty() {
            parts.push(self.read_whole(&weights, texts, &fresh)?);
            order.extend(&fresh);
        }
        let logits = weights.logits(&Tensor::f_cat(&parts, 0)?, config.temperature)?;
        self.known = texts.to_vec();
        self.weights = Some(weights);
        if next.is_empty() || fresh.is_empty() {
            return Ok(logits);
        }
        let mut place = vec![0; texts.len()];
        order.iter().enumerate().for_each(|(at, row)| place[*row] = at as i64);
        logits.f_index_select(0, &to_device(&place, device)?)
    }

    /// Returns the logits after text number `of[row]` for each row, and fills the cache of the rows. `texts` and their `lengths` are on the
    /// device; each text is read once.
    pub(super) fn read_there(&mut self, (texts, lengths): (&Tensor, &Tensor), of: &Tensor) -> Result<Tensor, TchError> {
        let (config, n) = (&self.policy.config, of.size()[0]);
        let weights = self.policy.weights()?;
        use_threads(self.policy.size(), of.numel());
        let mut read = Vec::new();
        let x = weights.forward(config, ("model", texts), None, Attend::Whole(Some(&mut read)))?;
        let [texts, longest, width] = x.size()[..] else { unreachable!("texts, tokens, numbers") };
        let row = |(keys, values): (Tensor, Tensor)| {
            let remember = |read: &Tensor| {
                let [_, heads, _, width] = read.size()[..] else { unreachable!("texts, heads, tokens, numbers") };
                let memory = Tensor::f_zeros([n, heads, self.policy.context as i64, width], (read.f_kind()?, read.device()))?;
                memory.f_narrow(2, 0, longest)?.f_copy_(&read.f_index_select(0, of)?)?;
                Ok::<_, TchError>(memory)
            };
            Ok((remember(&keys)?, remember(&values)?))
        };
        self.memories = read.into_iter().map(row).collect::<Result<_, TchError>>()?;
        let ends = Tensor::f_arange(texts, (Kind::Int64, x.device()))?.f_mul_scalar(longest)?.f_add(lengths)?.f_sub_scalar(1)?;
        let logits = weights.logits(&x.f_reshape([-1, width])?.f_index_select(0, &ends)?, config.temperature)?;
        self.weights = Some(weights);
        logits.f_index_select(0, of)
    }

    /// Reads the last token of texts whose other tokens are cached.
    fn read_next(&mut self, weights: &Weights, texts: &[Vec<u32>], next: &[usize]) -> Result<Tensor, TchError> {
        let device = self.policy.parameters.device();
        let last: Vec<i64> = next.iter().map(|row| texts[*row].last().map_or(0, |token| i64::from(*token))).collect();
        let places = numbers(next.iter().map(|row| texts[*row].len() - 1));
        let reach = places.iter().max().map_or(1, |place| place + 1);
        let (rows, places) = (to_device(&numbers(next.iter().copied()), device)?, to_device(&places, device)?);
        let allowed = Tensor::f_arange(reach, (Kind::Int64, device))?.f_unsqueeze(0)?.f_le_tensor(&places.f_unsqueeze(1)?)?;
        let allowed = allowed.f_unsqueeze(1)?.f_unsqueeze(1)?;
        let tokens = to_device(&last, device)?.f_unsqueeze(1)?;
        let attend = Attend::Next { memories: &mut self.memories, rows: &rows, places: &places, allowed: &allowed };
        weights.forward(&self.policy.config, ("model", &tokens), Some(&places), attend)?.f_squeeze_dim(1)
    }

    /// Reads whole texts, for which the cache has no row to continue; equal texts are read once.
    fn read_whole(&mut self, weights: &Weights, texts: &[Vec<u32>], fresh: &[usize]) -> Result<Tensor, TchError> {
        let device = self.policy.parameters.device();
        let mut leaders: Vec<usize> = Vec::new();
        let mut number: HashMap<&[u32], usize> = HashMap::new();
        let followers: Vec<usize> = fresh
            .iter()
            .map(|row| {
                *number.entry(&texts[*row]).or_insert_with(|| {
                    leaders.push(*row);
                    leaders.len() - 1
                })
            })
            .collect();
        let longest = leaders.iter().map(|row| texts[*row].len()).max().unwrap_or(1);
        let mut tokens = vec![0_i64; leaders.len() * longest];
        for (row, padded) in leaders.iter().zip(tokens.chunks_exact_mut(longest)) {
            padded.iter_mut().zip(&texts[*row]).for_each(|(to, token)| *to = i64::from(*token));
        }
        let tokens = to_device(&tokens, device)?.f_view([-1, longest as i64])?;
        let mut read = Vec::new();
        let x = weights.forward(&self.policy.config, ("model", &tokens), None, Attend::Whole(Some(&mut read)))?;
        let (rows, of) = (to_device(&numbers(fresh.iter().copied()), device)?, to_device(&numbers(followers.iter().copied()), device)?);
        for ((keys, values), (new_keys, new_values)) in self.memories.iter_mut().zip(read) {
            let _ = keys.f_narrow(2, 0, longest as i64)?.f_index_copy_(0, &rows, &new_keys.f_index_select(0, &of)?)?;
            let _ = values.f_narrow(2, 0, longest as i64)?.f_index_copy_(0, &rows, &new_values.f_index_select(0, &of)?)?;
        }
        let ends = numbers(fresh.iter().zip(&followers).map(|(row, leader)| leader * longest + texts[*row].len() - 1));
        x.f_reshape([-1, self.policy.config.width as i64])?.f_index_select(0, &to_device(&ends, device)?)
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
        let Transformer { vocabulary: n, context, .. } = *self.policy;
        assert!(observations.len().is_multiple_of(context + 1), "observations: expected rows of {} numbers", context + 1);
        let texts: Vec<Vec<u32>> = observations.chunks_exact(context + 1).map(|row| gradus_envs::text::tokens(row).collect()).collect();
        let rows = texts.len();
        assert_eq!(rows, log_probs.len(), "log-probabilities: expected room for {rows}");
        for text in &texts {
            assert!(!text.is_empty(), "text: expected at least 1 token before a decision, got 0");
            assert!(text.iter().all(|token| (*token as usize) < n), "texts: expected tokens below {n}");
        }
        if let Choice::Sample(streams) | Choice::Truncated(streams, _) = &choice {
            assert_eq!(streams.len(), rows, "streams: expected one per row");
        }
        if let Some(masks) = masks {
            assert_eq!(masks.len(), rows * n, "masks: expected {n} entries per row");
        }
        actions.resize(rows);
        let ActionRows::Discrete(actions) = actions else { panic!("actions: expected tokens, got rows of numbers") };
        if rows == 0 {
            return;
        }
        let policy = self.policy;
        policy.fault.guard(|| {
            let distributions = no_grad(|| {
                let logits = self.read(&texts)?;
                let masks = masks.map(|masks| to_device(masks, policy.parameters.device())?.f_view([-1, n as i64])).transpose()?;
                to_host(&Distribution::categorical(&logits, masks.as_ref())?.rows()?)
            })?;
            for (row, distribution) in distributions.chunks_exact(n).enumerate() {
                let action = categorical::choose(distribution, &mut choice, row);
                (actions[row], log_probs[row]) = (action as u32, distribution[action]);
            }
            Ok(())
        });
    }

    fn take_state(&mut self) -> ActorState {
        Some(Box::new((std::mem::take(&mut self.known), std::mem::take(&mut self.memories))))
    }

    fn set_state(&mut self, state: ActorState) {
        let mut own = Default::default();
        restore(&mut own, state);
        (self.known, self.memories) = own;
    }
}
