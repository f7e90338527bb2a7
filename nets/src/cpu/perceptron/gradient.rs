//! The gradient of the parameters over many tiles: each block of parameters is a sum over the rows of all tiles, in order. No gradient is
//! computed twice and added up afterwards.

use super::super::layer::Part as Slice;
use super::super::product::Start;
use super::super::weights::norm;
use super::{Block, Kind, Part, Perceptron, Tile};
use gradus_base::simd::{Kernel, Level, Simd, dispatch};
use gradus_base::threads;

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
            let (x, dy) = match &dense.kind {
                Kind::Cell(cell) => cell.read_and_derivatives(&own.steps),
                _ => (x, own.d_linear()),
            };
            match &block.part {
                Part::Weights(rows) => {
                    let rows = rows.clone();
                    match &dense.kind {
                        Kind::Convolution(view) => {
                            let (images, dy) = (own.seen(dense, tile.rows, x), &dy[..tile.rows * dense.row()]);
                            view.backward_weights(simd, rows, dense.stride(), (images, dy), gradient, start);
                        }
                        _ => dense.layer.backward_weights(simd, rows, tile.rows, (x, dy), gradient, start),
                    }
                }
                Part::Bias => {
                    let begin = dense.layer.bias;
                    dense.layer.backward_bias(simd, tile.rows * dense.pixels, dy, &mut Slice { numbers: gradient, begin }, start);
                }
                Part::Gains | Part::Shifts => {
                    if matches!(start, Start::Zero) {
                        gradient.fill(0.0);
                    }
                    let rows = own.delta.chunks_exact(dense.stride()).zip(own.normal.chunks_exact(dense.stride()));
                    for (delta, normal) in rows.take(tile.rows * dense.pixels) {
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
