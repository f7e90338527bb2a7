//! One-hot observations, for networks.

use super::pass_through;
use crate::{Action, Env, EnvError, Space, Step};

/// Encodes an observation of [`Space::Discrete`]`(n)` as n numbers: 1 at the index of the observation and 0 elsewhere.
///
/// ```
/// use gradus_envs::{Action, Env, EnvError, Space, Step, wrappers::OneHot};
///
/// /// A corridor of four cells; the last one is the exit.
/// struct Corridor(u32);
///
/// impl Env for Corridor {
///     fn observation_space(&self) -> Space { Space::Discrete(4) }
///     fn action_space(&self) -> Space { Space::Discrete(1) }
///     fn reset(&mut self, _seed: u64, observation: &mut [f32]) { self.0 = 0; observation[0] = 0.0; }
///     fn step(&mut self, _: Action<'_>, observation: &mut [f32]) -> Step {
///         self.0 += 1;
///         observation[0] = self.0 as f32;
///         Step { reward: 0.0, terminated: self.0 == 3, truncated: false }
///     }
///     fn save(&self) -> Vec<u64> { vec![u64::from(self.0)] }
///     fn load(&mut self, state: &[u64]) -> Result<(), EnvError> { self.0 = state[0] as u32; Ok(()) }
/// }
///
/// let mut env = OneHot::new(Corridor(0));
/// let mut row = [0.0; 4];
/// env.reset(0, &mut row);
/// assert_eq!(row, [1.0, 0.0, 0.0, 0.0]);
/// env.step(Action::Discrete(0), &mut row);
/// assert_eq!(row, [0.0, 1.0, 0.0, 0.0]);
/// ```
pub struct OneHot<E> {
    env: E,
    n: usize,
}

impl<E: Env> OneHot<E> {
    /// Wraps `env`, with one-hot observations.
    ///
    /// # Panics
    /// If the observations of `env` are not discrete.
    pub fn new(env: E) -> Self {
        match env.observation_space() {
            Space::Discrete(n) => Self { env, n: n as usize },
            space => panic!("OneHot: expected discrete observations, got {space}"),
        }
    }

    /// Calls the wrapped environment with a buffer for its own observation, then writes the one-hot code into `row`.
    fn encode<T>(&mut self, row: &mut [f32], call: impl FnOnce(&mut E, &mut [f32]) -> T) -> T {
        let mut observation = [0.0];
        let result = call(&mut self.env, &mut observation);
        let [number] = observation;
        let index = number as usize; // NaN and negative numbers become 0, and fail the check below
        assert!(
            index < self.n && index as f32 == number,
            "expected observations from 0 to {}, as its observation space says, got {number}",
            self.n - 1
        );
        row.fill(0.0);
        row[index] = 1.0;
        result
    }
}

impl<E: Env> Env for OneHot<E> {
    pass_through!(action_space, save, load, reseed, action_mask, render, about_text);

    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0; self.n], high: vec![1.0; self.n] }
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.encode(observation, |env, own| env.reset(seed, own))
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        self.encode(observation, |env, own| env.step(action, own))
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.encode(observation, |env, own| env.start_from(state, own))
    }
}
