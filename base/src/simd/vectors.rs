//! Vectors of f32 numbers, and sums of their lanes.
#![allow(unsafe_code)]

use super::{Kernel, Level};

/// A vector of f32 numbers and the operations of the kernels.
pub trait Simd: Copy {
    /// The vector.
    type Vector: Copy;
    /// Numbers in a vector; divides 16.
    const LANES: usize;
    /// The instruction set.
    const LEVEL: Level;

    /// Returns a vector with all numbers equal to `x`.
    fn splat(x: f32) -> Self::Vector;
    /// Reads a vector.
    ///
    /// # Safety
    /// `LANES` numbers can be read from `from`.
    unsafe fn load(from: *const f32) -> Self::Vector;
    /// Writes a vector.
    ///
    /// # Safety
    /// `LANES` numbers can be written to `to`.
    unsafe fn store(to: *mut f32, vector: Self::Vector);
    /// a x b + c, rounded once.
    fn fma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// a x b.
    fn mul(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// c - a x b, rounded once.
    fn fnma(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// x, or 0 where x is below 0.
    fn relu(x: Self::Vector) -> Self::Vector;
    /// x where h is above 0, otherwise 0.
    fn where_positive(x: Self::Vector, h: Self::Vector) -> Self::Vector;
    /// Runs a part of a kernel that several kernels share. The part is compiled once per instruction set, not once per caller.
    fn call<K: Kernel>(self, part: K) -> K::Output;
    /// Returns [`sum16`] of every row.
    #[inline(always)]
    fn sums(self, rows: &Square) -> [f32; 16] {
        rows.map(sum16)
    }
    /// Returns the dot products of sixteen rows of x, which come with the distance between them, with one row of weights. A dot product has sixteen partial sums
    /// by fused multiply-add, which are added as by [`sums`](Simd::sums).
    #[inline(always)]
    fn dots(self, (x, stride): (&[f32], usize), weights: &[f32]) -> [f32; 16] {
        let mut parts: Square = [[0.0; 16]; 16];
        for (parts, x) in parts.iter_mut().zip(x.chunks_exact(stride)) {
            let mut sums = [0.0; 16]; // in registers
            for (x, weights) in x.as_chunks::<16>().0.iter().zip(weights.as_chunks::<16>().0) {
                for i in 0..16 {
                    sums[i] = x[i].mul_add(weights[i], sums[i]);
                }
            }
            *parts = sums;
        }
        self.sums(&parts)
    }
    /// Exchanges rows and columns.
    #[inline(always)]
    fn transpose(self, square: &mut Square) {
        let rows = *square;
        for (i, row) in square.iter_mut().enumerate() {
            for (j, number) in row.iter_mut().enumerate() {
                *number = rows[j][i];
            }
        }
    }
}

/// Sixteen rows of sixteen numbers.
pub type Square = [[f32; 16]; 16];

/// The largest of sixteen numbers.
#[inline(always)]
pub fn max16(mut lanes: [f32; 16]) -> f32 {
    let mut half = 8;
    while half > 0 {
        for i in 0..half {
            lanes[i] = if lanes[i + half] > lanes[i] { lanes[i + half] } else { lanes[i] };
        }
        half /= 2;
    }
    lanes[0]
}

/// Sums sixteen numbers as a tree: adds numbers that are eight positions apart, then four, two and one.
#[inline(always)]
pub fn sum16(mut lanes: [f32; 16]) -> f32 {
    let mut half = 8;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// Returns the numbers of one lane, from columns of the numbers of many. (`std::array::from_fn` and `map` are functions of the standard
/// library that the compiler does not always put into their caller; a loop over lanes that calls a function has no vector instructions.)
#[inline(always)]
#[allow(clippy::needless_range_loop)] // `zip` is such a function, too
pub fn of_lane<T: Copy + Default, const N: usize, const L: usize>(columns: &[[T; L]; N], lane: usize) -> [T; N] {
    let mut numbers = [T::default(); N];
    for i in 0..N {
        numbers[i] = columns[i][lane];
    }
    numbers
}

/// Arrays of sixteen numbers. The compiler turns the operations on them into vector instructions.
#[derive(Clone, Copy)]
pub struct Portable;

impl Simd for Portable {
    type Vector = [f32; 16];
    const LANES: usize = 16;
    const LEVEL: Level = Level::Portable;

    #[inline(always)]
    fn splat(x: f32) -> [f32; 16] {
        [x; 16]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 16] {
        // SAFETY: the caller's promise; an array of f32 has the alignment of f32.
        unsafe { from.cast::<[f32; 16]>().read() }
    }
    #[inline(always)]
    unsafe fn store(to: *mut f32, vector: [f32; 16]) {
        // SAFETY: as above.
        unsafe { to.cast::<[f32; 16]>().write(vector) }
    }
    #[inline(always)]
    fn fma(a: [f32; 16], b: [f32; 16], c: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn mul(a: [f32; 16], b: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn fnma(a: [f32; 16], b: [f32; 16], c: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| (-a[i]).mul_add(b[i], c[i]))
    }
    #[inline(always)]
    fn relu(x: [f32; 16]) -> [f32; 16] {
        x.map(|x| if x < 0.0 { 0.0 } else { x })
    }
    #[inline(always)]
    fn where_positive(x: [f32; 16], h: [f32; 16]) -> [f32; 16] {
        std::array::from_fn(|i| if h[i] > 0.0 { x[i] } else { 0.0 })
    }
    #[inline(never)]
    fn call<K: Kernel>(self, part: K) -> K::Output {
        part.run(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::dispatch;

    struct Transpose(Square);

    impl Kernel for Transpose {
        type Output = Square;
        #[inline(always)]
        fn run<S: Simd>(mut self, simd: S) -> Square {
            simd.transpose(&mut self.0);
            self.0
        }
    }

    #[test]
    fn squares_are_transposed() {
        let square: Square = std::array::from_fn(|i| std::array::from_fn(|j| (16 * i + j) as f32));
        let expected: Square = std::array::from_fn(|i| std::array::from_fn(|j| (16 * j + i) as f32));
        for level in Level::available() {
            assert_eq!(dispatch(level, Transpose(square)), expected, "{level:?}");
        }
    }

    struct RowSums(Square);

    impl Kernel for RowSums {
        type Output = [f32; 16];
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> [f32; 16] {
            simd.sums(&self.0)
        }
    }

    #[test]
    fn row_sums_are_the_same_at_every_level() {
        // the numbers are sines, so that different orders of addition round differently
        let square: Square = std::array::from_fn(|i| std::array::from_fn(|j| ((16 * i + j) as f32).sin()));
        for level in Level::available() {
            assert_eq!(dispatch(level, RowSums(square)), square.map(sum16), "{level:?}");
        }
    }

    struct Rectified([f32; 16], [f32; 16]);

    impl Kernel for Rectified {
        type Output = [[f32; 16]; 2];
        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> [[f32; 16]; 2] {
            let mut numbers = [[0.0; 16]; 2];
            for at in (0..16).step_by(S::LANES) {
                // SAFETY: a vector at `at` is within the sixteen numbers.
                unsafe {
                    let (x, h) = (S::load(self.0.as_ptr().add(at)), S::load(self.1.as_ptr().add(at)));
                    S::store(numbers[0].as_mut_ptr().add(at), S::relu(x));
                    S::store(numbers[1].as_mut_ptr().add(at), S::where_positive(x, h));
                }
            }
            numbers
        }
    }

    #[test]
    fn rectified_numbers_are_the_same_at_every_level() {
        // a NaN stays a NaN, so that a diverged network is noticed
        let special = [f32::NAN, -f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-45, -1e-45];
        let x: [f32; 16] = std::array::from_fn(|i| special[i % 8]);
        let h: [f32; 16] = std::array::from_fn(|i| special[(i + i / 8) % 8]);
        let relu = x.map(|x| if x < 0.0 { 0.0 } else { x }.to_bits());
        let kept: [u32; 16] = std::array::from_fn(|i| if h[i] > 0.0 { x[i] } else { 0.0 }.to_bits());
        for level in Level::available() {
            let [own_relu, own_kept] = dispatch(level, Rectified(x, h)).map(|numbers| numbers.map(f32::to_bits));
            assert_eq!(own_relu, relu, "{level:?}");
            assert_eq!(own_kept, kept, "{level:?}");
        }
    }
}
