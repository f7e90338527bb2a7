//! CartPole-v1 as a tensor program: the operations of [`gradus_envs::CartPole`] in the same order, with its time limit.
//!
//! If the device supports f64, the state is f64, as on the host. Only the device's sine and cosine may differ from the host's, by one unit
//! in the last place. Because the pole is unstable, the difference grows by a factor of e every few steps. So a replayed episode stays
//! close to the host's for at least a hundred steps, and for nearly as many steps its f32 observations are equal to the host's.

use std::f64::consts::PI;

use gradus_base::random::Purpose;
use tch::{Kind, TchError, Tensor};

use super::random::{unit, words};
use super::{Program, Stepped};

const GRAVITY: f64 = 9.8;
const CART_MASS: f64 = 1.0;
const POLE_MASS: f64 = 0.1;
const TOTAL_MASS: f64 = POLE_MASS + CART_MASS;
const HALF_LENGTH: f64 = 0.5;
const POLE_MASS_LENGTH: f64 = POLE_MASS * HALF_LENGTH;
const FORCE: f64 = 10.0;
const TAU: f64 = 0.02;
const X_LIMIT: f64 = 2.4;
const ANGLE_LIMIT: f64 = 12.0 * 2.0 * PI / 360.0;

/// CartPole, truncated after `limit` steps.
pub(super) struct CartPole {
    pub limit: u32,
}

impl Program for CartPole {
    fn width(&self) -> usize {
        4
    }

    fn limit(&self) -> Option<u32> {
        Some(self.limit)
    }

    /// The shortest episode has 8 steps: the pole starts at the largest initial angle, and the cart is always pushed in one direction. The
    /// bound 7 leaves a margin.
    fn shortest(&self) -> usize {
        (self.limit as usize).clamp(1, 7)
    }

    fn blocks(&self) -> usize {
        2
    }

    /// Each of the four numbers is uniform in [-0.05, 0.05).
    fn starts(&self, seeds: &[Tensor; 2], kind: Kind) -> Result<Tensor, TchError> {
        let block = Tensor::f_arange(2, (Kind::Int64, seeds[0].device()))?.f_view([2, 1, 1])?;
        let [a, b, c, d] = words(seeds, Purpose::Environment, &Tensor::from(0_i64), &block)?;
        let of_block = Tensor::f_stack(&[unit([&a, &b], kind)?, unit([&c, &d], kind)?], 1)?;
        let (low, high) = (-0.05, 0.05);
        of_block.f_flatten(0, 1)?.f_transpose(0, 1)?.f_mul_scalar(high - low)?.f_add_scalar(low)
    }

    /// Takes a step of the explicit Euler method.
    fn step(&self, state: &Tensor, actions: &Tensor) -> Result<Stepped, TchError> {
        let [x_dot, theta, theta_dot] = [1, 2, 3].map(|row| state.f_select(0, row));
        let (x_dot, theta, theta_dot) = (x_dot?, theta?, theta_dot?);
        let (sin, cos) = (theta.f_sin()?, theta.f_cos()?);
        let force = actions.f_to_kind(state.kind())?.f_mul_scalar(2.0 * FORCE)?.f_sub_scalar(FORCE)?;
        let temp = theta_dot.f_square()?.f_mul_scalar(POLE_MASS_LENGTH)?.f_mul(&sin)?.f_add(&force)?.f_div_scalar(TOTAL_MASS)?;
        let inertia =
            cos.f_square()?.f_mul_scalar(POLE_MASS)?.f_div_scalar(TOTAL_MASS)?.f_rsub_scalar(4.0 / 3.0)?.f_mul_scalar(HALF_LENGTH)?;
        let theta_acc = sin.f_mul_scalar(GRAVITY)?.f_sub(&cos.f_mul(&temp)?)?.f_div(&inertia)?;
        let x_acc = temp.f_sub(&theta_acc.f_mul_scalar(POLE_MASS_LENGTH)?.f_mul(&cos)?.f_div_scalar(TOTAL_MASS)?)?;
        let state = Tensor::f_stack(&[x_dot, x_acc, theta_dot, theta_acc], 0)?.f_mul_scalar(TAU)?.f_add(state)?;

        let past = |row, limit: f64| state.f_select(0, row)?.f_abs()?.f_gt(limit);
        let terminated = past(0, X_LIMIT)?.f_logical_or(&past(2, ANGLE_LIMIT)?)?;
        let rewards = Tensor::f_ones(terminated.size().as_slice(), (Kind::Float, state.device()))?;
        Ok(Stepped { state, rewards, terminated })
    }

    fn observe(&self, state: &Tensor) -> Result<Tensor, TchError> {
        state.f_to_kind(Kind::Float)?.f_transpose(0, 1)?.f_contiguous()
    }

    fn save(&self, state: &[f64], (_, length): (u64, u32)) -> Vec<u64> {
        state.iter().map(|number| number.to_bits()).chain([u64::from(length)]).collect()
    }

    fn load(&self, words: &[u64], (_, length): (u64, u32), state: &mut [f64]) -> Result<(), String> {
        match words {
            [numbers @ .., elapsed] if numbers.len() == 4 && *elapsed == u64::from(length) && length < self.limit => {
                state.iter_mut().zip(numbers).for_each(|(number, bits)| *number = f64::from_bits(*bits));
                Ok(())
            }
            _ => Err(format!("expected four numbers and {length} elapsed steps, fewer than {}, got {words:?}", self.limit)),
        }
    }
}
