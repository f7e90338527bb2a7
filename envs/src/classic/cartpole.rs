//! CartPole-v1, as in Gymnasium (after Barto, Sutton and Anderson, 1983).
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(2)`: 0 pushes the cart left, 1 right, with 10 N |
//! | observations | cart position (m), cart velocity (m/s), pole angle (rad), pole angular velocity (rad/s) |
//! | reward | 1 on every step, including the terminating one |
//! | start | each number of the state uniform in \[-0.05, 0.05) |
//! | end | terminated when the cart is more than 2.4 m from the centre or the pole more than 12 degrees from upright; truncated after 500 steps ([`TimeLimit`](crate::TimeLimit)) |
//!
//! The state is f64. The arithmetic operations are in Gymnasium's order and round as there; only the divisions by the total mass are
//! computed in another way, with the same result (see `per_total_mass`). So the observations of episodes that were recorded from
//! Gymnasium are reproduced exactly.

use std::f64::consts::{FRAC_PI_4, PI};

use crate::columns::{self, Columnar, Shown, all_between, rounded};
use crate::scene::{Ink, Scene, Shape};
use crate::{Action, ColumnBatch, Env, EnvError, Space, Step, state};
use gradus_base::trig::{sin_cos, sin_cos_near_zero};

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

/// Position, velocity, angle, angular velocity.
type State = [f64; 4];

/// Computes `x` / [`TOTAL_MASS`], correctly rounded, without a division: the exact remainder corrects the quotient (Markstein,
/// "Computation of elementary functions on the IBM RISC System/6000 processor", 1990, theorem 8.1).
#[inline(always)]
fn per_total_mass(x: f64) -> f64 {
    const INVERSE: f64 = 1.0 / TOTAL_MASS;
    let quotient = x * INVERSE;
    let remainder = quotient.mul_add(-TOTAL_MASS, x);
    remainder.mul_add(INVERSE, quotient)
}

/// Computes the next state from the sine and cosine of the angle, by the explicit Euler method.
#[inline(always)]
fn euler([x, x_dot, theta, theta_dot]: State, push_right: bool, (sin, cos): (f64, f64)) -> State {
    let force = if push_right { FORCE } else { -FORCE };
    let temp = per_total_mass(force + POLE_MASS_LENGTH * (theta_dot * theta_dot) * sin);
    let theta_acc = (GRAVITY * sin - cos * temp) / (HALF_LENGTH * (4.0 / 3.0 - per_total_mass(POLE_MASS * (cos * cos))));
    let x_acc = temp - per_total_mass(POLE_MASS_LENGTH * theta_acc * cos);
    [x + TAU * x_dot, x_dot + TAU * x_acc, theta + TAU * theta_dot, theta_dot + TAU * theta_acc]
}

/// Whether the cart or the pole is past its limit.
#[inline(always)]
#[allow(clippy::manual_range_contains)] // in this form NaN is not past a limit, as in Gymnasium
fn is_terminal([x, _, theta, _]: State) -> bool {
    (x < -X_LIMIT) | (x > X_LIMIT) | (theta < -ANGLE_LIMIT) | (theta > ANGLE_LIMIT)
}

/// A single CartPole, without a time limit. [`CartPoleBatch`] computes the same numbers faster.
#[derive(Clone, Debug, Default)]
pub struct CartPole {
    state: State,
}

/// Many CartPoles with their time limit.
pub type CartPoleBatch = ColumnBatch<CartPole, 4, 4>;

impl Columnar<4, 4> for CartPole {
    type Action = u32;

    fn state(&self) -> State {
        self.state
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
    }

    #[inline(always)]
    fn start(units: State) -> State {
        all_between(-0.05, 0.05, units)
    }

    /// The absolute angle must be at most pi/4, which holds in every unfinished episode that began with a reset.
    #[inline(always)]
    fn advance(&self, state: State, action: u32) -> (State, f64) {
        (euler(state, action == 1, sin_cos_near_zero(state[2])), 0.0)
    }

    #[inline(always)]
    fn show(state: State, _cost: f64) -> Shown<4> {
        Shown { row: rounded(state), reward: 1.0, terminated: is_terminal(state) }
    }
}

impl Env for CartPole {
    fn observation_space(&self) -> Space {
        let high = vec![(2.0 * X_LIMIT) as f32, f32::INFINITY, (2.0 * ANGLE_LIMIT) as f32, f32::INFINITY];
        Space::Box { low: high.iter().map(|bound| -bound).collect(), high }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        columns::reset(self, seed, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(action @ 0..=1) = action else { panic!("CartPole: expected action 0 or 1, got {action:?}") };
        if self.state[2].abs() > FRAC_PI_4 {
            self.state = euler(self.state, action == 1, sin_cos(self.state[2]));
            return columns::show(self, 0.0, observation);
        }
        columns::step(self, action, observation)
    }

    fn save(&self) -> Vec<u64> {
        state::words(&self.state)
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.state = state::finite("CartPole", &state::numbers(state))?;
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.state = state::finite("CartPole", state)?;
        columns::show(self, 0.0, observation);
        Ok(())
    }

    fn render(&self) -> Option<Scene> {
        let [x, _, theta, _] = self.state;
        let (sin, cos) = sin_cos(theta);
        let (half_width, top) = (0.3, 0.35);
        let cart = vec![[x - half_width, 0.0], [x + half_width, 0.0], [x + half_width, top], [x - half_width, top]];
        let tip = [x + 2.0 * HALF_LENGTH * sin, top + 2.0 * HALF_LENGTH * cos];
        Some(Scene {
            x: [-X_LIMIT - 0.3, X_LIMIT + 0.3],
            y: [-0.3, 1.7],
            shapes: vec![
                Shape::Line { from: [-X_LIMIT - 0.3, 0.0], to: [X_LIMIT + 0.3, 0.0], width: 0.02, ink: Ink::Ground },
                Shape::Line { from: [-X_LIMIT, -0.1], to: [-X_LIMIT, 0.1], width: 0.03, ink: Ink::Goal },
                Shape::Line { from: [X_LIMIT, -0.1], to: [X_LIMIT, 0.1], width: 0.03, ink: Ink::Goal },
                Shape::Polygon { corners: cart, ink: Ink::Body },
                Shape::Line { from: [x, top], to: tip, width: 0.09, ink: Ink::Limb },
                Shape::Disc { centre: [x, top], radius: 0.06, ink: Ink::Joint },
            ],
        })
    }
}
