//! The standard normal distribution on a device. The numbers are those that `rand_distr`'s `StandardNormal` draws from the same streams.
//! The method is the same ziggurat (Marsaglia and Tsang, 2000, <https://doi.org/10.18637/jss.v005.i08>), but without loops.
//!
//! An attempt uses two random words to select a layer and a position in it. If the position may be above the curve, more words are used:
//! two for a height in the wedge or, in the lowest layer, four for each attempt to sample the tail, until one is accepted. A rejected
//! attempt uses four words in total, so attempt k begins with block k of the stream. The first `BLOCKS` attempts are computed, and the
//! first accepted attempt is selected. Once in 10^9 draws, none of the computed attempts is accepted; that number differs from the
//! host's.

use std::convert::Infallible;

use gradus_base::random::Purpose;
use rand::rand_core::TryRng;
use rand_distr::{Distribution, StandardNormal};
use tch::{Device, Kind, TchError, Tensor};

use super::random::{look_up, unit, upper, words};
use crate::torch::parameters::to_device;

/// Number of attempts that are computed.
pub(super) const BLOCKS: i64 = 6;
/// Number of layers of the ziggurat.
const LAYERS: usize = 256;
/// The position at which the tail begins.
const R: f64 = 3.654_152_885_361_009;

/// A generator whose words select the position 1/2 in a layer, and then a height that is accepted in every wedge.
struct LayerEnd {
    words: [u64; 2],
}

impl TryRng for LayerEnd {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.try_next_u64()? as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let [now, next] = self.words;
        self.words = [next, next];
        Ok(now)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        Ok(())
    }
}

/// The right ends of the layers, from the lowest layer to the highest, and the heights of the curve at these ends. `StandardNormal` itself
/// gives the ends: for position 1/2 in a layer it returns half of the layer's end.
pub(super) struct Ziggurat {
    ends: Tensor,
    heights: Tensor,
}

impl Ziggurat {
    pub fn new(device: Device, kind: Kind) -> Result<Self, TchError> {
        let half = 3_u64 << 62; // the position 1/2 in [-1, 1)
        let end = |layer: usize| -> f64 {
            let asked: f64 = StandardNormal.sample(&mut LayerEnd { words: [half | layer as u64, u64::MAX] });
            2.0 * asked
        };
        let ends: Vec<f64> = (0..LAYERS).map(end).chain([0.0]).collect();
        let heights: Vec<f64> = ends.iter().map(|x| (-x * x / 2.0).exp()).collect();
        let up = |numbers: &[f64]| match kind {
            Kind::Double => to_device(numbers, device),
            _ => to_device(&numbers.iter().map(|x| *x as f32).collect::<Vec<_>>(), device),
        };
        Ok(Self { ends: up(&ends)?, heights: up(&heights)? })
    }

    /// Samples one number from N(0, 1) with each of the streams (seed, `Purpose::Environment`, 0), starting at block `first`.
    pub fn sample(&self, seeds: &[Tensor; 2], first: i64) -> Result<Tensor, TchError> {
        let kind = self.ends.kind();
        let mut shape = vec![BLOCKS];
        shape.extend(seeds[0].size().iter().map(|_| 1));
        let block = Tensor::f_arange_start(first, first + BLOCKS, (Kind::Int64, self.ends.device()))?.f_view(shape.as_slice())?;
        let [a, b, c, d] = words(seeds, Purpose::Environment, &Tensor::from(0_i64), &block)?;

        // the layer, the position in it, and whether the position is surely under the curve
        let layer = a.f_bitwise_and(LAYERS as i64 - 1)?;
        let above = layer.f_add_scalar(1)?;
        let u = upper([&a, &b], 52)?.f_to_kind(kind)?.f_mul_scalar(2.0_f64.powi(-51))?.f_sub_scalar(1.0)?;
        let x = u.f_mul(&look_up(&self.ends, &layer)?)?;
        let is_under = x.f_abs()?.f_lt_tensor(&look_up(&self.ends, &above)?)?;
        let (low, high) = (look_up(&self.heights, &layer)?, look_up(&self.heights, &above)?);
        let height = low.f_sub(&high)?.f_mul(&unit([&c, &d], kind)?)?.f_add(&high)?;
        let curve = x.f_neg()?.f_mul(&x)?.f_div_scalar(2.0)?.f_exp()?;
        let is_accepted = is_under.f_logical_or(&height.f_lt_tensor(&curve)?)?;
        let is_tail = layer.f_eq(0)?.f_logical_and(&is_under.f_logical_not()?)?;

        // the tail's attempt begins in the middle of block k and ends in the middle of the next one
        let next = |numbers: &Tensor| numbers.f_narrow(0, 1, BLOCKS - 1);
        let this = |numbers: &Tensor| numbers.f_narrow(0, 0, BLOCKS - 1);
        // uniform in (0, 1): the centres of 2^52 intervals
        let open = |words: [&Tensor; 2]| upper(words, 52)?.f_to_kind(kind)?.f_add_scalar(0.5)?.f_mul_scalar(2.0_f64.powi(-52))?.f_log();
        let tail_x = open([&this(&c)?, &this(&d)?])?.f_div_scalar(R)?;
        let tail_y = open([&next(&a)?, &next(&b)?])?.f_mul_scalar(-2.0)?;
        let tail_accepted = tail_y.f_ge_tensor(&tail_x.f_square()?)?;

        // the loop goes from the last attempt to the first, so that the first accepted attempt overwrites the others
        let pick = |tensor: &Tensor, k| tensor.f_select(0, k);
        let mut tail = pick(&tail_x, BLOCKS - 2)?;
        let mut number = pick(&x, BLOCKS - 1)?;
        for k in (0..BLOCKS - 1).rev() {
            tail = pick(&tail_x, k)?.f_where_self(&pick(&tail_accepted, k)?, &tail)?;
            let beyond = tail.f_neg()?.f_add_scalar(R)?;
            let beyond = beyond.f_neg()?.f_where_self(&pick(&u, k)?.f_lt(0.0)?, &beyond)?;
            number = pick(&x, k)?.f_where_self(&pick(&is_accepted, k)?, &number)?;
            number = beyond.f_where_self(&pick(&is_tail, k)?, &number)?;
        }
        Ok(number)
    }
}
