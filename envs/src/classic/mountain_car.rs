//! MountainCar-v0, as in Gymnasium (after Moore, 1990): a car that is too weak to drive straight up a hill.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(3)`: 0 accelerates to the left, 1 does not accelerate, 2 accelerates to the right |
//! | observations | position, velocity |
//! | reward | -1 on every step, including the last one |
//! | start | position uniform in \[-0.6, -0.4), velocity 0 |
//! | end | terminated when the position is at least 0.5 and the velocity at least 0; truncated after 200 steps ([`TimeLimit`](crate::TimeLimit)) |
//!
//! The height of the road at position x is sin(3 x), apart from scale and offset. Position and velocity are clipped to their bounds, and
//! the wall on the left stops the car. The state is f64 and the operations are in Gymnasium's order.

use crate::columns::{self, Columnar, Shown, between, rounded};
use crate::scene::{Ink, Scene, Shape};
use crate::{Action, Env, EnvError, Space, Step, state};
use gradus_base::trig::{sin_cos, sin_cos_inline};

pub(crate) const LEFT: f64 = -1.2;
pub(crate) const RIGHT: f64 = 0.6;
pub(crate) const MAX_SPEED: f64 = 0.07;
pub(crate) const GRAVITY: f64 = 0.0025;
const FORCE: f64 = 0.001;
const GOAL: f64 = 0.5;

/// Maps a `unit` in [0, 1) to a start position.
#[inline(always)]
pub(crate) fn start(unit: f64) -> f64 {
    between(-0.6, -0.4, unit)
}

pub(crate) fn observation_space() -> Space {
    Space::Box { low: vec![LEFT as f32, -MAX_SPEED as f32], high: vec![RIGHT as f32, MAX_SPEED as f32] }
}

/// A single MountainCar, without a time limit.
#[derive(Clone, Debug, Default)]
pub struct MountainCar {
    /// Position, velocity.
    state: [f64; 2],
}

impl MountainCar {
    fn set(&mut self, numbers: &[f64]) -> Result<(), EnvError> {
        let bounds = [("position", LEFT, RIGHT), ("velocity", -MAX_SPEED, MAX_SPEED)];
        self.state = state::within("MountainCar", numbers, bounds)?;
        Ok(())
    }
}

impl Columnar<2, 2> for MountainCar {
    type Action = u32;

    fn state(&self) -> [f64; 2] {
        self.state
    }

    fn set_state(&mut self, state: [f64; 2]) {
        self.state = state;
    }

    #[inline(always)]
    fn start([unit, _]: [f64; 2]) -> [f64; 2] {
        [start(unit), 0.0]
    }

    #[inline(always)]
    fn advance(&self, [position, velocity]: [f64; 2], action: u32) -> ([f64; 2], f64) {
        let push = f64::from(action) - 1.0;
        let (_, cos) = sin_cos_inline(3.0 * position);
        let velocity = (velocity + (push * FORCE + cos * -GRAVITY)).clamp(-MAX_SPEED, MAX_SPEED);
        let position = (position + velocity).clamp(LEFT, RIGHT);
        let at_the_wall = (position == LEFT) & (velocity < 0.0);
        ([position, if at_the_wall { 0.0 } else { velocity }], 0.0)
    }

    #[inline(always)]
    fn show(state: [f64; 2], _cost: f64) -> Shown<2> {
        let [position, velocity] = state;
        Shown { row: rounded(state), reward: -1.0, terminated: (position >= GOAL) & (velocity >= 0.0) }
    }
}

impl Env for MountainCar {
    fn observation_space(&self) -> Space {
        observation_space()
    }

    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        columns::reset(self, seed, observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(action @ 0..=2) = action else { panic!("MountainCar: expected action 0, 1 or 2, got {action:?}") };
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
        Some(scene(self.state[0], GOAL))
    }
}

/// Draws the road, the flag and the car.
pub(crate) fn scene(position: f64, goal: f64) -> Scene {
    const PIECES: u32 = 48;
    let road = |x: f64| [x, 0.45 * sin_cos(3.0 * x).0 + 0.55];
    let piece = |i: u32| road(LEFT + (RIGHT - LEFT) * f64::from(i) / f64::from(PIECES));
    let mut shapes: Vec<Shape> =
        (0..PIECES).map(|i| Shape::Line { from: piece(i), to: piece(i + 1), width: 0.02, ink: Ink::Ground }).collect();

    let [x, y] = road(goal);
    shapes.push(Shape::Line { from: [x, y], to: [x, y + 0.22], width: 0.012, ink: Ink::Joint });
    shapes.push(Shape::Polygon { corners: vec![[x, y + 0.22], [x, y + 0.12], [x + 0.11, y + 0.17]], ink: Ink::Goal });

    // the car's axes: along the slope and across it
    let slope = 1.35 * sin_cos(3.0 * position).1;
    let length = (1.0 + slope * slope).sqrt();
    let (along, across) = ([1.0 / length, slope / length], [-slope / length, 1.0 / length]);
    let [x, y] = road(position);
    let at = |a: f64, b: f64| [x + a * along[0] + b * across[0], y + a * along[1] + b * across[1]];
    shapes.push(Shape::Polygon { corners: vec![at(-0.085, 0.045), at(0.085, 0.045), at(0.085, 0.1), at(-0.085, 0.1)], ink: Ink::Body });
    shapes.push(Shape::Polygon { corners: vec![at(-0.05, 0.09), at(0.05, 0.09), at(0.025, 0.14), at(-0.04, 0.14)], ink: Ink::Body });
    shapes.push(Shape::Disc { centre: at(-0.05, 0.04), radius: 0.03, ink: Ink::Joint });
    shapes.push(Shape::Disc { centre: at(0.05, 0.04), radius: 0.03, ink: Ink::Joint });
    Scene { x: [LEFT - 0.1, RIGHT + 0.1], y: [0.0, 1.3], shapes }
}
