//! Acrobot-v1, as in Gymnasium (after Sutton, 1996): two links hang from a bar, with a motor at the joint between them.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(3)`: a torque of -1, 0 or 1 N m on the joint between the links |
//! | observations | cosine and sine of the first link's angle (0 hangs down), cosine and sine of the second link's angle relative to the first, both angular velocities (rad/s) |
//! | reward | -1 on every step, except 0 on the step that reaches the goal |
//! | start | both angles and both angular velocities uniform in \[-0.1, 0.1), rounded to f32 |
//! | end | terminated when the tip is more than one link's length above the bar; truncated after 500 steps ([`TimeLimit`](crate::TimeLimit)) |
//!
//! The equations are those of Sutton and Barto's book, integrated over 0.2 s by one step of the classic Runge-Kutta method. The state
//! is f64 and the operations are in Gymnasium's order, with its divisions and without fused multiply-add. From the same state, a step
//! differs from Gymnasium's by at most 5e-16, and nearly always agrees to the bit. The remaining differences come from the rounding of a
//! sine, or of a square, which Gymnasium computes as a power. The motion is chaotic. So with random actions 8 % of the episodes diverge when they
//! are replayed from their initial state without corrections, after 291 steps or more.

use std::f64::consts::PI;

use crate::columns::{self, Columnar, Shown, all_between, rounded};
use crate::scene::{Ink, Scene, Shape};
use crate::{Action, Env, EnvError, Space, Step, state};
use gradus_base::trig::{sin_cos, sin_cos_inline};

const DT: f64 = 0.2;
const GRAVITY: f64 = 9.8;
/// Mass of each link.
const MASS: f64 = 1.0;
/// Length of each link. The second link's length does not occur in the equations.
const LENGTH: f64 = 1.0;
/// Distance from a link's upper end to its centre of mass.
const CENTRE: f64 = 0.5;
/// Moment of inertia of each link.
const INERTIA: f64 = 1.0;
const MAX_SPEED_1: f64 = 4.0 * PI;
const MAX_SPEED_2: f64 = 9.0 * PI;

/// Angle of the first link, angle of the second relative to the first, and their velocities.
type State = [f64; 4];

/// Computes the time derivative of the state.
#[inline(always)]
fn derivative([theta1, theta2, dtheta1, dtheta2]: State, torque: f64) -> State {
    let (sin2, cos2) = sin_cos_inline(theta2);
    let cos_of = |angle| sin_cos_inline(angle).1;
    let d1 = MASS * (CENTRE * CENTRE) + MASS * (LENGTH * LENGTH + CENTRE * CENTRE + 2.0 * LENGTH * CENTRE * cos2) + INERTIA + INERTIA;
    let d2 = MASS * (CENTRE * CENTRE + LENGTH * CENTRE * cos2) + INERTIA;
    let phi2 = MASS * CENTRE * GRAVITY * cos_of(theta1 + theta2 - PI / 2.0);
    let phi1 = -MASS * LENGTH * CENTRE * (dtheta2 * dtheta2) * sin2 - 2.0 * MASS * LENGTH * CENTRE * dtheta2 * dtheta1 * sin2
        + (MASS * CENTRE + MASS * LENGTH) * GRAVITY * cos_of(theta1 - PI / 2.0)
        + phi2;
    let ddtheta2 = (torque + d2 / d1 * phi1 - MASS * LENGTH * CENTRE * (dtheta1 * dtheta1) * sin2 - phi2)
        / (MASS * (CENTRE * CENTRE) + INERTIA - d2 * d2 / d1);
    let ddtheta1 = -(d2 * ddtheta2 + phi1) / d1;
    [dtheta1, dtheta2, ddtheta1, ddtheta2]
}

/// Takes one step of the classic Runge-Kutta method of order 4.
#[inline(always)]
fn runge_kutta(y: State, torque: f64) -> State {
    let moved = |dt: f64, k: State| -> State { [y[0] + dt * k[0], y[1] + dt * k[1], y[2] + dt * k[2], y[3] + dt * k[3]] };
    let k1 = derivative(y, torque);
    let k2 = derivative(moved(DT / 2.0, k1), torque);
    let k3 = derivative(moved(DT / 2.0, k2), torque);
    let k4 = derivative(moved(DT, k3), torque);
    let mut next = y;
    for i in 0..4 {
        next[i] += DT / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i]);
    }
    next
}

/// Reduces an angle to \[-pi, pi\] by whole turns.
fn wrap(mut angle: f64) -> f64 {
    while angle > PI {
        angle -= 2.0 * PI;
    }
    while angle < -PI {
        angle += 2.0 * PI;
    }
    angle
}

/// A single Acrobot, without a time limit.
#[derive(Clone, Debug, Default)]
pub struct Acrobot {
    state: State,
}

impl Acrobot {
    fn set(&mut self, numbers: &[f64]) -> Result<(), EnvError> {
        let bounds = [
            ("angle 1", -PI, PI),
            ("angle 2", -PI, PI),
            ("velocity 1", -MAX_SPEED_1, MAX_SPEED_1),
            ("velocity 2", -MAX_SPEED_2, MAX_SPEED_2),
        ];
        self.state = state::within("Acrobot", numbers, bounds)?;
        Ok(())
    }
}

impl Columnar<4, 6> for Acrobot {
    type Action = u32;

    const SETTLES: bool = true;

    fn state(&self) -> State {
        self.state
    }

    fn set_state(&mut self, state: State) {
        self.state = state;
    }

    #[inline(always)]
    fn start(units: State) -> State {
        let [a, b, c, d] = rounded(all_between(-0.1, 0.1, units));
        [f64::from(a), f64::from(b), f64::from(c), f64::from(d)]
    }

    #[inline(always)]
    fn advance(&self, state: State, action: u32) -> (State, f64) {
        let [theta1, theta2, dtheta1, dtheta2] = runge_kutta(state, f64::from(action) - 1.0);
        ([theta1, theta2, dtheta1.clamp(-MAX_SPEED_1, MAX_SPEED_1), dtheta2.clamp(-MAX_SPEED_2, MAX_SPEED_2)], 0.0)
    }

    #[inline(always)]
    fn settle([theta1, theta2, dtheta1, dtheta2]: State) -> State {
        [wrap(theta1), wrap(theta2), dtheta1, dtheta2]
    }

    /// The episode terminates when the tip is more than one link's length above the bar.
    #[inline(always)]
    fn show([theta1, theta2, dtheta1, dtheta2]: State, _cost: f64) -> Shown<6> {
        let ((sin1, cos1), (sin2, cos2)) = (sin_cos_inline(theta1), sin_cos_inline(theta2));
        let terminated = -cos1 - sin_cos_inline(theta2 + theta1).1 > 1.0;
        let row = rounded([cos1, sin1, cos2, sin2, dtheta1, dtheta2]);
        Shown { row, reward: if terminated { 0.0 } else { -1.0 }, terminated }
    }
}

impl Env for Acrobot {
    fn observation_space(&self) -> Space {
        let high = vec![1.0, 1.0, 1.0, 1.0, MAX_SPEED_1 as f32, MAX_SPEED_2 as f32];
        Space::Box { low: high.iter().map(|bound| -bound).collect(), high }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        columns::reset(self, seed, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(action @ 0..=2) = action else { panic!("Acrobot: expected action 0, 1 or 2, got {action:?}") };
        columns::step(self, action, observation)
    }

    fn save(&self) -> Vec<u64> {
        state::words(&self.state)
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
        let [theta1, theta2, ..] = self.state;
        let hanging = |[x, y]: [f64; 2], angle: f64| {
            let (sin, cos) = sin_cos(angle);
            [x + LENGTH * sin, y - LENGTH * cos]
        };
        let bar = [0.0, 0.0];
        let joint = hanging(bar, theta1);
        let tip = hanging(joint, theta1 + theta2);
        let edge = 2.0 * LENGTH + 0.2;
        Some(Scene {
            x: [-edge, edge],
            y: [-edge, edge],
            shapes: vec![
                Shape::Line { from: [-edge, LENGTH], to: [edge, LENGTH], width: 0.03, ink: Ink::Goal },
                Shape::Line { from: [-0.35, 0.0], to: [0.35, 0.0], width: 0.06, ink: Ink::Ground },
                Shape::Line { from: bar, to: joint, width: 0.16, ink: Ink::Body },
                Shape::Line { from: joint, to: tip, width: 0.16, ink: Ink::Limb },
                Shape::Disc { centre: bar, radius: 0.05, ink: Ink::Joint },
                Shape::Disc { centre: joint, radius: 0.05, ink: Ink::Joint },
            ],
        })
    }
}
