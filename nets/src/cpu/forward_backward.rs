//! Computations that need a backward pass: the gradient of an objective over tiles of a batch, and products with the Fisher information.

use std::ops::Range;

use super::head::{Decisions, HeadPass};
use super::layer::{Part, padded};
use super::layout::Layout;
use super::perceptron::GradientOf;
use super::product::{Finish, Start};
use super::update::squares;
use super::workspace::{Lane, TILE, Workspace};
use crate::{Batch, Objective, PolicyOutput, Store, Sums, UpdatedGroups};
use gradus_base::simd::{Kernel, Simd};

/// A batch, its objective and the network.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub store: &'a Store,
    pub batch: Batch<'a>,
    pub objective: &'a dyn Objective,
    /// Rows of each tile of the batch.
    pub tile: usize,
}

/// The transposed weights of the wide layers of the trunk, the actor and the critic.
pub(super) type Copies<'a> = [&'a [f32]; 3];

/// The networks to compute. If actor and critic share layers, it is `Both`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Subnet {
    Actor,
    Critic,
    Both,
}

/// The forward pass of a tile through the shared layers, then of actor and critic as requested.
#[inline(always)]
pub(super) fn forward<S: Simd>(simd: S, layout: &Layout, parameters: &[f32], subnet: Subnet, w: &mut Workspace) {
    let layers = match subnet {
        Subnet::Actor => layout.actor.clone(),
        Subnet::Critic => layout.critic.clone(),
        Subnet::Both => layout.actor.start..layout.critic.end,
    };
    if !layout.trunk.is_empty() {
        w.tile.forward_through(simd, &layout.perceptron, parameters, layout.trunk.clone());
    }
    w.tile.forward_through(simd, &layout.perceptron, parameters, layers);
}

impl<'a> Question<'a> {
    /// Returns the network that the objective updates if it is one, and the two share no layers; otherwise `Both`.
    pub fn subnet(&self) -> Subnet {
        match self.objective.updates() {
            UpdatedGroups::Critic if self.layout.trunk.is_empty() => Subnet::Critic,
            UpdatedGroups::Actor if self.layout.trunk.is_empty() => Subnet::Actor,
            _ => Subnet::Both,
        }
    }

    /// The rows of tile number `tile`.
    fn rows(&self, tile: usize) -> Range<usize> {
        tile * self.tile..self.batch.indices.len().min((tile + 1) * self.tile)
    }

    fn decisions(&self, tile: usize) -> Decisions<'a> {
        let Batch { indices, old, reference, .. } = self.batch;
        Decisions { store: self.store, indices: &indices[self.rows(tile)], old, reference }
    }

    fn head<S: Simd>(&self, simd: S) -> HeadPass<'a, S> {
        HeadPass { simd, layout: self.layout, parameters: self.parameters }
    }

    /// Evaluates the objective: adds to `sums`, and replaces the outputs and values by weight x derivative.
    #[inline(always)]
    pub fn loss_grad(&self, tile: usize, outputs: &mut [PolicyOutput], values: &mut [f32], sums: &mut Sums) {
        let rows = self.rows(tile);
        let outputs = &mut outputs[..rows.len()];
        outputs.iter_mut().zip(values.iter()).for_each(|(output, value)| output.value = *value);
        self.objective.slice(&self.batch.indices[rows.clone()], &self.batch.weights[rows], outputs, sums);
        values.iter_mut().zip(outputs).for_each(|(value, output)| *value = output.value);
    }
}

/// The forward pass of one tile. The head must have been prepared.
struct AskTile<'a> {
    question: Question<'a>,
    subnet: Subnet,
    tile: usize,
    w: &'a mut Workspace,
}

impl Kernel for AskTile<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { question, subnet, tile, w } = self;
        let layout = question.layout;
        let decisions = question.decisions(tile);
        let rows = w.tile.read(&layout.perceptron, decisions.observations());
        forward(simd, layout, question.parameters, subnet, w);
        if subnet != Subnet::Critic {
            let head = question.head(simd);
            head.read(rows, decisions.masks(layout.actions), w);
            head.outputs(decisions, w);
        }
        if subnet != Subnet::Actor {
            let values = w.tile.outputs(layout.critic_head()).chunks_exact(padded(1));
            w.values[..rows].iter_mut().zip(values).for_each(|(value, head)| *value = head[0]);
        }
    }
}

/// The backward pass of the actor or of the critic, from the derivatives with respect to the outputs of its head.
#[inline(always)]
fn backward<S: Simd>(
    simd: S,
    (layout, parameters): (&Layout, &[f32]),
    layers: &Range<usize>,
    transposed: &[f32],
    w: &mut Workspace,
    gradient: &mut Part<'_>,
    start: Start<'_>,
) {
    let gradient = GradientOf { gradient, start };
    w.tile.backward_through(simd, &layout.perceptron, (parameters, transposed), layers.clone(), gradient);
}

/// The backward pass of the shared layers, from the derivatives with respect to their outputs.
#[inline(always)]
fn backward_shared<S: Simd>(
    simd: S,
    (layout, parameters): (&Layout, &[f32]),
    transposed: &[f32],
    w: &mut Workspace,
    gradient: &mut Part<'_>,
    start: Start<'_>,
) {
    let last = layout.trunk.end - 1;
    let n = w.tile.rows() * layout.perceptron.layers[last].row();
    if layout.perceptron.layers[last].is_hidden {
        let (h, delta) = w.tile.outputs_and_derivatives(last);
        Finish::Derivative(layout.perceptron.activation, h).apply(simd, &mut delta[..n], 0, (n, n));
    }
    backward(simd, (layout, parameters), &layout.trunk, transposed, w, gradient, start);
}

/// The backward pass of one tile: adds to the gradient (or sets it, with `Start::Zero`).
struct LearnTile<'a, 'g> {
    question: Question<'a>,
    subnet: Subnet,
    copies: Copies<'a>,
    tile: usize,
    w: &'a mut Workspace,
    gradient: &'a mut Part<'g>,
    start: Start<'a>,
}

impl Kernel for LearnTile<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { question, subnet, copies, tile, w, gradient, start } = self;
        let (layout, network) = (question.layout, (question.layout, question.parameters));
        let is_shared = !layout.trunk.is_empty();
        if subnet != Subnet::Critic {
            question.head(simd).backward(question.decisions(tile), w, gradient, start);
            backward(simd, network, &layout.actor, copies[1], w, gradient, start);
        }
        if is_shared {
            w.tile.swap_derivatives(layout.trunk.end - 1, &mut w.of_actor);
        }
        if subnet != Subnet::Actor {
            let rows = w.tile.rows();
            let deltas = w.tile.derivatives(layout.critic_head()).chunks_exact_mut(padded(1)).zip(&w.values);
            deltas.take(rows).for_each(|(delta, value)| {
                delta.fill(0.0);
                delta[0] = *value;
            });
            backward(simd, network, &layout.critic, copies[2], w, gradient, start);
        }
        if is_shared {
            let deltas = w.tile.derivatives(layout.trunk.end - 1).iter_mut();
            deltas.zip(w.of_actor.iter()).for_each(|(delta, of_actor)| *delta += of_actor);
            backward_shared(simd, network, copies[0], w, gradient, start);
        }
    }
}

/// Evaluates an objective over some tiles of a batch, with or without its gradient.
pub(super) struct ForwardBackward<'a> {
    pub question: Question<'a>,
    pub tiles: Range<usize>,
    pub lane: &'a mut Lane,
    /// The transposed weights, if the gradient is requested.
    pub copies: Option<Copies<'a>>,
}

impl Kernel for ForwardBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { question, tiles, lane: Lane { workspace: w, gradient, sums }, copies } = self;
        *sums = Sums::default();
        let subnet = question.subnet();
        // the other network is not computed
        match subnet {
            Subnet::Actor => {
                w.values.fill(0.0);
                gradient[question.layout.critic_begin()..].fill(0.0);
            }
            Subnet::Critic => {
                w.outputs.fill(PolicyOutput::default());
                gradient[..question.layout.critic_begin()].fill(0.0);
            }
            Subnet::Both => {}
        }
        let gradient = &mut Part::whole(gradient);
        let head = question.head(simd);
        head.prepare(w);
        let first_tile = tiles.start;
        for tile in tiles {
            simd.call(AskTile { question, subnet, tile, w });
            question.loss_grad(tile, &mut w.outputs, &mut w.values, sums);
            if let Some(copies) = copies {
                let start = if tile == first_tile { Start::Zero } else { Start::Sum };
                simd.call(LearnTile { question, subnet, copies, tile, w, gradient, start });
            }
        }
        if copies.is_some() && subnet != Subnet::Critic {
            head.finish(w, gradient);
        }
    }
}

/// Transposes the weights of some layers, those that keep them transposed, into `copies`.
pub(super) struct Transpose<'a> {
    pub layout: &'a Layout,
    pub layers: Range<usize>,
    pub parameters: &'a [f32],
    pub copies: &'a mut [f32],
}

impl Kernel for Transpose<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, layers, parameters, copies } = self;
        for dense in &layout.perceptron.layers[layers] {
            dense.layer.transpose(simd, parameters, copies);
        }
    }
}

/// The forward pass of one network over one tile of a batch.
pub(super) struct Ask<'a> {
    pub question: Question<'a>,
    pub subnet: Subnet,
    pub tile: usize,
    pub workspace: &'a mut Workspace,
}

impl Kernel for Ask<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { question, subnet, tile, workspace: w } = self;
        if subnet != Subnet::Critic {
            question.head(simd).prepare(w);
        }
        simd.call(AskTile { question, subnet, tile, w });
    }
}

/// The backward pass of one network over all tiles of a batch, after the objective was evaluated. Returns the sum of squares of the
/// gradient.
pub(super) struct Learn<'a> {
    pub question: Question<'a>,
    pub subnet: Subnet,
    pub tiles: &'a mut [Workspace],
    /// The network's transposed weights.
    pub copy: &'a mut [f32],
    /// Whether the parameters have changed since `copy` was computed.
    pub is_stale: bool,
    pub gradient: Part<'a>,
}

impl Kernel for Learn<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let Self { question, subnet, tiles, copy, is_stale, mut gradient } = self;
        let layout = question.layout;
        if is_stale {
            let layers = if subnet == Subnet::Critic { &layout.critic } else { &layout.actor };
            Transpose { layout, layers: layers.clone(), parameters: question.parameters, copies: &mut *copy }.run(simd);
        }
        let copies: Copies<'_> = if subnet == Subnet::Critic { [&[], &[], copy] } else { [&[], copy, &[]] };
        for (tile, w) in tiles.iter_mut().enumerate() {
            let start = if tile == 0 { Start::Zero } else { Start::Sum };
            simd.call(LearnTile { question, subnet, copies, tile, w, gradient: &mut gradient, start });
        }
        if let (true, Some(w)) = (subnet != Subnet::Critic, tiles.first()) {
            question.head(simd).finish(w, &mut gradient);
        }
        squares(gradient.numbers)
    }
}

/// Multiplies the Fisher information of the distributions over some tiles of a batch by a change of the parameters. The product is written
/// to the lane's gradient. The critic's own part of the gradient is not written.
///
/// The Fisher information of the head is known in closed form, so no second derivative is needed. A tangent pass computes the change of the
/// distribution's parameters. The head multiplies this change by its Fisher information, and the ordinary backward pass completes the
/// product (Schulman et al., arXiv 1502.05477, appendix C.1).
pub(super) struct Fisher<'a> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub copies: Copies<'a>,
    pub store: &'a Store,
    pub batch: Batch<'a>,
    pub vector: &'a [f32],
    pub tiles: Range<usize>,
    pub lane: &'a mut Lane,
}

impl Kernel for Fisher<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, copies, store, batch, vector, tiles, lane } = self;
        let Lane { workspace: w, gradient, .. } = lane;
        let gradient = &mut Part::whole(gradient);
        let head = HeadPass { simd, layout, parameters };
        head.prepare(w);
        let first_tile = tiles.start;
        let network = (layout, parameters);
        for tile in tiles {
            let range = tile * TILE..batch.indices.len().min((tile + 1) * TILE);
            let decisions = Decisions { store, indices: &batch.indices[range.clone()], old: None, reference: None };
            let rows = w.tile.read(&layout.perceptron, decisions.observations());
            forward(simd, layout, parameters, Subnet::Actor, w);
            w.tile.tangent_through(simd, &layout.perceptron, (parameters, vector), 0..layout.actor.end);

            let start = if tile == first_tile { Start::Zero } else { Start::Sum };
            head.read(rows, decisions.masks(layout.actions), w);
            head.fisher(&batch.weights[range], w, vector, gradient, start);

            backward(simd, network, &layout.actor, copies[1], w, gradient, start);
            if !layout.trunk.is_empty() {
                backward_shared(simd, network, copies[0], w, gradient, start);
            }
        }
    }
}
