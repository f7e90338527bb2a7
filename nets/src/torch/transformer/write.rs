//! Generation of whole completions. All tokens are sampled on the device. [`Transformer::write`] copies them to the host at the end.
//!
//! An actor copies the log-probabilities for each token to the host and samples there. Here the uniform numbers are computed on the device
//! in advance, and are the same as those of the host's streams. The next pass reads a sampled token without a copy to the host.

use std::sync::PoisonError;

use gradus_base::random::Purpose;
use tch::{Device, Kind, TchError, Tensor, no_grad};

use super::Transformer;
use super::act::TextActor;
use super::trunk::{Attend, Memory, Weights};
use crate::torch::fault::one_line;
use crate::torch::parameters::{to_device, to_host, whole_to_host};
use crate::torch::raw::Graph;
use crate::torch::worlds::random::{halves, sample, unit_f32, words};

/// Number of tokens between two removals of ended completions. Each removal waits for the device.
const LOOK_EVERY: usize = 16;

/// The same if no completion has ended: the number doubles each time, up to this one.
const LONGEST_WINDOW: usize = 64;

/// The random numbers of a completion: a stream of actions, and a position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// Index of the stream: the number of the environment.
    pub index: u64,
    /// Number of words drawn from the stream before the completion.
    pub position: u64,
}

/// Completions, extended to equal length. Tokens after the end of a completion have no meaning.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Number of tokens of each completion, including those after its end.
    pub length: usize,
    /// The tokens, completion after completion.
    pub tokens: Vec<u32>,
    /// log pi of each token.
    pub log_probs: Vec<f32>,
}

/// Completions that are being generated. Those that ended are removed now and then.
struct Going {
    /// The logits of the next token.
    logits: Tensor,
    /// Number of tokens of each prompt.
    lengths: Tensor,
    /// The uniform numbers of all tokens: tokens x completions.
    uniforms: Tensor,
    /// The numbers of the completions that are not removed yet.
    remaining: Tensor,
    /// Whether each of them has ended.
    is_over: Tensor,
    memories: Vec<Memory>,
}

impl Going {
    /// Removes the completions that have ended. Returns whether any remain.
    fn shrink(&mut self) -> Result<bool, TchError> {
        let left = self.is_over.f_logical_not()?.f_nonzero()?.f_squeeze_dim(-1)?;
        if left.numel() == self.remaining.numel() {
            return Ok(true);
        }
        let keep = |tensor: &Tensor| tensor.f_index_select(0, &left);
        for (keys, values) in &mut self.memories {
            (*keys, *values) = (keep(keys)?, keep(values)?);
        }
        (self.logits, self.lengths) = (keep(&self.logits)?, keep(&self.lengths)?);
        (self.remaining, self.is_over) = (keep(&self.remaining)?, keep(&self.is_over)?);
        self.uniforms = self.uniforms.f_index_select(1, &left)?;
        Ok(left.numel() > 0)
    }
}

/// Completions on the device.
pub(in crate::torch) struct Drawn {
    /// Number of rows of `tokens` that were sampled; later rows are 0.
    length: i64,
    /// Tokens x completions.
    pub tokens: Tensor,
    /// log pi of each token: tokens x completions.
    pub log_probs: Tensor,
}

impl Transformer {
    /// Samples a completion of at most `most` tokens for each prompt, with streams of actions of the run with seed `seed`. A completion
    /// ends with the first token whose entry in `ends` is true. All completions are extended to an equal length, at least that of the
    /// longest completion. An error is one line, and [`fault`](crate::Behaviour::fault) returns it from then on.
    ///
    /// # Panics
    /// Unless every prompt has a token and an entry in `positions`, every token of the vocabulary has an entry in `ends`, and the context has
    /// space for `most` tokens after the longest prompt.
    pub fn write(
        &self,
        prompts: &[Vec<u32>],
        (seed, positions): (u64, &[StreamPosition]),
        most: usize,
        ends: &[bool],
    ) -> Result<Written, String> {
        let longest = prompts.iter().map(Vec::len).max().unwrap_or(0);
        assert_eq!(prompts.len(), positions.len(), "positions: expected one per prompt");
        assert_eq!(ends.len(), self.vocabulary, "ends: expected one per token");
        assert!(prompts.iter().all(|prompt| !prompt.is_empty()), "prompts: expected at least 1 token, got 0");
        assert!(longest + most <= self.context, "completions: expected at most {} tokens, got {most}", self.context - longest);
        if prompts.is_empty() || most == 0 {
            return Ok(Written { length: 0, tokens: Vec::new(), log_probs: Vec::new() });
        }
        no_grad(|| self.write_all(prompts, (seed, positions), (longest, most), ends)).map_err(|error| {
            self.fault.note(&error);
            one_line(&error)
        })
    }

    fn write_all(
        &self,
        prompts: &[Vec<u32>],
        (seed, positions): (u64, &[StreamPosition]),
        (longest, most): (usize, usize),
        ends: &[bool],
    ) -> Result<Written, TchError> {
        let device = self.parameters.device();
        let uniforms = self.uniforms(seed, positions, most)?;
        let lengths = to_device(&prompts.iter().map(|prompt| prompt.len() as i64).collect::<Vec<_>>(), device)?;
        let mut actor = TextActor::new(self);
        let logits = actor.read(prompts)?;
        let drawn = self.go_on((actor, logits), (lengths, longest), uniforms, &to_device(ends, device)?)?;
        let down = |tensor: &Tensor| tensor.f_narrow(0, 0, drawn.length)?.f_transpose(0, 1)?.f_contiguous();
        Ok(Written {
            length: drawn.length as usize,
            tokens: whole_to_host(&down(&drawn.tokens)?)?.into_iter().map(|token| token as u32).collect(),
            log_probs: to_host(&down(&drawn.log_probs)?)?,
        })
    }

    /// Samples completions as [`write`](Transformer::write) does, but with prompts and results on the device. Completion i continues prompt
    /// number `of[i]` with the random numbers of `positions[i]`.
    pub(in crate::torch) fn write_there(
        &self,
        (prompts, lengths): (&Tensor, &Tensor),
        of: &Tensor,
        (seed, positions): (u64, &[StreamPosition]),
        (most, ends): (usize, &Tensor),
    ) -> Result<Drawn, TchError> {
        let uniforms = self.uniforms(seed, positions, most)?;
        let mut actor = TextActor::new(self);
        let logits = actor.read_there((prompts, lengths), of)?;
        self.go_on((actor, logits), (lengths.f_index_select(0, of)?, prompts.size()[1] as usize), uniforms, ends)
    }

    /// Continues texts whose logits the actor has computed. Each token of the completions has a row in `uniforms`.
    fn go_on(
        &self,
        (actor, logits): (TextActor<'_>, Tensor),
        (lengths, longest): (Tensor, usize),
        uniforms: Tensor,
        ends: &Tensor,
    ) -> Result<Drawn, TchError> {
        let (device, n, most) = (self.parameters.device(), lengths.size()[0], uniforms.size()[0] as usize);
        let TextActor { weights: Some(weights), memories, .. } = actor else { unreachable!("the actor has read the prompts") };
        let zeros = |kind| Tensor::f_zeros([most as i64, n], (kind, device));
        let (tokens, log_probs) = (zeros(Kind::Int64)?, zeros(Kind::Float)?);
        let remaining = Tensor::f_arange(n, (Kind::Int64, device))?;
        let is_over = Tensor::f_zeros([n], (Kind::Bool, device))?;
        let row = Tensor::f_zeros([1], (Kind::Int64, device))?;
        let mut going = Going { logits, lengths, uniforms, remaining, is_over, memories };

        let (mut length, mut window) = (0, LOOK_EVERY);
        let mut last = self.repeated.lock().unwrap_or_else(PoisonError::into_inner).take();
        while length < most {
            let count = window.min(most - length);
            let reach = (longest + length + count).min(self.context) as i64;
            let step = |reads| self.step(&going, (&weights, reach, ends), (&tokens, &log_probs, &row), reads);
            match device {
                // the launches take the host longer than the GPU, so the GPU repeats those of one token; the first token prepares libtorch's
                // libraries, which a recording cannot
                Device::Cuda(gpu) if count > 2 && Graph::is_supported() => {
                    step(true)?;
                    let (mut graph, ()) = Graph::record(gpu, last.as_ref(), || step(true))?;
                    (1..count).for_each(|_| graph.replay());
                    last = Some(graph);
                }
                _ => (1..=count).try_for_each(|token| step(length + token < most))?,
            }
            length += count;
            let before = going.remaining.numel();
            if length < most && !going.shrink()? {
                break;
            }
            window = if going.remaining.numel() == before { (2 * window).min(LONGEST_WINDOW) } else { LOOK_EVERY };
        }
        *self.repeated.lock().unwrap_or_else(PoisonError::into_inner) = last;
        Ok(Drawn { length: length as i64, tokens, log_probs })
    }

    /// Samples the next token of every text and, if `reads` is true, reads it, in place and without waiting for the device. `row` is the token's
    /// number. The queries look at the first `reach` keys.
    fn step(
        &self,
        going: &Going,
        (weights, reach, ends): (&Weights, i64, &Tensor),
        (tokens, log_probs, row): (&Tensor, &Tensor, &Tensor),
        reads: bool,
    ) -> Result<(), TchError> {
        let [logits, is_over, row] = [&going.logits, &going.is_over, row].map(Tensor::shallow_clone);
        let distribution = logits.f_log_softmax(-1, Kind::Float)?;
        let token = sample(&distribution, &going.uniforms.f_index_select(0, &row)?.f_squeeze_dim(0)?)?;
        let log_prob = distribution.f_gather(-1, &token.f_unsqueeze(-1)?, false)?.f_squeeze_dim(-1)?;
        let at = [Some(row.shallow_clone()), Some(going.remaining.shallow_clone())];
        let _ = tokens.shallow_clone().f_index_put_(&at, &token, false)?;
        let _ = log_probs.shallow_clone().f_index_put_(&at, &log_prob, false)?;
        let _ = is_over.shallow_clone().f_logical_or_(&ends.f_index_select(0, &token)?)?;

        if !reads {
            return Ok(());
        }
        let places = going.lengths.f_add(&row)?;
        let device = self.parameters.device();
        // the last token of all may be one more than the context holds; nobody reads what follows it
        let places = places.f_clamp_max(self.context as i64 - 1)?;
        let allowed = Tensor::f_arange(reach, (Kind::Int64, device))?.f_unsqueeze(0)?.f_le_tensor(&places.f_unsqueeze(1)?)?;
        let allowed = allowed.f_unsqueeze(1)?.f_unsqueeze(1)?;
        let rows = Tensor::f_arange(token.size()[0], (Kind::Int64, device))?;
        let mut memories: Vec<_> = going.memories.iter().map(|(keys, values)| (keys.shallow_clone(), values.shallow_clone())).collect();
        let attend = Attend::Next { memories: &mut memories, rows: &rows, places: &places, allowed: &allowed };
        let x = weights.forward(&self.config, ("model", &token.f_unsqueeze(1)?), Some(&places), attend)?.f_squeeze_dim(1)?;
        logits.shallow_clone().f_copy_(&weights.logits(&x, self.config.temperature)?)?;
        let _ = row.shallow_clone().f_add_scalar_(1)?;
        Ok(())
    }

    /// Returns the uniform numbers for the next `most` tokens of each of `positions`: tokens x completions.
    fn uniforms(&self, seed: u64, positions: &[StreamPosition], most: usize) -> Result<Tensor, TchError> {
        let device = self.parameters.device();
        let up =
            |of: fn(&StreamPosition) -> u64| to_device(&positions.iter().map(|position| of(position) as i64).collect::<Vec<_>>(), device);
        let (indices, first, skipped) =
            (up(|position| position.index)?, up(|position| position.position / 4)?, up(|position| position.position % 4)?);
        let count = |n: usize| Tensor::f_arange(n as i64, (Kind::Int64, device))?.f_unsqueeze(-1);
        let blocks = count((most + 3).div_ceil(4))?.f_add(&first)?;
        let drawn = words(&halves(seed), Purpose::Action, &indices, &blocks)?;
        let drawn = Tensor::f_stack(&drawn, 1)?.f_flatten(0, 1)?;
        unit_f32(&drawn.f_gather(0, &count(most)?.f_add(&skipped)?, false)?)
    }
}
