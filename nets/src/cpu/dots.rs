//! The dot products of layers that are too narrow for the [product](super::product).
#![allow(unsafe_code)]

use gradus_base::simd::{Simd, Square};

/// The dot products of every row of x with every row of weights; rows are `stride` numbers long, a multiple of 16, and rows of x are `x_stride` numbers apart.
pub struct Dots<'a> {
    /// Rows of x.
    pub rows: usize,
    /// Rows of weights.
    pub outputs: usize,
    /// x, row by row.
    pub x: &'a [f32],
    /// Distance between rows of x.
    pub x_stride: usize,
    /// The weights, row by row.
    pub weights: &'a [f32],
    /// Length of a row.
    pub stride: usize,
}

impl Dots<'_> {
    /// Passes each dot product to `take`, with the two row numbers. A dot product has sixteen strided partial sums by fused multiply-add,
    /// which are added as a tree.
    #[inline(always)]
    pub fn run<S: Simd>(self, simd: S, mut take: impl FnMut(usize, usize, f32)) {
        let Self { rows, outputs, x, x_stride, weights, stride } = self;
        assert!(
            stride.is_multiple_of(16) && stride <= x_stride && rows * x_stride <= x.len() && outputs * stride <= weights.len(),
            "dots: the stride is not a multiple of 16, or a slice is too short"
        );
        // sixteen rows at a time, so that with AVX-512 the weights stay in registers
        let whole = rows / 16 * 16;
        for first in (0..whole).step_by(16) {
            for output in 0..outputs {
                let sums =
                    simd.dots((&x[first * x_stride..(first + 16) * x_stride], x_stride), &weights[output * stride..(output + 1) * stride]);
                sums.into_iter().enumerate().for_each(|(i, sum)| take(first + i, output, sum));
            }
        }
        // of the other rows, sixteen dot products at a time
        let (mut row, mut output) = (whole, 0);
        let mut left = (rows - whole) * outputs;
        while left > 0 {
            let n = left.min(16);
            let mut sums: Square = [[0.0; 16]; 16];
            let first = (row, output);
            for sums in &mut sums[..n] {
                let mut parts = [S::splat(0.0); 2];
                for i in (0..stride).step_by(16) {
                    for (v, part) in parts.iter_mut().enumerate().take(16 / S::LANES) {
                        let at = i + v * S::LANES;
                        // SAFETY: both rows are within the slices, by the assertion above.
                        unsafe {
                            let x = S::load(x.as_ptr().add(row * x_stride + at));
                            *part = S::fma(x, S::load(weights.as_ptr().add(output * stride + at)), *part);
                        }
                    }
                }
                for (v, part) in parts.into_iter().enumerate().take(16 / S::LANES) {
                    // SAFETY: a row of the square holds sixteen numbers.
                    unsafe { S::store(sums.as_mut_ptr().add(v * S::LANES), part) };
                }
                output += 1;
                if output == outputs {
                    (row, output) = (row + 1, 0);
                }
            }
            let (mut row, mut output) = first;
            for sum in &simd.sums(&sums)[..n] {
                take(row, output, *sum);
                output += 1;
                if output == outputs {
                    (row, output) = (row + 1, 0);
                }
            }
            left -= n;
        }
    }
}
