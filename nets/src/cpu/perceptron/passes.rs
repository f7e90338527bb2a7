//! The passes of a tile through some layers of a perceptron: forward, backward and tangent.

use std::ops::Range;

use super::super::layer::{Part, padded};
use super::super::product::{Finish, Start};
use super::super::update::squares;
use super::tile::{Activations, Tile};
use super::{Dense, Kind, Perceptron};
use gradus_base::simd::{Kernel, Level, Simd, Square, dispatch, sum16};

/// Added to the variance of a row of a layer normalisation, as in PyTorch.
const EPSILON: f32 = 1e-5;

impl Tile {
    /// Runs the forward pass over the tile's inputs.
    pub fn forward(&mut self, level: Level, perceptron: &Perceptron, parameters: &[f32]) {
        dispatch(level, Forward { perceptron, parameters, layers: 0..perceptron.layers.len(), tile: self });
    }

    /// As [`forward`](Tile::forward), through some layers and within a kernel.
    #[inline(always)]
    pub fn forward_through<S: Simd>(&mut self, simd: S, perceptron: &Perceptron, parameters: &[f32], layers: Range<usize>) {
        simd.call(Forward { perceptron, parameters, layers, tile: self });
    }

    /// Runs the backward pass through all layers, from the [derivatives](Tile::derivatives) with respect to the outputs. The loss may also
    /// depend on the outputs of layer `other` directly, through the derivatives that are already there.
    pub fn backward(&mut self, level: Level, perceptron: &Perceptron, parameters: &[f32], other: Option<usize>) {
        dispatch(level, Backward { other, ..Backward::of_all(perceptron, parameters, self) });
    }

    /// As [`backward`](Tile::backward), and computes the [derivatives](Tile::input_derivatives) with respect to the inputs.
    pub fn backward_to_input(&mut self, level: Level, perceptron: &Perceptron, parameters: &[f32]) {
        dispatch(level, Backward { to_input: true, ..Backward::of_all(perceptron, parameters, self) });
    }

    /// As [`backward`](Tile::backward), through some layers, within a kernel, and with the gradient of their parameters. A layer before
    /// these that they read gets the derivative with respect to its outputs, without that of its activation.
    #[inline(always)]
    pub fn backward_through<S: Simd>(
        &mut self,
        simd: S,
        perceptron: &Perceptron,
        (parameters, transposed): (&[f32], &[f32]),
        layers: Range<usize>,
        gradient: GradientOf<'_, '_>,
    ) {
        simd.call(Backward { transposed, layers, gradient: Some(gradient), ..Backward::of_all(perceptron, parameters, self) });
    }

    /// Runs the tangent pass through some layers, within a kernel: the changes of their outputs, in place of [derivatives](Tile::derivatives),
    /// if the parameters change by `change`.
    #[inline(always)]
    pub fn tangent_through<S: Simd>(
        &mut self,
        simd: S,
        perceptron: &Perceptron,
        (parameters, change): (&[f32], &[f32]),
        layers: Range<usize>,
    ) {
        simd.call(Tangent { perceptron, parameters, change, layers, tile: self });
    }
}

/// The forward pass.
struct Forward<'a> {
    perceptron: &'a Perceptron,
    parameters: &'a [f32],
    layers: Range<usize>,
    tile: &'a mut Tile,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { perceptron, parameters, layers, tile } = self;
        let rows = tile.rows;
        for i in layers {
            let dense = &perceptron.layers[i];
            let (before, after) = tile.layers.split_at_mut(i);
            if let (Kind::Cell(cell), Some(read)) = (&dense.kind, dense.reads) {
                let Activations { y, steps: own, .. } = &mut after[0];
                let memory = (&*tile.memory, perceptron.memory);
                cell.forward(simd, (&dense.layer, parameters), &tile.steps, memory, &mut before[read].y, (own, y));
                continue;
            }
            let x = dense.reads.map_or(&*tile.input, |layer| &*before[layer].y);
            let Activations { y, normal, scales, padded, .. } = &mut after[0];
            let (stride, n) = (dense.stride(), rows * dense.row());
            let y = &mut y[..n];
            let activation = if dense.is_hidden { Finish::Activation(perceptron.activation) } else { Finish::Same };
            // what is left to do after the product
            let finish = if dense.norm.is_some() || dense.adds.is_some() { Finish::Same } else { activation };
            match &dense.kind {
                Kind::Dense => dense.layer.forward(simd, parameters, rows, x, y, finish),
                Kind::Convolution(view) => {
                    let images = dense.images(rows, x, padded);
                    view.forward(simd, dense.layer.kernel(parameters), images, y, (dense.layer.start(parameters), finish));
                }
                Kind::Pool(view) => {
                    view.largest(&x[..rows * view.from.len()], y);
                    activation.apply(simd, y, 0, (n, n));
                }
                Kind::Cell(_) => {}
                Kind::Same => {
                    // the pixels of the observation have no padding
                    let (from, width) = (dense.reads.map_or(dense.layer.inputs, |_| stride), dense.layer.inputs);
                    y.chunks_exact_mut(stride).zip(x.chunks_exact(from)).for_each(|(y, x)| y[..width].copy_from_slice(&x[..width]));
                    activation.apply(simd, y, 0, (n, n));
                }
            }
            if let Some(other) = dense.adds {
                y.iter_mut().zip(&*before[other].y).for_each(|(y, x)| *y += x);
                activation.apply(simd, y, 0, (n, n));
            }
            let Some(norm) = dense.norm else { continue };
            let (gains, shifts) = (&parameters[dense.gains(norm)], &parameters[dense.shifts(norm)]);
            if stride == 16 {
                let blocks = y.chunks_mut(256).zip(normal.chunks_mut(256)).zip(scales.chunks_mut(16));
                for ((y, normal), scales) in blocks {
                    normalise_narrow(simd, y, normal, (gains, shifts), scales, dense.layer.outputs);
                }
                activation.apply(simd, y, 0, (n, n));
                continue;
            }
            let rows = y.chunks_exact_mut(stride).zip(normal.chunks_exact_mut(stride)).zip(&mut *scales);
            for ((y, normal), scale) in rows {
                *scale = normalise(y, normal, dense.layer.outputs);
                for (((y, normal), gain), shift) in y.iter_mut().zip(normal).zip(gains).zip(shifts) {
                    *y = normal.mul_add(*gain, *shift);
                }
            }
            activation.apply(simd, y, 0, (n, n));
        }
    }
}

impl Dense {
    /// Returns the images that a convolution reads, for `rows` observations, with their padding. `padded` has room for them, if they have some.
    #[inline(always)]
    fn images<'x>(&self, rows: usize, x: &'x [f32], padded: &'x mut [f32]) -> &'x [f32] {
        let Kind::Convolution(view) = &self.kind else { return x };
        if padded.is_empty() {
            return &x[..rows * view.from.len()];
        }
        view.pad(&x[..rows * view.from.len()], padded);
        &padded[..rows * view.padded_len()]
    }

    /// Adds to the gradients of W and b (or sets them, with `Start::Zero`). `seen` is what a convolution read, with its padding; otherwise x.
    #[inline(always)]
    fn backward_parameters<S: Simd>(&self, simd: S, rows: usize, seen: &[f32], dy: &[f32], gradient: &mut Part<'_>, start: Start<'_>) {
        match &self.kind {
            Kind::Dense => self.layer.backward_parameters(simd, rows, seen, dy, gradient, start),
            Kind::Convolution(view) => {
                let pixels = rows * self.pixels;
                self.layer.backward_bias(simd, pixels, dy, gradient, start);
                let weights = gradient.of(self.layer.weights..self.layer.weights + self.layer.weight_len());
                let (all, stride) = (0..self.layer.inputs, self.stride());
                view.backward_weights(simd, all, stride, (seen, &dy[..pixels * stride]), weights, start);
            }
            Kind::Pool(_) | Kind::Same | Kind::Cell(_) => {}
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

/// As [`normalise`], of at most sixteen rows of sixteen numbers, and computes gain x normal + shift in place. The bits are the same.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // the compiler puts plain loops into vectors
fn normalise_narrow<S: Simd>(simd: S, y: &mut [f32], normal: &mut [f32], (gains, shifts): (&[f32], &[f32]), scales: &mut [f32], n: usize) {
    let (rows, normals) = (y.as_chunks_mut::<16>().0, normal.as_chunks_mut::<16>().0);
    let (gains, shifts): (&[f32; 16], &[f32; 16]) = (gains.first_chunk().expect("16 gains"), shifts.first_chunk().expect("16 shifts"));
    let mut square: Square = [[0.0; 16]; 16];
    square[..rows.len()].copy_from_slice(rows);
    let mut sums = simd.sums(&square);
    for r in 0..rows.len() {
        let mean = sums[r] / n as f32;
        for i in 0..16 {
            let difference = if i < n { rows[r][i] - mean } else { 0.0 };
            normals[r][i] = difference;
            square[r][i] = difference * difference;
        }
    }
    sums = simd.sums(&square);
    for r in 0..16 {
        sums[r] = 1.0 / (sums[r] / n as f32 + EPSILON).sqrt();
    }
    for r in 0..rows.len() {
        scales[r] = sums[r];
        for i in 0..16 {
            let number = normals[r][i] * sums[r];
            normals[r][i] = number;
            rows[r][i] = number.mul_add(gains[i], shifts[i]);
        }
    }
}

/// As [`normalise_backward`], of at most sixteen rows of sixteen numbers. The bits are the same.
#[inline(always)]
#[allow(clippy::needless_range_loop)] // as above
fn normalise_narrow_backward<S: Simd>(simd: S, dy: &[f32], normal: &[f32], gains: &[f32], scales: &[f32], n: usize, dx: &mut [f32]) {
    let (dys, normals, dxs) = (dy.as_chunks::<16>().0, normal.as_chunks::<16>().0, dx.as_chunks_mut::<16>().0);
    let gains: &[f32; 16] = gains.first_chunk().expect("16 gains");
    let (mut parts, mut products): (Square, Square) = ([[0.0; 16]; 16], [[0.0; 16]; 16]);
    for r in 0..dys.len() {
        for i in 0..16 {
            parts[r][i] = dys[r][i] * gains[i];
            products[r][i] = parts[r][i] * normals[r][i];
        }
    }
    let (sums, products) = (simd.sums(&parts), simd.sums(&products));
    for r in 0..dys.len() {
        let (mean, product) = (sums[r] / n as f32, products[r] / n as f32);
        for i in 0..16 {
            let d = scales[r] * (parts[r][i] - mean - normals[r][i] * product);
            dxs[r][i] = if i < n { d } else { 0.0 };
        }
    }
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

/// What the backward pass computes besides derivatives with respect to activations: the gradient of the parameters of the layers.
pub(in crate::cpu) struct GradientOf<'a, 'g> {
    pub gradient: &'a mut Part<'g>,
    /// Whether the gradient is added to.
    pub start: Start<'a>,
}

/// The backward pass, from the derivatives with respect to the outputs of the last layers.
struct Backward<'a, 'g> {
    perceptron: &'a Perceptron,
    parameters: &'a [f32],
    /// The transposed weights of the layers that have them.
    transposed: &'a [f32],
    /// A layer outside of this range that one of these layers reads gets the derivative with respect to its outputs, without that of its
    /// activation.
    layers: Range<usize>,
    tile: &'a mut Tile,
    /// A layer whose outputs the loss depends on directly, through the derivatives that are already there.
    other: Option<usize>,
    /// Whether the derivatives with respect to the inputs are computed.
    to_input: bool,
    gradient: Option<GradientOf<'a, 'g>>,
}

impl<'a> Backward<'a, '_> {
    /// The backward pass through all layers, without a gradient of parameters.
    #[inline(always)]
    fn of_all(perceptron: &'a Perceptron, parameters: &'a [f32], tile: &'a mut Tile) -> Self {
        let layers = 0..perceptron.layers.len();
        Self { perceptron, parameters, transposed: &[], layers, tile, other: None, to_input: false, gradient: None }
    }
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { perceptron, parameters, transposed, layers: range, tile, other, to_input, mut gradient } = self;
        let Tile { input, layers, columns, rows, d_input, steps, .. } = tile;
        let rows = *rows;
        for i in range.clone().rev() {
            let dense = &perceptron.layers[i];
            let (before, after) = layers.split_at_mut(i);
            let Activations { normal, scales, delta, d_linear, steps: own, .. } = &mut after[0];
            if let (Kind::Cell(cell), Some(read)) = (&dense.kind, dense.reads) {
                let Activations { y: gates, delta: d_gates, .. } = &mut before[read];
                cell.backward(steps, (gates, delta), own, d_gates, padded(dense.layer.outputs), |n, dy, dx| {
                    let of_before = (Start::Sum, Finish::Same);
                    match dense.layer.transposed {
                        Some(_) => dense.layer.backward_input(simd, (parameters, transposed), n, dy, dx, of_before),
                        None => dense.layer.backward_input_by_columns(simd, (parameters, columns), n, dy, dx, of_before),
                    }
                });
                if let Some(GradientOf { gradient, start }) = &mut gradient {
                    let (x, dy) = cell.read_and_derivatives(own);
                    dense.layer.backward_parameters(simd, rows, x, dy, gradient, *start);
                }
                continue;
            }
            let stride = dense.stride();
            if let Some(norm) = dense.norm {
                let gains = &parameters[dense.gains(norm)];
                let (all, width) = (rows * dense.row(), dense.layer.outputs);
                let (delta, normal, d_linear) = (&delta[..all], &normal[..all], &mut d_linear[..all]);
                if stride == 16 {
                    let blocks = delta.chunks(256).zip(normal.chunks(256)).zip(scales.chunks(16)).zip(d_linear.chunks_mut(256));
                    for (((dy, normal), scales), dx) in blocks {
                        normalise_narrow_backward(simd, dy, normal, gains, scales, width, dx);
                    }
                } else {
                    let inputs = delta.chunks_exact(stride).zip(normal.chunks_exact(stride)).zip(scales.iter());
                    inputs.zip(d_linear.chunks_exact_mut(stride)).for_each(|(((dy, normal), scale), dx)| {
                        normalise_backward(dy, normal, gains, *scale, width, dx);
                    });
                }
            }
            let dy = after[0].d_linear();
            if let Some(GradientOf { gradient, start }) = &mut gradient {
                let x = dense.reads.map_or(&**input, |layer| &*before[layer].y);
                dense.backward_parameters(simd, rows, after[0].seen(dense, rows, x), dy, gradient, *start);
            }
            // a layer that several layers read gets its derivative from the last one first; the activation's derivative comes at the end
            let place = |read: usize| {
                let readers = |range: &[Dense]| range.iter().any(|other| other.reads == Some(read) || other.adds == Some(read));
                let is_first = !readers(&perceptron.layers[i + 1..]) && other != Some(read);
                let is_last = !readers(&perceptron.layers[..i]) && perceptron.layers[read].is_hidden;
                (if is_first { Start::Zero } else { Start::Sum }, is_last)
            };
            if let Some(added) = dense.adds {
                let (start, is_last) = place(added);
                let Activations { y, delta, .. } = &mut before[added];
                let finish = if is_last { Finish::Derivative(perceptron.activation, y) } else { Finish::Same };
                pass_on(simd, &dy[..rows * dense.row()], delta, (start, finish));
            }
            let (x, dx, start, finish) = match dense.reads {
                None if !to_input => continue,
                None => (&[][..], &mut *d_input, Start::Zero, Finish::Same),
                Some(read) if !range.contains(&read) => {
                    let Activations { y, delta, .. } = &mut before[read];
                    (&**y, delta, Start::Zero, Finish::Same)
                }
                Some(read) => {
                    let (start, is_last) = place(read);
                    let Activations { y, delta, .. } = &mut before[read];
                    (&**y, delta, start, if is_last { Finish::Derivative(perceptron.activation, y) } else { Finish::Same })
                }
            };
            match &dense.kind {
                Kind::Dense if dense.layer.is_narrow() || dense.layer.transposed.is_some() => {
                    dense.layer.backward_input(simd, (parameters, transposed), rows, dy, dx, (start, finish));
                }
                Kind::Dense => dense.layer.backward_input_by_columns(simd, (parameters, columns), rows, dy, dx, (start, finish)),
                Kind::Cell(_) => {}
                Kind::Same => pass_on(simd, &dy[..rows * dense.row()], dx, (start, finish)),
                Kind::Convolution(view) | Kind::Pool(view) => {
                    let n = rows * view.from.len();
                    let (dx, dy) = (&mut dx[..n], &dy[..rows * dense.row()]);
                    if let Start::Zero = start {
                        dx.fill(0.0);
                    }
                    if let Kind::Pool(_) = dense.kind {
                        view.for_each_largest((x, &after[0].y[..dy.len()]), &mut |output, pixel| dx[pixel] += dy[output]);
                    } else {
                        let (kernel, room) = columns.split_at_mut(dense.layer.transposed_len());
                        dense.layer.transpose_to(simd, parameters, kernel);
                        view.backward_input(simd, &dense.layer, (kernel, room), dy, dx);
                    }
                    finish.apply(simd, dx, 0, (n, n));
                }
            }
        }
    }
}

/// Writes derivatives to `dx`, or adds them, and applies `finish`.
#[inline(always)]
fn pass_on<S: Simd>(simd: S, dy: &[f32], dx: &mut [f32], (start, finish): (Start<'_>, Finish<'_>)) {
    let n = dy.len();
    let dx = &mut dx[..n];
    match start {
        Start::Sum => dx.iter_mut().zip(dy).for_each(|(dx, dy)| *dx += dy),
        _ => dx.copy_from_slice(dy),
    }
    finish.apply(simd, dx, 0, (n, n));
}

/// The tangent pass, after a forward pass: computes the change of each layer's outputs if the parameters change by `change`. The changes
/// are where the backward pass has derivatives. The layers have no normalisation.
struct Tangent<'a> {
    perceptron: &'a Perceptron,
    parameters: &'a [f32],
    change: &'a [f32],
    layers: Range<usize>,
    tile: &'a mut Tile,
}

impl Kernel for Tangent<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { perceptron, parameters, change, layers, tile } = self;
        let rows = tile.rows;
        for i in layers {
            let dense = &perceptron.layers[i];
            let (before, after) = tile.layers.split_at_mut(i);
            let (x, dx) = dense.reads.map_or((&*tile.input, None), |layer| (&*before[layer].y, Some(&*before[layer].delta)));
            let Activations { y, delta, padded, .. } = &mut after[0];
            let n = rows * dense.row();
            let dy = &mut delta[..n];
            let derivative = if dense.is_hidden { Finish::Derivative(perceptron.activation, y) } else { Finish::Same };
            let finish = if dense.adds.is_some() { Finish::Same } else { derivative };
            match &dense.kind {
                Kind::Dense => {
                    if dense.layer.is_narrow() {
                        dy.fill(0.0); // a narrow layer does not write its padding
                    }
                    dense.layer.tangent(simd, (parameters, change), rows, (x, dx), dy, finish);
                }
                Kind::Convolution(view) => {
                    // dy = f'(y) (x dW + db + dx W), as of a dense layer
                    let (kernel, bias) = (dense.layer.kernel(change), dense.layer.start(change));
                    let first = if dx.is_some() { Finish::Same } else { finish };
                    view.forward(simd, kernel, dense.images(rows, x, padded), dy, (bias, first));
                    if let Some(dx) = dx {
                        view.forward(simd, dense.layer.kernel(parameters), dense.images(rows, dx, padded), dy, (Start::Sum, finish));
                        dense.images(rows, x, padded); // the backward pass reads it again
                    }
                }
                Kind::Pool(view) => {
                    dy.fill(0.0);
                    let dx = dx.unwrap_or_default();
                    view.for_each_largest((x, &y[..n]), &mut |output, pixel| dy[output] = dx[pixel]);
                    finish.apply(simd, dy, 0, (n, n));
                }
                Kind::Cell(_) => panic!("the tangent pass: expected a network without a recurrent cell"),
                Kind::Same => {
                    match dx {
                        Some(dx) => dy.copy_from_slice(&dx[..n]),
                        None => dy.fill(0.0),
                    }
                    finish.apply(simd, dy, 0, (n, n));
                }
            }
            if let Some(other) = dense.adds {
                dy.iter_mut().zip(&*before[other].delta).for_each(|(dy, dx)| *dy += dx);
                derivative.apply(simd, dy, 0, (n, n));
            }
        }
    }
}
