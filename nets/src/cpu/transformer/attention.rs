//! Causal attention of one sequence: softmax(Q K' / sqrt d) V for every head, forward and backward.
//!
//! A row's numbers do not depend on how many rows come with it or after it: every product adds in order, and what the mask hides has
//! probability exactly 0. So a token gets the same bits alone, with a cache of what came before, and in the middle of a batch.

use super::layout::Layout;
use super::rows::dot;
use crate::cpu::layer::padded;
use crate::cpu::product::{Product, Start};
use crate::cpu::simd::Simd;
use crate::math::{exp_inline, sum16};

/// Some tokens of a sequence that stand together: rows `first .. first + new` of a tile, behind `before` tokens that are known already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub first: usize,
    pub new: usize,
    pub before: usize,
    /// Where its probabilities lie.
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
}

/// What all spans of a layer share. Keys are by number (width x tokens), values by token.
#[derive(Clone, Copy)]
pub(super) struct Attention<'a, S> {
    pub simd: S,
    pub layout: &'a Layout,
    pub qkv: &'a [f32],
}

/// The keys (part 1) or values (part 2) of the tokens of `span` as columns, behind those that are known already; zeros follow.
#[inline(always)]
pub(super) fn as_columns(layout: &Layout, qkv: &[f32], part: usize, span: Span, columns: &mut [f32], stride: usize) {
    let w = layout.width;
    for token in 0..span.new {
        let row = &qkv[(span.first + token) * 3 * w + part * w..][..w];
        for (number, x) in row.iter().enumerate() {
            columns[number * stride + span.before + token] = *x;
        }
    }
    if span.length() < span.stride() {
        for row in columns.chunks_exact_mut(stride).take(w) {
            row[span.length()..span.stride()].fill(0.0);
        }
    }
}

/// Turns the scores of a row into probabilities: those up to place `last`, the others 0.
#[inline(always)]
fn softmax(scores: &mut [f32], last: usize, scale: f32) {
    let (seen, hidden) = scores.split_at_mut(last + 1);
    hidden.fill(0.0);
    let mut max = f32::NEG_INFINITY;
    for s in seen.iter_mut() {
        *s *= scale;
        max = if *s > max { *s } else { max };
    }
    seen.iter_mut().for_each(|s| *s = exp_inline(*s - max));
    // with the zeros of the hidden ones, so that the sum's order depends on places alone
    let mut lanes = [0.0_f32; 16];
    for chunk in scores.as_chunks::<16>().0 {
        for i in 0..16 {
            lanes[i] += chunk[i];
        }
    }
    let sum = sum16(lanes);
    scores[..=last].iter_mut().for_each(|p| *p /= sum);
}

impl<S: Simd> Attention<'_, S> {
    fn scale(&self) -> f32 {
        1.0 / (self.layout.head_width() as f32).sqrt()
    }

    /// The outputs of all heads for the tokens of `span`.
    #[inline(always)]
    pub fn forward(
        &self,
        span: Span,
        (keys, key_stride): (&[f32], usize),
        (values, value_stride): (&[f32], usize),
        probabilities: &mut [f32],
        out: &mut [f32],
    ) {
        let (w, d, stride) = (self.layout.width, self.layout.head_width(), span.stride());
        for head in 0..self.layout.heads {
            let p = &mut probabilities[span.probabilities + head * span.new * stride..][..span.new * stride];
            self.simd.product(Product {
                m: span.new,
                n: stride,
                k: d,
                a: &self.qkv[span.first * 3 * w + head * d..],
                a_strides: (3 * w, 1),
                b: &keys[head * d * key_stride..],
                b_stride: key_stride,
                c: p,
                c_stride: stride,
                start: Start::Zero,
            });
            for (i, row) in p.chunks_exact_mut(stride).enumerate() {
                softmax(row, span.before + i, self.scale());
            }
            self.simd.product(Product {
                m: span.new,
                n: d,
                k: span.length(),
                a: p,
                a_strides: (stride, 1),
                b: &values[head * d..],
                b_stride: value_stride,
                c: &mut out[span.first * w + head * d..],
                c_stride: w,
                start: Start::Zero,
            });
        }
    }

    /// The derivatives with respect to queries, keys and values of a whole sequence, given those with respect to the outputs. `scratch` has
    /// room for the values by number and for a head's scores.
    #[inline(always)]
    pub fn backward(&self, span: Span, probabilities: &[f32], d_out: &[f32], d_qkv: &mut [f32], scratch: &mut [f32]) {
        let (w, d, t, stride) = (self.layout.width, self.layout.head_width(), span.new, span.stride());
        let (values, d_scores) = scratch.split_at_mut(w * stride);
        as_columns(self.layout, self.qkv, 2, span, values, stride);
        let d_scores = &mut d_scores[..t * stride];
        let rows = span.first * 3 * w;
        for head in 0..self.layout.heads {
            let p = &probabilities[span.probabilities + head * t * stride..][..t * stride];
            let d_o = &d_out[span.first * w + head * d..];
            let (query, key, value) = (rows + head * d, rows + w + head * d, rows + 2 * w + head * d);
            // dV = P' dO
            self.product((t, d, t), (p, (1, stride)), (d_o, w), (&mut d_qkv[value..], 3 * w));
            // dP = dO V', and dS = P (dP - P . dP) / sqrt d
            self.product((t, stride, d), (d_o, (w, 1)), (&values[head * d * stride..], stride), (d_scores, stride));
            for (p, ds) in p.chunks_exact(stride).zip(d_scores.chunks_exact_mut(stride)) {
                let along = dot(p, ds);
                for (ds, p) in ds.iter_mut().zip(p) {
                    *ds = p * (*ds - along) * self.scale();
                }
            }
            // dQ = dS K, dK = dS' Q
            self.product((t, d, t), (d_scores, (stride, 1)), (&self.qkv[key..], 3 * w), (&mut d_qkv[query..], 3 * w));
            self.product((t, d, t), (d_scores, (1, stride)), (&self.qkv[query..], 3 * w), (&mut d_qkv[key..], 3 * w));
        }
    }

    /// C = A B, for (m, n, k).
    #[inline(always)]
    fn product(
        &self,
        (m, n, k): (usize, usize, usize),
        (a, a_strides): (&[f32], (usize, usize)),
        (b, b_stride): (&[f32], usize),
        (c, c_stride): (&mut [f32], usize),
    ) {
        self.simd.product(Product { m, n, k, a, a_strides, b, b_stride, c, c_stride, start: Start::Zero });
    }
}
