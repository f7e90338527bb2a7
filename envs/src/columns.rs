//! One implementation of each classic task, for a single environment and for many.
//!
//! A task is written once, as functions that have no branches, except [`Columnar::settle`]. A single environment calls them directly. A
//! [`ColumnBatch`](crate::ColumnBatch) calls the same functions in loops over environments that are stored in columns, and the compiler
//! turns these loops into vector instructions. The results are equal bit for bit.

use crate::{Actions, Env, Step};
use gradus_base::random::first_units;

/// The result of a step: the observation, the reward, and whether the episode terminated.
#[derive(Clone, Copy, Debug)]
pub struct Shown<const W: usize> {
    /// The observation.
    pub row: [f32; W],
    /// The reward of the step that led to this observation.
    pub reward: f64,
    /// Whether the Markov decision process ended.
    pub terminated: bool,
}

/// A task with a state of `N` numbers and an observation of `W` numbers.
///
/// [`start`](Columnar::start), [`advance`](Columnar::advance), [`show`](Columnar::show) and all functions that they call must have no
/// branches and must be marked `#[inline(always)]`.
pub trait Columnar<const N: usize, const W: usize>: Env + Clone {
    /// The type of an action: `u32` for discrete actions, `f32` for continuous actions of one dimension.
    type Action: Number;

    /// Whether [`settle`](Columnar::settle) can change a state.
    const SETTLES: bool = false;

    /// Returns the current state.
    fn state(&self) -> [f64; N];

    /// Sets the current state.
    fn set_state(&mut self, state: [f64; N]);

    /// Computes the first state of an episode from `N` uniform numbers in [0, 1).
    fn start(units: [f64; N]) -> [f64; N];

    /// Computes the next state and the cost of the step. [`show`](Columnar::show) subtracts this cost from the reward.
    fn advance(&self, state: [f64; N], action: Self::Action) -> ([f64; N], f64);

    /// Computes the part of the step that needs branches, for one environment at a time.
    fn settle(state: [f64; N]) -> [f64; N] {
        state
    }

    /// Computes the result of a step from the state after the step and from the step's cost.
    fn show(state: [f64; N], cost: f64) -> Shown<W>;
}

/// An action that is one number.
pub trait Number: Copy + Default + Send + 'static {
    /// Returns the actions as a slice, if they are of this type.
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

/// Rounds numbers to f32.
#[inline(always)]
pub(crate) fn rounded<const N: usize>(numbers: [f64; N]) -> [f32; N] {
    let mut rounded = [0.0; N];
    for i in 0..N {
        rounded[i] = numbers[i] as f32;
    }
    rounded
}

/// Maps `unit` from [0, 1) to [low, high).
#[inline(always)]
pub(crate) fn between(low: f64, high: f64, unit: f64) -> f64 {
    low + (high - low) * unit
}

/// Maps every unit from [0, 1) to [low, high).
#[inline(always)]
pub(crate) fn all_between<const N: usize>(low: f64, high: f64, mut units: [f64; N]) -> [f64; N] {
    for unit in &mut units {
        *unit = between(low, high, *unit);
    }
    units
}

/// Begins the episode with seed `seed` in one environment.
pub(crate) fn reset<T: Columnar<N, W>, const N: usize, const W: usize>(env: &mut T, seed: u64, observation: &mut [f32]) {
    env.set_state(T::start(first_units(seed)));
    show(env, 0.0, observation);
}

/// Steps one environment.
pub(crate) fn step<T: Columnar<N, W>, const N: usize, const W: usize>(env: &mut T, action: T::Action, observation: &mut [f32]) -> Step {
    let (state, cost) = env.advance(env.state(), action);
    env.set_state(T::settle(state));
    show(env, cost, observation)
}

/// Writes the current observation of one environment, and returns the result of a step with cost `cost`.
pub(crate) fn show<T: Columnar<N, W>, const N: usize, const W: usize>(env: &T, cost: f64, observation: &mut [f32]) -> Step {
    let Shown { row, reward, terminated } = T::show(env.state(), cost);
    observation.copy_from_slice(&row);
    Step { reward, terminated, truncated: false }
}
