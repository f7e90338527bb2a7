//! Passes over the tiles of a plan. They compute outputs of the policy, or an objective with its gradient.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::attention::Span;
use super::head::{Back, Distributions, HeadSpace, ObjectiveInputs, Values};
use super::layout::{Gradient, Layout, Numbers, TrunkAt};
use super::plan::{Plan, Sizes};
use super::trunk::{Backward, Forward, TrunkSpace};
use crate::cpu::aligned::Aligned;
use crate::cpu::layer::padded;
use crate::{ActionRows, Batch, Objective, PolicyOutput, Store, Sums};
use gradus_base::simd::{Level, dispatch};

/// A tile's activations and derivatives.
pub(super) struct Workspace {
    sizes: Sizes,
    backward: bool,
    pub policy: TrunkSpace,
    critic: Option<TrunkSpace>,
    pub head: HeadSpace,
    entropies: Vec<f32>,
    outputs: Vec<PolicyOutput>,
    d_stream: Aligned,
    d_critic_stream: Aligned,
}

impl Workspace {
    pub fn new(layout: &Layout, sizes: Sizes, backward: bool) -> Self {
        let trunk = || TrunkSpace::new(layout, sizes, backward);
        let delta = |wanted: bool| Aligned::zeros(if backward && wanted { sizes.tokens * layout.width } else { 0 });
        Self {
            policy: trunk(),
            critic: layout.critic.as_ref().map(|_| trunk()),
            head: HeadSpace::new(layout, sizes.asked.min(layout.chunk), backward),
            entropies: vec![0.0; sizes.asked],
            outputs: vec![PolicyOutput::default(); sizes.asked],
            d_stream: delta(true),
            d_critic_stream: delta(layout.critic.is_some()),
            sizes,
            backward,
        }
    }

    pub fn fits(&self, sizes: Sizes, backward: bool) -> bool {
        let Sizes { tokens, asked, probabilities, longest } = self.sizes;
        let is_large_enough = tokens >= sizes.tokens && asked >= sizes.asked && probabilities >= sizes.probabilities;
        (self.backward || !backward) && is_large_enough && longest >= sizes.longest
    }
}

/// A part of a batch with its own gradient.
pub(super) struct Lane {
    pub gradient: Aligned,
    pub sums: Sums,
}

/// The requested outputs for some prefixes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Values,
    LogProbs,
    Distributions,
}

/// The policy, a store, and the plan of a pass over some of the store's prefixes.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub layout: &'a Layout,
    pub level: Level,
    pub parameters: Numbers<'a>,
    pub transposed: Numbers<'a>,
    pub store: &'a Store,
    pub plan: &'a Plan,
    pub workspaces: &'a Mutex<Vec<Workspace>>,
}

/// A tile: its tokens, its spans, and the rows of its queried prefixes.
struct Tile {
    tokens: Vec<u32>,
    spans: Vec<Span>,
    asked: Range<usize>,
    rows: Vec<u32>,
}

impl<'a> Question<'a> {
    /// Calls `work` with a free or new workspace.
    fn with_workspace<T>(&self, backward: bool, work: impl FnOnce(&mut Workspace) -> T) -> T {
        let lock = || self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let sizes = self.plan.largest(self.layout.heads);
        let mut free = lock();
        let found = free.iter().position(|workspace| workspace.fits(sizes, backward)).map(|i| free.swap_remove(i));
        drop(free);
        let mut workspace = found.unwrap_or_else(|| Workspace::new(self.layout, sizes, backward));
        let result = work(&mut workspace);
        let mut free = lock();
        // workspaces that are too small for this plan are unlikely to be used again
        free.retain(|other| other.fits(sizes, backward));
        free.push(workspace);
        result
    }

    fn tile(&self, tile: usize) -> Tile {
        let sequences = self.plan.tiles[tile].clone();
        let asked = self.plan.asked(&(tile..tile + 1));
        let (mut tokens, mut spans, mut rows) = (Vec::new(), Vec::new(), Vec::with_capacity(asked.len()));
        self.plan.lay(&sequences, self.layout.heads, |piece| {
            tokens.extend_from_slice(&self.store.texts().text(piece.sequence.text)[piece.tokens]);
            // a sequence without tokens after the shared prefix has no span
            spans.extend((piece.span.new > 0).then_some(piece.span));
            if !piece.is_shared {
                let lengths = &self.plan.lengths[piece.sequence.asked.clone()];
                rows.extend(lengths.iter().map(|length| piece.span.row(*length as usize - 1) as u32));
            }
        });
        Tile { tokens, spans, asked, rows }
    }

    /// The decisions of a tile in parts whose log-probabilities are held at once.
    fn chunks(&self, tile: &Tile) -> impl ExactSizeIterator<Item = Range<usize>> + Clone + use<> {
        let (n, size) = (tile.rows.len(), self.layout.chunk);
        (0..n.div_ceil(size)).map(move |i| i * size..(i * size + size).min(n))
    }

    fn forward(&self, trunk: &TrunkAt, tile: &Tile, space: &mut TrunkSpace) {
        let Self { layout, parameters, .. } = *self;
        dispatch(self.level, Forward { layout, trunk, parameters, tokens: &tile.tokens, spans: &tile.spans, memories: None, space });
    }

    /// The distributions of the decisions `chunk` of a tile, which have these indices in the store.
    fn distributions(&self, tile: &Tile, chunk: &Range<usize>, indices: &[u32], workspace: &mut Workspace) {
        let Self { layout, parameters, transposed, .. } = *self;
        let n = layout.vocabulary;
        let masks = self.store.masks.as_ref();
        let masks: Option<Vec<bool>> = masks.map(|masks| indices.iter().flat_map(|i| &masks[*i as usize * n..][..n]).copied().collect());
        let masks = masks.as_deref();
        let Workspace { policy, head: space, .. } = workspace;
        let rows = &tile.rows[chunk.clone()];
        dispatch(self.level, Distributions { layout, parameters, transposed, stream: &policy.stream, rows, masks, space });
    }

    fn values(&self, tile: &Tile, chunk: &Range<usize>, alone: bool, workspace: &mut Workspace) {
        let Self { layout, parameters, .. } = *self;
        let Workspace { policy, critic, head: space, .. } = workspace;
        let stream = &critic.as_ref().unwrap_or(policy).stream;
        dispatch(self.level, Values { layout, parameters, stream, rows: &tile.rows[chunk.clone()], alone, space });
    }

    /// Returns the outputs for some tiles, in the order of the plan.
    pub fn describe(&self, tiles: Range<usize>, answer: Answer) -> Vec<f32> {
        let Self { layout, store, plan, .. } = *self;
        let n = layout.vocabulary;
        let mut numbers = Vec::new();
        self.with_workspace(false, |w| {
            for tile in tiles {
                let tile = self.tile(tile);
                if answer == Answer::Values {
                    self.forward(layout.value_trunk(), &tile, w.critic.as_mut().unwrap_or(&mut w.policy));
                } else {
                    self.forward(&layout.policy, &tile, &mut w.policy);
                }
                for chunk in self.chunks(&tile) {
                    if answer == Answer::Values {
                        self.values(&tile, &chunk, true, w);
                        numbers.extend_from_slice(&w.head.values[..chunk.len()]);
                        continue;
                    }
                    let indices = &plan.places[tile.asked.clone()][chunk.clone()];
                    self.distributions(&tile, &chunk, indices, w);
                    for (row, index) in w.head.log_probs.chunks_exact(padded(n)).zip(indices) {
                        match (answer, &store.actions) {
                            (Answer::LogProbs, ActionRows::Discrete(actions)) => numbers.push(row[actions[*index as usize] as usize]),
                            _ => numbers.extend_from_slice(&row[..n]),
                        }
                    }
                }
            }
        });
        numbers
    }

    /// Evaluates the objective over some tiles, with or without its gradient.
    pub fn forward_backward(&self, batch: Batch<'_>, objective: &dyn Objective, tiles: Range<usize>, lane: &mut Lane, with_gradient: bool) {
        let Self { layout, parameters, transposed, store, plan, .. } = *self;
        let ActionRows::Discrete(actions) = &store.actions else { return };
        let Lane { gradient, sums } = lane;
        *sums = Sums::default();
        if with_gradient {
            gradient.fill(0.0);
        }
        self.with_workspace(with_gradient, |w| {
            for tile in tiles {
                let tile = self.tile(tile);
                let places = &plan.places[tile.asked.clone()];
                let indices: Vec<u32> = places.iter().map(|place| batch.indices[*place as usize]).collect();
                let weights: Vec<f32> = places.iter().map(|place| batch.weights[*place as usize]).collect();
                self.forward(&layout.policy, &tile, &mut w.policy);
                if let (Some(trunk), Some(space)) = (&layout.critic, &mut w.critic) {
                    self.forward(trunk, &tile, space);
                }
                let (old, reference, chunks) = (batch.old, batch.reference, self.chunks(&tile));
                for chunk in chunks.clone() {
                    let indices = &indices[chunk.clone()];
                    self.distributions(&tile, &chunk, indices, w);
                    self.values(&tile, &chunk, false, w);
                    let Workspace { head: space, entropies, outputs, .. } = &mut *w;
                    let (entropies, outputs) = (&mut entropies[chunk.clone()], &mut outputs[chunk]);
                    dispatch(self.level, ObjectiveInputs { layout, indices, actions, old, reference, space, entropies, outputs });
                }
                // one slice per text
                let mut begin = 0;
                while begin < indices.len() {
                    let text = |i: usize| store.texts().prefixes()[indices[i] as usize].text;
                    let end = (begin..indices.len()).find(|i| text(*i) != text(begin)).unwrap_or(indices.len());
                    objective.slice(&indices[begin..end], &weights[begin..end], &mut w.outputs[begin..end], sums);
                    begin = end;
                }
                if !with_gradient {
                    continue;
                }

                let length = tile.tokens.len() * layout.width;
                w.d_stream[..length].fill(0.0);
                w.d_critic_stream[..if layout.critic.is_some() { length } else { 0 }].fill(0.0);
                let (frozen, is_one) = (layout.frozen, chunks.len() == 1);
                for chunk in chunks {
                    let indices = &indices[chunk.clone()];
                    // what is still there of the only chunk is computed again of several
                    if !is_one {
                        self.distributions(&tile, &chunk, indices, w);
                        self.values(&tile, &chunk, false, w);
                    }
                    let Workspace { head: space, entropies, outputs, d_stream, d_critic_stream, .. } = &mut *w;
                    let (entropies, outputs) = (&mut entropies[chunk.clone()], &mut outputs[chunk.clone()]);
                    let inputs = ObjectiveInputs { layout, indices, actions, old, reference, space, entropies, outputs };
                    let gradient = Gradient { frozen, numbers: gradient };
                    dispatch(self.level, Back { inputs, parameters, rows: &tile.rows[chunk], d_stream, d_critic_stream, gradient });
                }
                let Workspace { policy, critic, d_stream, d_critic_stream, .. } = &mut *w;
                let (d_stream, d_critic_stream) = (&mut d_stream[..length], &mut **d_critic_stream);
                let (tokens, spans) = (&*tile.tokens, &*tile.spans);
                let mut back = |trunk, space, d_stream| {
                    let gradient = Gradient { frozen, numbers: gradient };
                    dispatch(self.level, Backward { layout, trunk, parameters, transposed, tokens, spans, space, d_stream, gradient });
                };
                back(&layout.policy, policy, d_stream);
                if let (Some(trunk), Some(space)) = (&layout.critic, critic) {
                    back(trunk, space, &mut d_critic_stream[..length]);
                }
            }
        });
    }
}
