//! Passes through the layers, forward and backward, over tiles of rows that fit in the cache.

use super::aligned::Aligned;
use super::head::HeadSpace;
use super::layer::{Layer, padded};
use super::layout::{Chain, Layout, Part};
use super::product::{Finish, Start};
use crate::{Activation, PolicyOutput, Sums};
use gradus_base::simd::{Kernel, Simd};

/// Rows per tile.
pub(super) const TILE: usize = 64;

/// A tile's activations and derivatives.
pub(super) struct Workspace {
    pub input: Aligned,
    pub trunk: Vec<Aligned>,
    pub actor: Vec<Aligned>,
    pub critic: Vec<Aligned>,
    pub delta: Aligned,
    pub other_delta: Aligned,
    pub scratch: Aligned,
    /// The policy's outputs for each row, except the value, which is in `values`. The objective replaces them by weight x derivative.
    pub outputs: [PolicyOutput; TILE],
    pub values: [f32; TILE],
    pub head: HeadSpace,
}

impl Workspace {
    pub fn new(layout: &Layout) -> Self {
        let activations = |chain: &Chain| chain.iter().map(|layer| Aligned::zeros(TILE * padded(layer.outputs))).collect();
        let layers = layout.chains().into_iter().flat_map(|(_, chain)| chain);
        let widest = layers.map(|layer| padded(layer.outputs.max(layer.inputs))).max().unwrap_or(0);
        Self {
            input: Aligned::zeros(TILE * padded(layout.width)),
            trunk: activations(&layout.trunk),
            actor: activations(&layout.actor),
            critic: activations(&layout.critic),
            delta: Aligned::zeros(TILE * widest),
            other_delta: Aligned::zeros(TILE * widest),
            scratch: Aligned::zeros(TILE * widest),
            outputs: [PolicyOutput::default(); TILE],
            values: [0.0; TILE],
            head: HeadSpace::new(layout),
        }
    }

    /// Copies observations into the tile; returns their number. This is not part of the kernels, which would compile a copy each.
    #[inline(never)]
    pub fn read(&mut self, width: usize, observations: Observed<'_>) -> usize {
        match width {
            // calling memcpy for rows of a few numbers would take longer than the first layer
            1 => self.read_narrow::<1>(observations),
            2 => self.read_narrow::<2>(observations),
            3 => self.read_narrow::<3>(observations),
            4 => self.read_narrow::<4>(observations),
            6 => self.read_narrow::<6>(observations),
            8 => self.read_narrow::<8>(observations),
            _ => {
                let tile = self.input.chunks_exact_mut(padded(width));
                match observations {
                    Observed::Block(rows) => tile.zip(rows.chunks_exact(width)).map(|(to, row)| to[..width].copy_from_slice(row)).count(),
                    Observed::Chosen(all, indices) => {
                        let row = |index: &u32| &all[*index as usize * width..(*index as usize + 1) * width];
                        tile.zip(indices).map(|(to, index)| to[..width].copy_from_slice(row(index))).count()
                    }
                }
            }
        }
    }

    fn read_narrow<const WIDTH: usize>(&mut self, observations: Observed<'_>) -> usize {
        let tile = self.input.as_chunks_mut::<16>().0.iter_mut();
        match observations {
            Observed::Block(rows) => tile.zip(rows.as_chunks::<WIDTH>().0).map(|(to, row)| to[..WIDTH].copy_from_slice(row)).count(),
            Observed::Chosen(all, indices) => {
                let all = all.as_chunks::<WIDTH>().0;
                tile.zip(indices).map(|(to, index)| to[..WIDTH].copy_from_slice(&all[*index as usize])).count()
            }
        }
    }
}

/// The observations of a tile.
pub(super) enum Observed<'a> {
    /// Rows one after the other.
    Block(&'a [f32]),
    /// Some of many rows, by their indices.
    Chosen(&'a [f32], &'a [u32]),
}

/// What all layers need in a pass over a tile.
pub(super) struct Pass<'a, S> {
    pub simd: S,
    pub activation: Activation,
    pub parameters: &'a [f32],
    pub rows: usize,
}

/// The forward pass of a chain.
struct Forward<'a> {
    activation: Activation,
    parameters: &'a [f32],
    rows: usize,
    chain: &'a [Layer],
    active: bool,
    input: &'a [f32],
    outputs: &'a mut [Aligned],
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { activation, parameters, rows, chain, active, input, outputs } = self;
        for (i, layer) in chain.iter().enumerate() {
            let (before, after) = outputs.split_at_mut(i);
            let x = before.last().map_or(input, |x| &**x);
            let y = &mut after[0][..rows * padded(layer.outputs)];
            let is_active = active || i + 1 < chain.len();
            layer.forward(simd, parameters, rows, x, y, if is_active { Finish::Activation(activation) } else { Finish::Same });
        }
    }
}

/// The backward pass of a chain, see [`Pass::backward`].
struct Backward<'a, 'g> {
    pass: (Activation, &'a [f32], usize),
    chain: &'a [Layer],
    ends: (bool, bool),
    values: (&'a [f32], &'a [Aligned]),
    deltas: (&'a mut Aligned, &'a mut Aligned),
    transposed: &'a [f32],
    gradient: &'a mut Part<'g>,
    start: Start<'a>,
}

impl Kernel for Backward<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { pass, chain, ends, values, deltas, transposed, gradient, start } = self;
        let (activation, parameters, rows) = pass;
        let ((active, through), (input, outputs), (delta, scratch)) = (ends, values, deltas);
        if let (true, Some(h), Some(layer)) = (active, outputs.last(), chain.last()) {
            let n = rows * padded(layer.outputs);
            Finish::Derivative(activation, h).apply::<S>(&mut delta[..n], 0, (n, n));
        }
        for (i, layer) in chain.iter().enumerate().rev() {
            // the inputs of all layers but the first are activations
            let (x, derivative) = match i {
                0 => (input, Finish::Same),
                _ => (&*outputs[i - 1], Finish::Derivative(activation, &outputs[i - 1])),
            };
            layer.backward_parameters(simd, rows, x, delta, gradient, start);
            if i > 0 || through {
                layer.backward_input(simd, (parameters, transposed), rows, delta, scratch, (Start::Zero, derivative));
                std::mem::swap(delta, scratch);
            }
        }
    }
}

/// The tangent pass of a chain, see [`Pass::tangent`].
struct Tangent<'a> {
    pass: (Activation, &'a [f32], usize),
    chain: &'a [Layer],
    ends: (bool, bool),
    values: (&'a [f32], &'a [Aligned]),
    change: &'a [f32],
    deltas: (&'a mut Aligned, &'a mut Aligned),
}

impl Kernel for Tangent<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { pass, chain, ends, values, change, deltas } = self;
        let (activation, parameters, rows) = pass;
        let ((active, fixed), (input, outputs), (delta, scratch)) = (ends, values, deltas);
        for (i, layer) in chain.iter().enumerate() {
            let x = if i == 0 { input } else { &outputs[i - 1] };
            let dx = if i == 0 && fixed { None } else { Some(&**delta) };
            let n = rows * padded(layer.outputs);
            if layer.is_narrow() {
                scratch[..n].fill(0.0); // a narrow layer does not write its padding
            }
            let is_active = active || i + 1 < chain.len();
            let derivative = if is_active { Finish::Derivative(activation, &outputs[i]) } else { Finish::Same };
            layer.tangent(simd, (parameters, change), rows, (x, dx), &mut scratch[..n], derivative);
            std::mem::swap(delta, scratch);
        }
    }
}

impl<S: Simd> Pass<'_, S> {
    /// The forward pass of a chain. The activation follows every layer except the last; with `active`, it also follows the last layer.
    #[inline(always)]
    fn forward(&self, chain: &[Layer], active: bool, input: &[f32], outputs: &mut [Aligned]) {
        let Self { simd, activation, parameters, rows } = *self;
        simd.call(Forward { activation, parameters, rows, chain, active, input, outputs });
    }

    /// The forward pass of the trunk, then of actor and critic if requested.
    #[inline(always)]
    pub fn forward_all(&self, layout: &Layout, actor: bool, critic: bool, w: &mut Workspace) {
        self.forward(&layout.trunk, true, &w.input, &mut w.trunk);
        let features = w.trunk.last().unwrap_or(&w.input);
        if actor {
            self.forward(&layout.actor, false, features, &mut w.actor);
        }
        if critic {
            self.forward(&layout.critic, false, features, &mut w.critic);
        }
    }

    /// The tangent pass of a chain, after [`forward`](Self::forward): computes the change of its outputs if the parameters change by
    /// `change` and its inputs by `delta`. With `fixed`, the inputs do not change. The change of the outputs replaces `delta`.
    #[inline(always)]
    pub fn tangent(
        &self,
        chain: &[Layer],
        (active, fixed): (bool, bool),
        (input, outputs): (&[f32], &[Aligned]),
        change: &[f32],
        (delta, scratch): (&mut Aligned, &mut Aligned),
    ) {
        let pass = (self.activation, self.parameters, self.rows);
        let (ends, values, deltas) = ((active, fixed), (input, outputs), (delta, scratch));
        self.simd.call(Tangent { pass, chain, ends, values, change, deltas });
    }

    /// The backward pass of a chain. `delta` holds the derivatives with respect to the chain's outputs. With `through`, the derivatives
    /// with respect to its inputs replace them.
    #[inline(always)]
    pub fn backward(
        &self,
        chain: &[Layer],
        (active, through): (bool, bool),
        (input, outputs): (&[f32], &[Aligned]),
        (delta, scratch): (&mut Aligned, &mut Aligned),
        GradientOf { transposed, gradient, start }: GradientOf<'_, '_>,
    ) {
        let pass = (self.activation, self.parameters, self.rows);
        let (ends, values, deltas) = ((active, through), (input, outputs), (delta, scratch));
        self.simd.call(Backward { pass, chain, ends, values, deltas, transposed, gradient, start });
    }
}

/// What the backward pass of a chain computes: the gradient of its weights.
pub(super) struct GradientOf<'a, 'g> {
    /// The transposed weights of the wide layers.
    pub transposed: &'a [f32],
    pub gradient: &'a mut Part<'g>,
    /// Whether the gradient is added to.
    pub start: Start<'a>,
}

/// A part of a batch with its own activations and gradient.
pub(super) struct Lane {
    pub workspace: Workspace,
    pub gradient: Aligned,
    pub sums: Sums,
}
