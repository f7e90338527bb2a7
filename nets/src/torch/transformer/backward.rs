//! The gradient of a micro-batch, computed from the outputs back in segments: the head in chunks of decisions, so that the logits of a whole batch are never held, and
//! the trunk as a whole or, with gradient checkpointing, layer by layer, each computed again.

use std::ops::Range;

use tch::{Kind, TchError, Tensor, no_grad};

use super::super::forward_backward::{Slices, derivatives};
use super::super::library::use_threads;
use super::super::parameters::{Parameters, to_device};
use super::trunk::{Attend, Weights};
use super::{Part, Rows, Transformer};
use crate::{Batch, Critic, Objective, Sums};

/// The most logits that are held at once.
pub(super) const LOGITS: usize = 1 << 24;
/// The same on a GPU, where each part has launches of its own and adds up the gradient of all embeddings.
pub(super) const LOGITS_ON_GPU: usize = 1 << 27;

/// A trunk's pass over the texts of a part.
struct Pass {
    prefix: &'static str,
    /// What each layer read, with gradient checkpointing.
    read: Vec<Tensor>,
    /// The output of the last layer for the last token of each prefix, before the last norm. Without checkpoints it is part of the autograd graph.
    ends: Tensor,
}

/// Adds the gradient of a segment's `loss` with respect to the parameters that the segment may read to `gradient`, and returns the gradient with respect to `of`.
fn through<const N: usize>(
    (parameters, weights): (&Parameters, &Weights),
    loss: &Tensor,
    of: [&Tensor; N],
    is_read: impl Fn(&str) -> bool,
    gradient: &mut Option<Tensor>,
) -> Result<[Tensor; N], TchError> {
    let (names, leaves): (Vec<&str>, Vec<&Tensor>) = weights.trained(is_read).unzip();
    let inputs: Vec<&Tensor> = of.into_iter().chain(leaves).collect();
    let mut parts = if inputs.is_empty() { Vec::new() } else { Tensor::f_run_backward(&[loss], &inputs, false, false)? }.into_iter();
    let own = std::array::from_fn(|_| parts.next().unwrap_or_else(Tensor::new));
    for (name, part) in names.into_iter().zip(parts).filter(|(_, part)| part.defined()) {
        no_grad(|| parameters.add_to(gradient, name, &part))?;
    }
    Ok(own)
}

fn leaf(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_detach()?.f_set_requires_grad(true)
}

impl Transformer {
    /// Divides decisions so that their logits are held at once.
    pub(super) fn chunks(&self, decisions: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let at_once = self.chunk;
        (0..decisions).step_by(at_once).map(move |begin| begin..decisions.min(begin + at_once))
    }

    /// Evaluates an objective over the decisions of a part. If there is a `gradient` (`None` in it if it is 0), adds that of the part.
    pub(super) fn in_segments(
        &self,
        rows: &Rows,
        part: &Part,
        batch: Batch<'_>,
        (objective, slices): (&dyn Objective, Slices<'_>),
        gradient: Option<&mut Option<Tensor>>,
    ) -> Result<Sums, TchError> {
        let weights = if gradient.is_some() { self.weights()?.leaves()? } else { self.weights()? };
        let (config, device) = (&self.config, self.parameters.device());
        let question = &part.question;
        use_threads(self.size(), question.texts.len() * question.longest);
        let tokens = rows.tokens.f_narrow(1, 0, question.longest as i64)?.f_index_select(0, &to_device(&question.texts, device)?)?;
        let ends = to_device(&question.ends, device)?;
        let turns = weights.turns(None, tokens.size()[1])?;
        let keeps_layers = self.torch.gradient_checkpointing;
        let layer =
            |prefix: &str, number: usize, x: &Tensor| weights.layer(config, (prefix, number), x, turns.as_ref(), &mut Attend::Whole(None));
        let at_ends = |x: &Tensor| x.f_reshape([-1, config.width as i64])?.f_index_select(0, &ends);
        let pass = |prefix: &'static str| {
            let run = || {
                let (mut x, mut read) = (weights.embed((prefix, &tokens), None)?, Vec::new());
                for number in 0..config.layers {
                    let next = layer(prefix, number, &x)?;
                    if keeps_layers {
                        read.push(x);
                    }
                    x = next;
                }
                Ok::<_, TchError>(Pass { prefix, read, ends: at_ends(&x)? })
            };
            if gradient.is_some() && !keeps_layers { run() } else { no_grad(run) }
        };
        let mut passes = vec![pass("model")?];
        if config.critic == Critic::Separate {
            passes.push(pass("critic")?);
        }
        let last = passes.len() - 1;

        // the outputs, in chunks of decisions
        let chunks: Vec<Range<usize>> = self.chunks(part.rows.len()).collect();
        let narrow = |x: &Tensor, range: &Range<usize>| x.f_narrow(0, range.start as i64, range.len() as i64);
        let said = |heads: &[Tensor], range: &Range<usize>| {
            let normed = heads.iter().zip(&passes).map(|(head, pass)| weights.last_norm(config, pass.prefix, head));
            let normed = normed.collect::<Result<Vec<_>, TchError>>()?;
            self.said_of((&weights, rows), [&normed[0], &normed[last]], &part.rows[range.clone()], batch)?.rows()
        };
        let ends_of = |range: &Range<usize>| passes.iter().map(|pass| narrow(&pass.ends, range)).collect::<Result<Vec<_>, TchError>>();
        let output = |range: &Range<usize>| no_grad(|| said(&ends_of(range)?, range));
        let outputs = Tensor::f_cat(&chunks.iter().map(output).collect::<Result<Vec<_>, TchError>>()?, 0)?;
        let has_kl = [batch.old.is_some(), batch.reference.is_some()];
        let (sums, derivatives) = derivatives(&outputs, has_kl, slices, objective, gradient.is_some())?;
        let (Some(gradient), Some(derivatives)) = (gradient, derivatives) else { return Ok(sums) };

        // the head, and what reaches the trunks
        let of = (&self.parameters, &weights);
        let is_of_head = |name: &str| !name.contains(".layers.") && !name.ends_with("embed_positions.weight");
        let mut back: Vec<Vec<Tensor>> = passes.iter().map(|_| Vec::new()).collect();
        for range in &chunks {
            let leaves = ends_of(range)?.iter().map(leaf).collect::<Result<Vec<_>, TchError>>()?;
            let loss = said(&leaves, range)?.f_mul(&narrow(&derivatives, range)?)?.f_sum(Kind::Float)?;
            let reached = match &leaves[..] {
                [policy, critic] => through(of, &loss, [policy, critic], is_of_head, gradient)?.into_iter().collect(),
                _ => Vec::from(through(of, &loss, [&leaves[0]], is_of_head, gradient)?),
            };
            back.iter_mut().zip(reached).for_each(|(all, part)| all.push(part));
        }

        for (Pass { prefix, read, ends: outputs }, back) in passes.iter().zip(back) {
            // the derivative with respect to an output that the objective does not use is not defined
            if back.iter().any(|part| !part.defined()) {
                continue;
            }
            let back = Tensor::f_cat(&back, 0)?;
            let is_of_trunk = |name: &str| name.starts_with(prefix) || name == "model.embed_tokens.weight";
            if !keeps_layers {
                through(of, &outputs.f_mul(&back)?.f_sum(Kind::Float)?, [], is_of_trunk, gradient)?;
                continue;
            }
            let shape = read[0].size();
            let mut back = no_grad(|| {
                let all = Tensor::f_zeros([shape[0] * shape[1], shape[2]], (Kind::Float, device))?;
                all.f_index_add(0, &ends, &back)?.f_view(shape.as_slice())
            })?;
            for (number, x) in read.iter().enumerate().rev() {
                let x = leaf(x)?;
                let loss = layer(prefix, number, &x)?.f_mul(&back)?.f_sum(Kind::Float)?;
                let own = format!("{prefix}.layers.{number}.");
                [back] = through(of, &loss, [&x], |name| name.starts_with(&own), gradient)?;
            }
            let is_embedding = |name: &str| is_of_trunk(name) && name.contains(".embed_");
            if weights.trained(is_embedding).next().is_some() {
                let loss = weights.embed((prefix, &tokens), None)?.f_mul(&back)?.f_sum(Kind::Float)?;
                through(of, &loss, [], is_embedding, gradient)?;
            }
        }
        Ok(sums)
    }
}
