//! The passes of a tile through some layers of a perceptron: forward, backward and tangent.

use std::ops::Range;

use super::super::layer::Part;
use super::super::product::{Finish, Start};
use super::super::update::squares;
use super::tile::{Activations, Tile};
use super::{Dense, Perceptron};
use gradus_base::simd::{Kernel, Level, Simd, dispatch, sum16};

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
        let Tile { input, layers, columns, rows, d_input, .. } = tile;
        let rows = *rows;
        for i in range.clone().rev() {
            let dense = &perceptron.layers[i];
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
            let dy = after[0].d_linear();
            if let Some(GradientOf { gradient, start }) = &mut gradient {
                let x = dense.reads.map_or(&**input, |layer| &*before[layer].y);
                dense.layer.backward_parameters(simd, rows, x, dy, gradient, *start);
            }
            let (dx, start, finish) = match dense.reads {
                None if !to_input => continue,
                None => (&mut *d_input, Start::Zero, Finish::Same),
                Some(read) if !range.contains(&read) => (&mut before[read].delta, Start::Zero, Finish::Same),
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
            if dense.layer.is_narrow() || dense.layer.transposed.is_some() {
                dense.layer.backward_input(simd, (parameters, transposed), rows, dy, dx, (start, finish));
            } else {
                dense.layer.backward_input_by_columns(simd, (parameters, columns), rows, dy, dx, (start, finish));
            }
        }
    }
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
        for i in layers {
            let dense = &perceptron.layers[i];
            let (before, after) = tile.layers.split_at_mut(i);
            let (x, dx) = dense.reads.map_or((&*tile.input, None), |layer| (&*before[layer].y, Some(&*before[layer].delta)));
            let Activations { y, delta, .. } = &mut after[0];
            let dy = &mut delta[..tile.rows * dense.stride()];
            if dense.layer.is_narrow() {
                dy.fill(0.0); // a narrow layer does not write its padding
            }
            let derivative = if dense.is_hidden { Finish::Derivative(perceptron.activation, y) } else { Finish::Same };
            dense.layer.tangent(simd, (parameters, change), tile.rows, (x, dx), dy, derivative);
        }
    }
}
