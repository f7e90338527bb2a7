//! A thermostat switches a heater. The closer the room is to 20 degrees Celsius, the higher the reward.

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Action, Env, EnvError, Ink, Scene, Shape, Space, Step, EnvSpec};

/// Steps of an episode: one minute each.
const LIMIT: u32 = 100;
const WANTED: f32 = 20.0;
const OUTSIDE: f32 = 5.0;

/// The room's temperature in degrees Celsius.
#[derive(Default)]
pub struct Thermostat(f32);

/// Returns the environment as `gradus list` shows it.
pub fn world() -> EnvSpec {
    let mut world = EnvSpec::limited("thermostat", LIMIT, Thermostat::default);
    world.about = "keep a room at 20 degrees by switching a heater, 100 steps".into();
    world
}

impl Env for Thermostat {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![-2.0], high: vec![2.0] }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2) // 0: off, 1: on
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.0 = 10.0 + 20.0 * Stream::new(seed, Purpose::Environment, 0).unit_f32();
        observation[0] = (self.0 - WANTED) / 10.0;
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(is_on) = action else { panic!("thermostat: expected action 0 or 1, got {action:?}") };
        self.0 += 0.05 * (OUTSIDE - self.0) + 1.5 * is_on as f32;
        observation[0] = (self.0 - WANTED) / 10.0;
        Step { reward: -f64::from(observation[0].abs()), terminated: false, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        vec![self.0.to_bits().into()]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let [bits] = state else { return Err(EnvError::State(format!("thermostat: expected 1 word, got {}", state.len()))) };
        self.0 = f32::from_bits(*bits as u32);
        Ok(())
    }

    fn render(&self) -> Option<Scene> {
        let height = f64::from(self.0) / 40.0;
        Some(Scene {
            x: [0.0, 1.0],
            y: [0.0, 1.0],
            shapes: vec![
                Shape::Line { from: [0.3, f64::from(WANTED) / 40.0], to: [0.7, f64::from(WANTED) / 40.0], width: 0.01, ink: Ink::Goal },
                Shape::Line { from: [0.5, 0.0], to: [0.5, height], width: 0.1, ink: Ink::Body },
            ],
        })
    }
}
