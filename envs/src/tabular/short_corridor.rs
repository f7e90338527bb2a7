//! The short corridor with switched actions (Sutton and Barto, example 13.1): three states that look the same.
//!
//! | | |
//! |---|---|
//! | actions | `Discrete(2)`: 0 left, 1 right; in the second state they are switched |
//! | observations | `Discrete(1)`: always 0 |
//! | reward | -1 on every step |
//! | start | the first state, from which a step to the left has no effect |
//! | end | terminated on the right of the third state; the registered environment truncates after 1000 steps |
//!
//! A policy that goes right with probability p has the value (2 p - 4) / (p (1 - p)), which is largest, -11.66, for p = 2 - sqrt 2 = 0.59.

use crate::{Action, Env, EnvError, Space, Step};

/// The environment.
///
/// ```
/// use gradus_envs::tabular::ShortCorridor;
/// use gradus_envs::{Action, Env};
///
/// let (mut env, mut observation) = (ShortCorridor::default(), [0.0]);
/// env.reset(1, &mut observation);
/// // right, then left, which leads to the right, and right
/// let ends = [1, 0, 1].map(|action| env.step(Action::Discrete(action), &mut observation).terminated);
/// assert_eq!(ends, [false, false, true]);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShortCorridor {
    place: u32,
}

const END: u32 = 3;

impl Env for ShortCorridor {
    fn observation_space(&self) -> Space {
        Space::Discrete(1)
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn reset(&mut self, _: u64, observation: &mut [f32]) {
        (self.place, observation[0]) = (0, 0.0);
    }

    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        assert!(self.action_space().contains(action), "expected an action of {}, got {action:?}", self.action_space());
        let goes_right = matches!(action, Action::Discrete(1)) != (self.place == 1);
        self.place = if goes_right { self.place + 1 } else { self.place.saturating_sub(1) };
        observation[0] = 0.0;
        Step { reward: -1.0, terminated: self.place >= END, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        vec![u64::from(self.place)]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        match state {
            [place @ 0..=3] => {
                self.place = *place as u32;
                Ok(())
            }
            other => Err(EnvError::State(format!("short corridor: expected a place from 0 to 3, got {other:?}"))),
        }
    }

    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        match state {
            [place] if [0.0, 1.0, 2.0].contains(place) => {
                (self.place, observation[0]) = (*place as u32, 0.0);
                Ok(())
            }
            other => Err(EnvError::State(format!("expected a place from 0 to 2, got {other:?}"))),
        }
    }
}
