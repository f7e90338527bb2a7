//! Wrappers. A wrapper is an environment around another environment. It changes the observations, rewards or action mask of the wrapped
//! environment, or ends its episodes.
//!
//! | wrapper | effect | Gymnasium's name |
//! |---|---|---|
//! | [`TimeLimit`] | truncates episodes after a number of steps | `TimeLimit` |
//! | [`TimeAware`] | appends the elapsed time to observations | `TimeAwareObservation` |
//! | [`FrameStack`] | shows the last n observations | `FrameStackObservation` |
//! | [`MaskVelocity`] | sets some numbers of observations to 0 | none (rl-zoo: `MaskVelocityWrapper`) |
//! | [`OneHot`] | encodes a discrete observation as n numbers, one of them 1 | `FlattenObservation` |
//! | [`NormaliseObservation`] | normalises observations to mean 0 and variance 1, with frozen statistics | `NormalizeObservation` |
//! | [`ClipReward`] | clips rewards to bounds | `ClipReward` |
//! | [`ActionMask`] | adds an action mask | none (sb3-contrib: `ActionMasker`) |
//!
//! [`RunningStatistics`] and [`ReturnStatistics`] are not wrappers: training normalises whole rollouts with them.
//!
//! A wrapper's state within an episode is part of its [`save`](crate::Env::save). Methods that a wrapper does not change call the wrapped
//! environment.

mod action_mask;
mod clip_reward;
mod frame_stack;
mod mask_velocity;
mod normalise;
mod one_hot;
mod statistics;
mod time_aware;
mod time_limit;

pub use action_mask::ActionMask;
pub use clip_reward::ClipReward;
pub use frame_stack::FrameStack;
pub(crate) use frame_stack::StackedBatch;
pub use mask_velocity::MaskVelocity;
pub(crate) use mask_velocity::MaskedBatch;
pub(crate) use normalise::NormalisedBatch;
pub use normalise::{NormaliseObservation, ReturnStatistics};
pub use one_hot::OneHot;
pub use statistics::RunningStatistics;
pub use time_aware::TimeAware;
pub use time_limit::TimeLimit;

use std::sync::Arc;

use crate::{EnvError, EnvSpec, Space};

/// The wrappers that training applies. Generic code is compiled in the crate that uses it; here, that is this crate, which is optimised.
impl EnvSpec {
    /// Wraps every environment in [`OneHot`], which panics if observations are not discrete.
    pub fn one_hot(self) -> Self {
        let model = self.model.clone();
        let world = self.wrapped(OneHot::new);
        let states = Some(world.env().observation_space().width());
        Self { is_one_hot: true, states, model, ..world }
    }

    /// Wraps every environment, which has episodes of at most `limit` steps, in [`TimeAware`].
    pub fn time_aware(self, limit: u32) -> Self {
        self.wrapped(move |env| TimeAware::new(env, limit))
    }

    /// Wraps every environment in [`MaskVelocity`], which sets the numbers of observations at these places to 0. Vectors still step together.
    pub fn masked(self, places: &'static [usize]) -> Self {
        let many = self.many.clone();
        let mut made = self.wrapped(move |env| MaskVelocity::new(env, places));
        made.many = Arc::new(move |n| Box::new(MaskedBatch::new(many(n), places)));
        made.wrap_again_by(move |world| world.masked(places))
    }

    /// Wraps every environment in [`FrameStack`], with its last `frames` observations.
    pub fn stacked(self, frames: usize) -> Self {
        let many = self.many.clone();
        let mut made = self.wrapped(move |env| FrameStack::new(env, frames));
        // vectors still step together
        made.many = Arc::new(move |n| Box::new(StackedBatch::new(many(n), frames)));
        made.wrap_again_by(move |world| world.stacked(frames))
    }
}

/// Returns the bounds of an observation space. `wrapper` is the name for the panic.
///
/// # Panics
/// If it is not a box.
fn bounds(wrapper: &str, observations: Space) -> (Vec<f32>, Vec<f32>) {
    match observations {
        Space::Box { low, high } => (low, high),
        space => panic!("{wrapper}: expected a box of observations (see OneHot), got {space}"),
    }
}

/// Splits a saved state into the wrapped environment's words and the last `own` words, which are the wrapper's.
fn split_state<'a>(wrapper: &str, state: &'a [u64], own: usize) -> Result<(&'a [u64], &'a [u64]), EnvError> {
    let inner = state.len().checked_sub(own);
    let inner = inner.ok_or_else(|| EnvError::State(format!("{wrapper}: expected at least {own} words, got {}", state.len())))?;
    Ok(state.split_at(inner))
}

/// Implements methods of [`Env`](crate::Env) by calling them on `self.env`. [`TimeLimit`] shows most of them written out.
macro_rules! pass_through {
    (@ observation_space) => { fn observation_space(&self) -> $crate::Space { self.env.observation_space() } };
    (@ action_space) => { fn action_space(&self) -> $crate::Space { self.env.action_space() } };
    (@ reset) => { fn reset(&mut self, seed: u64, observation: &mut [f32]) { self.env.reset(seed, observation) } };
    (@ save) => { fn save(&self) -> Vec<u64> { self.env.save() } };
    (@ load) => { fn load(&mut self, state: &[u64]) -> Result<(), $crate::EnvError> { self.env.load(state) } };
    (@ start_from) => {
        fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), $crate::EnvError> {
            self.env.start_from(state, observation)
        }
    };
    (@ reseed) => { fn reseed(&mut self, seed: u64) { self.env.reseed(seed) } };
    (@ action_mask) => { fn action_mask(&self, mask: &mut [bool]) -> bool { self.env.action_mask(mask) } };
    (@ about_text) => {
        fn ends_step(&self) -> bool { self.env.ends_step() }
        fn score_names(&self) -> Vec<String> { self.env.score_names() }
        fn scores(&self, scores: &mut [f64]) { self.env.scores(scores) }
        fn fault(&self) -> Option<String> { self.env.fault() }
        fn ansi(&self) -> Option<String> { self.env.ansi() }
    };
    (@ render) => { fn render(&self) -> Option<$crate::Scene> { self.env.render() } };
    ($($method:ident),*) => { $($crate::wrappers::pass_through!(@ $method);)* };
}
pub(crate) use pass_through;

/// Writes the methods of [`Batch`](crate::Batch) that a wrapper of copies which step together leaves to the wrapped ones.
macro_rules! pass_through_batch {
    () => {
        fn len(&self) -> usize {
            self.batch.len()
        }
        fn action_space(&self) -> $crate::Space {
            self.batch.action_space()
        }
        fn current(&self) -> usize {
            self.batch.current()
        }
        fn reseed(&mut self, env: usize, seed: u64) {
            self.batch.reseed(env, seed)
        }
        fn action_mask(&self, env: usize, mask: &mut [bool]) -> bool {
            self.batch.action_mask(env, mask)
        }
        fn ends_step(&self, env: usize) -> bool {
            self.batch.ends_step(env)
        }
        fn score_names(&self) -> Vec<String> {
            self.batch.score_names()
        }
        fn scores(&self, env: usize, scores: &mut [f64]) {
            self.batch.scores(env, scores)
        }
        fn fault(&self, env: usize) -> Option<String> {
            self.batch.fault(env)
        }
        fn announce(&mut self, env: usize, seed: u64) {
            self.batch.announce(env, seed)
        }
    };
}
pub(crate) use pass_through_batch;
