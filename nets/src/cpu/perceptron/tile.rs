//! A tile of rows: the activations of all layers, and the derivatives with respect to them.

use super::{Dense, Perceptron, padded};
use crate::cpu::aligned::Aligned;

/// Rows of a tile of a network whose gradient is computed from many tiles at once.
pub(in crate::cpu) const ROWS: usize = 32;

/// The observations that a tile reads.
pub(in crate::cpu) enum Observed<'a> {
    /// Rows one after the other.
    Block(&'a [f32]),
    /// Some of many rows, by their indices.
    Chosen(&'a [f32], &'a [u32]),
}

/// Activations and derivatives of some rows.
pub(in crate::cpu) struct Tile {
    pub(super) input: Aligned,
    /// The loss's derivative with respect to the inputs, from the last backward pass that computed it; without room for it, empty.
    pub(super) d_input: Aligned,
    pub(super) layers: Vec<Activations>,
    /// Room for the columns of a layer's inputs and outputs.
    pub(super) columns: Aligned,
    pub(super) rows: usize,
}

/// Numbers that the backward pass through a layer needs for columns, at most.
fn columns(perceptron: &Perceptron, rows: usize, to_input: bool) -> usize {
    let needs = |dense: &&Dense| (to_input || dense.reads.is_some()) && !dense.layer.is_narrow() && dense.layer.transposed.is_none();
    perceptron.layers.iter().filter(needs).map(|dense| dense.layer.columns_len(rows)).max().unwrap_or(0)
}

/// A layer's outputs in a tile.
pub(super) struct Activations {
    /// The outputs after normalisation and activation.
    pub y: Aligned,
    /// The normalised rows before gains and shifts, and for each row 1 / sigma; empty without normalisation.
    pub normal: Aligned,
    pub scales: Vec<f32>,
    /// The loss's derivative with respect to the numbers that the activation reads.
    pub delta: Aligned,
    /// The loss's derivative with respect to the numbers that the normalisation reads; empty without normalisation.
    pub d_linear: Aligned,
}

impl Activations {
    fn new(dense: &Dense, rows: usize) -> Self {
        let numbers = || Aligned::zeros(rows * dense.stride());
        let norm = || if dense.norm.is_some() { numbers() } else { Aligned::zeros(0) };
        Self { y: numbers(), normal: norm(), scales: vec![0.0; rows], delta: numbers(), d_linear: norm() }
    }

    /// The derivative with respect to the outputs of x W + b.
    pub fn d_linear(&self) -> &[f32] {
        if self.d_linear.is_empty() { &self.delta } else { &self.d_linear }
    }
}

impl Tile {
    /// Creates a tile with room for `rows` rows.
    pub fn new(perceptron: &Perceptron, rows: usize) -> Self {
        Self {
            input: Aligned::zeros(rows * padded(perceptron.width)),
            d_input: Aligned::zeros(0),
            layers: perceptron.layers.iter().map(|dense| Activations::new(dense, rows)).collect(),
            columns: Aligned::zeros(columns(perceptron, rows, false)),
            rows: 0,
        }
    }

    /// Makes room for the derivatives with respect to the inputs.
    pub fn with_input_derivatives(self, perceptron: &Perceptron) -> Self {
        let rows = self.input.len() / padded(perceptron.width);
        Self { d_input: Aligned::zeros(self.input.len()), columns: Aligned::zeros(columns(perceptron, rows, true)), ..self }
    }

    /// Bytes of a tile with room for `rows` rows.
    pub fn bytes(perceptron: &Perceptron, rows: usize) -> usize {
        let numbers = |dense: &Dense| (if dense.norm.is_some() { 4 } else { 2 }) * dense.stride();
        let row = padded(perceptron.width) + perceptron.layers.iter().map(numbers).sum::<usize>();
        4 * (rows * row + columns(perceptron, rows, false))
    }

    /// Number of rows in the tile.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Copies observations into the tile; returns their number. This is not part of the kernels, which would compile a copy each.
    #[inline(never)]
    pub fn read(&mut self, width: usize, observations: Observed<'_>) -> usize {
        self.rows = match width {
            // calling memcpy for rows of a few numbers would take longer than the first layer
            1 => self.read_narrow::<1>(observations),
            2 => self.read_narrow::<2>(observations),
            3 => self.read_narrow::<3>(observations),
            4 => self.read_narrow::<4>(observations),
            6 => self.read_narrow::<6>(observations),
            8 => self.read_narrow::<8>(observations),
            _ => {
                let tile = self.input.chunks_exact_mut(padded(width));
                match observations {
                    Observed::Block(rows) => tile.zip(rows.chunks_exact(width)).map(|(to, row)| to[..width].copy_from_slice(row)).count(),
                    Observed::Chosen(all, indices) => {
                        let row = |index: &u32| &all[*index as usize * width..(*index as usize + 1) * width];
                        tile.zip(indices).map(|(to, index)| to[..width].copy_from_slice(row(index))).count()
                    }
                }
            }
        };
        self.rows
    }

    fn read_narrow<const WIDTH: usize>(&mut self, observations: Observed<'_>) -> usize {
        let tile = self.input.as_chunks_mut::<16>().0.iter_mut();
        match observations {
            Observed::Block(rows) => tile.zip(rows.as_chunks::<WIDTH>().0).map(|(to, row)| to[..WIDTH].copy_from_slice(row)).count(),
            Observed::Chosen(all, indices) => {
                let all = all.as_chunks::<WIDTH>().0;
                tile.zip(indices).map(|(to, index)| to[..WIDTH].copy_from_slice(&all[*index as usize])).count()
            }
        }
    }

    /// Copies inputs, each in two parts, into the tile, as many as it has room for.
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

    /// The outputs of layer `layer`, to be replaced by what a head makes of them.
    pub fn outputs_mut(&mut self, layer: usize) -> &mut [f32] {
        &mut self.layers[layer].y
    }

    /// What `dense` reads, each row padded.
    pub fn inputs_of(&self, dense: &Dense) -> &[f32] {
        dense.reads.map_or(&self.input, |layer| &self.layers[layer].y)
    }

    /// The outputs of layer `layer`, and the derivatives with respect to them.
    pub fn outputs_and_derivatives(&mut self, layer: usize) -> (&[f32], &mut [f32]) {
        let Activations { y, delta, .. } = &mut self.layers[layer];
        (y, delta)
    }

    /// Exchanges the derivatives with respect to the outputs of layer `layer` and `other`, which has room for them.
    pub fn swap_derivatives(&mut self, layer: usize, other: &mut Aligned) {
        std::mem::swap(&mut self.layers[layer].delta, other);
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
}
