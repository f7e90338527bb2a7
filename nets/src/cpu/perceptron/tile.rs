//! The passes of a perceptron over tiles of rows, and the gradient of its parameters over all tiles.
//!
//! A tile keeps the activations of all its layers and the derivatives with respect to them. First, the rows of a batch are divided among the
//! threads: each tile's forward pass, objective and backward pass. Then the parameters are divided: the gradient of each block is a sum over
//! the rows of all tiles, in order. No gradient is computed twice and added up afterwards.

use super::super::aligned::Aligned;
use super::super::layout::Part as Slice;
use super::super::product::{Finish, Start};
use super::super::update::squares;
use super::super::weights::norm;
use super::{Block, Dense, Part, Perceptron, padded};
use gradus_base::simd::sum16;
use gradus_base::simd::{Kernel, Level, Simd, dispatch};
use gradus_base::threads;

/// Rows per tile.
pub(in crate::cpu) const ROWS: usize = 32;
/// Added to the variance of a row of a layer normalisation, as in PyTorch.
const EPSILON: f32 = 1e-5;

/// Activations and derivatives of some rows.
pub(in crate::cpu) struct Tile {
    input: Aligned,
    /// The loss's derivative with respect to the inputs, from the last backward pass that computed it; without room for it, empty.
    d_input: Aligned,
    layers: Vec<Activations>,
    /// Room for the columns of a layer's inputs and outputs.
    columns: Aligned,
    rows: usize,
}

/// Numbers that the backward pass through a layer needs for columns, at most.
fn columns(perceptron: &Perceptron, to_input: bool) -> usize {
    perceptron.layers.iter().filter(|dense| to_input || dense.reads.is_some()).map(|dense| dense.layer.columns_len(ROWS)).max().unwrap_or(0)
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
    pub fn new(perceptron: &Perceptron) -> Self {
        Self {
            input: Aligned::zeros(ROWS * padded(perceptron.width)),
            d_input: Aligned::zeros(0),
            layers: perceptron.layers.iter().map(Activations::new).collect(),
            columns: Aligned::zeros(columns(perceptron, false)),
            rows: 0,
        }
    }

    /// Makes room for the derivatives with respect to the inputs.
    pub fn with_input_derivatives(self, perceptron: &Perceptron) -> Self {
        Self { d_input: Aligned::zeros(self.input.len()), columns: Aligned::zeros(columns(perceptron, true)), ..self }
    }

    /// Bytes of a tile.
    pub fn bytes(perceptron: &Perceptron) -> usize {
        let numbers = |dense: &Dense| (if dense.norm.is_some() { 4 } else { 2 }) * dense.stride();
        let rows = padded(perceptron.width) + perceptron.layers.iter().map(numbers).sum::<usize>();
        4 * (ROWS * rows + columns(perceptron, false))
    }

    /// Number of rows in the tile.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Copies at most [`ROWS`] inputs into the tile.
    pub fn read<'a>(&mut self, width: usize, inputs: impl Iterator<Item = &'a [f32]>) {
        let rows = self.input.chunks_exact_mut(padded(width)).zip(inputs);
        self.rows = rows.map(|(to, row)| to[..width].copy_from_slice(row)).count();
    }

    /// Copies at most [`ROWS`] inputs, each in two parts, into the tile.
    pub fn read_pairs<'a>(&mut self, width: usize, inputs: impl Iterator<Item = (&'a [f32], &'a [f32])>) {
        let rows = self.input.chunks_exact_mut(padded(width)).zip(inputs);
        let copy = |(to, (first, second)): (&mut [f32], (&[f32], &[f32]))| {
            to[..first.len()].copy_from_slice(first);
            to[first.len()..width].copy_from_slice(second);
        };
        self.rows = rows.map(copy).count();
    }

    /// The inputs, each row padded.
    pub fn inputs(&self) -> &[f32] {
        &self.input
    }

    /// The derivatives of the loss with respect to the inputs, each row padded.
    pub fn input_derivatives(&self) -> &[f32] {
        &self.d_input
    }

    /// The outputs of layer `layer`, each row padded to the layer's stride.
    pub fn outputs(&self, layer: usize) -> &[f32] {
        &self.layers[layer].y
    }

    /// The derivatives of the loss with respect to the outputs of layer `layer`, which the backward pass begins with.
    pub fn derivatives(&mut self, layer: usize) -> &mut [f32] {
        &mut self.layers[layer].delta
    }

    /// Keeps some rows of the activations and of the derivatives with respect to the outputs, for a backward pass over these rows only. `rows`
    /// are their numbers, in ascending order. The inputs stay.
    pub fn keep(&mut self, perceptron: &Perceptron, rows: &[usize]) {
        let last = perceptron.layers.len() - 1;
        for (i, (layer, dense)) in self.layers.iter_mut().zip(&perceptron.layers).enumerate() {
            let stride = dense.stride();
            let compact = |numbers: &mut [f32]| {
                let moved = rows.iter().enumerate().filter(|(to, from)| to != *from);
                moved.for_each(|(to, from)| numbers.copy_within(from * stride..(from + 1) * stride, to * stride));
            };
            if i == last {
                compact(&mut layer.delta);
            }
            compact(&mut layer.y);
            if !layer.normal.is_empty() {
                compact(&mut layer.normal);
            }
            rows.iter().enumerate().for_each(|(to, from)| layer.scales[to] = layer.scales[*from]);
        }
        self.rows = rows.len();
    }

    /// Runs the forward pass over the tile's inputs.
    pub fn forward(&mut self, level: Level, perceptron: &Perceptron, parameters: &[f32]) {
        dispatch(level, Forward { perceptron, parameters, tile: self });
    }

    /// Runs the backward pass through all layers, from the [derivatives](Tile::derivatives) with respect to the outputs. The loss may also
    /// depend on the outputs of layer `other` directly, through the derivatives that are already there.
    pub fn backward(&mut self, level: Level, perceptron: &Perceptron, parameters: &[f32], other: Option<usize>) {
        dispatch(level, Backward { perceptron, parameters, tile: self, other, to_input: false });
    }

    /// As [`backward`](Tile::backward), and computes the [derivatives](Tile::input_derivatives) with respect to the inputs.
    pub fn backward_to_input(&mut self, level: Level, perceptron: &Perceptron, parameters: &[f32]) {
        dispatch(level, Backward { perceptron, parameters, tile: self, other: None, to_input: true });
    }
}

/// The forward pass through all layers.
struct Forward<'a> {
    perceptron: &'a Perceptron,
    parameters: &'a [f32],
    tile: &'a mut Tile,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { perceptron, parameters, tile } = self;
        let rows = tile.rows;
        for (i, dense) in perceptron.layers.iter().enumerate() {
            let (before, after) = tile.layers.split_at_mut(i);
            let x = dense.reads.map_or(&*tile.input, |layer| &*before[layer].y);
            let Activations { y, normal, scales, .. } = &mut after[0];
            let n = rows * dense.stride();
            let activation = if dense.is_hidden { Finish::Activation(perceptron.activation) } else { Finish::Same };
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
            activation.apply::<S>(&mut y[..n], 0, (n, n));
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
fn normalise_backward(dy: &[f32], normal: &[f32], gains: &[f32], scale: f32, n: usize, dx: &mut [f32]) {
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

/// The backward pass through all layers.
struct Backward<'a> {
    perceptron: &'a Perceptron,
    parameters: &'a [f32],
    tile: &'a mut Tile,
    other: Option<usize>,
    to_input: bool,
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { perceptron, parameters, tile: Tile { layers, columns, rows, d_input, .. }, other, to_input } = self;
        let rows = *rows;
        for (i, dense) in perceptron.layers.iter().enumerate().rev() {
            let (before, after) = layers.split_at_mut(i);
            let Activations { normal, scales, delta, d_linear, .. } = &mut after[0];
            let stride = dense.stride();
            if let Some(norm) = dense.norm {
                let gains = &parameters[dense.gains(norm)];
                let inputs = delta.chunks_exact(stride).zip(normal.chunks_exact(stride)).zip(scales.iter());
                for (((dy, normal), scale), dx) in inputs.zip(d_linear.chunks_exact_mut(stride)).take(rows) {
                    normalise_backward(dy, normal, gains, *scale, dense.layer.outputs, dx);
                }
            }
            let (dx, start, finish) = match dense.reads {
                None if !to_input => continue,
                None => (&mut *d_input, Start::Zero, Finish::Same),
                Some(read) => {
                    // a layer that several layers read gets its derivative from the last one first; the activation's derivative comes at the
                    // end
                    let readers = |range: &[Dense]| range.iter().any(|other| other.reads == Some(read));
                    let is_first = !readers(&perceptron.layers[i + 1..]) && other != Some(read);
                    let is_last = !readers(&perceptron.layers[..i]);
                    let Activations { y, delta, .. } = &mut before[read];
                    let start = if is_first { Start::Zero } else { Start::Sum };
                    (delta, start, if is_last { Finish::Derivative(perceptron.activation, y) } else { Finish::Same })
                }
            };
            let dy = after[0].d_linear();
            if dense.layer.is_narrow() {
                dense.layer.backward_input(simd, (parameters, &[]), rows, dy, dx, (start, finish));
            } else {
                dense.layer.backward_input_by_columns(simd, (parameters, columns), rows, dy, dx, (start, finish));
            }
        }
    }
}

/// Computes the gradient of the parameters of some perceptrons, one after another in `gradient`, each over its tiles. Returns its norm. Adds
/// to the gradient if `adds`; otherwise sets it.
pub(in crate::cpu) fn gradient(level: Level, parts: &[(&Perceptron, Vec<&Tile>)], adds: bool, gradient: &mut [f32]) -> f32 {
    let mut blocks: Vec<(_, &Block, &mut [f32])> = Vec::new();
    let mut rest = &mut *gradient;
    for (perceptron, tiles) in parts {
        for block in &perceptron.blocks {
            let (own, behind) = rest.split_at_mut(block.length);
            blocks.push(((*perceptron, &**tiles), block, own));
            rest = behind;
        }
    }
    threads::for_each(&mut blocks, |_, ((perceptron, tiles), block, gradient)| {
        dispatch(level, Gradient { perceptron, block, tiles, adds, gradient });
    });
    let mut rest = &*gradient;
    let lengths = parts.iter().flat_map(|(perceptron, _)| &perceptron.summed);
    norm(level, lengths.filter_map(|length| rest.split_off(..*length)))
}

/// Computes the gradient of a block of parameters over all tiles. Adds to it if `adds`; otherwise sets it.
struct Gradient<'a> {
    perceptron: &'a Perceptron,
    block: &'a Block,
    tiles: &'a [&'a Tile],
    adds: bool,
    gradient: &'a mut [f32],
}

impl Kernel for Gradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { perceptron, block, tiles, adds, gradient } = self;
        let dense = &perceptron.layers[block.layer];
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
