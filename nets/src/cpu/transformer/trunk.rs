//! The layers of a transformer over a tile of tokens, forward and backward.
//!
//! A tile holds spans of several sequences, row after row, without gaps. Each part of a layer reads the residual stream through a norm and
//! adds its output to the stream. Each layer keeps the activations that the backward pass needs.

use super::attention::{Attention, Span, append_columns, as_columns};
use super::layout::{LayerAt, Layout, Linear, TrunkAt};
use super::plan::Sizes;
use super::rows::{activate, activate_backward, norm, norm_backward, rotate};
use crate::cpu::aligned::Aligned;
use crate::cpu::layer::padded;
use crate::cpu::product::{Product, Start, product};
use gradus_base::simd::{Kernel, Simd};

/// The activations of a layer for a tile.
pub(super) struct LayerSpace {
    /// The stream before the layer (`x`) and between its two parts (`mid`).
    x: Aligned,
    mid: Aligned,
    /// The outputs (`n1`, `n2`) and the factors (`f1`, `f2`) of the two norms.
    n1: Aligned,
    n2: Aligned,
    f1: Vec<f32>,
    f2: Vec<f32>,
    qkv: Aligned,
    probabilities: Aligned,
    attended: Aligned,
    up: Aligned,
    hidden: Aligned,
}

/// The activations of a trunk for a tile. Without a backward pass, all layers share one space.
pub(super) struct TrunkSpace {
    pub layers: Vec<LayerSpace>,
    pub stream: Aligned,
    /// Keys by dimension, and temporary numbers of the backward pass.
    scratch: Aligned,
    delta: [Aligned; 3],
}

impl TrunkSpace {
    /// Allocates space for tiles of these sizes; with `backward`, also for the backward pass.
    pub fn new(layout: &Layout, sizes: Sizes, backward: bool) -> Self {
        let Sizes { tokens: rows, probabilities, longest, .. } = sizes;
        let w = layout.width;
        let layers = if backward { layout.policy.layers.len() } else { 1 };
        let numbers = |width: usize| Aligned::zeros(rows * width);
        let layer = |_| LayerSpace {
            x: numbers(w),
            mid: numbers(w),
            n1: numbers(w),
            n2: numbers(w),
            f1: vec![0.0; rows],
            f2: vec![0.0; rows],
            qkv: numbers(3 * w),
            probabilities: Aligned::zeros(probabilities),
            attended: numbers(w),
            up: numbers(layout.ups()),
            hidden: numbers(layout.hidden),
        };
        let widest = layout.ups().max(3 * w);
        Self {
            layers: (0..layers).map(layer).collect(),
            stream: numbers(w),
            scratch: Aligned::zeros(longest * (w + longest)),
            delta: [w, widest, layout.hidden.max(w)].map(|width| numbers(if backward { width } else { 0 })),
        }
    }
}

/// The key-value cache of a sequence: keys by dimension and values by token, for every layer.
pub(super) struct Memory {
    pub keys: Aligned,
    pub values: Aligned,
}

impl Memory {
    pub fn new(layout: &Layout) -> Self {
        let layers = layout.policy.layers.len();
        Self {
            keys: Aligned::zeros(layers * layout.width * padded(layout.context)),
            values: Aligned::zeros(layers * layout.context * layout.width),
        }
    }

    /// Copies the first `tokens` tokens of another cache.
    pub fn copy(&mut self, layout: &Layout, from: &Memory, tokens: usize) {
        let stride = padded(layout.context);
        for (to, from) in self.keys.chunks_exact_mut(stride).zip(from.keys.chunks_exact(stride)) {
            to[..tokens].copy_from_slice(&from[..tokens]);
        }
        let layer = layout.context * layout.width;
        for (to, from) in self.values.chunks_exact_mut(layer).zip(from.values.chunks_exact(layer)) {
            to[..tokens * layout.width].copy_from_slice(&from[..tokens * layout.width]);
        }
    }
}

/// Computes y = start + x W.
#[inline(always)]
pub(super) fn multiply<S: Simd>(simd: S, linear: Linear, parameters: &[f32], rows: usize, x: &[f32], y: &mut [f32], start: Start<'_>) {
    product(
        simd,
        Product {
            m: rows,
            n: linear.outputs,
            k: linear.inputs,
            a: x,
            a_strides: (linear.inputs, 1),
            b: &parameters[linear.at..linear.at + linear.len()],
            b_stride: linear.outputs,
            c: y,
            c_stride: linear.outputs,
            start,
        },
    );
}

/// Computes dW += x' dy and dx = dy W'.
#[inline(always)]
fn multiply_backward<S: Simd>(
    simd: S,
    linear: Linear,
    transposed: &[f32],
    rows: usize,
    (x, dy): (&[f32], &[f32]),
    dx: &mut [f32],
    gradient: &mut [f32],
) {
    product(
        simd,
        Product {
            m: linear.inputs,
            n: linear.outputs,
            k: rows,
            a: x,
            a_strides: (1, linear.inputs),
            b: dy,
            b_stride: linear.outputs,
            c: &mut gradient[linear.at..linear.at + linear.len()],
            c_stride: linear.outputs,
            start: Start::Sum,
        },
    );
    product(
        simd,
        Product {
            m: rows,
            n: linear.inputs,
            k: linear.outputs,
            a: dy,
            a_strides: (linear.outputs, 1),
            b: &transposed[linear.transposed..linear.transposed + linear.len()],
            b_stride: linear.inputs,
            c: dx,
            c_stride: linear.inputs,
            start: Start::Zero,
        },
    );
}

/// The forward pass: computes the final stream of every token into `space.stream`.
pub(super) struct Forward<'a> {
    pub layout: &'a Layout,
    pub trunk: &'a TrunkAt,
    pub parameters: &'a [f32],
    pub tokens: &'a [u32],
    pub spans: &'a [Span],
    /// The cache of each span, if there is one.
    pub memories: Option<&'a mut [&'a mut Memory]>,
    pub space: &'a mut TrunkSpace,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, trunk, parameters, tokens, spans, mut memories, space } = self;
        let (w, rows) = (layout.width, tokens.len());
        let TrunkSpace { layers, stream, scratch, .. } = space;
        let stream = &mut stream[..rows * w];
        for (row, token) in stream.chunks_exact_mut(w).zip(tokens) {
            row.copy_from_slice(&parameters[trunk.embeddings + *token as usize * w..][..w]);
        }
        if let Some(positions) = trunk.positions {
            for span in spans {
                for (i, row) in stream[span.first * w..].chunks_exact_mut(w).take(span.new).enumerate() {
                    let place = &parameters[positions + (span.before + i) * w..][..w];
                    row.iter_mut().zip(place).for_each(|(x, p)| *x += p);
                }
            }
        }
        let (stride, shares_space) = (padded(layout.context), layers.len() == 1);
        for (l, at) in trunk.layers.iter().enumerate() {
            let own = if shares_space { 0 } else { l };
            let s = &mut layers[own];
            s.x[..rows * w].copy_from_slice(stream);
            norm(&parameters[at.attention_norm..][..w], stream, &mut s.f1, &mut s.n1);
            multiply(simd, at.qkv, parameters, rows, &s.n1, &mut s.qkv, Start::Zero);
            if !layout.rotary.is_empty() {
                for span in spans {
                    for (i, row) in s.qkv[span.first * 3 * w..].chunks_exact_mut(3 * w).take(span.new).enumerate() {
                        rotate(layout, span.before + i, false, &mut row[..2 * w]);
                    }
                }
            }
            let attention = Attention { simd, layout, qkv: &s.qkv };
            for (i, span) in spans.iter().enumerate() {
                match &mut memories {
                    None => {
                        as_columns(simd, layout, &s.qkv, 1, *span, scratch);
                        let values = |row: usize| &s.qkv[row * 3 * w + 2 * w..];
                        let values = [(values(span.shared), span.before), (values(span.first), span.new)];
                        attention.forward(*span, (scratch, span.stride()), (values, 3 * w), &mut s.probabilities, &mut s.attended);
                    }
                    Some(memories) => {
                        let Memory { keys, values } = &mut *memories[i];
                        let keys = &mut keys[l * w * stride..][..w * stride];
                        append_columns(layout, &s.qkv, *span, keys, stride);
                        let values = &mut values[l * layout.context * w..][..layout.context * w];
                        for token in 0..span.new {
                            let row = &s.qkv[(span.first + token) * 3 * w + 2 * w..][..w];
                            values[(span.before + token) * w..][..w].copy_from_slice(row);
                        }
                        let values = [(&values[..], span.length()), (&[][..], 0)];
                        attention.forward(*span, (keys, stride), (values, w), &mut s.probabilities, &mut s.attended);
                    }
                }
            }
            multiply(simd, at.out, parameters, rows, &s.attended, stream, Start::Sum);

            s.mid[..rows * w].copy_from_slice(stream);
            norm(&parameters[at.norm..][..w], stream, &mut s.f2, &mut s.n2);
            multiply(simd, at.up, parameters, rows, &s.n2, &mut s.up, Start::Zero);
            activate(layout, &s.up[..rows * layout.ups()], &mut s.hidden);
            multiply(simd, at.down, parameters, rows, &s.hidden, stream, Start::Sum);
        }
    }
}

/// The backward pass: adds to the gradient of the trunk. At the start, `d_stream` holds the derivatives with respect to the final stream.
pub(super) struct Backward<'a> {
    pub layout: &'a Layout,
    pub trunk: &'a TrunkAt,
    pub parameters: &'a [f32],
    pub transposed: &'a [f32],
    pub tokens: &'a [u32],
    pub spans: &'a [Span],
    pub space: &'a mut TrunkSpace,
    pub d_stream: &'a mut [f32],
    pub gradient: &'a mut [f32],
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, trunk, parameters, transposed, tokens, spans, space, d_stream, gradient } = self;
        let (w, rows) = (layout.width, tokens.len());
        let TrunkSpace { layers, scratch, delta: [d_narrow, d_wide, d_hidden], .. } = space;
        for (LayerAt { attention_norm, qkv, out, norm, up, down }, s) in trunk.layers.iter().zip(layers).rev() {
            // the backward pass of the feed-forward part
            multiply_backward(simd, *down, transposed, rows, (&s.hidden, d_stream), d_hidden, gradient);
            activate_backward(layout, &mut s.up[..rows * layout.ups()], &d_hidden[..rows * layout.hidden]);
            multiply_backward(simd, *up, transposed, rows, (&s.n2, &s.up), d_narrow, gradient);
            let (gain, d_gain) = (&parameters[*norm..][..w], &mut gradient[*norm..][..w]);
            norm_backward(gain, (&s.mid[..rows * w], &s.f2), d_narrow, d_stream, d_gain);
            // the backward pass of the attention
            multiply_backward(simd, *out, transposed, rows, (&s.attended, d_stream), d_hidden, gradient);
            let attention = Attention { simd, layout, qkv: &s.qkv };
            for span in spans {
                attention.backward(*span, &s.probabilities, d_hidden, d_wide, scratch);
            }
            if !layout.rotary.is_empty() {
                for span in spans {
                    for (i, row) in d_wide[span.first * 3 * w..].chunks_exact_mut(3 * w).take(span.new).enumerate() {
                        rotate(layout, span.before + i, true, &mut row[..2 * w]);
                    }
                }
            }
            multiply_backward(simd, *qkv, transposed, rows, (&s.n1, d_wide), d_narrow, gradient);
            let (gain, d_gain) = (&parameters[*attention_norm..][..w], &mut gradient[*attention_norm..][..w]);
            norm_backward(gain, (&s.x[..rows * w], &s.f1), d_narrow, d_stream, d_gain);
        }
        for (row, token) in d_stream.chunks_exact(w).zip(tokens) {
            add(&mut gradient[trunk.embeddings + *token as usize * w..][..w], row);
        }
        if let Some(positions) = trunk.positions {
            for span in spans {
                for (i, row) in d_stream[span.first * w..].chunks_exact(w).take(span.new).enumerate() {
                    add(&mut gradient[positions + (span.before + i) * w..][..w], row);
                }
            }
        }
    }
}

#[inline(always)]
pub(super) fn add(sum: &mut [f32], row: &[f32]) {
    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
}
