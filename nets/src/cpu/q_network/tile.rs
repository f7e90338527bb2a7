//! The passes of a network of action values over tiles of rows, and the gradient of a block of parameters over all tiles.
//!
//! A tile keeps the activations of all its layers and the derivatives with respect to them. First, the rows of a batch are divided among the
//! threads: each tile's forward pass, objective and backward pass. Then the parameters are divided: the gradient of each block is a sum over
//! the rows of all tiles, in order. No gradient is computed twice and added up afterwards.

use super::super::aligned::Aligned;
use super::super::layout::Part as Slice;
use super::super::product::{Finish, Start};
use super::super::simd::{Kernel, Level, Simd, dispatch};
use super::super::update::squares;
use super::layout::{Block, Dense, Part, QLayout};
use crate::math::sum16;
use crate::{ActionRows, Batch, Store, Sums, ValueLoss, ValueObjective};

/// Rows per tile.
pub(super) const ROWS: usize = 32;
/// Added to the variance of a row of a layer normalisation, as in PyTorch.
const EPSILON: f32 = 1e-5;

/// Activations and derivatives of some rows.
pub(super) struct Tile {
    input: Aligned,
    layers: Vec<Activations>,
    /// Q(s, .) of each row, without padding.
    q: Vec<f32>,
    derivative: Vec<f32>,
    /// Room for the columns of a layer's inputs and outputs.
    columns: Aligned,
    rows: usize,
    pub sums: Sums,
}

/// Numbers that the backward pass through a layer needs for columns, at most.
fn columns(layout: &QLayout) -> usize {
    layout.layers.iter().filter(|dense| dense.reads.is_some()).map(|dense| dense.layer.columns_len(ROWS)).max().unwrap_or(0)
}

/// A layer's outputs in a tile.
struct Activations {
    /// The outputs after normalisation and activation.
    y: Aligned,
    /// The normalised rows before gains and shifts, and for each row 1 / sigma; empty without normalisation.
    normal: Aligned,
    scales: [f32; ROWS],
    /// The loss's derivative with respect to the numbers that the activation reads.
    delta: Aligned,
    /// The loss's derivative with respect to the numbers that the normalisation reads; empty without normalisation.
    d_linear: Aligned,
}

impl Activations {
    fn new(dense: &Dense) -> Self {
        let rows = || Aligned::zeros(ROWS * dense.stride());
        let norm = || if dense.norm.is_some() { rows() } else { Aligned::zeros(0) };
        Self { y: rows(), normal: norm(), scales: [0.0; ROWS], delta: rows(), d_linear: norm() }
    }

    /// The derivative with respect to the outputs of x W + b.
    fn d_linear(&self) -> &[f32] {
        if self.d_linear.is_empty() { &self.delta } else { &self.d_linear }
    }
}

impl Tile {
    pub fn new(layout: &QLayout) -> Self {
        Self {
            input: Aligned::zeros(ROWS * layout.width.next_multiple_of(16)),
            layers: layout.layers.iter().map(Activations::new).collect(),
            q: vec![0.0; ROWS * layout.q_width()],
            derivative: vec![0.0; layout.head.atoms],
            columns: Aligned::zeros(columns(layout)),
            rows: 0,
            sums: Sums::default(),
        }
    }

    /// Q(s, .) of the tile's rows, without padding.
    pub fn q(&self, layout: &QLayout) -> &[f32] {
        &self.q[..self.rows * layout.q_width()]
    }

    /// Bytes of a tile.
    pub fn bytes(layout: &QLayout) -> usize {
        let numbers = |dense: &Dense| (if dense.norm.is_some() { 4 } else { 2 }) * dense.stride();
        let rows = layout.width.next_multiple_of(16) + layout.q_width() + layout.layers.iter().map(numbers).sum::<usize>();
        4 * (ROWS * rows + columns(layout))
    }
}

impl Tile {
    /// Copies at most [`ROWS`] observations into the tile.
    pub fn read<'a>(&mut self, layout: &QLayout, observations: impl Iterator<Item = &'a [f32]>) {
        let rows = self.input.chunks_exact_mut(layout.width.next_multiple_of(16)).zip(observations);
        self.rows = rows.map(|(to, row)| to[..layout.width].copy_from_slice(row)).count();
    }

    /// Runs the forward pass over the tile's observations. The result is in [`Tile::q`].
    pub fn forward(&mut self, level: Level, layout: &QLayout, parameters: &[f32]) {
        dispatch(level, Forward { layout, parameters, tile: self });
        combine(layout, self);
    }
}

/// The forward pass through all layers.
struct Forward<'a> {
    layout: &'a QLayout,
    parameters: &'a [f32],
    tile: &'a mut Tile,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, tile } = self;
        let rows = tile.rows;
        for (i, dense) in layout.layers.iter().enumerate() {
            let (before, after) = tile.layers.split_at_mut(i);
            let x = dense.reads.map_or(&*tile.input, |layer| &*before[layer].y);
            let Activations { y, normal, scales, .. } = &mut after[0];
            let n = rows * dense.stride();
            let activation = if dense.is_hidden { Finish::Activation(layout.activation) } else { Finish::Same };
            let Some(norm) = dense.norm else {
                dense.layer.forward(simd, parameters, rows, x, &mut y[..n], activation);
                continue;
            };
            dense.layer.forward(simd, parameters, rows, x, &mut y[..n], Finish::Same);
            let (gains, shifts) = (&parameters[dense.gains(norm)], &parameters[dense.shifts(norm)]);
            let rows = y[..n].chunks_exact_mut(dense.stride()).zip(normal.chunks_exact_mut(dense.stride())).zip(&mut *scales);
            for ((y, normal), scale) in rows {
                *scale = normalise(y, normal, dense.layer.outputs);
                for (((y, normal), gain), shift) in y.iter_mut().zip(normal).zip(gains).zip(shifts) {
                    *y = normal.mul_add(*gain, *shift);
                }
            }
            activation.apply(&mut y[..n], 0, (n, n));
        }
    }
}

/// Subtracts the mean of the first `n` numbers of `x` and divides by their standard deviation. The result is in `normal`, whose padding
/// stays 0. Returns 1 / standard deviation.
#[inline(always)]
fn normalise(x: &[f32], normal: &mut [f32], n: usize) -> f32 {
    let mean = sum(x) / n as f32; // the padding is 0
    normal[..n].iter_mut().zip(x).for_each(|(normal, x)| *normal = x - mean);
    let scale = 1.0 / (squares(normal) / n as f32 + EPSILON).sqrt();
    normal.iter_mut().for_each(|normal| *normal *= scale);
    scale
}

/// Replaces `dy`, the derivative with respect to gain x normal + shift, by the derivative with respect to the numbers that were normalised,
/// and writes it to `dx`.
#[inline(always)]
fn normalise_backward((dy, normal, gains): (&[f32], &[f32], &[f32]), scale: f32, n: usize, dx: &mut [f32]) {
    let (mut sums, mut products) = ([0.0_f32; 16], [0.0_f32; 16]);
    let chunks = dy.as_chunks::<16>().0.iter().zip(normal.as_chunks::<16>().0).zip(gains.as_chunks::<16>().0);
    for ((dy, normal), gains) in chunks {
        for i in 0..16 {
            let d = dy[i] * gains[i];
            sums[i] += d;
            products[i] = d.mul_add(normal[i], products[i]);
        }
    }
    let (mean, product) = (sum16(sums) / n as f32, sum16(products) / n as f32);
    for (((dx, dy), normal), gain) in dx[..n].iter_mut().zip(dy).zip(normal).zip(gains) {
        *dx = scale * (dy * gain - mean - normal * product);
    }
}

/// Returns the sum of whole groups of sixteen numbers.
#[inline(always)]
fn sum(numbers: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for group in numbers.as_chunks::<16>().0 {
        for i in 0..16 {
            sums[i] += group[i];
        }
    }
    sum16(sums)
}

/// Computes Q from the output layers.
fn combine(layout: &QLayout, tile: &mut Tile) {
    let (width, atoms) = (layout.q_width(), layout.head.atoms);
    let output = |i: usize| (&tile.layers[layout.outputs[i]].y, layout.layers[layout.outputs[i]].stride());
    let rows = tile.q.chunks_exact_mut(width).take(tile.rows);
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
    /// Evaluates the objective over the decisions of tile number `number` of the batch. If requested, also runs the backward pass through the
    /// activations.
    pub fn learn(&self, level: Level, number: usize, tile: &mut Tile, with_gradient: bool) {
        let Self { layout, parameters, store, batch, objective } = *self;
        let range = number * ROWS..batch.indices.len().min((number + 1) * ROWS);
        let indices = &batch.indices[range.clone()];
        tile.read(layout, indices.iter().map(|index| store.observation(*index as usize)));
        tile.forward(level, layout, parameters);

        tile.sums = Sums::default();
        layout.outputs.iter().for_each(|output| tile.layers[*output].delta.fill(0.0));
        for (row, (index, weight)) in indices.iter().zip(&batch.weights[range]).enumerate() {
            if *weight != 0.0 {
                tile.decide((layout, store, objective), row, *index as usize, *weight);
            }
        }
        if with_gradient {
            dispatch(level, Backward { layout, parameters, tile });
        }
    }
}

impl Tile {
    /// Evaluates the objective in row `row`, decision number `index` of the store. Writes the derivatives with respect to the outputs.
    fn decide(&mut self, (layout, store, objective): (&QLayout, &Store, &dyn ValueObjective), row: usize, index: usize, weight: f32) {
        let ActionRows::Discrete(actions) = &store.actions else { return };
        let Self { layers, q, derivative, sums, .. } = self;
        let (action, atoms, n) = (actions[index] as usize, layout.head.atoms, layout.actions);
        let q = &q[row * layout.q_width() + action * atoms..][..atoms];
        let ValueLoss { loss, diagnostics } = objective.decision(index, q, derivative);
        sums.loss += f64::from(weight * loss);
        sums.diagnostics.iter_mut().zip(diagnostics).for_each(|(sum, diagnostic)| *sum += f64::from(weight * diagnostic));
        derivative.iter_mut().for_each(|d| *d *= weight);
        let position = |output: usize| (layout.outputs[output], row * layout.layers[layout.outputs[output]].stride());
        let (output, begin) = position(0);
        let first = &mut layers[output].delta[begin..];
        if !layout.head.dueling {
            first[action * atoms..][..atoms].copy_from_slice(derivative);
            return;
        }
        first[..atoms].copy_from_slice(derivative);
        let (output, begin) = position(1);
        for (other, delta) in layers[output].delta[begin..][..n * atoms].chunks_exact_mut(atoms).enumerate() {
            let share = f32::from(u8::from(other == action)) - 1.0 / n as f32;
            delta.iter_mut().zip(&*derivative).for_each(|(delta, d)| *delta = share * d);
        }
    }
}

/// The backward pass through all layers, from the derivatives with respect to the outputs.
struct Backward<'a> {
    layout: &'a QLayout,
    parameters: &'a [f32],
    tile: &'a mut Tile,
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, tile: Tile { layers, columns, rows, .. } } = self;
        let rows = *rows;
        for (i, dense) in layout.layers.iter().enumerate().rev() {
            let (before, after) = layers.split_at_mut(i);
            let Activations { normal, scales, delta, d_linear, .. } = &mut after[0];
            let stride = dense.stride();
            if let Some(norm) = dense.norm {
                let gains = &parameters[dense.gains(norm)];
                let inputs = delta.chunks_exact(stride).zip(normal.chunks_exact(stride)).zip(scales.iter());
                for (((dy, normal), scale), dx) in inputs.zip(d_linear.chunks_exact_mut(stride)).take(rows) {
                    normalise_backward((dy, normal, gains), *scale, dense.layer.outputs, dx);
                }
            }
            let Some(read) = dense.reads else { continue };
            // a layer that several layers read gets its derivative from the last one first; the activation's derivative comes at the end
            let readers = |range: &[Dense]| range.iter().any(|other| other.reads == Some(read));
            let (is_first, is_last) = (!readers(&layout.layers[i + 1..]), !readers(&layout.layers[..i]));
            let Activations { y, delta: dx, .. } = &mut before[read];
            let start = if is_first { Start::Zero } else { Start::Sum };
            let finish = if is_last { Finish::Derivative(layout.activation, y) } else { Finish::Same };
            let dy = after[0].d_linear();
            if dense.layer.is_narrow() {
                dense.layer.backward_input(simd, (parameters, &[]), rows, dy, dx, (start, finish));
            } else {
                dense.layer.backward_input_by_columns(simd, (parameters, columns), rows, dy, dx, (start, finish));
            }
        }
    }
}

/// Computes the gradient of a block of parameters over all tiles. Adds to it if `adds`; otherwise sets it.
pub(super) struct Gradient<'a> {
    pub layout: &'a QLayout,
    pub block: &'a Block,
    pub tiles: &'a [Tile],
    pub adds: bool,
    pub gradient: &'a mut [f32],
}

impl Kernel for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, block, tiles, adds, gradient } = self;
        let dense = &layout.layers[block.layer];
        let mut start = if adds { Start::Sum } else { Start::Zero };
        if tiles.is_empty() && !adds {
            gradient.fill(0.0);
        }
        for tile in tiles {
            let own = &tile.layers[block.layer];
            let x = dense.reads.map_or(&*tile.input, |layer| &*tile.layers[layer].y);
            match &block.part {
                Part::Weights(rows) => {
                    let dy = own.d_linear();
                    dense.layer.backward_weights(simd, rows.clone(), tile.rows, (x, dy), gradient, start);
                }
                Part::Bias => {
                    let begin = dense.layer.bias;
                    dense.layer.backward_bias(simd, tile.rows, own.d_linear(), &mut Slice { numbers: gradient, begin }, start);
                }
                Part::Gains | Part::Shifts => {
                    if matches!(start, Start::Zero) {
                        gradient.fill(0.0);
                    }
                    let rows = own.delta.chunks_exact(dense.stride()).zip(own.normal.chunks_exact(dense.stride()));
                    for (delta, normal) in rows.take(tile.rows) {
                        if matches!(block.part, Part::Gains) {
                            gradient.iter_mut().zip(delta.iter().zip(normal)).for_each(|(g, (d, x))| *g = d.mul_add(*x, *g));
                        } else {
                            gradient.iter_mut().zip(delta).for_each(|(g, d)| *g += d);
                        }
                    }
                }
            }
            start = Start::Sum;
        }
    }
}
