//! Stacked observations, for agents without memory.

use std::ops::Range;

use super::{bounds, pass_through, pass_through_batch, split_state};
use crate::{Action, Actions, Batch, Ending, Env, EnvError, Image, Space, Step};

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
        let width = stacked(env.observation_space(), frames).width() / frames;
        Self { env, frames, width, stack: vec![0.0; frames * width] }
    }

    /// Copies the last frame, which the wrapped environment has written, to all other frames, and all frames to `row`.
    fn repeat_last(&mut self, row: &mut [f32]) {
        repeat_last(&mut self.stack, self.width);
        row.copy_from_slice(&self.stack);
    }
}

/// Returns the space of `frames` observations from `space`.
fn stacked(space: Space, frames: usize) -> Space {
    if let Space::Image(image) = space {
        return Space::Image(Image { frames: frames * image.frames, ..image });
    }
    let (low, high) = bounds("FrameStack", space);
    Space::Box { low: low.repeat(frames), high: high.repeat(frames) }
}

/// Appends the bits of a stack to the state of an environment.
fn save(state: Vec<u64>, stack: &[f32]) -> Vec<u64> {
    state.into_iter().chain(stack.iter().map(|number| u64::from(number.to_bits()))).collect()
}

/// Reads a stack, and returns the state of the environment.
fn load<'a>(state: &'a [u64], stack: &mut [f32]) -> Result<&'a [u64], EnvError> {
    let (inner, own) = split_state("FrameStack", state, stack.len())?;
    if let Some(word) = own.iter().find(|word| **word > u64::from(u32::MAX)) {
        return Err(EnvError::State(format!("FrameStack: expected the bits of an f32, got {word:#x}")));
    }
    stack.iter_mut().zip(own).for_each(|(number, word)| *number = f32::from_bits(*word as u32));
    Ok(inner)
}

/// Copies the last frame to all others.
fn repeat_last(stack: &mut [f32], width: usize) {
    let last = stack.len() - width;
    for frame in (0..last).step_by(width) {
        stack.copy_within(last.., frame);
    }
}

impl<E: Env> Env for FrameStack<E> {
    pass_through!(action_space, reseed, action_mask, render, about_text);

    fn observation_space(&self) -> Space {
        stacked(self.env.observation_space(), self.frames)
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
        save(self.env.save(), &self.stack)
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        // nothing changes if the environment's own state is wrong
        let mut stack = self.stack.clone();
        self.env.load(load(state, &mut stack)?)?;
        self.stack = stack;
        Ok(())
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        let last = (self.frames - 1) * self.width;
        self.env.start_from(state, &mut self.stack[last..])?;
        self.repeat_last(observation);
        Ok(())
    }
}

/// As [`FrameStack`], for copies that step together.
pub(crate) struct StackedBatch {
    batch: Box<dyn Batch>,
    frames: usize,
    width: usize,
    /// The last `frames` observations of each copy.
    stacks: Vec<f32>,
    /// The last observation of each copy.
    latest: Vec<f32>,
}

impl StackedBatch {
    pub(crate) fn new(batch: Box<dyn Batch>, frames: usize) -> Self {
        let (n, width) = (batch.len(), batch.observation_space().width());
        Self { batch, frames, width, stacks: vec![0.0; n * frames * width], latest: vec![0.0; n * width] }
    }

    /// Where the stack of a copy is.
    fn stack(&self, env: usize) -> Range<usize> {
        let n = self.frames * self.width;
        env * n..(env + 1) * n
    }

    /// Fills the stack of a copy with its last observation.
    fn begin(&mut self, env: usize) -> &[f32] {
        let (at, width) = (self.stack(env), self.width);
        let stack = &mut self.stacks[at];
        let last = stack.len() - width;
        stack[last..].copy_from_slice(&self.latest[env * width..(env + 1) * width]);
        repeat_last(stack, width);
        stack
    }
}

impl Batch for StackedBatch {
    pass_through_batch!();

    fn observation_space(&self) -> Space {
        stacked(self.batch.observation_space(), self.frames)
    }

    fn reset(&mut self, env: usize, seed: u64, observation: &mut [f32]) {
        self.batch.reset(env, seed, &mut self.latest[env * self.width..(env + 1) * self.width]);
        observation.copy_from_slice(self.begin(env));
    }

    fn reset_many(&mut self, envs: &[usize], seeds: &[u64], observations: &mut [f32]) {
        self.batch.reset_many(envs, seeds, &mut self.latest);
        for env in envs {
            let at = self.stack(*env);
            observations[at].copy_from_slice(self.begin(*env));
        }
    }

    fn step(&mut self, actions: Actions<'_>, finished: &[bool], observations: &mut [f32], rewards: &mut [f32], endings: &mut [Ending]) {
        self.batch.step(actions, finished, &mut self.latest, rewards, endings);
        for env in (0..finished.len()).filter(|env| !finished[*env]) {
            let (at, width) = (self.stack(env), self.width);
            let stack = &mut self.stacks[at.clone()];
            stack.copy_within(width.., 0);
            let last = stack.len() - width;
            stack[last..].copy_from_slice(&self.latest[env * width..(env + 1) * width]);
            observations[at].copy_from_slice(stack);
        }
    }

    fn save(&self, env: usize) -> Vec<u64> {
        save(self.batch.save(env), &self.stacks[self.stack(env)])
    }

    fn load(&mut self, env: usize, state: &[u64]) -> Result<(), EnvError> {
        let at = self.stack(env);
        let mut stack = self.stacks[at.clone()].to_vec();
        self.batch.load(env, load(state, &mut stack)?)?;
        self.stacks[at].copy_from_slice(&stack);
        Ok(())
    }
}
