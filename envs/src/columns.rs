//! The classic tasks, for one environment and for many.
//!
//! A task is written once, as functions without branches ([`Columnar`]). One environment calls them for itself; a [`ColumnBatch`](crate::ColumnBatch) calls
//! the very same functions in loops over environments whose numbers lie side by side, which the compiler turns into vector
//! instructions, so both give the same bits.

use crate::random::first_units;
use crate::{Actions, Env, Step};

/// What a step shows of a state: the observation, the step's reward, and whether the episode is over.
#[derive(Clone, Copy, Debug)]
pub struct Shown<const W: usize> {
    /// The observation.
    pub row: [f32; W],
    /// The reward of the step that led here.
    pub reward: f64,
    /// Whether the Markov decision process ended.
    pub terminated: bool,
}

/// A task whose state is `N` numbers and whose observation is `W`.
///
/// All but [`settle`](Columnar::settle) must be free of branches and `#[inline(always)]`, and so must all that they call.
pub trait Columnar<const N: usize, const W: usize>: Env + Clone {
    /// `u32` where actions are discrete, `f32` where they are one number.
    type Action: Number;

    /// Whether [`settle`](Columnar::settle) does anything.
    const SETTLES: bool = false;

    /// The state that this environment is in.
    fn state(&self) -> [f64; N];

    /// Puts this environment into a state.
    fn set_state(&mut self, state: [f64; N]);

    /// The first state of an episode, from `N` numbers uniform in [0, 1).
    fn start(units: [f64; N]) -> [f64; N];

    /// The state that follows, and what the step has cost so far.
    fn advance(&self, state: [f64; N], action: Self::Action) -> ([f64; N], f64);

    /// The part of the step that cannot do without branches, done for one environment after the other.
    fn settle(state: [f64; N]) -> [f64; N] {
        state
    }

    /// What there is to see of a state, after a step that has cost `cost` so far.
    fn show(state: [f64; N], cost: f64) -> Shown<W>;
}

/// An action that is one number.
pub trait Number: Copy + Default + Send + 'static {
    /// The actions, where they are of this kind.
    fn all(actions: Actions<'_>) -> Option<&[Self]>;
}

impl Number for u32 {
    fn all(actions: Actions<'_>) -> Option<&[Self]> {
        if let Actions::Discrete(actions) = actions { Some(actions) } else { None }
    }
}

impl Number for f32 {
    fn all(actions: Actions<'_>) -> Option<&[Self]> {
        if let Actions::Continuous { rows, width: 1 } = actions { Some(rows) } else { None }
    }
}

/// A number of [low, high) for a `unit` of [0, 1).
#[inline(always)]
pub(crate) fn between(low: f64, high: f64, unit: f64) -> f64 {
    low + (high - low) * unit
}

/// The episode that belongs to `seed` begins in one environment.
pub(crate) fn reset<T: Columnar<N, W>, const N: usize, const W: usize>(env: &mut T, seed: u64, observation: &mut [f32]) {
    env.set_state(T::start(first_units(seed)));
    show(env, 0.0, observation);
}

/// A step of one environment.
pub(crate) fn step<T: Columnar<N, W>, const N: usize, const W: usize>(env: &mut T, action: T::Action, observation: &mut [f32]) -> Step {
    let (state, cost) = env.advance(env.state(), action);
    env.set_state(T::settle(state));
    show(env, cost, observation)
}

/// What one environment shows, after a step that has cost `cost` so far.
pub(crate) fn show<T: Columnar<N, W>, const N: usize, const W: usize>(env: &T, cost: f64, observation: &mut [f32]) -> Step {
    let Shown { row, reward, terminated } = T::show(env.state(), cost);
    observation.copy_from_slice(&row);
    Step { reward, terminated, truncated: false }
}
