//! Clipped rewards.

use super::pass_through;
use crate::{Action, Env, Step};

/// Clips every reward to \[low, high\] (Gymnasium's `ClipReward`). This changes the task: returns are sums of clipped rewards.
///
/// ```
/// use gradus_envs::{Action, CartPole, Env, wrappers::ClipReward};
///
/// let mut env = ClipReward::new(CartPole::default(), 0.0, 0.5);
/// let mut row = [0.0; 4];
/// env.reset(1, &mut row);
/// assert_eq!(env.step(Action::Discrete(1), &mut row).reward, 0.5); // CartPole pays 1
/// ```
pub struct ClipReward<E> {
    env: E,
    low: f64,
    high: f64,
}

impl<E: Env> ClipReward<E> {
    /// Wraps `env`, with rewards clipped to \[`low`, `high`\]. Either bound may be infinite.
    ///
    /// # Panics
    /// Unless `low <= high`.
    pub fn new(env: E, low: f64, high: f64) -> Self {
        assert!(low <= high, "ClipReward: expected low <= high, got {low} and {high}");
        Self { env, low, high }
    }
}

impl<E: Env> Env for ClipReward<E> {
    pass_through!(observation_space, action_space, reset, save, load, start_from, reseed, action_mask, render, about_text);

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let step = self.env.step(action, observation);
        Step { reward: step.reward.clamp(self.low, self.high), ..step }
    }
}
