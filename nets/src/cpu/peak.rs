//! The peak floating-point rate of one core, measured with f32 multiply-adds; other speeds are compared with it.

use std::hint::black_box;
use std::time::Instant;

use gradus_base::simd::{Kernel, Level, Simd, dispatch};

use super::product::{Product, Start, product};

/// Number of independent chains of multiply-adds. It is at least latency x execution units, and at most the number of registers.
const CHAINS: usize = 12;

struct Chains(usize);

impl Kernel for Chains {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> f64 {
        let (a, b) = (S::splat(black_box(0.999)), S::splat(black_box(0.001)));
        let mut chains = [S::splat(0.5); CHAINS];
        for _ in 0..self.0 {
            for chain in &mut chains {
                *chain = S::fma(*chain, a, b);
            }
        }
        black_box(chains);
        (self.0 * CHAINS * S::LANES * 2) as f64
    }
}

/// Measures how many floating-point operations per second one core performs with f32 multiply-adds and no memory access. A multiply-add
/// counts as two operations. This takes about a millisecond.
pub fn multiply_rate() -> f64 {
    let began = Instant::now();
    let operations = dispatch(Level::best(), Chains(black_box(300_000)));
    operations / began.elapsed().as_secs_f64()
}

/// The shape of a product C = A B: C has `m` rows and `n` columns, and each element adds `k` products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C, a multiple of 16.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Whether A is read by its columns, as the gradient of weights reads a layer's inputs.
    pub transposed: bool,
}

/// A product of one shape, to be measured again and again.
pub struct Measured {
    shape: Shape,
    a: Vec<f32>,
    b: Vec<f32>,
    c: Vec<f32>,
}

/// So many products.
struct Products<'a>(&'a mut Measured, usize);

impl Kernel for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(Measured { shape: Shape { m, n, k, transposed }, a, b, c }, times) = self;
        let (m, n, k) = (*m, *n, *k);
        let a_strides = if *transposed { (1, m) } else { (k, 1) };
        for _ in 0..times {
            product(simd, Product { m, n, k, a, a_strides, b, b_stride: n, c, c_stride: n, start: Start::Zero });
        }
    }
}

impl Measured {
    /// Makes the matrices of a shape.
    pub fn new(shape: Shape) -> Self {
        let Shape { m, n, k, .. } = shape;
        Self { shape, a: vec![0.5; m * k], b: vec![0.5; k * n], c: vec![0.0; m * n] }
    }

    /// Measures how many floating-point operations per second one core performs in products of this shape. A multiply-add counts as two. This takes about a millisecond.
    pub fn rate(&mut self) -> f64 {
        let Shape { m, n, k, .. } = self.shape;
        let operations = (2 * m * n * k) as f64;
        let times = (1e8 / operations).ceil() as usize;
        let began = Instant::now();
        dispatch(Level::best(), Products(self, black_box(times)));
        let seconds = began.elapsed().as_secs_f64();
        black_box(&mut self.c);
        times as f64 * operations / seconds
    }
}
