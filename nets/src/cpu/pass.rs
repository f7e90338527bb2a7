//! Passes over tiles of rows: forward, the head, the objective, backward, while a tile's activations are in the cache.

use std::ops::Range;

use super::aligned::Aligned;
use super::layer::{Layer, activate, backward_activation, padded};
use super::product::Start;
use super::simd::{Kernel, Simd};
use crate::categorical;
use crate::{ActionRows, Activation, Batch, Choice, NetworkConfig, Objective, Output, Store, Sums};

/// Rows of a tile.
pub(super) const TILE: usize = 32;

/// Layers one after the other.
pub(super) type Chain = Vec<Layer>;

/// Which layers there are, and where their parameters lie.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub width: usize,
    pub actions: usize,
    pub activation: Activation,
    /// The hidden layers that actor and critic share; every one of them is followed by the activation.
    pub trunk: Chain,
    /// The actor's own layers; the last one is its head.
    pub actor: Chain,
    /// The critic's own layers; the last one is its head.
    pub critic: Chain,
    pub parameters: usize,
    pub transposed: usize,
}

impl Layout {
    pub fn new(config: &NetworkConfig, width: usize, actions: usize) -> Self {
        let mut layout = Layout {
            width,
            actions,
            activation: config.activation,
            trunk: Vec::new(),
            actor: Vec::new(),
            critic: Vec::new(),
            parameters: 0,
            transposed: 0,
        };
        let hidden: Vec<usize> = std::iter::once(width).chain(config.hidden.iter().copied()).collect();
        let features = *hidden.last().unwrap_or(&width);
        if config.shared {
            layout.trunk = layout.chain(&hidden, true);
            layout.actor = layout.chain(&[features, actions], config.hidden.is_empty());
            layout.critic = layout.chain(&[features, 1], config.hidden.is_empty());
        } else {
            layout.actor = layout.chain(&[&hidden[..], &[actions]].concat(), true);
            layout.critic = layout.chain(&[&hidden[..], &[1]].concat(), true);
        }
        layout
    }

    fn chain(&mut self, widths: &[usize], reads_observations: bool) -> Chain {
        let mut chain = Vec::new();
        for (i, pair) in widths.windows(2).enumerate() {
            let mut layer = Layer { inputs: pair[0], outputs: pair[1], weights: self.parameters, bias: 0, transposed: None };
            layer.bias = layer.weights + layer.weight_len();
            self.parameters = layer.bias + padded(layer.outputs);
            let reads_activations = i > 0 || !reads_observations;
            if reads_activations && !layer.is_narrow() {
                layer.transposed = Some(self.transposed);
                self.transposed += layer.transposed_len();
            }
            chain.push(layer);
        }
        chain
    }

    pub fn chains(&self) -> [(&'static str, &Chain); 3] {
        [("trunk", &self.trunk), ("actor", &self.actor), ("critic", &self.critic)]
    }
}

/// A tile's activations and derivatives.
pub(super) struct Workspace {
    input: Aligned,
    trunk: Vec<Aligned>,
    actor: Vec<Aligned>,
    critic: Vec<Aligned>,
    delta: Aligned,
    other_delta: Aligned,
    scratch: Aligned,
    outputs: [Output; TILE],
}

impl Workspace {
    pub fn new(layout: &Layout) -> Self {
        let activations = |chain: &Chain| chain.iter().map(|layer| Aligned::zeros(TILE * padded(layer.outputs))).collect();
        let layers = layout.chains().into_iter().flat_map(|(_, chain)| chain);
        let widest = layers.map(|layer| padded(layer.outputs.max(layer.inputs))).max().unwrap_or(0);
        Self {
            input: Aligned::zeros(TILE * padded(layout.width)),
            trunk: activations(&layout.trunk),
            actor: activations(&layout.actor),
            critic: activations(&layout.critic),
            delta: Aligned::zeros(TILE * widest),
            other_delta: Aligned::zeros(TILE * widest),
            scratch: Aligned::zeros(TILE * widest),
            outputs: [Output::default(); TILE],
        }
    }

    /// Copies rows of observations into the tile; returns how many.
    #[inline(always)]
    fn read<'a>(&mut self, width: usize, rows: impl Iterator<Item = &'a [f32]>) -> usize {
        let mut n = 0;
        for (tile_row, row) in self.input.chunks_exact_mut(padded(width)).zip(rows) {
            tile_row[..width].copy_from_slice(row);
            n += 1;
        }
        n
    }
}

/// What all layers of a pass over a tile have in common.
struct Pass<'a, S> {
    simd: S,
    activation: Activation,
    parameters: &'a [f32],
    rows: usize,
}

impl<S: Simd> Pass<'_, S> {
    /// Forward through a chain; the activation follows every layer but the last, and that too when `active`.
    #[inline(always)]
    fn forward(&self, chain: &[Layer], active: bool, input: &[f32], outputs: &mut [Aligned]) {
        for (i, layer) in chain.iter().enumerate() {
            let (before, after) = outputs.split_at_mut(i);
            let x = before.last().map_or(input, |x| &**x);
            let y = &mut after[0][..self.rows * padded(layer.outputs)];
            layer.forward(self.simd, self.parameters, self.rows, x, y);
            if active || i + 1 < chain.len() {
                activate(self.activation, y);
            }
        }
    }

    /// The trunk, then the actor and the critic where asked for.
    #[inline(always)]
    fn forward_all(&self, layout: &Layout, actor: bool, critic: bool, w: &mut Workspace) {
        self.forward(&layout.trunk, true, &w.input, &mut w.trunk);
        let features = w.trunk.last().unwrap_or(&w.input);
        if actor {
            self.forward(&layout.actor, false, features, &mut w.actor);
        }
        if critic {
            self.forward(&layout.critic, false, features, &mut w.critic);
        }
    }

    /// Backward through a chain: `delta` holds the derivatives with respect to its outputs, and afterwards, when `through`, those
    /// with respect to its inputs.
    #[inline(always)]
    fn backward(
        &self,
        chain: &[Layer],
        (active, through): (bool, bool),
        (input, outputs): (&[f32], &[Aligned]),
        (delta, scratch): (&mut Aligned, &mut Aligned),
        (transposed, gradient, start): (&[f32], &mut [f32], Start<'_>),
    ) {
        for (i, layer) in chain.iter().enumerate().rev() {
            if active || i + 1 < chain.len() {
                let n = self.rows * padded(layer.outputs);
                backward_activation(self.activation, &outputs[i][..n], &mut delta[..n]);
            }
            let x = if i == 0 { input } else { &outputs[i - 1] };
            layer.backward_parameters(self.simd, self.rows, x, delta, gradient, start);
            if i > 0 || through {
                layer.backward_input(self.simd, self.parameters, transposed, self.rows, delta, scratch);
                std::mem::swap(delta, scratch);
            }
        }
    }
}

/// A share of a batch: its own activations, its own gradient.
pub(super) struct Lane {
    pub workspace: Workspace,
    pub gradient: Aligned,
    pub sums: Sums,
}

/// The objective over some tiles of a batch, with or without its gradient.
pub(super) struct Judge<'a> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub transposed: &'a [f32],
    pub store: &'a Store,
    pub batch: Batch<'a>,
    pub objective: &'a dyn Objective,
    pub tiles: Range<usize>,
    pub lane: &'a mut Lane,
    pub with_gradient: bool,
}

impl Kernel for Judge<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, transposed, store, batch, objective, tiles, lane, with_gradient } = self;
        let n_actions = layout.actions;
        let (actor_stride, critic_stride) = (padded(n_actions), padded(1));
        let ActionRows::Discrete(actions) = &store.actions;
        let Lane { workspace: w, gradient, sums } = lane;
        *sums = Sums::default();
        let first_tile = tiles.start;
        for tile in tiles {
            let range = tile * TILE..batch.indices.len().min((tile + 1) * TILE);
            let indices = &batch.indices[range.clone()];
            let rows = w.read(layout.width, indices.iter().map(|index| store.observation(*index as usize)));

            let pass = Pass { simd, activation: layout.activation, parameters, rows };
            pass.forward_all(layout, true, true, w);

            let (Some(logits), Some(values)) = (w.actor.last_mut(), w.critic.last_mut()) else { return };
            let mut entropies = [0.0; TILE];
            for (row, index) in indices.iter().enumerate() {
                let logits = &mut logits[row * actor_stride..row * actor_stride + n_actions];
                categorical::log_softmax(logits);
                entropies[row] = categorical::entropy(logits);
                let log_prob = logits[actions[*index as usize] as usize];
                w.outputs[row] = Output { log_prob, entropy: entropies[row], value: values[row * critic_stride] };
            }
            objective.slice(indices, &batch.weights[range], &mut w.outputs[..rows], sums);
            if !with_gradient {
                continue;
            }

            w.delta[..rows * actor_stride].fill(0.0);
            w.other_delta[..rows * critic_stride].fill(0.0);
            for (row, index) in indices.iter().enumerate() {
                let (begin, derivative) = (row * actor_stride, w.outputs[row]);
                let log_probs = &mut logits[begin..begin + n_actions];
                categorical::backward(log_probs, actions[*index as usize] as usize, entropies[row], derivative);
                w.delta[begin..begin + n_actions].copy_from_slice(log_probs);
                w.other_delta[row * critic_stride] = derivative.value;
            }

            let start = if tile == first_tile { Start::Zero } else { Start::Sum };
            let through = !layout.trunk.is_empty();
            let features = w.trunk.last().unwrap_or(&w.input);
            let (actor, critic) = ((&**features, w.actor.as_slice()), (&**features, w.critic.as_slice()));
            pass.backward(&layout.actor, (false, through), actor, (&mut w.delta, &mut w.scratch), (transposed, gradient, start));
            pass.backward(&layout.critic, (false, through), critic, (&mut w.other_delta, &mut w.scratch), (transposed, gradient, start));
            if through {
                w.delta.iter_mut().zip(w.other_delta.iter()).for_each(|(a, c)| *a += c);
                let trunk = (&*w.input, w.trunk.as_slice());
                pass.backward(&layout.trunk, (true, false), trunk, (&mut w.delta, &mut w.scratch), (transposed, gradient, start));
            }
        }
    }
}

/// The critic over rows `first ..` of a store, as many as `values` has room for.
pub(super) struct Values<'a> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub store: &'a Store,
    pub first: usize,
    pub workspace: &'a mut Workspace,
    pub values: &'a mut [f32],
}

impl Kernel for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, store, first, workspace: w, values } = self;
        for (tile, values) in values.chunks_mut(TILE).enumerate() {
            let begin = first + tile * TILE;
            let rows = w.read(layout.width, (begin..begin + values.len()).map(|row| store.observation(row)));
            Pass { simd, activation: layout.activation, parameters, rows }.forward_all(layout, false, true, w);
            if let Some(heads) = w.critic.last() {
                values.iter_mut().zip(heads.chunks_exact(padded(1))).for_each(|(value, head)| *value = head[0]);
            }
        }
    }
}

/// The actor over rows of observations, and a choice of actions.
pub(super) struct Act<'a, 'b> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub workspace: &'a mut Workspace,
    pub observations: &'a [f32],
    pub choice: Choice<'b>,
    pub actions: &'a mut [u32],
    pub log_probs: &'a mut [f32],
}

impl Kernel for Act<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, workspace: w, observations, mut choice, actions, log_probs } = self;
        let stride = padded(layout.actions);
        let chosen = actions.chunks_mut(TILE).zip(log_probs.chunks_mut(TILE));
        for (tile, (block, (actions, log_probs))) in observations.chunks(TILE * layout.width).zip(chosen).enumerate() {
            let rows = w.read(layout.width, block.chunks_exact(layout.width));
            Pass { simd, activation: layout.activation, parameters, rows }.forward_all(layout, true, false, w);
            let Some(logits) = w.actor.last_mut() else { return };
            for row in 0..rows {
                let logits = &mut logits[row * stride..row * stride + layout.actions];
                categorical::log_softmax(logits);
                let action = match &mut choice {
                    Choice::Greedy => categorical::greedy(logits),
                    Choice::Sample(streams) => categorical::sample(logits, streams[tile * TILE + row].unit_f32()),
                };
                actions[row] = action as u32;
                log_probs[row] = logits[action];
            }
        }
    }
}
