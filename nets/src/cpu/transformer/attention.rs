//! Causal attention of one sequence: softmax(Q K' / sqrt d) V for every head, forward and backward.
//!
//! The outputs for a token depend only on its sequence up to this token: every product adds in order, and masked positions have probability
//! exactly 0. A token therefore gets the same bits if it is computed alone, with a cache of earlier tokens, or in the middle of a batch.

use super::layout::Layout;
use super::rows::dot;
use crate::cpu::layer::padded;
use crate::cpu::product::{Product, Start, product};
use gradus_base::math::exp_inline;
use gradus_base::simd::Simd;
use gradus_base::simd::{max16, sum16};

/// Consecutive tokens of a sequence: rows `first .. first + new` of a tile. They follow `before` tokens, which are cached or are in the
/// same tile, from row `shared` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub first: usize,
    pub new: usize,
    pub before: usize,
    pub shared: usize,
    /// Position of the span's first attention probability.
    pub probabilities: usize,
}

impl Span {
    pub fn length(&self) -> usize {
        self.before + self.new
    }

    /// Numbers per row of probabilities.
    pub fn stride(&self) -> usize {
        padded(self.length())
    }

    /// The row of the sequence's token number `place`, if the whole sequence is in the tile.
    pub fn row(&self, place: usize) -> usize {
        if place < self.before { self.shared + place } else { self.first + place - self.before }
    }

    /// Returns two pairs of a first row and a number of tokens: the first for the earlier tokens, the second for the new tokens.
    fn parts(&self) -> [(usize, usize); 2] {
        [(self.shared, self.before), (self.first, self.new)]
    }
}

/// What all spans need in a pass through a layer. Keys are stored by dimension (width x tokens), values by token.
#[derive(Clone, Copy)]
pub(super) struct Attention<'a, S> {
    pub simd: S,
    pub layout: &'a Layout,
    pub qkv: &'a [f32],
}

/// Writes the keys (part 1) or values (part 2) of the tokens of `span` and of the tokens before it as columns, followed by zeros.
#[inline(always)]
pub(super) fn as_columns<S: Simd>(simd: S, layout: &Layout, qkv: &[f32], part: usize, span: Span, columns: &mut [f32]) {
    let (w, row_width, stride) = (layout.kv_width(), layout.qkv_width(), span.stride());
    let part = layout.query_width() + (part - 1) * w;
    for first in (0..span.length()).step_by(16) {
        for number in (0..w).step_by(16) {
            let mut square = [[0.0; 16]; 16];
            for (row, place) in square.iter_mut().zip(first..span.length()) {
                let at = span.row(place) * row_width + part + number;
                row.copy_from_slice(&qkv[at..at + 16]);
            }
            simd.transpose(&mut square);
            for (i, column) in square.iter().enumerate() {
                let at = (number + i) * stride + first;
                columns[at..at + 16].copy_from_slice(column);
            }
        }
    }
}

/// Appends the keys of the new tokens of `span` as columns. Later columns keep their values, which the causal mask hides.
#[inline(always)]
pub(super) fn append_columns(layout: &Layout, qkv: &[f32], span: Span, columns: &mut [f32], stride: usize) {
    for token in 0..span.new {
        let row = &qkv[(span.first + token) * layout.qkv_width() + layout.query_width()..][..layout.kv_width()];
        for (number, x) in row.iter().enumerate() {
            columns[number * stride + span.before + token] = *x;
        }
    }
}

/// Turns the scores of a row into probabilities; positions after `last` get 0.
#[inline(always)]
fn softmax(scores: &mut [f32], last: usize, scale: f32) {
    scores[last + 1..].fill(f32::NEG_INFINITY);
    let (seen, hidden) = scores.as_chunks_mut::<16>().0.split_at_mut(last / 16 + 1);
    hidden.as_flattened_mut().fill(0.0);
    let (mut max, mut sum) = ([f32::NEG_INFINITY; 16], [0.0; 16]);
    for s in seen.iter_mut() {
        for i in 0..16 {
            s[i] *= scale;
            max[i] = if s[i] > max[i] { s[i] } else { max[i] };
        }
    }
    let max = max16(max);
    for s in seen.iter_mut() {
        for i in 0..16 {
            s[i] = exp_inline(s[i] - max);
            sum[i] += s[i];
        }
    }
    let sum = sum16(sum);
    seen.as_flattened_mut().iter_mut().for_each(|p| *p /= sum);
}

impl<S: Simd> Attention<'_, S> {
    fn scale(&self) -> f32 {
        1.0 / (self.layout.head_width as f32).sqrt()
    }

    /// Computes the outputs of all heads for the tokens of `span`. The values of the sequence are in two pieces, each with its number of
    /// tokens. Their rows are `value_stride` numbers apart.
    #[inline(always)]
    pub fn forward(
        &self,
        span: Span,
        (keys, key_stride): (&[f32], usize),
        (values, value_stride): ([(&[f32], usize); 2], usize),
        probabilities: &mut [f32],
        out: &mut [f32],
    ) {
        let (w, row_width) = (self.layout.query_width(), self.layout.qkv_width());
        let (d, stride, scale) = (self.layout.head_width, span.stride(), self.scale());
        for head in 0..self.layout.heads {
            let shared = head / self.layout.sharing();
            let p = &mut probabilities[span.probabilities + head * span.new * stride..][..span.new * stride];
            product(
                self.simd,
                Product {
                    m: span.new,
                    n: stride,
                    k: d,
                    a: &self.qkv[span.first * row_width + head * d..],
                    a_strides: (row_width, 1),
                    b: &keys[shared * d * key_stride..],
                    b_stride: key_stride,
                    c: p,
                    c_stride: stride,
                    start: Start::Zero,
                },
            );
            for (i, row) in p.chunks_exact_mut(stride).enumerate() {
                softmax(row, span.before + i, scale);
            }
            let (mut place, mut start) = (0, Start::Zero);
            for (values, tokens) in values.into_iter().filter(|(_, tokens)| *tokens > 0) {
                product(
                    self.simd,
                    Product {
                        m: span.new,
                        n: d,
                        k: tokens,
                        a: &p[place..],
                        a_strides: (stride, 1),
                        b: &values[shared * d..],
                        b_stride: value_stride,
                        c: &mut out[span.first * w + head * d..],
                        c_stride: w,
                        start,
                    },
                );
                (place, start) = (place + tokens, Start::Sum);
            }
        }
    }

    /// Computes the derivatives with respect to queries, keys and values from those with respect to the outputs. The derivatives of shared
    /// tokens are added, so the span that computes the shared tokens must be processed first. `scratch` holds the values by dimension,
    /// and the derivatives with respect to the scores of a head.
    #[inline(always)]
    pub fn backward(&self, span: Span, probabilities: &[f32], d_out: &[f32], d_qkv: &mut [f32], scratch: &mut [f32]) {
        let (w, keys, row_width) = (self.layout.query_width(), self.layout.kv_width(), self.layout.qkv_width());
        let (d, t, stride) = (self.layout.head_width, span.new, span.stride());
        let (values, d_scores) = scratch.split_at_mut(keys * stride);
        as_columns(self.simd, self.layout, self.qkv, 2, span, values);
        let d_scores = &mut d_scores[..t * stride];
        let (queries, scale) = (span.first * row_width, self.scale());
        for head in 0..self.layout.heads {
            let p = &probabilities[span.probabilities + head * t * stride..][..t * stride];
            let d_o = &d_out[span.first * w + head * d..];
            let query = queries + head * d;
            let shared = head / self.layout.sharing();
            // the first of the heads that share keys and values sets their derivatives, the others add to them
            let is_first = head.is_multiple_of(self.layout.sharing());
            // dP = dO V', and dS = P (dP - P . dP) / sqrt d
            self.product(
                Shape { m: t, n: stride, k: d },
                (d_o, (w, 1)),
                (&values[shared * d * stride..], stride),
                (d_scores, stride),
                Start::Zero,
            );
            for (p, ds) in p.chunks_exact(stride).zip(d_scores.chunks_exact_mut(stride)) {
                let along = dot(p, ds);
                for (ds, p) in ds.iter_mut().zip(p) {
                    *ds = p * (*ds - along) * scale;
                }
            }
            let (mut place, mut of_query) = (0, Start::Zero);
            for (i, (row, tokens)) in span.parts().into_iter().enumerate().filter(|(_, (_, tokens))| *tokens > 0) {
                let key = row * row_width + w + shared * d;
                let value = key + keys;
                let of_token = if i == 0 || !is_first { Start::Sum } else { Start::Zero };
                let (p, d_scores) = (&p[place..], &d_scores[place..]);
                // dV = P' dO, dK = dS' Q, dQ = dS K
                self.product(Shape { m: tokens, n: d, k: t }, (p, (1, stride)), (d_o, w), (&mut d_qkv[value..], row_width), of_token);
                self.product(
                    Shape { m: tokens, n: d, k: t },
                    (d_scores, (1, stride)),
                    (&self.qkv[query..], row_width),
                    (&mut d_qkv[key..], row_width),
                    of_token,
                );
                self.product(
                    Shape { m: t, n: d, k: tokens },
                    (d_scores, (stride, 1)),
                    (&self.qkv[key..], row_width),
                    (&mut d_qkv[query..], row_width),
                    of_query,
                );
                (place, of_query) = (place + tokens, Start::Sum);
            }
        }
    }

    /// Computes C = start + A B.
    #[inline(always)]
    fn product(
        &self,
        Shape { m, n, k }: Shape,
        (a, a_strides): (&[f32], (usize, usize)),
        (b, b_stride): (&[f32], usize),
        (c, c_stride): (&mut [f32], usize),
        start: Start<'_>,
    ) {
        product(self.simd, Product { m, n, k, a, a_strides, b, b_stride, c, c_stride, start });
    }
}

/// The sizes of a product of an m x k and a k x n matrix.
struct Shape {
    m: usize,
    n: usize,
    k: usize,
}
