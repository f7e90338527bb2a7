//! The keyed streams of [`gradus_base::random`] on a device: the same words, for thousands of keys and counters at once.
//!
//! 32-bit words are stored in i64 tensors. Philox multiplies two words. The 64-bit product wraps around in i64 without losing bits, and
//! shifts and masks split it into two words. There is no branch and no copy to the host.

use gradus_base::random::Purpose;
use tch::{Kind, TchError, Tensor};

const MULTIPLIERS: [i64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [i64; 2] = [0x9E37_79B9, 0xBB67_AE85];
const MASK: i64 = 0xFFFF_FFFF;

/// Returns the low 32 bits of each number.
pub(super) fn low(numbers: &Tensor) -> Result<Tensor, TchError> {
    numbers.f_bitwise_and(MASK)
}

/// Returns the high 32 bits of each number.
pub(super) fn high(numbers: &Tensor) -> Result<Tensor, TchError> {
    // `low` removes the sign bits that the arithmetic shift fills in
    low(&numbers.f_bitwise_right_shift_tensor_scalar(32)?)
}

/// Splits a 64-bit number into its low and its high word, as scalar tensors.
pub(in crate::torch) fn halves(number: u64) -> [Tensor; 2] {
    [number as i64 & MASK, (number >> 32) as i64].map(Tensor::from)
}

/// Computes Philox4x32-10: four random words for each key and counter. The shapes of keys and counters are broadcast.
pub fn philox(key: &[Tensor; 2], counter: &[Tensor; 4]) -> Result<[Tensor; 4], TchError> {
    let (mut k, mut c) = (key.each_ref().map(Tensor::shallow_clone), counter.each_ref().map(Tensor::shallow_clone));
    for _ in 0..10 {
        let (p0, p1) = (c[0].f_mul_scalar(MULTIPLIERS[0])?, c[2].f_mul_scalar(MULTIPLIERS[1])?);
        c = [
            high(&p1)?.f_bitwise_xor_tensor(&c[1])?.f_bitwise_xor_tensor(&k[0])?,
            low(&p1)?,
            high(&p0)?.f_bitwise_xor_tensor(&c[3])?.f_bitwise_xor_tensor(&k[1])?,
            low(&p0)?,
        ];
        k = [low(&k[0].f_add_scalar(WEYL[0])?)?, low(&k[1].f_add_scalar(WEYL[1])?)?];
    }
    Ok(c)
}

/// Returns the words of blocks `block` of the streams (`key`, `purpose`, `index`).
pub(in crate::torch) fn words(key: &[Tensor; 2], purpose: Purpose, index: &Tensor, block: &Tensor) -> Result<[Tensor; 4], TchError> {
    let purpose = i64::from(purpose as u8) << 24;
    let last = high(index)?.f_bitwise_and(0x00FF_FFFF)?.f_bitwise_or(purpose)?;
    philox(key, &[low(block)?, high(block)?, low(index)?, last])
}

/// Returns the seeds of episodes number `episode` of environments `env`, split into two words.
pub(in crate::torch) fn episode_seeds(run: u64, env: &Tensor, episode: &Tensor) -> Result<[Tensor; 2], TchError> {
    let [low, high, ..] = words(&halves(run), Purpose::Episode, env, episode)?;
    Ok([low, high])
}

/// Converts words to uniform numbers in [0, 1) with 24 random bits each.
pub(in crate::torch) fn unit_f32(word: &Tensor) -> Result<Tensor, TchError> {
    word.f_bitwise_right_shift_tensor_scalar(8)?.f_to_kind(Kind::Float)?.f_mul_scalar(1.0 / 16_777_216.0)
}

/// Returns the upper `bits` bits of a 64-bit number, whose low word is `first` and whose high word is `second`.
pub(in crate::torch) fn upper([first, second]: [&Tensor; 2], bits: u32) -> Result<Tensor, TchError> {
    let dropped = 64 - i64::from(bits);
    second.f_mul_scalar(1_i64 << (32 - dropped))?.f_add(&first.f_bitwise_right_shift_tensor_scalar(dropped)?)
}

/// Converts pairs of words to uniform numbers in [0, 1) with 53 random bits, rounded to `kind`.
pub(in crate::torch) fn unit(words: [&Tensor; 2], kind: Kind) -> Result<Tensor, TchError> {
    upper(words, 53)?.f_to_kind(kind)?.f_mul_scalar(1.0 / 9_007_199_254_740_992.0)
}

/// Returns the entries of a table at these indices.
pub(in crate::torch) fn look_up(table: &Tensor, indices: &Tensor) -> Result<Tensor, TchError> {
    table.f_index_select(0, &indices.f_reshape([-1])?)?.f_view(indices.size().as_slice())
}

/// The most actions whose probabilities are summed up by one thread of a GPU for each row.
const SHORT: i64 = 1024;

/// Samples an action for each row of log-probabilities, as `categorical::sample` does: the first action whose cumulative probability
/// exceeds the row's uniform number in [0, 1).
pub(in crate::torch) fn sample(log_probs: &Tensor, uniforms: &Tensor) -> Result<Tensor, TchError> {
    let passed = if log_probs.size()[1] > SHORT {
        let cumulated = log_probs.f_exp()?.f_cumsum(1, Kind::Float)?;
        cumulated.f_le_tensor(&uniforms.f_unsqueeze(1)?)?.f_sum_dim_intlist(1, false, Kind::Int64)?
    } else {
        // along columns, because libtorch's sum along short rows is slow on a GPU; one along columns takes a thread for each
        let cumulated = log_probs.f_exp()?.f_transpose(0, 1)?.f_cumsum(0, Kind::Float)?;
        cumulated.f_le_tensor(&uniforms.f_unsqueeze(0)?)?.f_sum_dim_intlist(0, false, Kind::Int64)?
    };
    // the sum may be slightly below 1 because of rounding; then the last action with a positive probability is selected
    let actions = Tensor::f_arange(log_probs.size()[1], (Kind::Int64, log_probs.device()))?;
    let last = log_probs.f_gt(-87.0)?.f_mul(&actions)?.f_amax([-1], false)?;
    passed.f_minimum(&last)
}
