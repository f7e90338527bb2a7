//! What needs a backward pass: an objective over some tiles of a batch, and the Fisher information of its distributions.

use std::ops::Range;

use super::head::{Decisions, HeadPass};
use super::layer::padded;
use super::layout::Layout;
use super::pass::{Lane, Pass, TILE};
use super::product::Start;
use super::simd::{Kernel, Simd};
use crate::{Batch, Objective, Store, Sums};

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
        let critic_stride = padded(1);
        let Lane { workspace: w, gradient, sums } = lane;
        *sums = Sums::default();
        let head = HeadPass { simd, layout, parameters };
        head.prepare(w);
        let first_tile = tiles.start;
        for tile in tiles {
            let range = tile * TILE..batch.indices.len().min((tile + 1) * TILE);
            let decisions = Decisions { store, indices: &batch.indices[range.clone()], old: batch.old, reference: batch.reference };
            let rows = w.read(layout.width, decisions.indices.iter().map(|index| store.observation(*index as usize)));

            let pass = Pass { simd, activation: layout.activation, parameters, rows };
            pass.forward_all(layout, true, true, w);
            head.read(rows, decisions.masks(layout.actions), w);
            head.outputs(decisions, w);
            let Some(values) = w.critic.last() else { return };
            for (output, value) in w.outputs[..rows].iter_mut().zip(values.chunks_exact(critic_stride)) {
                output.value = value[0];
            }
            objective.slice(decisions.indices, &batch.weights[range], &mut w.outputs[..rows], sums);
            if !with_gradient {
                continue;
            }

            let start = if tile == first_tile { Start::Zero } else { Start::Sum };
            head.backward(decisions, w, gradient, start);
            w.other_delta[..rows * critic_stride].fill(0.0);
            for (delta, output) in w.other_delta.chunks_exact_mut(critic_stride).zip(&w.outputs[..rows]) {
                delta[0] = output.value;
            }
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
        if with_gradient {
            head.finish(w, gradient);
        }
    }
}

/// The Fisher information of the distributions over some tiles of a batch, times a change of the parameters, into the lane's gradient,
/// except the part that belongs to the critic alone.
///
/// As the head knows its own Fisher information, no second derivative is needed: a forward pass says how the change moves the
/// distributions' parameters, the head multiplies, and the ordinary backward pass does the rest (Schulman et al., arXiv 1502.05477,
/// appendix C.1).
pub(super) struct Fisher<'a> {
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
    pub transposed: &'a [f32],
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
        let Self { layout, parameters, transposed, store, batch, vector, tiles, lane } = self;
        let Lane { workspace: w, gradient, .. } = lane;
        let head = HeadPass { simd, layout, parameters };
        head.prepare(w);
        let first_tile = tiles.start;
        let through = !layout.trunk.is_empty();
        for tile in tiles {
            let range = tile * TILE..batch.indices.len().min((tile + 1) * TILE);
            let decisions = Decisions { store, indices: &batch.indices[range.clone()], old: None, reference: None };
            let rows = w.read(layout.width, decisions.indices.iter().map(|index| store.observation(*index as usize)));

            let pass = Pass { simd, activation: layout.activation, parameters, rows };
            pass.forward_all(layout, true, false, w);
            let features = w.trunk.last().unwrap_or(&w.input);
            let (trunk, actor) = ((&*w.input, w.trunk.as_slice()), (&**features, w.actor.as_slice()));
            pass.tangent(&layout.trunk, (true, true), trunk, vector, (&mut w.delta, &mut w.scratch));
            pass.tangent(&layout.actor, (false, !through), actor, vector, (&mut w.delta, &mut w.scratch));

            let start = if tile == first_tile { Start::Zero } else { Start::Sum };
            head.read(rows, decisions.masks(layout.actions), w);
            head.fisher(&batch.weights[range], w, vector, gradient, start);

            let features = w.trunk.last().unwrap_or(&w.input);
            let (trunk, actor) = ((&*w.input, w.trunk.as_slice()), (&**features, w.actor.as_slice()));
            pass.backward(&layout.actor, (false, through), actor, (&mut w.delta, &mut w.scratch), (transposed, gradient, start));
            if through {
                pass.backward(&layout.trunk, (true, false), trunk, (&mut w.delta, &mut w.scratch), (transposed, gradient, start));
            }
        }
    }
}
