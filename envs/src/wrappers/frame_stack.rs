//! Stacked observations, for agents without memory.

use super::{bounds, pass_through, split_state};
use crate::{Action, Env, EnvError, Image, Space, Step};

/// Concatenates the last n observations, the oldest first. After a reset, it repeats the first observation n times (Gymnasium's
/// `FrameStackObservation` with padding "reset", flattened).
///
/// ```
/// use gradus_envs::{Action, CartPole, Env, wrappers::FrameStack};
///
/// let mut env = FrameStack::new(CartPole::default(), 2);
/// let mut row = [0.0; 8];
/// env.reset(1, &mut row);
/// let first = row;
/// assert_eq!(row[..4], row[4..]);
/// env.step(Action::Discrete(1), &mut row);
/// assert_eq!(row[..4], first[4..]);
/// assert_ne!(row[4..], first[4..]);
/// ```
pub struct FrameStack<E> {
    env: E,
    frames: usize,
    width: usize,
    /// The last `frames` observations.
    stack: Vec<f32>,
}

impl<E: Env> FrameStack<E> {
    /// Wraps `env`, with its last `frames` observations stacked.
    ///
    /// # Panics
    /// If the observation space of `env` is neither a box (see [`OneHot`](super::OneHot)) nor one of images, or if `frames` is 0.
    pub fn new(env: E, frames: usize) -> Self {
        assert!(frames > 0, "FrameStack: expected at least 1 frame, got 0");
        let width = stacked(&env, frames).width() / frames;
        Self { env, frames, width, stack: vec![0.0; frames * width] }
    }

    /// Copies the last frame, which the wrapped environment has written, to all other frames, and all frames to `row`.
    fn repeat_last(&mut self, row: &mut [f32]) {
        let last = (self.frames - 1) * self.width;
        for frame in 0..self.frames - 1 {
            self.stack.copy_within(last.., frame * self.width);
        }
        row.copy_from_slice(&self.stack);
    }
}

/// Returns the space of stacked observations.
fn stacked<E: Env>(env: &E, frames: usize) -> Space {
    if let Space::Image(image) = env.observation_space() {
        return Space::Image(Image { frames: frames * image.frames, ..image });
    }
    let (low, high) = bounds("FrameStack", env);
    Space::Box { low: low.repeat(frames), high: high.repeat(frames) }
}

impl<E: Env> Env for FrameStack<E> {
    pass_through!(action_space, reseed, action_mask, render, about_text);

    fn observation_space(&self) -> Space {
        stacked(&self.env, self.frames)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        let last = (self.frames - 1) * self.width;
        self.env.reset(seed, &mut self.stack[last..]);
        self.repeat_last(observation);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let last = (self.frames - 1) * self.width;
        self.stack.copy_within(self.width.., 0);
        let step = self.env.step(action, &mut self.stack[last..]);
        observation.copy_from_slice(&self.stack);
        step
    }

    fn save(&self) -> Vec<u64> {
        let stack = self.stack.iter().map(|number| u64::from(number.to_bits()));
        self.env.save().into_iter().chain(stack).collect()
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let (inner, own) = split_state("FrameStack", state, self.stack.len())?;
        if let Some(word) = own.iter().find(|word| **word > u64::from(u32::MAX)) {
            return Err(EnvError::State(format!("FrameStack: expected the bits of an f32, got {word:#x}")));
        }
        self.env.load(inner)?;
        self.stack.iter_mut().zip(own).for_each(|(number, word)| *number = f32::from_bits(*word as u32));
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        let last = (self.frames - 1) * self.width;
        self.env.start_from(state, &mut self.stack[last..])?;
        self.repeat_last(observation);
        Ok(())
    }
}
