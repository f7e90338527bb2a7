//! Custom action masks.

use super::pass_through;
use crate::{Action, Env, Step};

/// Gives an environment a custom action mask (after the `ActionMasker` of sb3-contrib).
///
/// ```
/// use gradus_envs::{CartPole, Env, wrappers::ActionMask};
///
/// // mask "push right" while the pole leans to the left by more than 0.1 rad
/// let mut env = ActionMask::new(CartPole::default(), |env: &CartPole, mask| {
///     let angle = f64::from_bits(env.save()[2]);
///     mask[1] = angle > -0.1;
/// });
/// let (mut row, mut mask) = ([0.0; 4], [false; 2]);
/// env.start_from(&[0.0, 0.0, -0.15, 0.0], &mut row)?;
/// assert!(env.action_mask(&mut mask));
/// assert_eq!(mask, [true, false]);
/// # Ok::<(), gradus_envs::EnvError>(())
/// ```
pub struct ActionMask<E, F> {
    env: E,
    mask: F,
}

impl<E: Env, F: Fn(&E, &mut [bool]) + Send> ActionMask<E, F> {
    /// Wraps `env`. `mask` unmarks the actions that the policy may not choose. It receives the mask of `env`, or a mask with all actions
    /// marked if `env` has none. It must leave at least one action marked, and must depend only on the environment's state.
    ///
    /// # Panics
    /// If the actions of `env` are not discrete.
    pub fn new(env: E, mask: F) -> Self {
        let space = env.action_space();
        assert!(space.mask_width() > 0, "ActionMask: expected discrete actions, got {space}");
        Self { env, mask }
    }
}

impl<E: Env, F: Fn(&E, &mut [bool]) + Send> Env for ActionMask<E, F> {
    pass_through!(observation_space, action_space, reset, save, load, start_from, reseed, render, about_text);

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        self.env.step(action, observation)
    }

    fn action_mask(&self, mask: &mut [bool]) -> bool {
        if !self.env.action_mask(mask) {
            mask.fill(true);
        }
        (self.mask)(&self.env, mask);
        true
    }
}
