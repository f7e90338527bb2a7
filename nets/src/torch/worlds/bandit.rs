//! The bandits of [`gradus_envs::bandits`] as tensor programs. An episode is one pull of an arm. All its random numbers are drawn at its
//! start.

use gradus_base::random::Purpose;
use gradus_envs::bandits::Payout;
use tch::{Device, Kind, TchError, Tensor};

use super::normal::{self, Ziggurat};
use super::random::{unit, unit_f32, words};
use super::{Program, Stepped};
use crate::torch::parameters::to_device;

/// Copies numbers to the device as `kind`.
fn up(numbers: &[f64], device: Device, kind: Kind) -> Result<Tensor, TchError> {
    match kind {
        Kind::Double => to_device(numbers, device),
        _ => to_device(&numbers.iter().map(|x| *x as f32).collect::<Vec<_>>(), device),
    }
}

/// The result of a pull, after which the episode ends.
fn pulled(state: &Tensor, rewards: &Tensor) -> Result<Stepped, TchError> {
    let terminated = rewards.f_ones_like()?.f_to_kind(Kind::Bool)?;
    Ok(Stepped { state: state.shallow_clone(), rewards: rewards.f_to_kind(Kind::Float)?, terminated })
}

/// A k-armed bandit. The state is the noise of a Gaussian reward, or the uniform number that decides whether a Bernoulli arm pays.
pub(super) struct Bandit {
    payout: Payout,
    values: Tensor,
    ziggurat: Ziggurat,
}

impl Bandit {
    pub fn new(bandit: &gradus_envs::bandits::Bandit, device: Device, kind: Kind) -> Result<Self, TchError> {
        let values = up(bandit.values(), device, kind)?;
        Ok(Self { payout: bandit.payout(), values, ziggurat: Ziggurat::new(device, kind)? })
    }
}

impl Program for Bandit {
    fn width(&self) -> usize {
        1
    }

    fn blocks(&self) -> usize {
        if self.payout == Payout::Gaussian { normal::BLOCKS as usize } else { 1 }
    }

    fn starts(&self, seeds: &[Tensor; 2], kind: Kind) -> Result<Tensor, TchError> {
        let rng = match self.payout {
            Payout::Gaussian => self.ziggurat.sample(seeds, 0)?,
            Payout::Bernoulli => {
                let zero = Tensor::from(0_i64);
                let [a, b, ..] = words(seeds, Purpose::Environment, &zero, &zero)?;
                unit([&a, &b], kind)?
            }
        };
        rng.f_unsqueeze(1)
    }

    fn step(&self, state: &Tensor, actions: &Tensor) -> Result<Stepped, TchError> {
        let (rng, values) = (state.f_select(0, 0)?, self.values.f_index_select(0, actions)?);
        let rewards = match self.payout {
            Payout::Gaussian => values.f_add(&rng)?,
            Payout::Bernoulli => rng.f_lt_tensor(&values)?,
        };
        pulled(state, &rewards)
    }

    fn observe(&self, state: &Tensor) -> Result<Tensor, TchError> {
        Tensor::f_ones([state.size()[1], 1], (Kind::Float, state.device()))
    }

    fn save(&self, _: &[f64], (seed, _): (u64, u32)) -> Vec<u64> {
        vec![seed, 0]
    }

    fn load(&self, words: &[u64], (seed, _): (u64, u32), _: &mut [f64]) -> Result<(), String> {
        match words {
            [known, 0] if *known == seed => Ok(()),
            _ => Err(format!("expected seed {seed} and 0 draws, got {words:?}")),
        }
    }
}

/// A contextual bandit. The state is the context, followed by the noise of the reward.
pub(super) struct ContextualBandit {
    /// Arms x width.
    weights: Tensor,
    ziggurat: Ziggurat,
}

impl ContextualBandit {
    pub fn new(bandit: &gradus_envs::bandits::ContextualBandit, device: Device, kind: Kind) -> Result<Self, TchError> {
        let weights = up(bandit.weights(), device, kind)?.f_view([-1, bandit.width() as i64])?;
        Ok(Self { weights, ziggurat: Ziggurat::new(device, kind)? })
    }
}

impl Program for ContextualBandit {
    fn width(&self) -> usize {
        self.weights.size()[1] as usize
    }

    fn blocks(&self) -> usize {
        self.width().div_ceil(4) + normal::BLOCKS as usize
    }

    /// Each number of the context is uniform in [-1, 1).
    fn starts(&self, seeds: &[Tensor; 2], kind: Kind) -> Result<Tensor, TchError> {
        let width = self.width() as i64;
        let block = Tensor::f_arange(width / 4, (Kind::Int64, seeds[0].device()))?.f_view([-1, 1, 1])?;
        let numbers = words(seeds, Purpose::Environment, &Tensor::from(0_i64), &block)?;
        let context = Tensor::f_stack(&numbers, 1)?.f_flatten(0, 1)?;
        let context = unit_f32(&context)?.f_mul_scalar(2.0)?.f_sub_scalar(1.0)?.f_to_kind(kind)?;
        let noise = self.ziggurat.sample(seeds, width / 4)?;
        Tensor::f_cat(&[context, noise.f_unsqueeze(0)?], 0)?.f_transpose(0, 1)
    }

    fn step(&self, state: &Tensor, actions: &Tensor) -> Result<Stepped, TchError> {
        let width = self.width() as i64;
        let weights = self.weights.f_index_select(0, actions)?;
        // the products are added in the same order as on the host
        let mut value = state.f_select(0, 0)?.f_mul(&weights.f_select(1, 0)?)?;
        for i in 1..width {
            value = value.f_add(&state.f_select(0, i)?.f_mul(&weights.f_select(1, i)?)?)?;
        }
        pulled(state, &value.f_add(&state.f_select(0, width)?)?)
    }

    fn observe(&self, state: &Tensor) -> Result<Tensor, TchError> {
        state.f_narrow(0, 0, self.width() as i64)?.f_to_kind(Kind::Float)?.f_transpose(0, 1)?.f_contiguous()
    }

    fn save(&self, state: &[f64], (seed, _): (u64, u32)) -> Vec<u64> {
        let context = state[..self.width()].iter().map(|x| u64::from((*x as f32).to_bits()));
        [seed, self.width() as u64].into_iter().chain(context).collect()
    }

    fn load(&self, words: &[u64], (seed, _): (u64, u32), state: &mut [f64]) -> Result<(), String> {
        let width = self.width();
        match words {
            [known, position, context @ ..] if *known == seed && *position == width as u64 && context.len() == width => {
                state.iter_mut().zip(context).for_each(|(x, bits)| *x = f64::from(f32::from_bits(*bits as u32)));
                Ok(())
            }
            _ => Err(format!("expected seed {seed}, {width} draws and a context of {width} numbers, got {words:?}")),
        }
    }
}
