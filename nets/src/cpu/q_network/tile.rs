//! A network of action values over a tile of rows: Q from the output layers, and the objective.

use std::ops::Range;

use super::super::perceptron::{Observed, ROWS, Tile};
use super::layout::QLayout;
use crate::sequences::Plan;
use crate::{ActionRows, Batch, Evaluated, Evaluation, QValues, Store, ValueObjective};
use gradus_base::simd::Level;

/// The activations of some rows and their action values.
pub(super) struct QTile {
    pub tile: Tile,
    /// Q(s, .) of each row, without padding.
    q: Vec<f32>,
    derivative: Vec<f32>,
    pub evaluated: Evaluated,
}

impl QTile {
    pub fn new(layout: &QLayout) -> Self {
        Self::with_room(layout, ROWS)
    }

    fn with_room(layout: &QLayout, rows: usize) -> Self {
        Self {
            tile: Tile::new(&layout.perceptron, rows),
            q: vec![0.0; rows * layout.q_width()],
            derivative: vec![0.0; layout.head.atoms],
            evaluated: Evaluated::default(),
        }
    }

    /// Makes room for the rows of some sequences, which a recurrent network reads in one tile, and begins them.
    pub fn begin(&mut self, layout: &QLayout, plan: &Plan) {
        if self.tile.room(&layout.perceptron) < plan.rows.len() {
            *self = Self::with_room(layout, plan.rows.len().next_multiple_of(16));
        }
        self.tile.begin(&plan.steps, &plan.memory);
    }

    /// Bytes of a tile.
    pub fn bytes(layout: &QLayout) -> usize {
        Tile::bytes(&layout.perceptron, ROWS) + 4 * ROWS * layout.q_width()
    }

    /// Q(s, .) of the tile's rows, without padding.
    pub fn q(&self, layout: &QLayout) -> &[f32] {
        &self.q[..self.tile.rows() * layout.q_width()]
    }

    /// Runs the forward pass over as many observations as the tile has room for. The result is in [`QTile::q`].
    pub fn forward(&mut self, level: Level, (layout, parameters): (&QLayout, &[f32]), observations: Observed<'_>) {
        self.tile.read(&layout.perceptron, observations);
        self.tile.forward(level, &layout.perceptron, parameters);
        combine(layout, self);
    }
}

/// Computes Q from the output layers.
fn combine(layout: &QLayout, QTile { tile, q, .. }: &mut QTile) {
    let (width, atoms) = (layout.q_width(), layout.head.atoms);
    let output = |i: usize| (tile.outputs(layout.outputs[i]), layout.perceptron.layers[layout.outputs[i]].stride());
    let rows = q.chunks_exact_mut(width).take(tile.rows());
    if !layout.head.dueling {
        let (y, stride) = output(0);
        rows.zip(y.chunks_exact(stride)).for_each(|(q, y)| q.copy_from_slice(&y[..width]));
        return;
    }
    let ((values, value_stride), (advantages, stride)) = (output(0), output(1));
    for ((q, values), advantages) in rows.zip(values.chunks_exact(value_stride)).zip(advantages.chunks_exact(stride)) {
        for (atom, value) in values[..atoms].iter().enumerate() {
            let of_atom = advantages[..width].iter().skip(atom).step_by(atoms);
            let mean = of_atom.sum::<f32>() / layout.actions as f32;
            let numbers = q.iter_mut().zip(advantages).skip(atom).step_by(atoms);
            numbers.for_each(|(q, advantage)| *q = value + (advantage - mean));
        }
    }
}

/// The decisions of a batch, their objective and the network.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub layout: &'a QLayout,
    pub parameters: &'a [f32],
    pub store: &'a Store,
    pub batch: Batch<'a>,
    pub objective: &'a dyn ValueObjective,
}

impl Question<'_> {
    /// Evaluates the objective over some decisions of the batch. If requested, also runs the backward pass through the activations.
    pub fn learn(&self, level: Level, range: Range<usize>, tile: &mut QTile, with_gradient: bool) {
        let Self { layout, parameters, store, batch, .. } = *self;
        let indices = &batch.indices[range.clone()];
        tile.forward(level, (layout, parameters), Observed::Chosen(store.numbers(), indices));

        tile.evaluated.clear();
        layout.outputs.iter().for_each(|output| tile.tile.derivatives(*output).fill(0.0));
        for (row, (index, weight)) in indices.iter().zip(&batch.weights[range]).enumerate() {
            match *weight {
                0.0 => tile.evaluated.add(0.0, &Evaluation::default()),
                weight => tile.decide(self, row, *index as usize, weight),
            }
        }
        if with_gradient {
            tile.tile.backward(level, &layout.perceptron, parameters, None);
        }
    }
}

impl QTile {
    /// Evaluates the objective in row `row`, decision number `index` of the store. Writes the derivatives with respect to the outputs.
    fn decide(&mut self, Question { layout, store, objective, .. }: &Question<'_>, row: usize, index: usize, weight: f32) {
        let ActionRows::Discrete(actions) = &store.actions else { return };
        let Self { tile, q, derivative, evaluated } = self;
        let (action, atoms, n) = (actions[index] as usize, layout.head.atoms, layout.actions);
        let q = &q[row * layout.q_width() + action * atoms..][..atoms];
        let evaluation = objective.decision(index, QValues::new(q, derivative));
        evaluated.add(weight, &evaluation);
        derivative.iter_mut().for_each(|d| *d *= evaluation.loss.q * weight);
        let position = |output: usize| (layout.outputs[output], row * layout.perceptron.layers[layout.outputs[output]].stride());
        let (output, begin) = position(0);
        let first = &mut tile.derivatives(output)[begin..];
        if !layout.head.dueling {
            first[action * atoms..][..atoms].copy_from_slice(derivative);
            return;
        }
        first[..atoms].copy_from_slice(derivative);
        let (output, begin) = position(1);
        for (other, delta) in tile.derivatives(output)[begin..][..n * atoms].chunks_exact_mut(atoms).enumerate() {
            let share = f32::from(u8::from(other == action)) - 1.0 / n as f32;
            delta.iter_mut().zip(&*derivative).for_each(|(delta, d)| *delta = share * d);
        }
    }
}
