//! A tile of rows: the activations of all layers, and the derivatives with respect to them.

use super::cell::Steps;
use super::{Dense, Kind, Perceptron, padded};
use crate::cpu::aligned::Aligned;
use crate::store::Numbers;
use gradus_envs::Image;

/// Rows of a tile of a network whose gradient is computed from many tiles at once.
pub(in crate::cpu) const ROWS: usize = 32;

/// The observations that a tile reads.
pub(in crate::cpu) enum Observed<'a> {
    /// Rows one after the other.
    Block(Numbers<'a>),
    /// Some of many rows, by their indices.
    Chosen(Numbers<'a>, &'a [u32]),
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
    /// For recurrent cells: how many sequences go on at each step, and what is remembered at the beginning of each.
    pub(super) steps: Vec<usize>,
    pub(super) memory: Vec<f32>,
}

/// Numbers that the backward pass through a layer needs for columns, at most.
fn columns(perceptron: &Perceptron, rows: usize, to_input: bool) -> usize {
    let is_passed = |dense: &&Dense| to_input || dense.reads.is_some();
    let needs = |dense: &Dense| match &dense.kind {
        Kind::Dense | Kind::Cell(_) if dense.layer.is_narrow() || dense.layer.transposed.is_some() => 0,
        Kind::Dense | Kind::Cell(_) => dense.layer.columns_len(rows),
        Kind::Convolution(view) => view.room(&dense.layer),
        Kind::Pool(_) | Kind::Same => 0,
    };
    perceptron.layers.iter().filter(is_passed).map(needs).max().unwrap_or(0)
}

/// A layer's outputs in a tile.
pub(super) struct Activations {
    /// The outputs after normalisation and activation.
    pub y: Aligned,
    /// The images that a convolution reads, with their padding; empty without padding.
    pub padded: Aligned,
    /// The normalised rows before gains and shifts, and for each row 1 / sigma; empty without normalisation.
    pub normal: Aligned,
    pub scales: Vec<f32>,
    /// The loss's derivative with respect to the numbers that the activation reads.
    pub delta: Aligned,
    /// The loss's derivative with respect to the numbers that the normalisation reads; empty without normalisation.
    pub d_linear: Aligned,
    /// What a recurrent cell keeps.
    pub steps: Steps,
}

impl Activations {
    fn new(dense: &Dense, rows: usize) -> Self {
        let numbers = || Aligned::zeros(rows * dense.row());
        let norm = || if dense.norm.is_some() { numbers() } else { Aligned::zeros(0) };
        let padded = Aligned::zeros(rows * dense.padded_len());
        let steps = if let Kind::Cell(cell) = &dense.kind { cell.steps(rows) } else { Steps::default() };
        Self { y: numbers(), padded, normal: norm(), scales: vec![0.0; rows * dense.pixels], delta: numbers(), d_linear: norm(), steps }
    }

    /// What `dense`, whose outputs these are, has read for `rows` observations: `x`, or the images with their padding.
    pub fn seen<'a>(&'a self, dense: &Dense, rows: usize, x: &'a [f32]) -> &'a [f32] {
        match &dense.kind {
            Kind::Convolution(view) if self.padded.is_empty() => &x[..rows * view.from.len()],
            Kind::Convolution(view) => &self.padded[..rows * view.padded_len()],
            _ => x,
        }
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
            input: Aligned::zeros(rows * perceptron.input_row()),
            d_input: Aligned::zeros(0),
            layers: perceptron.layers.iter().map(|dense| Activations::new(dense, rows)).collect(),
            columns: Aligned::zeros(columns(perceptron, rows, false)),
            rows: 0,
            steps: Vec::new(),
            memory: Vec::new(),
        }
    }

    /// Makes room for the derivatives with respect to the inputs.
    pub fn with_input_derivatives(self, perceptron: &Perceptron) -> Self {
        let rows = self.input.len() / perceptron.input_row();
        Self { d_input: Aligned::zeros(self.input.len()), columns: Aligned::zeros(columns(perceptron, rows, true)), ..self }
    }

    /// Bytes of a tile with room for `rows` rows.
    pub fn bytes(perceptron: &Perceptron, rows: usize) -> usize {
        let of_cell = |dense: &Dense| if let Kind::Cell(cell) = &dense.kind { cell.numbers() } else { 0 };
        let numbers = |dense: &Dense| (if dense.norm.is_some() { 4 } else { 2 }) * dense.row() + dense.padded_len() + of_cell(dense);
        let row = perceptron.input_row() + perceptron.layers.iter().map(numbers).sum::<usize>();
        4 * (rows * row + columns(perceptron, rows, false))
    }

    /// Begins sequences, of which `steps` go on at each step, with these memories: the rows of the next pass are their steps.
    pub fn begin(&mut self, steps: &[usize], memory: &[f32]) {
        self.steps.clear();
        self.steps.extend_from_slice(steps);
        self.memory.clear();
        self.memory.extend_from_slice(memory);
    }

    /// Writes what is remembered after the first step to `memory`, a row for each row of the tile.
    pub fn recall(&self, perceptron: &Perceptron, memory: &mut [f32]) {
        for (dense, own) in perceptron.layers.iter().zip(&self.layers) {
            if let Kind::Cell(cell) = &dense.kind {
                cell.recall((&own.steps, &own.y), memory, perceptron.memory);
            }
        }
    }

    /// Number of rows that the tile has room for.
    pub fn room(&self, perceptron: &Perceptron) -> usize {
        self.input.len() / perceptron.input_row()
    }

    /// Number of rows in the tile.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Copies observations into the tile; returns their number. This is not part of the kernels, which would compile a copy each.
    #[inline(never)]
    pub fn read(&mut self, perceptron: &Perceptron, observations: Observed<'_>) -> usize {
        let width = perceptron.width;
        self.rows = match (perceptron.image, observations) {
            (Some(image), observations) => self.read_images(image, perceptron.input_row(), perceptron.sees(), observations),
            (None, Observed::Block(Numbers::F32(rows))) => self.read_rows(width, rows, None),
            (None, Observed::Chosen(Numbers::F32(rows), indices)) => self.read_rows(width, rows, Some(indices)),
            (None, _) => panic!("observations: expected rows of numbers, got images"),
        };
        self.rows
    }

    fn read_rows(&mut self, width: usize, all: &[f32], indices: Option<&[u32]>) -> usize {
        match width {
            // calling memcpy for rows of a few numbers would take longer than the first layer
            1 => self.read_narrow::<1>(all, indices),
            2 => self.read_narrow::<2>(all, indices),
            3 => self.read_narrow::<3>(all, indices),
            4 => self.read_narrow::<4>(all, indices),
            6 => self.read_narrow::<6>(all, indices),
            8 => self.read_narrow::<8>(all, indices),
            _ => {
                let tile = self.input.chunks_exact_mut(padded(width));
                match indices {
                    None => tile.zip(all.chunks_exact(width)).map(|(to, row)| to[..width].copy_from_slice(row)).count(),
                    Some(indices) => {
                        let row = |index: &u32| &all[*index as usize * width..(*index as usize + 1) * width];
                        tile.zip(indices).map(|(to, index)| to[..width].copy_from_slice(row(index))).count()
                    }
                }
            }
        }
    }

    fn read_narrow<const WIDTH: usize>(&mut self, all: &[f32], indices: Option<&[u32]>) -> usize {
        let tile = self.input.as_chunks_mut::<16>().0.iter_mut();
        let all = all.as_chunks::<WIDTH>().0;
        match indices {
            None => tile.zip(all).map(|(to, row)| to[..WIDTH].copy_from_slice(row)).count(),
            Some(indices) => tile.zip(indices).map(|(to, index)| to[..WIDTH].copy_from_slice(&all[*index as usize])).count(),
        }
    }

    /// As [`read`](Tile::read), of images: divides the numbers by the largest. If a layer `sees` the image, the numbers of a pixel are put side by
    /// side.
    fn read_images(&mut self, image: Image, row: usize, sees: bool, observations: Observed<'_>) -> usize {
        let width = image.len();
        let (numbers, chosen) = match observations {
            Observed::Block(numbers) => (numbers, None),
            Observed::Chosen(numbers, indices) => (numbers, Some(indices)),
        };
        let rows = chosen.map_or(numbers.len() / width, <[u32]>::len).min(self.input.len() / row);
        let largest = f32::from(image.largest);
        let shares: [f32; 256] = std::array::from_fn(|byte| byte as f32 / largest);
        // the numbers of a pixel are put side by side only if there are several frames
        let (frames, channels) = if sees { (image.frames, image.channels) } else { (1, 1) };
        let frame = width / frames;
        for (i, to) in self.input.chunks_exact_mut(row).take(rows).enumerate() {
            let begin = chosen.map_or(i, |indices| indices[i] as usize) * width;
            for f in 0..frames {
                let from = begin + f * frame..begin + (f + 1) * frame;
                match numbers {
                    Numbers::F32(all) => scatter(&all[from], &mut to[..width], f, (frames, channels), |number| number / largest),
                    Numbers::U8(all) => scatter(&all[from], &mut to[..width], f, (frames, channels), |byte| shares[usize::from(byte)]),
                }
            }
        }
        rows
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
            let stride = dense.row();
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

/// Writes frame number `f` of `frames`, whose pixels have `channels` numbers each, to its place in every pixel of `to`.
#[inline(always)]
fn scatter<T: Copy>(frame: &[T], to: &mut [f32], f: usize, (frames, channels): (usize, usize), share: impl Fn(T) -> f32) {
    if frames == 1 {
        to.iter_mut().zip(frame).for_each(|(to, number)| *to = share(*number));
    } else {
        for (to, pixel) in to.chunks_exact_mut(frames * channels).zip(frame.chunks_exact(channels)) {
            to[f * channels..(f + 1) * channels].iter_mut().zip(pixel).for_each(|(to, number)| *to = share(*number));
        }
    }
}
