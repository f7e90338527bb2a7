//! The matrix product that all passes use.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::ops::Range;

use crate::Activation;
use gradus_base::math::tanh_inline;
use gradus_base::simd::{Kernel, Level, Simd};

/// The initial value of a product.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    /// 0: C = A B.
    Zero,
    /// This row, for every row of C: C = row + A B.
    Row(&'a [f32]),
    /// The current value: C += A B.
    Sum,
}

/// The function of every element of C at the end of a product.
#[derive(Clone, Copy)]
pub enum Finish<'a> {
    /// The element itself.
    Same,
    /// f(c).
    Activation(Activation),
    /// c f'(y), computed from h = f(y). The numbers h are laid out like C.
    Derivative(Activation, &'a [f32]),
}

impl Finish<'_> {
    /// Applies the function to rows of C: to the first `width` of every `stride` numbers, `width` a multiple of 16. `c` begins at index `at`
    /// of C.
    #[inline(always)]
    pub fn apply<S: Simd>(self, simd: S, c: &mut [f32], at: usize, (stride, width): (usize, usize)) {
        if !c.is_empty() && !matches!(self, Finish::Same) {
            simd.call(Applied { finish: self, c, at, stride, width });
        }
    }
}

/// What [`Finish::apply`] does. All kernels share it.
struct Applied<'a> {
    finish: Finish<'a>,
    c: &'a mut [f32],
    at: usize,
    stride: usize,
    width: usize,
}

impl Kernel for Applied<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { finish, c, at, stride, width } = self;
        // the function is chosen once, not once per row
        match finish {
            Finish::Same => {}
            Finish::Activation(Activation::Tanh) => {
                for row in c.chunks_mut(stride) {
                    row[..width].iter_mut().for_each(|c| *c = tanh_inline(*c));
                }
            }
            Finish::Activation(Activation::Relu) => {
                for row in c.chunks_mut(stride) {
                    for c in row[..width].chunks_exact_mut(S::LANES) {
                        // SAFETY: the slice is a vector long.
                        unsafe { S::store(c.as_mut_ptr(), S::relu(S::load(c.as_ptr()))) };
                    }
                }
            }
            Finish::Derivative(Activation::Tanh, h) => {
                for (row, h) in c.chunks_mut(stride).zip(h[at..].chunks(stride)) {
                    row[..width].iter_mut().zip(h).for_each(|(c, h)| *c *= (-h).mul_add(*h, 1.0));
                }
            }
            Finish::Derivative(Activation::Relu, h) => {
                for (row, h) in c.chunks_mut(stride).zip(h[at..].chunks(stride)) {
                    for (c, h) in row[..width].chunks_exact_mut(S::LANES).zip(h.chunks_exact(S::LANES)) {
                        // SAFETY: both slices are a vector long.
                        unsafe { S::store(c.as_mut_ptr(), S::where_positive(S::load(c.as_ptr()), S::load(h.as_ptr()))) };
                    }
                }
            }
        }
    }
}

/// C (m x n, n a multiple of 16) = start + A (m x k) B (k x n); every element adds its k products in order.
pub struct Product<'a> {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C, a multiple of 16.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// A.
    pub a: &'a [f32],
    /// Distances between A's rows and between its columns; exchanging the two transposes A.
    pub a_strides: (usize, usize),
    /// B, row by row.
    pub b: &'a [f32],
    /// Distance between B's rows.
    pub b_stride: usize,
    /// C, row by row.
    pub c: &'a mut [f32],
    /// Distance between C's rows.
    pub c_stride: usize,
    /// The initial value of C.
    pub start: Start<'a>,
}

/// Computes a matrix product.
#[inline(always)]
pub fn product<S: Simd>(simd: S, product: Product<'_>) {
    product_then(simd, product, Finish::Same);
}

/// Computes a matrix product, and a function of each of its elements.
#[inline(always)]
pub fn product_then<S: Simd>(simd: S, product: Product<'_>, finish: Finish<'_>) {
    simd.call(Finished(product, finish));
}

/// Positions in a slice, and the largest of them.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    places: &'a [u32],
    largest: usize,
}

impl<'a> Places<'a> {
    /// Some positions.
    pub fn new(places: &'a [u32]) -> Self {
        Self { places, largest: places.iter().copied().max().unwrap_or(0) as usize }
    }

    /// A range of these positions.
    pub fn part(self, range: Range<usize>) -> Self {
        Self { places: &self.places[range], ..self }
    }
}

/// As [`Product`], of a matrix A whose element (i, k) is number `rows[i] + columns[k]` of `a`: the windows of an image, without a copy of them.
pub struct Gathered<'a> {
    /// Columns of B and C, a multiple of 16.
    pub n: usize,
    /// The numbers of A.
    pub a: &'a [f32],
    /// For each row of A and C, a position.
    pub rows: Places<'a>,
    /// For each column of A and row of B, a distance.
    pub columns: Places<'a>,
    /// B, row by row.
    pub b: &'a [f32],
    /// Distance between B's rows.
    pub b_stride: usize,
    /// C, row by row.
    pub c: &'a mut [f32],
    /// Distance between C's rows.
    pub c_stride: usize,
    /// The initial value of C.
    pub start: Start<'a>,
}

/// Computes the product, and a function of each of its elements.
#[inline(always)]
pub fn gathered_then<S: Simd>(simd: S, product: Gathered<'_>, finish: Finish<'_>) {
    simd.call(FinishedGathered(product, finish));
}

/// A gathered product and the function of its elements, which all kernels share.
struct FinishedGathered<'a>(Gathered<'a>, Finish<'a>);

impl Kernel for FinishedGathered<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(Gathered { n, a, rows, columns, b, b_stride, c, c_stride, start }, finish) = self;
        let (m, k) = (rows.places.len(), columns.places.len());
        run(
            simd,
            Left { a, at: Gather { rows, columns } },
            Rest { m, n, k, b: (b.as_ptr(), b.len()), b_stride, c: (c.as_mut_ptr(), c.len()), c_stride, start },
            finish,
        );
    }
}

/// A product and the function of its elements, which all kernels share.
struct Finished<'a>(Product<'a>, Finish<'a>);

impl Kernel for Finished<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(Product { m, n, k, a, a_strides: (row, column), b, b_stride, c, c_stride, start }, finish) = self;
        run(
            simd,
            Left { a, at: Strides { row, column } },
            Rest { m, n, k, b: (b.as_ptr(), b.len()), b_stride, c: (c.as_mut_ptr(), c.len()), c_stride, start },
            finish,
        );
    }
}

/// Where the elements of A are, relative to its beginning.
trait At: Copy {
    /// Whether kernels exist for four vectors of sixteen numbers at once. Fewer kernels take less time to compile.
    const IS_WIDE: bool;

    /// The position of row `row`.
    fn row(&self, row: usize) -> usize;

    /// The distance of column `k` from it.
    ///
    /// # Safety
    /// A has more than `k` columns.
    unsafe fn column(&self, k: usize) -> usize;

    /// A without its first `first` columns, of which there are more.
    fn skip(left: Left<'_, Self>, first: usize) -> Left<'_, Self>;

    /// No position of the first `m` rows and `k` columns, of which there is at least one each, exceeds this one.
    fn last(&self, m: usize, k: usize) -> usize;
}

/// Equal distances.
#[derive(Clone, Copy)]
struct Strides {
    row: usize,
    column: usize,
}

impl At for Strides {
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn row(&self, row: usize) -> usize {
        row * self.row
    }

    #[inline(always)]
    unsafe fn column(&self, k: usize) -> usize {
        k * self.column
    }

    #[inline(always)]
    fn skip(left: Left<'_, Self>, first: usize) -> Left<'_, Self> {
        Left { a: &left.a[first * left.at.column..], ..left }
    }

    #[inline(always)]
    fn last(&self, m: usize, k: usize) -> usize {
        (m - 1) * self.row + (k - 1) * self.column
    }
}

/// Positions from lists.
#[derive(Clone, Copy)]
struct Gather<'a> {
    rows: Places<'a>,
    columns: Places<'a>,
}

impl At for Gather<'_> {
    const IS_WIDE: bool = false;

    #[inline(always)]
    fn row(&self, row: usize) -> usize {
        self.rows.places[row] as usize
    }

    #[inline(always)]
    unsafe fn column(&self, k: usize) -> usize {
        // SAFETY: as the caller promises; an inner loop asks for every column.
        unsafe { *self.columns.places.get_unchecked(k) as usize }
    }

    #[inline(always)]
    fn skip(left: Left<'_, Self>, first: usize) -> Left<'_, Self> {
        let Gather { rows, columns } = left.at;
        Left { at: Gather { rows, columns: columns.part(first..columns.places.len()) }, ..left }
    }

    #[inline(always)]
    fn last(&self, _: usize, _: usize) -> usize {
        self.rows.largest + self.columns.largest
    }
}

/// A.
#[derive(Clone, Copy)]
struct Left<'a, T> {
    a: &'a [f32],
    at: T,
}

/// Everything but A.
#[derive(Clone, Copy)]
struct Rest<'a> {
    m: usize,
    n: usize,
    k: usize,
    /// The beginning of B, and its length.
    b: (*const f32, usize),
    b_stride: usize,
    /// The beginning of C, and its length.
    c: (*mut f32, usize),
    c_stride: usize,
    start: Start<'a>,
}

/// Computes C.
#[inline(always)]
fn run<S: Simd, T: At>(simd: S, left: Left<'_, T>, rest: Rest<'_>, finish: Finish<'_>) {
    // as many rows and vectors as the registers hold; conditions that are constants, so that no instruction set gets another's kernels
    if const { matches!(S::LEVEL, Level::Portable) } {
        blocks::<S, T, 4, 1>(simd, left, rest, finish)
    } else if const { matches!(S::LEVEL, Level::Avx512) && T::IS_WIDE } {
        blocks::<S, T, 6, 4>(simd, left, rest, finish)
    } else {
        blocks::<S, T, 6, 2>(simd, left, rest, finish)
    }
}

/// Computes C in blocks of at most `R` rows and `V` vectors, which stay in registers.
#[inline(always)]
fn blocks<S: Simd, T: At, const R: usize, const V: usize>(simd: S, left: Left<'_, T>, p: Rest<'_>, finish: Finish<'_>) {
    const { assert!(V <= 4 && R <= 6, "kernels exist for at most 4 vectors and 6 rows") };
    if p.m == 0 || p.n == 0 {
        return;
    }
    assert!(p.n.is_multiple_of(16) && p.n <= p.b_stride && p.n <= p.c_stride, "product: n is not a multiple of 16 or exceeds a stride");
    assert!(p.k == 0 || left.at.last(p.m, p.k) < left.a.len(), "product: A is too short");
    assert!(p.k == 0 || (p.k - 1) * p.b_stride + p.n <= p.b.1, "product: B is too short");
    assert!((p.m - 1) * p.c_stride + p.n <= p.c.1, "product: C is too short");
    if let Start::Row(start) = p.start {
        assert!(p.n <= start.len(), "product: the initial row is too short");
    }
    if let Finish::Derivative(_, h) = finish {
        assert!((p.m - 1) * p.c_stride + p.n <= h.len(), "product: the activations are too short");
    }
    let least = if S::LANES == 16 { 2 * PACKED_NUMBERS } else { PACKED_NUMBERS };
    if p.m >= PACKED_ROWS && p.b_stride >= PACKED_STRIDE && p.k * p.b_stride >= least {
        // a function of its own, because the copy is large
        simd.call(Packed::<T, R, V>(left, p, finish));
        return;
    }
    // SAFETY: the assertions above cover every element.
    simd.call(unsafe { Columns::<T, R, V>::new(left, &p, finish, 0..p.n) });
}

/// Columns of B are copied, so that they lie behind each other, if at least this many rows of A read them, if their rows are at least this many numbers apart, and if B has at least
/// this many numbers (with AVX-512 twice as many: a kernel reads four times as many columns at once): rows that are a page apart, or a multiple, need an entry of the page table each, and
/// share a few places of the cache.
const PACKED_ROWS: usize = 8;
const PACKED_STRIDE: usize = 512;
const PACKED_NUMBERS: usize = 1 << 18;
/// Most rows and columns of a copy. What a kernel reads of it fills half of the first-level cache.
const PACK: (usize, usize) = (320, 64);

/// A copy of some rows and columns of B.
#[repr(align(64))]
struct Aligned(MaybeUninit<[f32; PACK.0 * PACK.1]>);

/// A product of copies, as long as [`blocks`] asserts.
struct Packed<'a, T, const R: usize, const V: usize>(Left<'a, T>, Rest<'a>, Finish<'a>);

impl<T: At, const R: usize, const V: usize> Kernel for Packed<'_, T, R, V> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(left, p, finish) = self;
        // SAFETY: the matrices are long enough.
        unsafe { packed::<S, T, R, V>(simd, left, p, finish) };
    }
}

/// # Safety
/// The matrices are as long as [`blocks`] asserts.
#[inline(always)]
unsafe fn packed<S: Simd, T: At, const R: usize, const V: usize>(simd: S, left: Left<'_, T>, p: Rest<'_>, finish: Finish<'_>) {
    let mut copy = Aligned(MaybeUninit::uninit());
    let copy = copy.0.as_mut_ptr().cast::<f32>();
    let most = if S::LANES == 16 { PACK.0 / 2 } else { PACK.0 };
    let most = p.k.div_ceil(p.k.div_ceil(most));
    let mut column = 0;
    while column < p.n {
        let width = PACK.1.min(p.n - column);
        let mut first = 0;
        while first < p.k {
            let k = most.min(p.k - first);
            // the vectors that a kernel reads together lie behind each other
            let together = V * S::LANES;
            let from = p.b.0.wrapping_add(first * p.b_stride + column);
            if width == PACK.1 {
                for row in 0..k {
                    for v in 0..PACK.1 / S::LANES {
                        let (i, at) = (v * S::LANES / together * together, v * S::LANES);
                        // SAFETY: the numbers are inside of B, and k rows of `width` numbers are inside of the copy.
                        unsafe { S::store(copy.add(i * k + row * together + at - i), S::load(from.add(row * p.b_stride + at))) };
                    }
                }
            } else {
                for row in 0..k {
                    for v in 0..width / S::LANES {
                        let at = v * S::LANES;
                        let i = at / together * together;
                        // SAFETY: as above.
                        unsafe {
                            S::store(copy.add(i * k + row * together.min(width - i) + at - i), S::load(from.add(row * p.b_stride + at)))
                        };
                    }
                }
            }
            let start = if first == 0 { p.start } else { Start::Sum };
            let finish = if first + k == p.k { finish } else { Finish::Same };
            let mut i = 0;
            while i < width {
                let n = together.min(width - i);
                // the columns of the copy are those from `column + i` on; C is reached by its pointer
                let b = (copy.wrapping_add(i * k).wrapping_sub(column + i).cast_const(), 0);
                let part = Rest { k, b, b_stride: n, start, ..p };
                // SAFETY: as the caller promises; the copy has k rows.
                simd.call(unsafe { Columns::<T, R, V>::new(T::skip(left, first), &part, finish, column + i..column + i + n) });
                i += n;
            }
            first += k;
        }
        column += width;
    }
}

/// Columns of C. Products with a copy of B and without one share its kernels, which take most of this crate's time to compile.
struct Columns<'a, T, const R: usize, const V: usize> {
    left: Left<'a, T>,
    rest: &'a Rest<'a>,
    finish: Finish<'a>,
    columns: Range<usize>,
}

impl<'a, T: At, const R: usize, const V: usize> Columns<'a, T, R, V> {
    /// # Safety
    /// The matrices are as long as [`blocks`] asserts.
    #[inline(always)]
    unsafe fn new(left: Left<'a, T>, rest: &'a Rest<'a>, finish: Finish<'a>, columns: Range<usize>) -> Self {
        Self { left, rest, finish, columns }
    }
}

impl<T: At, const R: usize, const V: usize> Kernel for Columns<'_, T, R, V> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { left, rest, finish, columns: Range { start: mut column, end } } = self;
        let rest = *rest; // in registers
        while column < end {
            // SAFETY: as `new` asks.
            unsafe { columns::<S, T, R, V>(simd, left, rest, finish, column) };
            column += V * S::LANES;
        }
    }
}

/// Computes `V` vectors of each row of C, or those that are left of them.
///
/// # Safety
/// As for [`Columns::new`].
#[inline(always)]
unsafe fn columns<S: Simd, T: At, const R: usize, const V: usize>(
    simd: S,
    left: Left<'_, T>,
    p: Rest<'_>,
    finish: Finish<'_>,
    column: usize,
) {
    // SAFETY: as the caller promises.
    unsafe {
        match V.min((p.n - column) / S::LANES) {
            4 if const { V >= 4 } => rows::<S, T, R, 4>(simd, left, p, finish, column),
            3 if const { V >= 3 } => rows::<S, T, R, 3>(simd, left, p, finish, column),
            2 if const { V >= 2 } => rows::<S, T, R, 2>(simd, left, p, finish, column),
            // n is a multiple of 16: of vectors of eight numbers, their number is even
            _ if const { V == 1 || S::LANES == 16 } => rows::<S, T, R, 1>(simd, left, p, finish, column),
            _ => unreachable!("a multiple of sixteen numbers"),
        }
    }
}

/// # Safety
/// As for [`columns`], and columns `column .. column + V * LANES` exist.
#[inline(always)]
unsafe fn rows<S: Simd, T: At, const R: usize, const V: usize>(simd: S, left: Left<'_, T>, p: Rest<'_>, finish: Finish<'_>, column: usize) {
    let mut row = 0;
    while row < p.m {
        let rows = R.min(p.m - row);
        // SAFETY: each call stays within rows `row .. row + rows`.
        unsafe {
            match rows {
                6 if const { R >= 6 } => block::<S, T, 6, V>(left, p, finish, row, column),
                5 if const { R >= 5 } => block::<S, T, 5, V>(left, p, finish, row, column),
                4 => block::<S, T, 4, V>(left, p, finish, row, column),
                3 => block::<S, T, 3, V>(left, p, finish, row, column),
                2 => block::<S, T, 2, V>(left, p, finish, row, column),
                _ => block::<S, T, 1, V>(left, p, finish, row, column),
            }
        }
        // tanh needs too many registers to be computed with the product; the first-level cache still holds the block
        if let Finish::Activation(Activation::Tanh) = finish {
            let (at, width) = (row * p.c_stride + column, V * S::LANES);
            // SAFETY: the columns exist in every row, and no other reference to C is in use.
            let block = unsafe { std::slice::from_raw_parts_mut(p.c.0.add(at), (rows - 1) * p.c_stride + width) };
            Applied { finish, c: block, at, stride: p.c_stride, width }.run(simd); // inlined, because the width is a constant
        }
        row += rows;
    }
}

/// # Safety
/// As for [`rows`], and rows `row .. row + R` exist.
#[inline(always)]
unsafe fn block<S: Simd, T: At, const R: usize, const V: usize>(
    Left { a, at }: Left<'_, T>,
    p: Rest<'_>,
    finish: Finish<'_>,
    row: usize,
    column: usize,
) {
    let mut sums = [[S::splat(0.0); V]; R];
    // SAFETY: all offsets are inside the matrices, as the caller promises.
    unsafe {
        let c = p.c.0.add(row * p.c_stride + column);
        match p.start {
            Start::Zero => {}
            Start::Row(start) => {
                for v in 0..V {
                    let vector = S::load(start.as_ptr().add(column + v * S::LANES));
                    for sum in &mut sums {
                        sum[v] = vector;
                    }
                }
            }
            Start::Sum => {
                for (r, sum) in sums.iter_mut().enumerate() {
                    for (v, vector) in sum.iter_mut().enumerate() {
                        *vector = S::load(c.add(r * p.c_stride + v * S::LANES));
                    }
                }
            }
        }
        let rows: [*const f32; R] = std::array::from_fn(|r| a.as_ptr().wrapping_add(at.row(row + r)));
        let mut b = p.b.0.wrapping_add(column);
        for k in 0..p.k {
            let distance = at.column(k);
            let mut vectors = [S::splat(0.0); V];
            for (v, vector) in vectors.iter_mut().enumerate() {
                *vector = S::load(b.add(v * S::LANES));
            }
            for (r, sum) in sums.iter_mut().enumerate() {
                let x = S::splat(*rows[r].wrapping_add(distance));
                for v in 0..V {
                    sum[v] = S::fma(x, vectors[v], sum[v]);
                }
            }
            b = b.wrapping_add(p.b_stride);
        }
        match finish {
            Finish::Same | Finish::Activation(Activation::Tanh) => {}
            Finish::Activation(Activation::Relu) => sums.as_flattened_mut().iter_mut().for_each(|sum| *sum = S::relu(*sum)),
            Finish::Derivative(activation, h) => {
                let h = h.as_ptr().add(row * p.c_stride + column);
                for (r, sum) in sums.iter_mut().enumerate() {
                    for (v, vector) in sum.iter_mut().enumerate() {
                        let h = S::load(h.add(r * p.c_stride + v * S::LANES));
                        *vector = match activation {
                            Activation::Tanh => S::mul(*vector, S::fnma(h, h, S::splat(1.0))),
                            Activation::Relu => S::where_positive(*vector, h),
                        };
                    }
                }
            }
        }
        for (r, sum) in sums.iter().enumerate() {
            for (v, vector) in sum.iter().enumerate() {
                S::store(c.add(r * p.c_stride + v * S::LANES), *vector);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gradus_base::random::{Purpose, Stream};
    use gradus_base::simd::dispatch;

    struct Of<'a>(Product<'a>, Finish<'a>);

    impl Kernel for Of<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            product_then(simd, self.0, self.1);
        }
    }

    /// Every element is the sum of its products in order, by fused multiply-add, whether or not columns of B are copied, with every instruction set.
    #[test]
    fn every_element_adds_its_products_in_order() {
        let mut stream = Stream::new(3, Purpose::Initialisation, 0);
        let mut numbers = |n: usize| (0..n).map(|_| stream.uniform(-1.0, 1.0) as f32).collect::<Vec<f32>>();
        for (m, n, k, b_stride) in [
            (1, 16, 3, 16),
            (3, 80, 700, 600),
            (9, 80, 900, 600),
            (7, 64, 320, 512),
            (25, 144, 1041, 512),
            (6, 48, 0, 512),
            (13, 32, 9, 48),
        ] {
            // the numbers between the columns of C stay as they are
            let c_stride = n + 5;
            let (a, b, c, row) = (numbers(m * k), numbers(k.max(1) * b_stride), numbers(m * c_stride), numbers(n));
            let h: Vec<f32> = numbers(m * c_stride).iter().map(|h| h.max(-0.2)).collect();
            let transposed: Vec<f32> = (0..m * k).map(|i| a[i % m * k + i / m]).collect();
            let derivatives = [Activation::Relu, Activation::Tanh].map(|of| Finish::Derivative(of, &h));
            let functions = [Finish::Same, Finish::Activation(Activation::Relu), Finish::Activation(Activation::Tanh)];
            for start in [Start::Zero, Start::Row(&row), Start::Sum] {
                for finish in functions.into_iter().chain(derivatives) {
                    let mut expected = c.clone();
                    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                        let (at, begin) = (i * c_stride + j, [0.0, row[j], c[i * c_stride + j]]);
                        let begin = match start {
                            Start::Zero => begin[0],
                            Start::Row(_) => begin[1],
                            Start::Sum => begin[2],
                        };
                        let sum = (0..k).fold(begin, |sum, l| a[i * k + l].mul_add(b[l * b_stride + j], sum));
                        expected[at] = finish.of_one(sum, h[at]);
                    }
                    for level in Level::available() {
                        for (a, a_strides) in [(&a, (k, 1)), (&transposed, (1, m))] {
                            let mut found = c.clone();
                            let whole = Product { m, n, k, a, a_strides, b: &b, b_stride, c: &mut found, c_stride, start };
                            dispatch(level, Of(whole, finish));
                            assert_eq!(found, expected, "{m} x {n} x {k}, {level:?}, {a_strides:?}");
                        }
                    }
                }
            }
        }
    }

    impl Finish<'_> {
        fn of_one(self, x: f32, h: f32) -> f32 {
            match self {
                Finish::Same => x,
                Finish::Activation(Activation::Tanh) => tanh_inline(x),
                Finish::Activation(Activation::Relu) => x.max(0.0),
                Finish::Derivative(Activation::Tanh, _) => x * (-h).mul_add(h, 1.0),
                Finish::Derivative(Activation::Relu, _) => {
                    if h > 0.0 {
                        x
                    } else {
                        0.0
                    }
                }
            }
        }
    }
}
