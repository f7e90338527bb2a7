//! MountainCarContinuous-v0, as in Gymnasium: the valley of [`MountainCar`](crate::MountainCar), with a force to choose.
//!
//! | | |
//! |---|---|
//! | actions | `Box(1)`: the force, from -1 (left) to 1 (right) |
//! | observations | position, velocity |
//! | reward | -0.1 force^2 on every step, and 100 more on the step that reaches the goal |
//! | start | position uniform in \[-0.6, -0.4), at rest |
//! | end | terminated when the car is at 0.45 or beyond and not rolling back; truncated after 999 steps ([`TimeLimit`](crate::TimeLimit)) |
//!
//! Gymnasium has the start in f64 and every later state in f32, and reckons each step in the precision that it finds, with a force
//! in f32 and a cosine in f64. So does this. A force outside the box pushes like the bound and is paid for in full; Gymnasium then has
//! a Python float in its hands and reckons the push in f64.

use crate::mountain_car::{GRAVITY, LEFT, MAX_SPEED, RIGHT, observation_space, scene, start};
use crate::trig::sin_cos;
use crate::{Action, Env, EnvError, Scene, Space, Step, state};

const POWER: f64 = 0.0015;
const GOAL: f64 = 0.45;

/// What force and slope add to the velocity: an f32 number, but for a force outside the box.
fn push(force: f32, cos: f64) -> f64 {
    match force.abs() <= 1.0 {
        true => f64::from(force * POWER as f32 - (GRAVITY * cos) as f32),
        false => f64::from(force.signum()) * POWER - GRAVITY * cos,
    }
}

/// Position and velocity.
#[derive(Clone, Copy, Debug)]
enum State {
    /// After the reset.
    First([f64; 2]),
    /// After a step.
    Later([f32; 2]),
}

impl State {
    /// The state that follows, and whether it is the goal. The same operations twice, once in either precision.
    fn next(self, force: f32) -> ([f32; 2], bool) {
        match self {
            State::First([position, velocity]) => {
                let (_, cos) = sin_cos(3.0 * position);
                let velocity = (velocity + push(force, cos)).clamp(-MAX_SPEED, MAX_SPEED);
                let position = (position + velocity).clamp(LEFT, RIGHT);
                let velocity = if position == LEFT && velocity < 0.0 { 0.0 } else { velocity };
                ([position as f32, velocity as f32], position >= GOAL && velocity >= 0.0)
            }
            State::Later([position, velocity]) => {
                const MAX_SPEED_F32: f32 = MAX_SPEED as f32;
                let (_, cos) = sin_cos(f64::from(3.0 * position));
                let velocity = (velocity + push(force, cos) as f32).clamp(-MAX_SPEED_F32, MAX_SPEED_F32);
                let position = (position + velocity).clamp(LEFT as f32, RIGHT as f32);
                let velocity = if position == LEFT as f32 && velocity < 0.0 { 0.0 } else { velocity };
                ([position, velocity], position >= GOAL as f32 && velocity >= 0.0)
            }
        }
    }

    fn row(self) -> [f32; 2] {
        match self {
            State::First(state) => state.map(|number| number as f32),
            State::Later(state) => state,
        }
    }

    /// A state after the reset, where the numbers are one.
    fn first(numbers: &[f64]) -> Result<Self, EnvError> {
        // in f32, as the later states have them: that is a little further out
        let wide = |bound: f64| f64::from(bound as f32);
        let bounds = [("position", wide(LEFT), wide(RIGHT)), ("velocity", wide(-MAX_SPEED), wide(MAX_SPEED))];
        Ok(State::First(state::within("MountainCarContinuous", numbers, bounds)?))
    }
}

/// MountainCarContinuous, one at a time and without a time limit.
#[derive(Clone, Debug)]
pub struct MountainCarContinuous {
    state: State,
}

impl Default for MountainCarContinuous {
    fn default() -> Self {
        Self { state: State::First([0.0; 2]) }
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
        self.state = State::First([start(seed), 0.0]);
        observation.copy_from_slice(&self.state.row());
    }

    /// # Panics
    /// If the action is not one finite number; any force is taken, as in Gymnasium.
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let force = action.one_number("MountainCarContinuous");
        let (row, terminated) = self.state.next(force);
        self.state = State::Later(row);
        observation.copy_from_slice(&row);
        let (prize, force) = (if terminated { 100.0 } else { 0.0 }, f64::from(force));
        Step { reward: prize - force * force * 0.1, terminated, truncated: false }
    }

    /// Position, velocity, and whether they stand in f32.
    fn save(&self) -> Vec<u64> {
        match self.state {
            State::First([position, velocity]) => vec![position.to_bits(), velocity.to_bits(), 0],
            State::Later(state) => [&state::words(&state.map(f64::from))[..], &[1]].concat(),
        }
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (later, numbers) = state.split_last().map_or((0, state), |(last, rest)| (*last, rest));
        let first = State::first(&state::numbers(numbers))?;
        self.state = match later {
            0 => first,
            1 => State::Later(first.row()),
            _ => return Err(EnvError::State(format!("MountainCarContinuous: expected 0 or 1 for the precision, got {later}"))),
        };
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.state = State::first(state)?;
        observation.copy_from_slice(&self.state.row());
        Ok(())
    }

    fn render(&self) -> Option<Scene> {
        Some(scene(f64::from(self.state.row()[0]), GOAL))
    }
}
