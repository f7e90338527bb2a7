//! The actor's last layer as a distribution over actions, for the rows of a tile.
//!
//! The last of the actor's activations holds the outputs of the head. They are means, or logits that [`read`](HeadPass::read) turns into
//! log-probabilities. The log standard deviations of Gaussian heads are stored in [`HeadSpace`], one row per row of the tile, so that later
//! code does not depend on their origin.
//!
//! With gSDE (Raffin et al., arXiv 2005.05719), the noise of a row is theta' phi. The vector phi holds the features that the last layer
//! reads, and theta_jk ~ N(0, sigma_jk^2). The variance of action k is sum_j phi_j^2 sigma_jk^2 + 1e-6. As in Stable-Baselines3, no
//! derivative of this variance with respect to phi is computed.

use gradus_base::random::Stream;

use super::layer::{Part, padded};
use super::layout::{Head, Layout};
use super::perceptron::Observed;
use super::product::{Product, Start, product};
use super::workspace::{HeadSpace, Workspace};
use crate::{ActionRows, PolicyOutput, Store, categorical, gaussian};
use gradus_base::math::{exp_inline, ln_inline};
use gradus_base::simd::{Kernel, Simd};

/// Added to the variances of gSDE so that they are never 0.
const VARIANCE_FLOOR: f32 = 1e-6;

/// The decisions of a tile, one per row, and the old and reference distributions of all decisions of the store.
#[derive(Clone, Copy)]
pub(super) struct Decisions<'a> {
    pub store: &'a Store,
    pub indices: &'a [u32],
    pub old: Option<&'a [f32]>,
    pub reference: Option<&'a [f32]>,
}

impl<'a> Decisions<'a> {
    /// Returns the observations of these decisions.
    pub fn observations(self) -> Observed<'a> {
        Observed::Chosen(self.store.numbers(), self.indices)
    }

    /// Returns the masks of these decisions, by row.
    #[inline(always)]
    pub fn masks(self, actions: usize) -> Option<impl Fn(usize) -> &'a [bool]> {
        let masks = self.store.masks.as_deref()?;
        Some(move |row: usize| {
            let begin = self.indices[row] as usize * actions;
            &masks[begin..begin + actions]
        })
    }
}

/// The head of a pass over tiles.
#[derive(Clone, Copy)]
pub(super) struct HeadPass<'a, S> {
    pub simd: S,
    pub layout: &'a Layout,
    pub parameters: &'a [f32],
}

/// Turns the outputs of the actor's last layer into distributions, see [`HeadPass::read`].
struct Distributions<'a> {
    layout: &'a Layout,
    parameters: &'a [f32],
    rows: usize,
    workspace: &'a mut Workspace,
}

impl Kernel for Distributions<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { layout, parameters, rows, workspace: w } = self;
        let head = HeadPass { simd, layout, parameters };
        let stride = padded(layout.actions);
        match layout.head {
            Head::Categorical => {
                let logits = w.tile.outputs_mut(layout.actor_head());
                if !layout.is_narrow() {
                    for row in 0..rows {
                        layout.choices.log_softmax(&mut logits[head.row(row)]);
                        w.head.entropies[row] = layout.choices.entropy(&logits[head.row(row)]);
                    }
                    return;
                }
                let squares = logits.as_chunks_mut::<16>().0.as_chunks_mut::<16>().0;
                let spaces = w.head.columns.iter_mut().zip(w.head.entropies.as_chunks_mut::<16>().0);
                for (rows, ([log_probs, probabilities], entropies)) in squares[..rows.div_ceil(16)].iter_mut().zip(spaces) {
                    let n = layout.actions;
                    *log_probs = *rows;
                    simd.transpose(log_probs);
                    categorical::log_softmax_of(&mut log_probs[..n]);
                    categorical::probabilities_of(&log_probs[..n], probabilities);
                    *entropies = categorical::entropy_of(&log_probs[..n], probabilities);
                    *rows = *log_probs;
                    simd.transpose(rows);
                }
            }
            Head::Gaussian { .. } => {}
            Head::Gsde { .. } => {
                let f_stride = layout.feature_stride();
                let Workspace { tile, head: HeadSpace { log_stds, squares, variances, .. }, .. } = w;
                let phi = tile.inputs_of(&layout.perceptron.layers[layout.actor_head()]);
                squares[..rows * f_stride].iter_mut().zip(phi).for_each(|(square, phi)| *square = phi * phi);
                product(
                    simd,
                    Product {
                        m: rows,
                        n: stride,
                        k: layout.features(),
                        a: squares,
                        a_strides: (f_stride, 1),
                        b: variances,
                        b_stride: stride,
                        c: log_stds,
                        c_stride: stride,
                        start: Start::Zero,
                    },
                );
                log_stds[..rows * stride].iter_mut().for_each(|x| *x = 0.5 * ln_inline(*x + VARIANCE_FLOOR));
            }
        }
    }
}

impl<S: Simd> HeadPass<'_, S> {
    /// Returns the range of row `row`, without its padding, in a buffer whose padded rows have one number per action.
    #[inline(always)]
    fn row(&self, row: usize) -> std::ops::Range<usize> {
        let begin = row * padded(self.layout.actions);
        begin..begin + self.layout.actions
    }

    /// Fills the buffers that depend only on the parameters; must be called before the first tile.
    #[inline(always)]
    pub fn prepare(&self, w: &mut Workspace) {
        let log_stds = &self.parameters[self.layout.log_std_range()];
        match self.layout.head {
            Head::Categorical => {}
            Head::Gaussian { .. } => w.head.log_stds.chunks_exact_mut(log_stds.len()).for_each(|row| row.copy_from_slice(log_stds)),
            Head::Gsde { .. } => {
                w.head.variances.iter_mut().zip(log_stds).for_each(|(variance, log_std)| *variance = exp_inline(2.0 * log_std));
            }
        }
    }

    /// Turns the outputs of the actor's last layer into distributions, in place. `mask` returns the allowed actions of a row.
    #[inline(always)]
    pub fn read<'m>(&self, rows: usize, mask: Option<impl Fn(usize) -> &'m [bool]>, w: &mut Workspace) {
        if let (Head::Categorical, Some(mask)) = (self.layout.head, &mask) {
            let logits = w.tile.outputs_mut(self.layout.actor_head());
            (0..rows).for_each(|row| categorical::mask(&mut logits[self.row(row)], mask(row)));
        }
        self.simd.call(Distributions { layout: self.layout, parameters: self.parameters, rows, workspace: w });
    }

    /// Samples an action for each row from the logits of a narrow categorical head. It replaces [`read`](Self::read), omits the
    /// computations that only learning needs, and has no overhead for a few rows.
    #[inline(always)]
    pub fn draw<'m>(
        &self,
        mask: Option<impl Fn(usize) -> &'m [bool]>,
        streams: &mut [Stream],
        (actions, log_probs): (&mut [u32], &mut [f32]),
        w: &mut Workspace,
    ) {
        let logits = w.tile.outputs_mut(self.layout.actor_head());
        if let Some(mask) = &mask {
            (0..streams.len()).for_each(|row| categorical::mask(&mut logits[self.row(row)], mask(row)));
        }
        let n = self.layout.actions;
        let drawn = actions.chunks_mut(16).zip(log_probs.chunks_mut(16));
        for ((rows, streams), (actions, log_probs)) in logits.as_chunks::<16>().0.chunks(16).zip(streams.chunks_mut(16)).zip(drawn) {
            let (mut columns, mut uniforms) = ([[0.0; 16]; 16], [0.0; 16]);
            for (lane, (row, stream)) in rows.iter().zip(streams).enumerate() {
                for (column, logit) in columns[..n].iter_mut().zip(row) {
                    column[lane] = *logit;
                }
                uniforms[lane] = stream.unit_f32();
            }
            categorical::log_softmax_of(&mut columns[..n]);
            let (chosen, chosen_log_probs) = categorical::sample_of(&columns[..n], &uniforms);
            actions.copy_from_slice(&chosen[..actions.len()]);
            log_probs.copy_from_slice(&chosen_log_probs[..log_probs.len()]);
        }
    }

    /// The log-probabilities or means of row `row`.
    #[inline(always)]
    pub fn numbers<'w>(&self, row: usize, w: &'w Workspace) -> &'w [f32] {
        &w.tile.outputs(self.layout.actor_head())[self.row(row)]
    }

    /// The log standard deviations of row `row`.
    #[inline(always)]
    pub fn log_stds<'w>(&self, row: usize, w: &'w Workspace) -> &'w [f32] {
        &w.head.log_stds[self.row(row)]
    }

    /// Adds theta' phi to the action of row `row`.
    #[inline(always)]
    pub fn add_noise(&self, row: usize, theta: &[f32], w: &Workspace, action: &mut [f32]) {
        let head = &self.layout.perceptron.layers[self.layout.actor_head()];
        let phi = &w.tile.inputs_of(head)[row * self.layout.feature_stride()..];
        for (k, a) in action.iter_mut().enumerate() {
            let mut noise = 0.0_f32;
            for (phi, theta) in phi.iter().zip(theta.chunks_exact(self.layout.actions)) {
                noise = phi.mul_add(theta[k], noise);
            }
            *a += noise;
        }
    }

    /// Returns log pi of action number `action` under the distribution of row `row`.
    #[inline(always)]
    pub fn log_prob(&self, row: usize, actions: &ActionRows, action: usize, w: &Workspace) -> f32 {
        match actions {
            ActionRows::Discrete(actions) => self.layout.choices.log_prob(self.numbers(row, w), actions[action]),
            ActionRows::Continuous { rows, width } => {
                gaussian::log_prob(self.numbers(row, w), self.log_stds(row, w), &rows[action * width..(action + 1) * width])
            }
            ActionRows::OnDevice(_) => actions.not_here(),
        }
    }

    /// Writes the distribution of row `row` into `description`.
    #[inline(always)]
    pub fn describe(&self, row: usize, w: &Workspace, description: &mut [f32]) {
        let (numbers, log_stds) = description.split_at_mut(self.layout.actions);
        numbers.copy_from_slice(self.numbers(row, w));
        if self.layout.head != Head::Categorical {
            log_stds.copy_from_slice(self.log_stds(row, w));
        }
    }

    /// Writes the actor's part of the objective's inputs into `outputs`.
    #[inline(always)]
    pub fn outputs(&self, decisions: Decisions<'_>, w: &mut Workspace) {
        let Workspace { tile, head: space, outputs, .. } = w;
        let head = tile.outputs(self.layout.actor_head());
        let (actions, width) = (&decisions.store.actions, self.layout.distribution_width());
        match actions {
            ActionRows::Discrete(actions) => {
                for (row, index) in decisions.indices.iter().enumerate() {
                    let log_prob = self.layout.choices.log_prob(&head[self.row(row)], actions[*index as usize]);
                    outputs[row] = PolicyOutput { log_prob, entropy: space.entropies[row], ..PolicyOutput::default() };
                }
            }
            ActionRows::Continuous { rows, width } => {
                for (row, index) in decisions.indices.iter().enumerate() {
                    let log_stds = &space.log_stds[self.row(row)];
                    let action = &rows[*index as usize * width..(*index as usize + 1) * width];
                    let log_prob = gaussian::log_prob(&head[self.row(row)], log_stds, action);
                    outputs[row] = PolicyOutput { log_prob, entropy: gaussian::entropy(log_stds), ..PolicyOutput::default() };
                }
            }
            ActionRows::OnDevice(_) => actions.not_here(),
        }
        for (row, index) in decisions.indices.iter().enumerate() {
            let range = *index as usize * width..(*index as usize + 1) * width;
            let numbers = &head[self.row(row)];
            if let Some(old) = decisions.old.map(|old| &old[range.clone()]) {
                outputs[row].kl_old = match actions {
                    ActionRows::Discrete(_) => categorical::kl(old, numbers),
                    _ => gaussian::kl(old, numbers, &space.log_stds[self.row(row)]),
                };
            }
            if let Some(reference) = decisions.reference.map(|reference| &reference[range]) {
                outputs[row].kl_ref = match actions {
                    ActionRows::Discrete(_) => categorical::kl(numbers, reference),
                    _ => gaussian::kl_ref(reference, numbers, &space.log_stds[self.row(row)]),
                };
            }
        }
    }

    /// Computes, from the derivatives in `outputs`, the derivatives with respect to the outputs of the actor's last layer. Adds the derivatives with respect to the log standard deviations to `gradient` (or sets it, with `Start::Zero`).
    #[inline(always)]
    pub fn backward<'d>(&self, decisions: Decisions<'d>, w: &mut Workspace, gradient: &mut Part<'_>, start: Start<'_>) {
        let Workspace { tile, head: space, outputs, .. } = w;
        let (head, delta) = tile.outputs_and_derivatives(self.layout.actor_head());
        let (actions, row_width) = (&decisions.store.actions, self.layout.distribution_width());
        let stored = |of: Option<&'d [f32]>, index: u32| of.map(|of| &of[index as usize * row_width..(index as usize + 1) * row_width]);
        match actions {
            ActionRows::Discrete(actions) => {
                if self.layout.is_narrow() {
                    self.backward_columns(decisions, space, outputs, delta);
                } else {
                    delta[..decisions.indices.len() * padded(self.layout.actions)].fill(0.0);
                }
                for (row, index) in decisions.indices.iter().enumerate() {
                    let (log_probs, d) = (&head[self.row(row)], &mut delta[self.row(row)]);
                    if !self.layout.is_narrow() {
                        self.layout.choices.backward(log_probs, actions[*index as usize], space.entropies[row], outputs[row], d);
                    }
                    if let Some(old) = stored(decisions.old, *index) {
                        categorical::backward_kl(old, log_probs, outputs[row].kl_old, d);
                    }
                    if let Some(reference) = stored(decisions.reference, *index) {
                        self.layout.choices.backward_kl_ref(log_probs, reference, outputs[row].kl_ref, d);
                    }
                }
            }
            ActionRows::Continuous { rows, width } => {
                delta[..decisions.indices.len() * padded(self.layout.actions)].fill(0.0);
                let HeadSpace { log_stds, d_log_stds, .. } = space;
                for (row, index) in decisions.indices.iter().enumerate() {
                    let distribution = (&head[self.row(row)], &log_stds[self.row(row)]);
                    let action = &rows[*index as usize * width..(*index as usize + 1) * width];
                    gaussian::backward(distribution, action, outputs[row], (&mut delta[self.row(row)], &mut d_log_stds[self.row(row)]));
                    if let Some(old) = stored(decisions.old, *index) {
                        let derivatives = (&mut delta[self.row(row)], &mut d_log_stds[self.row(row)]);
                        gaussian::backward_kl(old, distribution, outputs[row].kl_old, derivatives);
                    }
                    if let Some(reference) = stored(decisions.reference, *index) {
                        let derivatives = (&mut delta[self.row(row)], &mut d_log_stds[self.row(row)]);
                        gaussian::backward_kl_ref(reference, distribution, outputs[row].kl_ref, derivatives);
                    }
                }
                self.backward_log_stds(decisions.indices.len(), space, gradient.of(self.layout.log_std_range()), start);
            }
            ActionRows::OnDevice(_) => actions.not_here(),
        }
    }

    /// Computes the derivatives through log pi(a) and H with respect to the logits of a narrow categorical head.
    #[inline(always)]
    fn backward_columns(&self, decisions: Decisions<'_>, space: &HeadSpace, outputs: &[PolicyOutput], delta: &mut [f32]) {
        let ActionRows::Discrete(actions) = &decisions.store.actions else { return };
        let squares = delta.as_chunks_mut::<16>().0.as_chunks_mut::<16>().0;
        let groups = decisions.indices.chunks(16).zip(outputs.chunks(16)).zip(squares);
        let spaces = space.columns.iter().zip(space.entropies.as_chunks::<16>().0);
        for (((indices, outputs), square), ([log_probs, probabilities], entropies)) in groups.zip(spaces) {
            let (mut chosen, mut d_log_probs, mut d_entropies) = ([0; 16], [0.0; 16], [0.0; 16]);
            for (i, (index, output)) in indices.iter().zip(outputs).enumerate() {
                (chosen[i], d_log_probs[i], d_entropies[i]) = (actions[*index as usize], output.log_prob, output.entropy);
            }
            *square = [[0.0; 16]; 16];
            let n = self.layout.actions;
            categorical::backward_of(&log_probs[..n], probabilities, &chosen, entropies, (&d_log_probs, &d_entropies), square);
            self.simd.transpose(square);
        }
    }

    /// Adds to the gradient of the log standard deviations' parameters, given the derivatives with respect to the rows' log standard
    /// deviations. For gSDE, d log sigma_k / d log sigma_jk = phi_j^2 sigma_jk^2 / sigma_k^2; [`finish`](Self::finish) applies the factor
    /// sigma_jk^2.
    #[inline(always)]
    fn backward_log_stds(&self, rows: usize, space: &mut HeadSpace, gradient: &mut [f32], start: Start<'_>) {
        let stride = padded(self.layout.actions);
        let HeadSpace { log_stds, d_log_stds, squares, .. } = space;
        if let Head::Gaussian { .. } = self.layout.head {
            if matches!(start, Start::Zero) {
                gradient.fill(0.0);
            }
            for row in d_log_stds.chunks_exact(stride).take(rows) {
                gradient.iter_mut().zip(row).for_each(|(sum, d)| *sum += d);
            }
            return;
        }
        for row in 0..rows {
            let row = self.row(row); // excludes the padding, which must stay 0
            d_log_stds[row.clone()].iter_mut().zip(&log_stds[row]).for_each(|(d, log_std)| *d *= exp_inline(-2.0 * log_std));
        }
        product(
            self.simd,
            Product {
                m: self.layout.features(),
                n: stride,
                k: rows,
                a: squares,
                a_strides: (1, self.layout.feature_stride()),
                b: d_log_stds,
                b_stride: stride,
                c: gradient,
                c_stride: stride,
                start,
            },
        );
    }

    /// Multiplies the change of the outputs of the actor's last layer by weight x Fisher information, in place. Adds the product
    /// for the log standard deviations to `gradient` (or sets it, with `Start::Zero`). The Fisher information of a Gaussian is 1 / sigma^2
    /// for a mean and 2 for a log sigma.
    #[inline(always)]
    pub fn fisher(&self, weights: &[f32], w: &mut Workspace, vector: &[f32], gradient: &mut Part<'_>, start: Start<'_>) {
        let Workspace { tile, head: space, .. } = w;
        let (head, delta) = tile.outputs_and_derivatives(self.layout.actor_head());
        if self.layout.head == Head::Categorical {
            for (row, weight) in weights.iter().enumerate() {
                self.layout.choices.fisher(&head[self.row(row)], *weight, &mut delta[self.row(row)]);
            }
            return;
        }
        let gradient = gradient.of(self.layout.log_std_range());
        if matches!(start, Start::Zero) {
            gradient.fill(0.0);
        }
        for (row, weight) in weights.iter().enumerate() {
            for (t, log_std) in delta[self.row(row)].iter_mut().zip(&space.log_stds[self.row(row)]) {
                *t *= weight * exp_inline(-2.0 * log_std);
            }
            gradient.iter_mut().zip(&vector[self.layout.log_std_range()]).for_each(|(sum, v)| *sum += 2.0 * weight * v);
        }
    }

    /// Applies the factor sigma_jk^2 of gSDE, which is the same for all rows; must be called after the last tile.
    #[inline(always)]
    pub fn finish(&self, w: &Workspace, gradient: &mut Part<'_>) {
        if let Head::Gsde { .. } = self.layout.head {
            let gradient = gradient.of(self.layout.log_std_range());
            gradient.iter_mut().zip(w.head.variances.iter()).for_each(|(g, variance)| *g *= variance);
        }
    }
}
