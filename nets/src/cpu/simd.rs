//! Vector instructions, chosen at run time. The kernels' `unsafe` is in this file and in `product.rs`.
#![allow(unsafe_code)]

use super::product::{Product, run};

/// The instruction sets that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the target has; slow where it has no fused multiply-add.
    Portable,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512.
    Avx512,
}

impl Level {
    /// The best that this processor has.
    #[inline]
    pub fn best() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw") && has!("avx2") && has!("fma") {
                return Level::Avx512;
            }
            if has!("avx2") && has!("fma") {
                return Level::Avx2;
            }
        }
        Level::Portable
    }

    /// All that this processor has.
    pub fn available() -> Vec<Self> {
        [Level::Portable, Level::Avx2, Level::Avx512].into_iter().filter(|level| *level <= Level::best()).collect()
    }
}

/// A vector of f32 numbers, and how matrix products are done with it.
pub trait Simd: Copy {
    /// The vector.
    type Vector: Copy;
    /// Numbers in a vector; it divides 16.
    const LANES: usize;

    /// All numbers equal to `x`.
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
    /// A matrix product.
    fn product(self, product: Product<'_>);
}

/// A computation that is compiled once for each instruction set.
pub trait Kernel {
    /// What it returns.
    type Output;
    /// The computation; must be `#[inline(always)]`, and so must all that it calls.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Runs `kernel` with the instruction set `level`, or with the best there is when the processor lacks it.
#[inline]
pub fn dispatch<K: Kernel>(level: Level, kernel: K) -> K::Output {
    match level.min(Level::best()) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `best` has checked that the processor has every feature that the function is compiled for.
        Level::Avx512 => unsafe { x86::with_avx512(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { x86::with_avx2(kernel) },
        _ => kernel.run(Portable),
    }
}

/// Sixteen numbers, left to the compiler.
#[derive(Clone, Copy)]
pub struct Portable;

impl Simd for Portable {
    type Vector = [f32; 16];
    const LANES: usize = 16;

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
    fn product(self, product: Product<'_>) {
        run::<Self, 4, 1>(product);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Kernel, Product, Simd, run};

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
    pub(super) fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx512(()))
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run(Avx2(()))
    }

    /// Exists only inside `with_avx512`, that is on a processor that has these instructions.
    #[derive(Clone, Copy)]
    pub struct Avx512(());

    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
    fn product_avx512(product: Product<'_>) {
        run::<Avx512, 6, 4>(product);
    }

    impl Simd for Avx512 {
        type Vector = __m512;
        const LANES: usize = 16;

        #[inline(always)]
        fn splat(x: f32) -> __m512 {
            // SAFETY: called only by kernels that run on this instruction set.
            unsafe { _mm512_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m512 {
            // SAFETY: the caller's promise; unaligned loads need no alignment.
            unsafe { _mm512_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut f32, vector: __m512) {
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(to, vector) }
        }
        #[inline(always)]
        fn fma(a: __m512, b: __m512, c: __m512) -> __m512 {
            // SAFETY: as in `splat`.
            unsafe { _mm512_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn product(self, product: Product<'_>) {
            // SAFETY: a value of this type exists only where the processor has these instructions.
            unsafe { product_avx512(product) }
        }
    }

    /// Exists only inside `with_avx2`, that is on a processor that has these instructions.
    #[derive(Clone, Copy)]
    pub struct Avx2(());

    #[target_feature(enable = "avx2,fma")]
    fn product_avx2(product: Product<'_>) {
        run::<Avx2, 6, 2>(product);
    }

    impl Simd for Avx2 {
        type Vector = __m256;
        const LANES: usize = 8;

        #[inline(always)]
        fn splat(x: f32) -> __m256 {
            // SAFETY: called only by kernels that run on this instruction set.
            unsafe { _mm256_set1_ps(x) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m256 {
            // SAFETY: the caller's promise; unaligned loads need no alignment.
            unsafe { _mm256_loadu_ps(from) }
        }
        #[inline(always)]
        unsafe fn store(to: *mut f32, vector: __m256) {
            // SAFETY: as above.
            unsafe { _mm256_storeu_ps(to, vector) }
        }
        #[inline(always)]
        fn fma(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: as in `splat`.
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn product(self, product: Product<'_>) {
            // SAFETY: a value of this type exists only where the processor has these instructions.
            unsafe { product_avx2(product) }
        }
    }
}
