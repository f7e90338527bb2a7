//! Evaluates an objective on the host and computes its gradient on the device.

use tch::{Kind, TchError, Tensor, no_grad};

use super::parameters::{replaced, to_host};
use crate::{Batch, Objective, PolicyOutput, Sums};
use gradus_base::threads;

/// Number of decisions in a slice. A slice is evaluated by one thread.
const SLICE: usize = 512;

/// A policy's outputs for the decisions of a batch. Each tensor has one number per decision. If a gradient is wanted, the tensors are part
/// of the autograd graph.
pub struct Said {
    /// log pi(a|s).
    pub log_prob: Tensor,
    /// H(pi(.|s)).
    pub entropy: Tensor,
    /// V(s).
    pub value: Tensor,
    /// KL(pi_old || pi), if the batch has old distributions.
    pub kl_old: Option<Tensor>,
    /// KL(pi || pi_ref), if the batch has reference distributions.
    pub kl_ref: Option<Tensor>,
}

/// Returns the ends of the slices of `n` decisions. They do not depend on the number of threads.
pub(super) fn even_slices(n: usize) -> Vec<usize> {
    (0..n).step_by(SLICE).skip(1).chain([n]).collect()
}

/// Evaluates an objective over the parts of a batch. If `with_gradient` is true, also sums the gradients of the parts. `part` computes the
/// policy's outputs for one part and calls [`forward_backward`].
pub(super) fn forward_backward_parts<P>(
    parts: impl Iterator<Item = P>,
    leaf: &Tensor,
    with_gradient: bool,
    mut part: impl FnMut(P) -> Result<(Sums, Option<Tensor>), TchError>,
) -> Result<(Sums, Option<Tensor>), TchError> {
    let (mut sums, mut gradient): (Sums, Option<Tensor>) = (Sums::default(), None);
    for which in parts {
        let (more, loss) = if with_gradient { part(which)? } else { no_grad(|| part(which))? };
        sums.add(&more);
        if let Some(loss) = loss {
            for part in Tensor::f_run_backward(&[loss], &[leaf], false, false)? {
                gradient = Some(match gradient {
                    Some(mut sum) => sum.f_add_(&part)?,
                    None => part,
                });
            }
        }
    }
    Ok((sums, gradient))
}

/// Decisions, their weights, and the number of the decision after each slice of them.
pub(super) struct Slices<'a> {
    pub indices: &'a [u32],
    pub weights: &'a [f32],
    pub ends: &'a [usize],
}

impl Said {
    /// Returns the outputs as one tensor with a row for each decision.
    pub fn rows(&self) -> Result<Tensor, TchError> {
        let columns = [&self.log_prob, &self.entropy, &self.value].into_iter().chain(&self.kl_old).chain(&self.kl_ref);
        Tensor::f_stack(&columns.collect::<Vec<_>>(), 1)?.f_to_kind(Kind::Float)
    }
}

/// Evaluates an objective over slices of decisions. Slice i ends before decision `ends[i]`, with which slice i + 1 begins. Returns the
/// objective's sums. If `with_gradient` is true, also returns the sum over all outputs of output x the objective's derivative with respect
/// to this output. The derivatives are constants, so the gradient of this sum is the objective's gradient.
pub(super) fn forward_backward(
    said: &Said,
    slices: Slices<'_>,
    objective: &dyn Objective,
    with_gradient: bool,
) -> Result<(Sums, Option<Tensor>), TchError> {
    let rows = said.rows()?;
    let (sums, derivatives) = derivatives(&rows, [said.kl_old.is_some(), said.kl_ref.is_some()], slices, objective, with_gradient)?;
    Ok((sums, derivatives.map(|derivatives| rows.f_mul(&derivatives)?.f_sum(Kind::Float)).transpose()?))
}

/// Evaluates an objective for the rows of [`Said`], which has the two divergences if `has_kl` is true. Returns the objective's sums and, if
/// `with_gradient` is true, its derivatives with respect to the rows.
pub(super) fn derivatives(
    rows: &Tensor,
    has_kl: [bool; 2],
    Slices { indices, weights, ends }: Slices<'_>,
    objective: &dyn Objective,
    with_gradient: bool,
) -> Result<(Sums, Option<Tensor>), TchError> {
    let k = 3 + has_kl.iter().filter(|has| **has).count();
    let [kl_old, kl_ref] = [has_kl[0].then_some(3), has_kl[1].then_some(k - 1)];
    let mut sums = Sums::default();
    // the objective's derivatives with respect to the outputs of a slice overwrite these outputs
    let mut evaluate = |numbers: &mut [f32]| {
        let mut slices = Vec::with_capacity(ends.len());
        let (mut rest, mut begin) = (numbers, 0);
        for end in ends {
            let (part, behind) = rest.split_at_mut((end - begin) * k);
            slices.push((begin..*end, part, Sums::default()));
            (rest, begin) = (behind, *end);
        }
        threads::for_each(&mut slices, |_, (range, numbers, sums)| {
            let divergence = |row: &[f32], column: Option<usize>| column.map_or(0.0, |column| row[column]);
            let output = |row: &[f32]| PolicyOutput {
                log_prob: row[0],
                entropy: row[1],
                value: row[2],
                kl_old: divergence(row, kl_old),
                kl_ref: divergence(row, kl_ref),
            };
            let mut outputs: Vec<PolicyOutput> = numbers.chunks_exact(k).map(output).collect();
            objective.slice(&indices[range.clone()], &weights[range.clone()], &mut outputs, sums);
            for (row, derivative) in numbers.chunks_exact_mut(k).zip(outputs) {
                row[..3].copy_from_slice(&[derivative.log_prob, derivative.entropy, derivative.value]);
                kl_old.into_iter().for_each(|column| row[column] = derivative.kl_old);
                kl_ref.into_iter().for_each(|column| row[column] = derivative.kl_ref);
            }
        });
        slices.iter().for_each(|(.., part)| sums.add(part));
    };
    if !with_gradient {
        evaluate(&mut to_host(rows)?);
        return Ok((sums, None));
    }
    let derivatives = replaced(rows, evaluate)?;
    Ok((sums, Some(derivatives)))
}

/// Panics unless the batch has one weight per index. Also panics if it has old or reference distributions that are not `width` numbers for
/// each of `decisions` decisions.
pub(super) fn assert_batch(batch: Batch<'_>, decisions: usize, width: usize) {
    assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
    for rows in [batch.old, batch.reference].into_iter().flatten() {
        let expected = decisions * width;
        assert_eq!(rows.len(), expected, "distributions: expected {expected} numbers, got {}", rows.len());
    }
}

/// Selects the rows with these indices. A row has `width` numbers.
pub(super) fn rows_of(of: &[f32], indices: &[u32], width: usize) -> Vec<f32> {
    indices.iter().flat_map(|index| &of[*index as usize * width..][..width]).copied().collect()
}
