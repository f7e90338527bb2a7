//! Distributions and values computed from the final stream, for the decisions of a tile, forward and backward.

use super::layout::{Gradient, Layout, NormAt, Numbers};
use super::rows::{Norm, dot};
use super::trunk::add;
use crate::PolicyOutput;
use crate::categorical;
use crate::cpu::aligned::Aligned;
use crate::cpu::layer::padded;
use crate::cpu::product::{Product, Start, product};
use gradus_base::simd::{Kernel, Simd};

/// The final stream at the decisions of a tile, before (`x`) and after (`h`) the last norm, and the derivatives.
pub(super) struct Ends {
    x: Aligned,
    factors: Vec<f32>,
    h: Aligned,
    d_h: Aligned,
    d_x: Aligned,
}

/// Buffers of the heads for a chunk of the decisions of a tile.
pub(super) struct HeadSpace {
    pub policy: Ends,
    pub critic: Option<Ends>,
    /// Log-probabilities by decision.
    pub log_probs: Aligned,
    d_logits: Aligned,
    pub values: Vec<f32>,
}

impl HeadSpace {
    /// Allocates space for this number of decisions; with `backward`, also for the backward pass.
    pub fn new(layout: &Layout, decisions: usize, backward: bool) -> Self {
        let numbers = |width: usize| Aligned::zeros(decisions * width);
        let ends = || Ends {
            x: numbers(layout.width),
            factors: vec![0.0; decisions],
            h: numbers(layout.width),
            d_h: numbers(layout.width),
            d_x: numbers(layout.width),
        };
        Self {
            policy: ends(),
            critic: layout.critic.as_ref().map(|_| ends()),
            log_probs: numbers(padded(layout.vocabulary)),
            d_logits: numbers(if backward { padded(layout.vocabulary) } else { 0 }),
            values: vec![0.0; decisions],
        }
    }
}

/// Copies the final stream of the rows `rows` of a tile and applies the last norm.
#[inline(always)]
fn read(layout: &Layout, norm: Norm<'_>, stream: &[f32], rows: &[u32], ends: &mut Ends) {
    let w = layout.width;
    for (row, x) in rows.iter().zip(ends.x.chunks_exact_mut(w)) {
        x.copy_from_slice(&stream[*row as usize * w..][..w]);
    }
    norm.forward(&ends.x[..rows.len() * w], &mut ends.factors, &mut ends.h);
}

/// Computes the distributions of the rows `rows` of a tile, as log-probabilities.
pub(super) struct Distributions<'a> {
    pub layout: &'a Layout,
    pub parameters: Numbers<'a>,
    pub transposed: Numbers<'a>,
    pub stream: &'a [f32],
    pub rows: &'a [u32],
    /// One entry per row and token of the vocabulary.
    pub masks: Option<&'a [bool]>,
    pub space: &'a mut HeadSpace,
}

impl Kernel for Distributions<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, transposed, stream, rows, masks, space } = self;
        let (w, stride) = (layout.width, padded(layout.vocabulary));
        read(layout, Norm::new(layout, layout.policy.norm, parameters), stream, rows, &mut space.policy);
        product(
            simd,
            Product {
                m: rows.len(),
                n: stride,
                k: w,
                a: &space.policy.h,
                a_strides: (w, 1),
                b: transposed.get(layout.unembedding, w * stride),
                b_stride: stride,
                c: &mut space.log_probs,
                c_stride: stride,
                start: Start::Zero,
            },
        );
        for (row, logits) in space.log_probs.chunks_exact_mut(stride).take(rows.len()).enumerate() {
            let logits = &mut logits[..layout.vocabulary];
            logits.iter_mut().for_each(|z| *z /= layout.temperature);
            if let Some(masks) = masks {
                categorical::mask(logits, &masks[row * layout.vocabulary..][..layout.vocabulary]);
            }
            categorical::log_softmax(logits);
        }
    }
}

/// Computes the values of the rows `rows` of a tile. If the critic is a head and `alone` is false, [`Distributions`] has already read
/// `stream`.
pub(super) struct Values<'a> {
    pub layout: &'a Layout,
    pub parameters: Numbers<'a>,
    pub stream: &'a [f32],
    pub rows: &'a [u32],
    pub alone: bool,
    pub space: &'a mut HeadSpace,
}

impl Kernel for Values<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { layout, parameters, stream, rows, alone, space } = self;
        let w = layout.width;
        let ends = match &mut space.critic {
            Some(ends) => {
                read(layout, Norm::new(layout, layout.value_trunk().norm, parameters), stream, rows, ends);
                ends
            }
            None => {
                if alone {
                    read(layout, Norm::new(layout, layout.policy.norm, parameters), stream, rows, &mut space.policy);
                }
                &mut space.policy
            }
        };
        let head = parameters.get(layout.value_head, w);
        for (value, h) in space.values.iter_mut().zip(ends.h.chunks_exact(w)).take(rows.len()) {
            *value = dot(head, h);
        }
    }
}

/// Computes the objective's inputs for each decision.
pub(super) struct ObjectiveInputs<'a> {
    pub layout: &'a Layout,
    /// The decisions' indices in the store.
    pub indices: &'a [u32],
    pub actions: &'a [u32],
    pub old: Option<&'a [f32]>,
    pub reference: Option<&'a [f32]>,
    pub space: &'a mut HeadSpace,
    pub entropies: &'a mut [f32],
    pub outputs: &'a mut [PolicyOutput],
}

impl Kernel for ObjectiveInputs<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { layout, indices, actions, old, reference, space, entropies, outputs } = self;
        let n = layout.vocabulary;
        let rows = space.log_probs.chunks_exact(padded(n));
        for (((i, index), log_probs), output) in indices.iter().enumerate().zip(rows).zip(outputs) {
            let (index, log_probs) = (*index as usize, &log_probs[..n]);
            entropies[i] = categorical::entropy(log_probs);
            let of = |rows: Option<&[f32]>, kl: &dyn Fn(&[f32]) -> f32| rows.map_or(0.0, |rows| kl(&rows[index * n..(index + 1) * n]));
            *output = PolicyOutput {
                log_prob: log_probs[actions[index] as usize],
                entropy: entropies[i],
                value: space.values[i],
                kl_old: of(old, &|old| categorical::kl(old, log_probs)),
                kl_ref: of(reference, &|reference| categorical::kl(log_probs, reference)),
            };
        }
    }
}

/// The backward pass of the heads, from the objective's derivatives in `inputs.outputs`. Adds the derivatives with respect to the final
/// streams to `d_stream` and `d_critic_stream`, and those with respect to the last norms, the value head and the embeddings to `gradient`.
pub(super) struct Back<'a> {
    pub inputs: ObjectiveInputs<'a>,
    pub parameters: Numbers<'a>,
    pub rows: &'a [u32],
    pub d_stream: &'a mut [f32],
    pub d_critic_stream: &'a mut [f32],
    pub gradient: Gradient<'a>,
}

impl Kernel for Back<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { inputs, parameters, rows, d_stream, d_critic_stream, mut gradient } = self;
        let gradient = &mut gradient;
        let ObjectiveInputs { layout, indices, actions, old, reference, space, entropies, outputs } = inputs;
        let (n, w, stride) = (layout.vocabulary, layout.width, padded(layout.vocabulary));
        let HeadSpace { policy, critic, log_probs, d_logits, .. } = space;
        for (i, index) in indices.iter().enumerate() {
            let (index, log_probs) = (*index as usize, &log_probs[i * stride..][..n]);
            let d = &mut d_logits[i * stride..][..n];
            categorical::backward(log_probs, actions[index] as usize, entropies[i], outputs[i], d);
            if let Some(old) = old {
                categorical::backward_kl(&old[index * n..(index + 1) * n], log_probs, outputs[i].kl_old, d);
            }
            if let Some(reference) = reference {
                let reference = &reference[index * n..(index + 1) * n];
                categorical::backward_kl_ref(log_probs, reference, categorical::kl(log_probs, reference), outputs[i].kl_ref, d);
            }
            d.iter_mut().for_each(|d| *d /= layout.temperature);
        }
        let m = rows.len();
        // dE = dz' h, dh = dz E, with the embeddings or, if they are not tied, the matrix of the logits
        if let Some(d_logits_matrix) = gradient.get(layout.logits, n * w) {
            product(
                simd,
                Product {
                    m: n,
                    n: w,
                    k: m,
                    a: d_logits,
                    a_strides: (1, stride),
                    b: &policy.h,
                    b_stride: w,
                    c: d_logits_matrix,
                    c_stride: w,
                    start: Start::Sum,
                },
            );
        }
        product(
            simd,
            Product {
                m,
                n: w,
                k: n,
                a: d_logits,
                a_strides: (stride, 1),
                b: parameters.get(layout.logits, n * w),
                b_stride: w,
                c: &mut policy.d_h,
                c_stride: w,
                start: Start::Zero,
            },
        );
        let head = parameters.get(layout.value_head, w);
        let ends = if let Some(critic) = critic {
            critic.d_h[..m * w].fill(0.0);
            critic
        } else {
            &mut *policy
        };
        for (output, (d_h, h)) in outputs.iter().zip(ends.d_h.chunks_exact_mut(w).zip(ends.h.chunks_exact(w))).take(m) {
            let Some(d_head) = gradient.get(layout.value_head, w) else { break };
            for ((d_head, h), (d_h, head)) in d_head.iter_mut().zip(h).zip(d_h.iter_mut().zip(head)) {
                *d_head += output.value * h;
                *d_h += output.value * head;
            }
        }
        through(layout, (layout.policy.norm, parameters), rows, policy, d_stream, gradient);
        if let (Some(ends), Some(trunk)) = (&mut space.critic, &layout.critic) {
            through(layout, (trunk.norm, parameters), rows, ends, d_critic_stream, gradient);
        }
    }
}

/// The backward pass of the last norm: adds to `d_stream` and to the gradient of the norm.
#[inline(always)]
fn through(
    layout: &Layout,
    (at, parameters): (NormAt, Numbers<'_>),
    rows: &[u32],
    ends: &mut Ends,
    d_stream: &mut [f32],
    gradient: &mut Gradient<'_>,
) {
    let w = layout.width;
    let n = rows.len() * w;
    ends.d_x[..n].fill(0.0);
    Norm::new(layout, at, parameters).backward((&ends.x[..n], &ends.factors), &mut ends.d_h, &mut ends.d_x, at, gradient);
    for (row, d_x) in rows.iter().zip(ends.d_x.chunks_exact(w)) {
        add(&mut d_stream[*row as usize * w..][..w], d_x);
    }
}
