//! The task [`gradus_envs::text::TargetSum`] as a tensor program, which draws the problems and verifies the completions.
//!
//! The host supplies a table of the prompts of all target numbers. Sums are whole numbers. If the device supports f64, rewards are computed
//! in f64 and have the same bits as on the host.

use gradus_base::random::Purpose;
use gradus_envs::text::{TargetSum as Task, TextOptions, TextWorld};
use tch::{Device, Kind, TchError, Tensor};

use super::random::{high, low, words};
use crate::torch::parameters::to_device;

/// Number of blocks of random words searched at once for an unbiased word. Nearly always the first word is unbiased.
const BLOCKS: i64 = 1;

/// The task on a device.
pub(super) struct TargetSum {
    largest: i64,
    /// The prompt of each target number, padded with 0: numbers x tokens.
    pub prompts: Tensor,
    /// Number of tokens of each prompt.
    pub lengths: Tensor,
    eos: i64,
    options: TextOptions,
    kind: Kind,
}

/// Verdicts on completions. Each tensor has one entry per completion.
pub(super) struct Verdicts {
    /// Rewards, penalties included, in f32.
    pub rewards: Tensor,
    /// Number of tokens, including EOS.
    pub lengths: Tensor,
    pub is_cut: Tensor,
    pub is_exact: Tensor,
}

impl TargetSum {
    pub fn new(task: &Task, text: &TextWorld, device: Device, kind: Kind) -> Result<Self, TchError> {
        let longest = text.longest_prompt();
        let prompts: Vec<Vec<u32>> = (0..=task.largest()).map(|number| task.prompt(number)).collect();
        let mut padded = vec![0_i64; prompts.len() * longest];
        for (row, prompt) in padded.chunks_exact_mut(longest).zip(&prompts) {
            row.iter_mut().zip(prompt).for_each(|(to, token)| *to = i64::from(*token));
        }
        Ok(Self {
            largest: i64::from(task.largest()),
            prompts: to_device(&padded, device)?.f_view([-1, longest as i64])?,
            lengths: to_device(&prompts.iter().map(|prompt| prompt.len() as i64).collect::<Vec<_>>(), device)?,
            eos: i64::from(text.task.vocabulary().eos()),
            options: text.options.clone(),
            kind,
        })
    }

    /// Returns the target numbers of the episodes with these seeds, which are split into two words. A target number is the first unbiased
    /// number of its episode's stream, as [`Stream::below`](gradus_base::random::Stream::below) draws it, plus 1.
    pub fn numbers(&self, seeds: &[Tensor; 2]) -> Result<Tensor, TchError> {
        let (whole, drawn) = ((Kind::Int64, seeds[0].device()), 4 * BLOCKS);
        let least = (1_i64 << 32) % self.largest;
        let order = Tensor::f_arange(drawn, whole)?.f_unsqueeze(-1)?;
        let mut numbers = seeds[0].f_zeros_like()?;
        for first in (0..).step_by(BLOCKS as usize) {
            let blocks = Tensor::f_arange_start(first, first + BLOCKS, whole)?.f_unsqueeze(-1)?;
            let words = words(seeds, Purpose::Environment, &Tensor::from(0_i64), &blocks)?;
            let products = Tensor::f_stack(&words, 1)?.f_flatten(0, 1)?.f_mul_scalar(self.largest)?;
            let candidates = high(&products)?.f_add_scalar(1)?;
            let fits = low(&products)?.f_ge(least)?;
            let place = order.f_add(&fits.f_logical_not()?.f_mul_scalar(drawn)?)?.f_amin([0], true)?;
            let found = candidates.f_gather(0, &place.f_clamp_max(drawn - 1)?, false)?.f_mul(&place.f_lt(drawn)?)?.f_squeeze_dim(0)?;
            numbers = numbers.f_where_self(&numbers.f_gt(0)?, &found)?;
            // nearly always true after the first round
            if numbers.numel() == 0 || numbers.f_min()?.f_int64_value(&[])? > 0 {
                break;
            }
        }
        Ok(numbers)
    }

    /// Evaluates completions (rows of tokens) for these target numbers; tokens after EOS are ignored.
    pub fn verify(&self, numbers: &Tensor, completions: &Tensor) -> Result<Verdicts, TchError> {
        let most = completions.size()[1];
        let places = Tensor::f_arange(most, (Kind::Int64, completions.device()))?;
        let goes_on = completions.f_ne(self.eos)?;
        let end = places.f_add(&goes_on.f_mul_scalar(most)?)?.f_amin([1], false)?.f_clamp_max(most)?;
        let (is_cut, lengths) = (end.f_ge(most)?, end.f_add_scalar(1)?.f_clamp_max(most)?);

        let is_content = places.f_lt_tensor(&end.f_unsqueeze(-1)?)?;
        let sums = completions.f_mul(&is_content)?.f_sum_dim_intlist(-1, false, Kind::Int64)?;
        let is_wrong = completions.f_gt(i64::from(Task::DIGIT))?.f_logical_and(&is_content)?.f_any_dim(1, false)?;
        let counts = is_wrong.f_logical_or(&is_cut)?.f_logical_not()?;
        // 1 - abs(sum - n)/max(n, sum)
        let (sum, target) = (sums.f_to_kind(self.kind)?, numbers.f_to_kind(self.kind)?);
        let worth = sum.f_sub(&target)?.f_abs()?.f_div(&target.f_maximum(&sum)?)?.f_rsub_scalar(1.0)?.f_mul(&counts)?;
        let TextOptions { missing_eos_penalty, length_penalty, overlong_buffer, .. } = self.options;
        let missing_eos = is_cut.f_to_kind(self.kind)?.f_mul_scalar(missing_eos_penalty)?;
        let length = lengths.f_to_kind(self.kind)?.f_mul_scalar(length_penalty)?;
        let excess = lengths.f_sub_scalar(most - overlong_buffer as i64)?.f_clamp_min(0)?.f_to_kind(self.kind)?;
        let overlong = excess.f_div_scalar(overlong_buffer.max(1) as f64)?;
        let rewards = worth.f_sub(&missing_eos)?.f_sub(&length)?.f_sub(&overlong)?.f_to_kind(Kind::Float)?;
        let is_exact = sums.f_eq_tensor(numbers)?.f_logical_and(&counts)?;
        Ok(Verdicts { rewards, lengths, is_cut, is_exact })
    }
}
