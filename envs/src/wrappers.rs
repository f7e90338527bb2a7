//! Wrappers: an environment around another one, that changes what it shows, pays or allows.
//!
//! | wrapper | what it changes | Gymnasium's name |
//! |---|---|---|
//! | [`TimeLimit`] | episodes are truncated after so many steps | `TimeLimit` |
//! | [`TimeAware`] | observations end with the elapsed time | `TimeAwareObservation` |
//! | [`FrameStack`] | the last n observations are shown | `FrameStackObservation` |
//! | [`OneHot`] | a discrete observation becomes n numbers, one of them 1 | `FlattenObservation` |
//! | [`NormaliseObservation`] | observations get mean 0 and variance 1, by frozen statistics | `NormalizeObservation` |
//! | [`ClipReward`] | rewards stay within bounds | `ClipReward` |
//! | [`ActionMask`] | actions are marked that are worth taking | (sb3-contrib: `ActionMasker`) |
//!
//! [`RunningStatistics`] and [`ReturnStatistics`] are not wrappers: the training normalises whole rollouts by them.
//!
//! What a wrapper knows of the episode is part of its [`save`](crate::Env::save); what it does not change it passes through.

mod action_mask;
mod clip_reward;
mod frame_stack;
mod normalise;
mod one_hot;
mod statistics;
mod time_aware;
mod time_limit;

pub use action_mask::ActionMask;
pub use clip_reward::ClipReward;
pub use frame_stack::FrameStack;
pub use normalise::{NormaliseObservation, ReturnStatistics};
pub use one_hot::OneHot;
pub use statistics::RunningStatistics;
pub use time_aware::TimeAware;
pub use time_limit::TimeLimit;

use crate::{Env, EnvError, Space};

/// The bounds of the observations of `env`.
///
/// # Panics
/// If they are not a box: `wrapper` needs one.
fn bounds<E: Env>(wrapper: &str, env: &E) -> (Vec<f32>, Vec<f32>) {
    match env.observation_space() {
        Space::Box { low, high } => (low, high),
        space => panic!("{wrapper}: expected a box of observations (see OneHot), got {space}"),
    }
}

/// A saved state, cut into the wrapped environment's and the last `own` words, which are the wrapper's.
fn split_state<'a>(wrapper: &str, state: &'a [u64], own: usize) -> Result<(&'a [u64], &'a [u64]), EnvError> {
    let inner = state.len().checked_sub(own);
    let inner = inner.ok_or_else(|| EnvError::State(format!("{wrapper}: expected {own} words at least, got {}", state.len())))?;
    Ok(state.split_at(inner))
}

/// Methods of [`Env`](crate::Env) that a wrapper hands to `self.env` as they are. [`TimeLimit`] shows them written out.
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
