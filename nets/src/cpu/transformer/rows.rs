//! Operations on single rows: norms, activations, rotations.

use super::layout::{Gradient, Layout, NormAt, Numbers};
use gradus_base::math::{exp_inline, tanh_inline};
use gradus_base::simd::sum16;

/// Dot product: sixteen strided partial sums, added as a tree.
#[inline(always)]
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    for (a, b) in a.as_chunks::<16>().0.iter().zip(b.as_chunks::<16>().0) {
        for i in 0..16 {
            lanes[i] = a[i].mul_add(b[i], lanes[i]);
        }
    }
    sum16(lanes)
}

/// Sum: sixteen strided partial sums, added as a tree.
#[inline(always)]
fn sum(a: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 16];
    for a in a.as_chunks::<16>().0 {
        for i in 0..16 {
            lanes[i] += a[i];
        }
    }
    sum16(lanes)
}

/// The factors and, in a LayerNorm, the bias of a norm.
#[derive(Clone, Copy)]
pub(super) struct Norm<'a> {
    gain: &'a [f32],
    bias: Option<&'a [f32]>,
    epsilon: f32,
}

impl<'a> Norm<'a> {
    pub fn new(layout: &Layout, at: NormAt, parameters: Numbers<'a>) -> Self {
        let bias = at.bias.map(|bias| parameters.get(bias, at.width));
        Self { gain: parameters.get(at.gain, at.width), bias, epsilon: layout.epsilon }
    }

    /// A norm of the numbers of a head.
    pub fn of_head(layout: &Layout, gain: usize, parameters: Numbers<'a>) -> Self {
        Self { gain: parameters.get(gain, layout.head_width), bias: None, epsilon: layout.epsilon }
    }

    /// RMSNorm (Zhang and Sennrich, arXiv 1910.07467): y = g x f with f = 1 / sqrt(mean x^2 + eps); or LayerNorm (Ba et al., arXiv 1607.06450), where
    /// the mean is subtracted from x before, and a bias is added. Writes f of each row into `factors`.
    #[inline(always)]
    pub fn forward(self, x: &[f32], factors: &mut [f32], y: &mut [f32]) {
        let width = self.gain.len();
        for ((x, y), factor) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(factors) {
            if let Some(bias) = self.bias {
                let mean = sum(x) / width as f32;
                y.iter_mut().zip(x).for_each(|(y, x)| *y = x - mean);
                *factor = 1.0 / (dot(y, y) / width as f32 + self.epsilon).sqrt();
                for ((y, g), b) in y.iter_mut().zip(self.gain).zip(bias) {
                    *y = g * (*y * *factor) + b;
                }
                continue;
            }
            *factor = 1.0 / (dot(x, x) / width as f32 + self.epsilon).sqrt();
            for ((y, x), g) in y.iter_mut().zip(x).zip(self.gain) {
                *y = g * (x * *factor);
            }
        }
    }

    /// Adds to `dx` and to the gradients of g and the bias, given dy, which it overwrites. With u = x f, dx = f (g dy - u mean(g dy u)) and
    /// dg = sum dy u; in a LayerNorm, u = (x - mean x) f, and the mean of g dy is subtracted, too.
    #[inline(always)]
    pub fn backward(self, (x, factors): (&[f32], &[f32]), dy: &mut [f32], dx: &mut [f32], at: NormAt, gradient: &mut Gradient<'_>) {
        let width = self.gain.len();
        for (((x, dy), dx), factor) in x.chunks_exact(width).zip(dy.chunks_exact_mut(width)).zip(dx.chunks_exact_mut(width)).zip(factors) {
            let centre = if self.bias.is_some() { sum(x) / width as f32 } else { 0.0 };
            if let Some(d_bias) = at.bias.and_then(|bias| gradient.get(bias, width)) {
                d_bias.iter_mut().zip(&*dy).for_each(|(d_bias, dy)| *d_bias += dy);
            }
            if let Some(d_gain) = gradient.get(at.gain, width) {
                for ((dy, x), d_gain) in dy.iter().zip(x).zip(d_gain) {
                    *d_gain += *dy * ((x - centre) * factor);
                }
            }
            dy.iter_mut().zip(self.gain).for_each(|(dy, g)| *dy *= g);
            let shift = if self.bias.is_some() { sum(dy) / width as f32 } else { 0.0 };
            // the sum of (x - centre) dy
            let along = dot(dy, x) - centre * shift * width as f32;
            let mean = along * factor / width as f32;
            for ((dx, dy), x) in dx.iter_mut().zip(dy.iter()).zip(x) {
                *dx += factor * (dy - shift - (x - centre) * factor * mean);
            }
        }
    }
}

/// 1 / (1 + e^-x).
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp_inline(-x))
}

/// sqrt(2 / pi), and the coefficient of the cubic term.
const GELU: (f32, f32) = (0.797_884_6, 0.044_715);

/// gelu(x) = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    let inner = GELU.0 * (x + GELU.1 * x * x * x);
    0.5 * x * (1.0 + tanh_inline(inner))
}

#[inline(always)]
fn gelu_derivative(x: f32) -> f32 {
    let t = tanh_inline(GELU.0 * (x + GELU.1 * x * x * x));
    let d_inner = GELU.0 * (1.0 + 3.0 * GELU.1 * x * x);
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * d_inner
}

/// The activation of a feed-forward part: gelu(u), or silu(g) u if gated. The gated loop runs over arrays of sixteen numbers, so that the
/// compiler can rule out that they overlap.
#[inline(always)]
pub(super) fn activate(layout: &Layout, up: &[f32], hidden: &mut [f32]) {
    if !layout.gated {
        hidden.iter_mut().zip(up).for_each(|(h, u)| *h = gelu(*u));
        return;
    }
    for (up, hidden) in up.chunks_exact(2 * layout.hidden).zip(hidden.chunks_exact_mut(layout.hidden)) {
        let (gates, ups) = up.split_at(layout.hidden);
        let groups = gates.as_chunks::<16>().0.iter().zip(ups.as_chunks::<16>().0);
        for ((g, u), h) in groups.zip(hidden.as_chunks_mut::<16>().0) {
            for i in 0..16 {
                h[i] = g[i] * sigmoid(g[i]) * u[i];
            }
        }
    }
}

/// Replaces the inputs of [`activate`] by the derivatives with respect to these inputs. `d_hidden` are the derivatives with respect to the
/// outputs.
#[inline(always)]
pub(super) fn activate_backward(layout: &Layout, up: &mut [f32], d_hidden: &[f32]) {
    if !layout.gated {
        up.iter_mut().zip(d_hidden).for_each(|(u, d)| *u = d * gelu_derivative(*u));
        return;
    }
    for (up, d_hidden) in up.chunks_exact_mut(2 * layout.hidden).zip(d_hidden.chunks_exact(layout.hidden)) {
        let (gates, ups) = up.split_at_mut(layout.hidden);
        let groups = gates.as_chunks_mut::<16>().0.iter_mut().zip(ups.as_chunks_mut::<16>().0);
        for ((gates, ups), d) in groups.zip(d_hidden.as_chunks::<16>().0) {
            let (mut d_gates, mut d_ups) = ([0.0; 16], [0.0; 16]);
            for i in 0..16 {
                let s = sigmoid(gates[i]);
                let silu = gates[i] * s;
                d_gates[i] = d[i] * ups[i] * (s + silu * (1.0 - s));
                d_ups[i] = d[i] * silu;
            }
            (*gates, *ups) = (d_gates, d_ups);
        }
    }
}

/// Rotates the pairs (i, i + half) of every head by the angles of position `place`; with `back`, by the negative angles.
#[inline(always)]
pub(super) fn rotate(layout: &Layout, place: usize, back: bool, row: &mut [f32]) {
    let half = layout.head_width / 2;
    let Some(angles) = layout.rotary.get(place * half..(place + 1) * half) else { return };
    for head in row.chunks_exact_mut(2 * half) {
        let (first, second) = head.split_at_mut(half);
        for ((a, b), [cos, sin]) in first.iter_mut().zip(second).zip(angles) {
            let sin = if back { -sin } else { *sin };
            (*a, *b) = (*a * cos - *b * sin, *b * cos + *a * sin);
        }
    }
}
