//! The peak floating-point rate of one core, measured with f32 multiply-adds; other speeds are compared with it.

use std::hint::black_box;
use std::time::Instant;

use gradus_base::simd::{Kernel, Level, Simd, dispatch};

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
