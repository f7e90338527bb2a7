//! The layers of a transformer over a tile of tokens, forward and backward.
//!
//! A tile holds spans of several sequences, row after row, without gaps. Each part of a layer reads the residual stream through a norm and
//! adds its output to the stream. Each layer keeps the activations that the backward pass needs.

use super::attention::{Attention, Span, append_columns, as_columns};
use super::layout::{Gradient, LayerAt, Layout, Linear, Lora, NormAt, Numbers, TrunkAt};
use super::plan::Sizes;
use super::rows::{Norm, activate, activate_backward, rotate};
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
    /// Queries and keys before their norms, and the factors of the norms, if they have some.
    plain: Aligned,
    qk_factors: Vec<f32>,
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
    /// What the adapters' first matrices make of each row, and derivatives with respect to it.
    low: Aligned,
    delta: [Aligned; 3],
}

impl TrunkSpace {
    /// Allocates space for tiles of these sizes; with `backward`, also for the backward pass.
    pub fn new(layout: &Layout, sizes: Sizes, backward: bool) -> Self {
        let Sizes { tokens: rows, probabilities, longest, .. } = sizes;
        let w = layout.width;
        let layers = if backward { layout.policy.layers.len() } else { 1 };
        let numbers = |width: usize| Aligned::zeros(rows * width);
        let qk_norms = if layout.has_qk_norm() { layout.heads + layout.kv_heads } else { 0 };
        let layer = |_| LayerSpace {
            x: numbers(w),
            mid: numbers(w),
            n1: numbers(w),
            n2: numbers(w),
            f1: vec![0.0; rows],
            f2: vec![0.0; rows],
            qkv: numbers(layout.qkv_width()),
            plain: numbers(qk_norms * layout.head_width),
            qk_factors: vec![0.0; rows * qk_norms],
            probabilities: Aligned::zeros(probabilities),
            attended: numbers(layout.query_width()),
            up: numbers(layout.ups()),
            hidden: numbers(layout.hidden),
        };
        let widest = layout.ups().max(layout.qkv_width());
        Self {
            layers: (0..layers).map(layer).collect(),
            stream: numbers(w),
            scratch: Aligned::zeros(longest * (layout.kv_width() + longest)),
            low: numbers(if layout.frozen > 0 { layout.padded_rank * (1 + usize::from(backward)) } else { 0 }),
            delta: [w, widest, layout.hidden.max(layout.query_width())].map(|width| numbers(if backward { width } else { 0 })),
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
            keys: Aligned::zeros(layers * layout.kv_width() * padded(layout.context)),
            values: Aligned::zeros(layers * layout.context * layout.kv_width()),
        }
    }

    /// Copies the first `tokens` tokens of another cache.
    pub fn copy(&mut self, layout: &Layout, from: &Memory, tokens: usize) {
        let stride = padded(layout.context);
        for (to, from) in self.keys.chunks_exact_mut(stride).zip(from.keys.chunks_exact(stride)) {
            to[..tokens].copy_from_slice(&from[..tokens]);
        }
        let (layer, width) = (layout.context * layout.kv_width(), layout.kv_width());
        for (to, from) in self.values.chunks_exact_mut(layer).zip(from.values.chunks_exact(layer)) {
            to[..tokens * width].copy_from_slice(&from[..tokens * width]);
        }
    }
}

/// The products of rows with the matrices of a layout. `low` has room for two rows of the adapters' rank for each row.
struct Multiply<'a> {
    layout: &'a Layout,
    parameters: Numbers<'a>,
    rows: usize,
    low: &'a mut [f32],
}

/// A product with a matrix, which all matrices share: fewer copies take less time to compile.
struct Forth<'a>(Multiply<'a>, Linear, &'a [f32], &'a mut [f32], bool);

impl Kernel for Forth<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self(mut multiply, linear, x, y, sum) = self;
        multiply.forth(simd, linear, x, y, sum);
    }
}

/// The backward pass of a product with a matrix, likewise.
struct Returned<'a> {
    multiply: Multiply<'a>,
    linear: Linear,
    transposed: Numbers<'a>,
    x: &'a [f32],
    dy: &'a [f32],
    dx: &'a mut [f32],
    gradient: Gradient<'a>,
}

impl Kernel for Returned<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { mut multiply, linear, transposed, x, dy, dx, mut gradient } = self;
        multiply.back(simd, linear, transposed, (x, dy), dx, &mut gradient);
    }
}

impl Multiply<'_> {
    fn reborrow(&mut self) -> Multiply<'_> {
        Multiply { layout: self.layout, parameters: self.parameters, rows: self.rows, low: self.low }
    }

    /// Computes y = x W + b; with `sum`, y += x W + b.
    #[inline(always)]
    fn forward<S: Simd>(&mut self, simd: S, linear: Linear, x: &[f32], y: &mut [f32], sum: bool) {
        simd.call(Forth(self.reborrow(), linear, x, y, sum));
    }

    /// Computes dx = dy W', and adds x' dy to dW and the rows of dy to db, if they are trained.
    #[inline(always)]
    fn backward<S: Simd>(
        &mut self,
        simd: S,
        linear: Linear,
        transposed: Numbers<'_>,
        (x, dy): (&[f32], &[f32]),
        dx: &mut [f32],
        gradient: &mut Gradient<'_>,
    ) {
        let gradient = Gradient { frozen: gradient.frozen, numbers: gradient.numbers };
        simd.call(Returned { multiply: self.reborrow(), linear, transposed, x, dy, dx, gradient });
    }

    #[inline(always)]
    fn forth<S: Simd>(&mut self, simd: S, linear: Linear, x: &[f32], y: &mut [f32], sum: bool) {
        let bias = linear.bias.map(|bias| self.parameters.get(bias, linear.outputs));
        let start = match bias {
            Some(bias) if !sum => Start::Row(bias),
            Some(bias) => {
                y[..self.rows * linear.outputs].chunks_exact_mut(linear.outputs).for_each(|row| add(row, bias));
                Start::Sum
            }
            None if sum => Start::Sum,
            None => Start::Zero,
        };
        let weights = self.parameters.get(linear.at, linear.len());
        product_of(
            simd,
            (self.rows, linear.outputs, linear.inputs),
            (x, (linear.inputs, 1)),
            (weights, linear.outputs),
            (y, linear.outputs),
            start,
        );
        for lora in linear.lora.into_iter().flatten() {
            self.inner(simd, linear, lora, x);
            let rank = self.layout.padded_rank;
            let b = self.parameters.get(lora.b, rank * lora.outputs);
            let inner = &self.low[..self.rows * rank];
            let y = &mut y[lora.column..];
            product_of(simd, (self.rows, lora.outputs, rank), (inner, (rank, 1)), (b, lora.outputs), (y, linear.outputs), Start::Sum);
        }
    }

    /// Writes scale x A, with the padded rank of numbers for each row, to the beginning of `low`.
    #[inline(always)]
    fn inner<S: Simd>(&mut self, simd: S, linear: Linear, lora: Lora, x: &[f32]) {
        let rank = self.layout.padded_rank;
        let a = self.parameters.get(lora.a, linear.inputs * rank);
        let low = std::mem::take(&mut self.low);
        product_of(simd, (self.rows, rank, linear.inputs), (x, (linear.inputs, 1)), (a, rank), (&mut *low, rank), Start::Zero);
        low[..self.rows * rank].iter_mut().for_each(|x| *x *= self.layout.scale);
        self.low = low;
    }

    #[inline(always)]
    fn back<S: Simd>(
        &mut self,
        simd: S,
        linear: Linear,
        transposed: Numbers<'_>,
        (x, dy): (&[f32], &[f32]),
        dx: &mut [f32],
        gradient: &mut Gradient<'_>,
    ) {
        let Linear { inputs, outputs, .. } = linear;
        if let Some(d_bias) = linear.bias.and_then(|bias| gradient.get(bias, outputs)) {
            dy[..self.rows * outputs].chunks_exact(outputs).for_each(|row| add(d_bias, row));
        }
        if let Some(d_weights) = gradient.get(linear.at, linear.len()) {
            product_of(simd, (inputs, outputs, self.rows), (x, (1, inputs)), (dy, outputs), (d_weights, outputs), Start::Sum);
        }
        let back = transposed.get(linear.transposed, linear.len());
        product_of(simd, (self.rows, inputs, outputs), (dy, (outputs, 1)), (back, inputs), (dx, inputs), Start::Zero);
        for lora in linear.lora.into_iter().flatten() {
            // with t = scale x A and u = scale dy B': dB = t' dy, dA = x' u, dx += u A'
            self.inner(simd, linear, lora, x);
            let rank = self.layout.padded_rank;
            let dy = &dy[lora.column..];
            let low = std::mem::take(&mut self.low);
            let (t, u) = low.split_at_mut(self.rows * rank);
            if let Some(d_b) = gradient.get(lora.b, rank * lora.outputs) {
                product_of(simd, (rank, lora.outputs, self.rows), (t, (1, rank)), (dy, outputs), (d_b, lora.outputs), Start::Sum);
            }
            let back = transposed.get(lora.b_transposed, lora.outputs * rank);
            product_of(simd, (self.rows, rank, lora.outputs), (dy, (outputs, 1)), (back, rank), (&mut *u, rank), Start::Zero);
            u[..self.rows * rank].iter_mut().for_each(|u| *u *= self.layout.scale);
            if let Some(d_a) = gradient.get(lora.a, inputs * rank) {
                product_of(simd, (inputs, rank, self.rows), (x, (1, inputs)), (u, rank), (d_a, rank), Start::Sum);
            }
            let back = transposed.get(lora.a_transposed, rank * inputs);
            product_of(simd, (self.rows, inputs, rank), (u, (rank, 1)), (back, inputs), (&mut *dx, inputs), Start::Sum);
            self.low = low;
        }
    }
}

/// Computes C = start + A B, with m rows, n columns and k terms in each sum.
#[inline(always)]
fn product_of<S: Simd>(
    simd: S,
    (m, n, k): (usize, usize, usize),
    (a, a_strides): (&[f32], (usize, usize)),
    (b, b_stride): (&[f32], usize),
    (c, c_stride): (&mut [f32], usize),
    start: Start<'_>,
) {
    product(simd, Product { m, n, k, a, a_strides, b, b_stride, c, c_stride, start });
}

/// The forward pass: computes the final stream of every token into `space.stream`.
pub(super) struct Forward<'a> {
    pub layout: &'a Layout,
    pub trunk: &'a TrunkAt,
    pub parameters: Numbers<'a>,
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
        let (queries, keys_width, qkv_width) = (layout.query_width(), layout.kv_width(), layout.qkv_width());
        let TrunkSpace { layers, stream, scratch, low, .. } = space;
        let mut multiply = Multiply { layout, parameters, rows, low };
        let stream = &mut stream[..rows * w];
        for (row, token) in stream.chunks_exact_mut(w).zip(tokens) {
            row.copy_from_slice(parameters.get(trunk.embeddings + *token as usize * w, w));
        }
        if let Some(positions) = trunk.positions {
            for span in spans {
                for (i, row) in stream[span.first * w..].chunks_exact_mut(w).take(span.new).enumerate() {
                    let place = parameters.get(positions + (span.before + i) * w, w);
                    row.iter_mut().zip(place).for_each(|(x, p)| *x += p);
                }
            }
        }
        let (stride, shares_space) = (padded(layout.context), layers.len() == 1);
        for (l, at) in trunk.layers.iter().enumerate() {
            let own = if shares_space { 0 } else { l };
            let s = &mut layers[own];
            s.x[..rows * w].copy_from_slice(stream);
            Norm::new(layout, at.attention_norm, parameters).forward(stream, &mut s.f1, &mut s.n1);
            multiply.forward(simd, at.qkv, &s.n1, &mut s.qkv, false);
            if let Some(gains) = at.qk_norm {
                let heads = QkNorms { layout, gains, parameters };
                heads.forward(rows, &mut s.qkv, &mut s.plain, &mut s.qk_factors);
            }
            rotate_all(layout, spans, false, &mut s.qkv);
            let attention = Attention { simd, layout, qkv: &s.qkv };
            for (i, span) in spans.iter().enumerate() {
                match &mut memories {
                    None => {
                        as_columns(simd, layout, &s.qkv, 1, *span, scratch);
                        let values = |row: usize| &s.qkv[row * qkv_width + queries + keys_width..];
                        let values = [(values(span.shared), span.before), (values(span.first), span.new)];
                        attention.forward(*span, (scratch, span.stride()), (values, qkv_width), &mut s.probabilities, &mut s.attended);
                    }
                    Some(memories) => {
                        let Memory { keys, values } = &mut *memories[i];
                        let keys = &mut keys[l * keys_width * stride..][..keys_width * stride];
                        append_columns(layout, &s.qkv, *span, keys, stride);
                        let values = &mut values[l * layout.context * keys_width..][..layout.context * keys_width];
                        for token in 0..span.new {
                            let row = &s.qkv[(span.first + token) * qkv_width + queries + keys_width..][..keys_width];
                            values[(span.before + token) * keys_width..][..keys_width].copy_from_slice(row);
                        }
                        let values = [(&values[..], span.length()), (&[][..], 0)];
                        attention.forward(*span, (keys, stride), (values, keys_width), &mut s.probabilities, &mut s.attended);
                    }
                }
            }
            multiply.forward(simd, at.out, &s.attended, stream, true);

            s.mid[..rows * w].copy_from_slice(stream);
            Norm::new(layout, at.norm, parameters).forward(stream, &mut s.f2, &mut s.n2);
            multiply.forward(simd, at.up, &s.n2, &mut s.up, false);
            activate(layout, &s.up[..rows * layout.ups()], &mut s.hidden);
            multiply.forward(simd, at.down, &s.hidden, stream, true);
        }
    }
}

/// The backward pass: adds to the gradient of the trunk. At the start, `d_stream` holds the derivatives with respect to the final stream.
pub(super) struct Backward<'a> {
    pub layout: &'a Layout,
    pub trunk: &'a TrunkAt,
    pub parameters: Numbers<'a>,
    pub transposed: Numbers<'a>,
    pub tokens: &'a [u32],
    pub spans: &'a [Span],
    pub space: &'a mut TrunkSpace,
    pub d_stream: &'a mut [f32],
    pub gradient: Gradient<'a>,
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, trunk, parameters, transposed, tokens, spans, space, d_stream, mut gradient } = self;
        let (w, rows) = (layout.width, tokens.len());
        let TrunkSpace { layers, scratch, low, delta: [d_narrow, d_wide, d_hidden], .. } = space;
        let mut multiply = Multiply { layout, parameters, rows, low };
        let gradient = &mut gradient;
        for (LayerAt { attention_norm, qkv, qk_norm, out, norm, up, down }, s) in trunk.layers.iter().zip(layers).rev() {
            // the backward pass of the feed-forward part
            multiply.backward(simd, *down, transposed, (&s.hidden, d_stream), d_hidden, gradient);
            activate_backward(layout, &mut s.up[..rows * layout.ups()], &d_hidden[..rows * layout.hidden]);
            multiply.backward(simd, *up, transposed, (&s.n2, &s.up), d_narrow, gradient);
            Norm::new(layout, *norm, parameters).backward((&s.mid[..rows * w], &s.f2), d_narrow, d_stream, *norm, gradient);
            // the backward pass of the attention
            multiply.backward(simd, *out, transposed, (&s.attended, d_stream), d_hidden, gradient);
            let attention = Attention { simd, layout, qkv: &s.qkv };
            for span in spans {
                attention.backward(*span, &s.probabilities, d_hidden, d_wide, scratch);
            }
            rotate_all(layout, spans, true, d_wide);
            if let Some(gains) = *qk_norm {
                QkNorms { layout, gains, parameters }.backward(rows, (&s.plain, &s.qk_factors), d_wide, gradient);
            }
            multiply.backward(simd, *qkv, transposed, (&s.n1, d_wide), d_narrow, gradient);
            let norm = Norm::new(layout, *attention_norm, parameters);
            norm.backward((&s.x[..rows * w], &s.f1), d_narrow, d_stream, *attention_norm, gradient);
        }
        for (row, token) in d_stream.chunks_exact(w).zip(tokens) {
            if let Some(sum) = gradient.get(trunk.embeddings + *token as usize * w, w) {
                add(sum, row);
            }
        }
        if let Some(positions) = trunk.positions {
            for span in spans {
                for (i, row) in d_stream[span.first * w..].chunks_exact(w).take(span.new).enumerate() {
                    if let Some(sum) = gradient.get(positions + (span.before + i) * w, w) {
                        add(sum, row);
                    }
                }
            }
        }
    }
}

/// Rotates the queries and keys of all tokens by the angles of their places; with `back`, by the negative angles.
#[inline(always)]
fn rotate_all(layout: &Layout, spans: &[Span], back: bool, qkv: &mut [f32]) {
    if layout.rotary.is_empty() {
        return;
    }
    let (width, rotated) = (layout.qkv_width(), layout.query_width() + layout.kv_width());
    for span in spans {
        for (i, row) in qkv[span.first * width..].chunks_exact_mut(width).take(span.new).enumerate() {
            rotate(layout, span.before + i, back, &mut row[..rotated]);
        }
    }
}

/// The norms of the queries and keys of a layer, one for each head.
struct QkNorms<'a> {
    layout: &'a Layout,
    /// Positions of the factors, for queries and for keys.
    gains: [usize; 2],
    parameters: Numbers<'a>,
}

impl QkNorms<'_> {
    /// Position of the factors for head number `head`, where the heads of the keys follow those of the queries.
    fn gain(&self, head: usize) -> usize {
        self.gains[usize::from(head >= self.layout.heads)]
    }

    /// Replaces queries and keys by their norms. Keeps the numbers before.
    #[inline(always)]
    fn forward(&self, rows: usize, qkv: &mut [f32], plain: &mut [f32], factors: &mut [f32]) {
        let (width, d, heads) = (self.layout.qkv_width(), self.layout.head_width, self.layout.heads + self.layout.kv_heads);
        let all = qkv.chunks_exact_mut(width).zip(plain.chunks_exact_mut(heads * d)).zip(factors.chunks_exact_mut(heads));
        for ((row, plain), factors) in all.take(rows) {
            plain.copy_from_slice(&row[..heads * d]);
            for head in 0..heads {
                let norm = Norm::of_head(self.layout, self.gain(head), self.parameters);
                norm.forward(&plain[head * d..][..d], &mut factors[head..=head], &mut row[head * d..][..d]);
            }
        }
    }

    /// Replaces the derivatives with respect to the outputs by those with respect to the numbers before the norms.
    #[inline(always)]
    fn backward(&self, rows: usize, (plain, factors): (&[f32], &[f32]), d_qkv: &mut [f32], gradient: &mut Gradient<'_>) {
        let (width, d, heads) = (self.layout.qkv_width(), self.layout.head_width, self.layout.heads + self.layout.kv_heads);
        let all = d_qkv.chunks_exact_mut(width).zip(plain.chunks_exact(heads * d)).zip(factors.chunks_exact(heads));
        let mut dx = vec![0.0; d];
        for ((row, plain), factors) in all.take(rows) {
            for head in 0..heads {
                let (gain, dy) = (self.gain(head), &mut row[head * d..][..d]);
                dx.fill(0.0);
                let at = NormAt { gain, bias: None, width: d };
                let norm = Norm::of_head(self.layout, gain, self.parameters);
                norm.backward((&plain[head * d..][..d], &factors[head..=head]), dy, &mut dx, at, gradient);
                dy.copy_from_slice(&dx);
            }
        }
    }
}

#[inline(always)]
pub(super) fn add(sum: &mut [f32], row: &[f32]) {
    sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
}
