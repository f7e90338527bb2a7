//! AVX2 and AVX-512.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{Kernel, Level, Simd, Square};

#[inline(never)]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
pub(super) fn with_avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512(()))
}

#[inline(never)]
#[target_feature(enable = "avx2,fma")]
pub(super) fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2(()))
}

/// Exists only inside `with_avx512`, so only on a processor that has these instructions.
#[derive(Clone, Copy)]
pub struct Avx512(());

impl Simd for Avx512 {
    type Vector = __m512;
    const LANES: usize = 16;
    const LEVEL: Level = Level::Avx512;

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
    fn mul(a: __m512, b: __m512) -> __m512 {
        // SAFETY: as in `splat`.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn fnma(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: as in `splat`.
        unsafe { _mm512_fnmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn relu(x: __m512) -> __m512 {
        // SAFETY: as in `splat`. The maximum is its second number if that is NaN, or if both are 0.
        unsafe { _mm512_max_ps(_mm512_setzero_ps(), x) }
    }
    #[inline(always)]
    fn where_positive(x: __m512, h: __m512) -> __m512 {
        // SAFETY: as in `splat`.
        unsafe { _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(h, _mm512_setzero_ps()), x) }
    }
    #[inline(always)]
    fn call<K: Kernel>(self, part: K) -> K::Output {
        // SAFETY: a value of this type exists only where the processor has these instructions.
        unsafe { with_avx512(part) }
    }
    #[inline(always)]
    fn sums(self, rows: &Square) -> [f32; 16] {
        // SAFETY: as above.
        unsafe { sums_avx512(load_avx512(rows)) }
    }
    #[inline(always)]
    fn dots(self, x: (&[f32], usize), weights: &[f32]) -> [f32; 16] {
        // SAFETY: as above.
        unsafe { dots_avx512(x, weights) }
    }
    #[inline(always)]
    fn transpose(self, square: &mut Square) {
        // SAFETY: as above.
        unsafe { transpose_avx512(square) }
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn load_avx512(square: &Square) -> [__m512; 16] {
    let mut rows = [_mm512_setzero_ps(); 16];
    for (row, numbers) in rows.iter_mut().zip(square) {
        // SAFETY: a row is sixteen numbers long.
        *row = unsafe { _mm512_loadu_ps(numbers.as_ptr()) };
    }
    rows
}

/// Sums the rows in four rounds that halve their length: eight numbers are added to the other eight, and so on.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn sums_avx512(r: [__m512; 16]) -> [f32; 16] {
    let eights = |a, b| {
        let low = _mm512_shuffle_f32x4::<0b01_00_01_00>(a, b);
        _mm512_add_ps(low, _mm512_shuffle_f32x4::<0b11_10_11_10>(a, b))
    };
    let fours = |a, b| {
        let low = _mm512_shuffle_f32x4::<0b10_00_10_00>(a, b);
        _mm512_add_ps(low, _mm512_shuffle_f32x4::<0b11_01_11_01>(a, b))
    };
    let twos = |a, b| {
        let low = _mm512_shuffle_ps::<0b01_00_01_00>(a, b);
        _mm512_add_ps(low, _mm512_shuffle_ps::<0b11_10_11_10>(a, b))
    };
    let ones = |a, b| {
        let low = _mm512_shuffle_ps::<0b10_00_10_00>(a, b);
        _mm512_add_ps(low, _mm512_shuffle_ps::<0b11_01_11_01>(a, b))
    };
    // combines every fourth row from row i on: the last two rounds work within groups of four numbers, and this choice of rows leaves
    // the sums in order
    let quarter = |i: usize| fours(eights(r[i], r[4 + i]), eights(r[8 + i], r[12 + i]));
    let sums = ones(twos(quarter(0), quarter(1)), twos(quarter(2), quarter(3)));
    let mut numbers = [0.0; 16];
    // SAFETY: there is room for sixteen numbers.
    unsafe { _mm512_storeu_ps(numbers.as_mut_ptr(), sums) };
    numbers
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn dots_avx512((x, stride): (&[f32], usize), weights: &[f32]) -> [f32; 16] {
    let width = weights.len();
    assert!(width.is_multiple_of(16) && width <= stride && 16 * stride <= x.len(), "dots: expected sixteen rows of whole vectors");
    let mut parts = [_mm512_setzero_ps(); 16];
    for at in (0..width).step_by(16) {
        // SAFETY: the slices are as long as asserted.
        unsafe {
            let weights = _mm512_loadu_ps(weights.as_ptr().add(at));
            for (row, part) in parts.iter_mut().enumerate() {
                *part = _mm512_fmadd_ps(_mm512_loadu_ps(x.as_ptr().add(row * stride + at)), weights, *part);
            }
        }
    }
    sums_avx512(parts)
}

/// Transposes in four rounds, which exchange blocks of 1, 2, 4 and 8 numbers.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn transpose_avx512(square: &mut Square) {
    let r = load_avx512(square);
    let mut pairs = r;
    for pair in 0..8 {
        let i = 2 * pair;
        pairs[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    let mut fours = r;
    for four in 0..4 {
        for half in 0..2 {
            let i = 4 * four;
            let (a, b) = (_mm512_castps_pd(pairs[i + half]), _mm512_castps_pd(pairs[i + 2 + half]));
            fours[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            fours[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    }
    // row 4 i + j of `fours` holds columns j, 4 + j, 8 + j and 12 + j of rows 4 i to 4 i + 3
    for j in 0..4 {
        let even = _mm512_shuffle_f32x4::<0b10_00_10_00>(fours[j], fours[4 + j]);
        let odd = _mm512_shuffle_f32x4::<0b11_01_11_01>(fours[j], fours[4 + j]);
        let more_even = _mm512_shuffle_f32x4::<0b10_00_10_00>(fours[8 + j], fours[12 + j]);
        let more_odd = _mm512_shuffle_f32x4::<0b11_01_11_01>(fours[8 + j], fours[12 + j]);
        let columns = [
            _mm512_shuffle_f32x4::<0b10_00_10_00>(even, more_even),
            _mm512_shuffle_f32x4::<0b10_00_10_00>(odd, more_odd),
            _mm512_shuffle_f32x4::<0b11_01_11_01>(even, more_even),
            _mm512_shuffle_f32x4::<0b11_01_11_01>(odd, more_odd),
        ];
        for (i, column) in columns.into_iter().enumerate() {
            // SAFETY: a row is sixteen numbers long.
            unsafe { _mm512_storeu_ps(square[4 * i + j].as_mut_ptr(), column) };
        }
    }
}

/// Exists only inside `with_avx2`, so only on a processor that has these instructions.
#[derive(Clone, Copy)]
pub struct Avx2(());

impl Simd for Avx2 {
    type Vector = __m256;
    const LANES: usize = 8;
    const LEVEL: Level = Level::Avx2;

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
    fn mul(a: __m256, b: __m256) -> __m256 {
        // SAFETY: as in `splat`.
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn fnma(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: as in `splat`.
        unsafe { _mm256_fnmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn relu(x: __m256) -> __m256 {
        // SAFETY: as in `splat`. The maximum is its second number if that is NaN, or if both are 0.
        unsafe { _mm256_max_ps(_mm256_setzero_ps(), x) }
    }
    #[inline(always)]
    fn where_positive(x: __m256, h: __m256) -> __m256 {
        // SAFETY: as in `splat`.
        unsafe { _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(h, _mm256_setzero_ps()), x) }
    }
    #[inline(always)]
    fn sums(self, rows: &Square) -> [f32; 16] {
        // SAFETY: as in `splat`.
        unsafe { sums_avx2(rows) }
    }
    #[inline(always)]
    fn call<K: Kernel>(self, part: K) -> K::Output {
        // SAFETY: a value of this type exists only where the processor has these instructions.
        unsafe { with_avx2(part) }
    }
}

/// Adds up four times: numbers that are eight positions apart, then four, two and one, each time for twice as many rows at once.
#[inline]
#[target_feature(enable = "avx2,fma")]
fn sums_avx2(rows: &Square) -> [f32; 16] {
    let eights = |i: usize| {
        // SAFETY: a row is sixteen numbers long.
        unsafe { _mm256_add_ps(_mm256_loadu_ps(rows[i].as_ptr()), _mm256_loadu_ps(rows[i].as_ptr().add(8))) }
    };
    let fours = |i: usize, j: usize| {
        let (a, b) = (eights(i), eights(j));
        _mm256_add_ps(_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b))
    };
    let twos = |a, b| _mm256_add_ps(_mm256_shuffle_ps::<0b01_00_01_00>(a, b), _mm256_shuffle_ps::<0b11_10_11_10>(a, b));
    let ones = |a, b| _mm256_add_ps(_mm256_shuffle_ps::<0b10_00_10_00>(a, b), _mm256_shuffle_ps::<0b11_01_11_01>(a, b));
    let mut numbers = [0.0; 16];
    for first in [0, 8] {
        // the halves of a vector are four rows apart
        let pair = |i: usize| fours(first + i, first + i + 4);
        let sums = ones(twos(pair(0), pair(1)), twos(pair(2), pair(3)));
        // SAFETY: there is room for eight numbers.
        unsafe { _mm256_storeu_ps(numbers.as_mut_ptr().add(first), sums) };
    }
    numbers
}
