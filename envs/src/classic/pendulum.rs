//! Pendulum-v1, as in Gymnasium: swing up a pendulum with a torque that is too weak to lift it directly, then balance it.
//!
//! | | |
//! |---|---|
//! | actions | `Box(1)`: the torque, from -2 to 2 N m, positive is counter-clockwise |
//! | observations | cosine and sine of the angle (0 is upright), angular velocity (rad/s) |
//! | reward | -(angle^2 + 0.1 velocity^2 + 0.001 torque^2), for the state before the step, with the angle in \[-pi, pi) |
//! | start | angle uniform in \[-pi, pi), angular velocity uniform in \[-1, 1) |
//! | end | never terminated; truncated after 200 steps ([`TimeLimit`](crate::TimeLimit)) |
//!
//! The state is f64, and its angle is not reduced to one turn. The torque is f32. As in Gymnasium, the torque's acceleration and its cost
//! are also computed in f32. A torque outside the box is clipped.

use std::f64::consts::PI;

use crate::columns::{self, Columnar, Shown, between, rounded};
use crate::scene::{Ink, Scene, Shape};
use crate::{Action, Env, EnvError, Space, Step, state};
use gradus_base::trig::{LARGEST, nearest, sin_cos_inline};

/// Gymnasium's default gravity, in m/s^2. The argument of [`Pendulum::with_gravity`] is Gymnasium's argument `g`.
const GRAVITY: f64 = 10.0;
const MASS: f64 = 1.0;
const LENGTH: f64 = 1.0;
const DT: f64 = 0.05;
const MAX_SPEED: f64 = 8.0;
const MAX_TORQUE: f32 = 2.0;

/// Reduces an angle to \[-pi, pi).
#[inline(always)]
fn normalised(angle: f64) -> f64 {
    // computes Python's %, whose result has the divisor's sign. Subtracting the nearest number of turns is exact and leaves a remainder
    // from -pi to pi. A turn is added only to a negative remainder, so the result is rounded as in Python
    let turn = 2.0 * PI;
    let angle = angle + PI;
    let (turns, _) = nearest(angle * (1.0 / turn));
    let rest = turns.mul_add(-turn, angle);
    (if rest < 0.0 { rest + turn } else { rest }) - PI
}

/// A single Pendulum, without a time limit.
#[derive(Clone, Debug)]
pub struct Pendulum {
    gravity: f64,
    /// Angle, angular velocity, and the angle's sine and cosine for the observation. The next step also uses the sine.
    state: [f64; 4],
}

/// Computes the full state from angle and angular velocity.
#[inline(always)]
fn complete(theta: f64, theta_dot: f64) -> [f64; 4] {
    let (sin, cos) = sin_cos_inline(theta);
    [theta, theta_dot, sin, cos]
}

impl Default for Pendulum {
    fn default() -> Self {
        Self::with_gravity(GRAVITY)
    }
}

impl Pendulum {
    /// Creates a pendulum with another gravity, in m/s^2 (default: 10).
    pub fn with_gravity(gravity: f64) -> Self {
        Self { gravity, state: complete(0.0, 0.0) }
    }

    fn set(&mut self, numbers: &[f64]) -> Result<(), EnvError> {
        let bounds = [("angle", -LARGEST, LARGEST), ("velocity", -MAX_SPEED, MAX_SPEED)];
        let [theta, theta_dot] = state::within("Pendulum", numbers, bounds)?;
        self.state = complete(theta, theta_dot);
        Ok(())
    }
}

impl Columnar<4, 3> for Pendulum {
    type Action = f32;

    fn state(&self) -> [f64; 4] {
        self.state
    }

    fn set_state(&mut self, state: [f64; 4]) {
        self.state = state;
    }

    #[inline(always)]
    fn start([angle, velocity, ..]: [f64; 4]) -> [f64; 4] {
        complete(between(-PI, PI, angle), between(-1.0, 1.0, velocity))
    }

    #[inline(always)]
    fn advance(&self, [theta, theta_dot, sin, _]: [f64; 4], torque: f32) -> ([f64; 4], f64) {
        let torque = torque.clamp(-MAX_TORQUE, MAX_TORQUE);
        let angle = normalised(theta);
        let cost = angle * angle + 0.1 * (theta_dot * theta_dot) + f64::from(0.001 * (torque * torque));

        let pull = 3.0 * self.gravity / (2.0 * LENGTH) * sin;
        let push = f64::from((3.0 / (MASS * (LENGTH * LENGTH))) as f32 * torque);
        let velocity = (theta_dot + (pull + push) * DT).clamp(-MAX_SPEED, MAX_SPEED);
        (complete(theta + velocity * DT, velocity), cost)
    }

    #[inline(always)]
    fn show([_, theta_dot, sin, cos]: [f64; 4], cost: f64) -> Shown<3> {
        Shown { row: rounded([cos, sin, theta_dot]), reward: -cost, terminated: false }
    }
}

impl Env for Pendulum {
    fn observation_space(&self) -> Space {
        let high = vec![1.0, 1.0, MAX_SPEED as f32];
        Space::Box { low: high.iter().map(|bound| -bound).collect(), high }
    }

    fn action_space(&self) -> Space {
        Space::Box { low: vec![-MAX_TORQUE], high: vec![MAX_TORQUE] }
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        columns::reset(self, seed, observation);
    }

    /// # Panics
    /// If the action is not one finite number. A torque outside the box is accepted, as in Gymnasium.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        columns::step(self, action.one_number("Pendulum"), observation)
    }

    fn save(&self) -> Vec<u64> {
        state::words(&self.state[..2])
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.set(&state::numbers(state))
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.set(state)?;
        columns::show(self, 0.0, observation);
        Ok(())
    }

    fn render(&self) -> Option<Scene> {
        let [_, _, sin, cos] = self.state;
        let (axle, tip) = ([0.0, 0.0], [-LENGTH * sin, LENGTH * cos]);
        let edge = LENGTH + 0.3;
        Some(Scene {
            x: [-edge, edge],
            y: [-edge, edge],
            shapes: vec![
                Shape::Line { from: [0.0, LENGTH + 0.12], to: [0.0, LENGTH + 0.22], width: 0.04, ink: Ink::Goal },
                Shape::Line { from: axle, to: tip, width: 0.15, ink: Ink::Limb },
                Shape::Disc { centre: tip, radius: 0.12, ink: Ink::Body },
                Shape::Disc { centre: axle, radius: 0.05, ink: Ink::Joint },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the expected angle by Rust's `%`, which is exact, as Python's is, but whose result has the dividend's sign.
    #[test]
    fn angles_are_normalised_as_in_python() {
        let turn = 2.0 * PI;
        for i in -300_000..300_000 {
            for angle in [f64::from(i) * 0.01, f64::from(i) * 3.3, f64::from(i) * PI, (f64::from(i) * PI).next_up(), f64::from(i) * 1e-17] {
                let rest = (angle + PI) % turn;
                let expected = (if rest < 0.0 { rest + turn } else { rest }) - PI;
                assert_eq!(normalised(angle).to_bits(), expected.to_bits(), "{angle}");
            }
        }
    }
}
