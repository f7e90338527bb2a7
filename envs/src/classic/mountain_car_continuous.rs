//! MountainCarContinuous-v0, as in Gymnasium: the valley of [`MountainCar`](crate::MountainCar) with a continuous force.
//!
//! | | |
//! |---|---|
//! | actions | `Box(1)`: the force, from -1 (left) to 1 (right) |
//! | observations | position, velocity |
//! | reward | -0.1 force^2 on every step, plus 100 on the step that reaches the goal |
//! | start | position uniform in \[-0.6, -0.4), velocity 0 |
//! | end | terminated when the position is at least 0.45 and the velocity at least 0; truncated after 999 steps ([`TimeLimit`](crate::TimeLimit)) |
//!
//! As in Gymnasium, the initial state is f64 and every later state is f32. Each step is computed in the precision of its state, with an
//! f32 force and an f64 cosine. A force outside the box moves the car as the nearest bound does, but the reward is computed from the
//! unclipped force. Gymnasium clips such a force to a Python float, so its effect is computed in f64.

use super::mountain_car::{GRAVITY, LEFT, MAX_SPEED, RIGHT, observation_space, scene, start};
use crate::columns::{self, Columnar, Shown};
use crate::{Action, Env, EnvError, Scene, Space, Step, state};
use gradus_base::trig::sin_cos_inline;

const POWER: f64 = 0.0015;
const GOAL: f64 = 0.45;

/// Rounds to f32.
#[inline(always)]
fn single(x: f64) -> f64 {
    f64::from(x as f32)
}

/// Computes the change of the velocity by force and slope. It is an f32 number unless the force is outside the box.
#[inline(always)]
fn push(force: f64, cos: f64) -> f64 {
    let inside = single(single(force * single(POWER)) - single(GRAVITY * cos));
    let outside = 1_f64.copysign(force) * POWER - GRAVITY * cos;
    if force.abs() <= 1.0 { inside } else { outside }
}

/// Clamps as `f64::clamp` does, but without a branch. `f64::clamp` has a branch if the bounds are not constants.
#[inline(always)]
fn clamp(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

/// A single MountainCarContinuous, without a time limit.
#[derive(Clone, Debug, Default)]
pub struct MountainCarContinuous {
    /// Position, velocity, and their precision: 0 is f64, as after a reset; 1 is f32, as after a step; 2 is f32 at the goal.
    state: [f64; 3],
}

impl MountainCarContinuous {
    fn set(&mut self, numbers: &[f64], later: u64) -> Result<(), EnvError> {
        // the bounds rounded to f32 are slightly wider, and later states can reach them
        let bounds = [("position", single(LEFT), single(RIGHT)), ("velocity", single(-MAX_SPEED), single(MAX_SPEED))];
        let [position, velocity] = state::within("MountainCarContinuous", numbers, bounds)?;
        self.state = match later {
            0 => [position, velocity, 0.0],
            1 => [single(position), single(velocity), 1.0],
            _ => return Err(EnvError::State(format!("MountainCarContinuous: expected 0 or 1 for the precision, got {later}"))),
        };
        Ok(())
    }
}

impl Columnar<3, 2> for MountainCarContinuous {
    type Action = f32;

    fn state(&self) -> [f64; 3] {
        self.state
    }

    fn set_state(&mut self, state: [f64; 3]) {
        self.state = state;
    }

    #[inline(always)]
    fn start([unit, ..]: [f64; 3]) -> [f64; 3] {
        [start(unit), 0.0, 0.0]
    }

    /// Computes each f32 operation in f64 and rounds its result to f32. For sums and products of f32 numbers, the rounded result equals
    /// that of the f32 operation (Figueroa, "When is double rounding innocuous?", 1995).
    #[inline(always)]
    fn advance(&self, [position, velocity, later]: [f64; 3], force: f32) -> ([f64; 3], f64) {
        let rounded = |x: f64| if later == 0.0 { x } else { single(x) };
        let force = f64::from(force);
        let (_, cos) = sin_cos_inline(rounded(3.0 * position));
        let max_speed = rounded(MAX_SPEED);
        let velocity = clamp(rounded(velocity + rounded(push(force, cos))), -max_speed, max_speed);
        let left = rounded(LEFT);
        let position = clamp(rounded(position + velocity), left, rounded(RIGHT));
        let velocity = if (position == left) & (velocity < 0.0) { 0.0 } else { velocity };
        let is_goal = (position >= rounded(GOAL)) & (velocity >= 0.0);
        ([single(position), single(velocity), if is_goal { 2.0 } else { 1.0 }], force * force * 0.1)
    }

    #[inline(always)]
    fn show([position, velocity, later]: [f64; 3], cost: f64) -> Shown<2> {
        let terminated = later == 2.0;
        let prize = if terminated { 100.0 } else { 0.0 };
        Shown { row: [position as f32, velocity as f32], reward: prize - cost, terminated }
    }
}

impl Env for MountainCarContinuous {
    fn observation_space(&self) -> Space {
        observation_space()
    }

    fn action_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        columns::reset(self, seed, observation);
    }

    /// # Panics
    /// If the action is not one finite number. A force outside the box is accepted, as in Gymnasium.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        columns::step(self, action.one_number("MountainCarContinuous"), observation)
    }

    /// Returns position, velocity, and whether they are f32 numbers.
    fn save(&self) -> Vec<u64> {
        let [position, velocity, later] = self.state;
        vec![position.to_bits(), velocity.to_bits(), u64::from(later > 0.0)]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (later, numbers) = state.split_last().map_or((0, state), |(last, rest)| (*last, rest));
        self.set(&state::numbers(numbers), later)
    }

    /// The state counts as an initial state, so the first step is computed in f64.
    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.set(state, 0)?;
        columns::show(self, 0.0, observation);
        Ok(())
    }

    fn render(&self) -> Option<Scene> {
        Some(scene(self.state[0], GOAL))
    }
}
