//! Actions outside their space are errors that change nothing; clipping keeps NaN.

use gradus_envs::{Action, Actions, Autoreset, Env, EnvError, EnvSpec, Space, Step};

use super::{SEED, vec_env};

#[test]
fn invalid_actions_are_errors_and_change_nothing() {
    let mut envs = vec_env(&[(9, 9), (9, 9)], Autoreset::SameStep);
    envs.step(Actions::Discrete(&[0, 0])).unwrap();
    let (before, rows) = (envs.save(), envs.observation_rows().to_vec());
    let cases: [(Actions<'_>, &str); 6] = [
        (Actions::Discrete(&[0]), "actions: expected 2, one per environment, got 1"),
        (Actions::Discrete(&[0, 0, 0]), "actions: expected 2, one per environment, got 3"),
        (Actions::Discrete(&[]), "actions: expected 2, one per environment, got 0"),
        (Actions::Discrete(&[2, 3]), "action of environment 4: expected Discrete(3), that is 0 to 2, got 3"),
        (Actions::Discrete(&[u32::MAX, 0]), "action of environment 3: expected Discrete(3), that is 0 to 2, got 4294967295"),
        (Actions::Continuous { rows: &[0.0, 1.0], width: 1 }, "action of environment 3: expected Discrete(3), that is 0 to 2, got [0.0]"),
    ];
    for (actions, expected) in cases {
        assert_eq!(envs.step(actions).unwrap_err().to_string(), expected);
        assert_eq!((envs.save(), envs.observation_rows()), (before.clone(), rows.as_slice()), "{expected}");
    }
    assert_eq!(envs.step(Actions::Discrete(&[2, 2])).unwrap().rewards, [22.0; 2]);
}

/// An environment with actions of two numbers.
#[derive(Clone)]
struct Steer;

impl Env for Steer {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }
    fn action_space(&self) -> Space {
        Space::Box { low: vec![-1.0, 0.0], high: vec![1.0, 0.5] }
    }
    fn reset(&mut self, _seed: u64, observation: &mut [f32]) {
        observation[0] = 0.0;
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Continuous(action) = action else { panic!("expected numbers") };
        observation[0] = action[0];
        Step { reward: f64::from(action[1]), terminated: false, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        Vec::new()
    }
    fn load(&mut self, _state: &[u64]) -> Result<(), EnvError> {
        Ok(())
    }
}

#[test]
fn rows_of_numbers_are_checked_against_the_box() {
    let mut envs = EnvSpec::new("steer", || Steer).vec_env(0..2, SEED).unwrap();
    let mut step = |rows: &[f32], width| {
        let result = envs.step(Actions::Continuous { rows, width }).map(|transition| transition.rewards.clone());
        result.map(|rewards| (rewards, envs.observation_rows().to_vec()))
    };
    let edge = [-1.0, 0.5, 1.0, 0.0];
    assert_eq!(step(&edge, 2), Ok((vec![0.5, 0.0], vec![-1.0, 1.0])), "the bounds are inside the box");
    for outside in [0.6, -0.1, f32::NAN, f32::INFINITY] {
        let error = step(&[0.0, 0.0, 0.0, outside], 2).unwrap_err();
        assert!(matches!(error, EnvError::Action { env: 1, .. }), "{error}");
    }
    assert!(matches!(step(&[0.0, 0.0], 1), Err(EnvError::Action { env: 0, .. })));
    assert!(matches!(step(&[0.0, 0.0], 2), Err(EnvError::ActionCount { expected: 2, got: 1 })));
    for (rows, width) in [(&[0.0; 5][..], 2), (&[], 0)] {
        let error = step(rows, width).unwrap_err().to_string();
        assert_eq!(error, format!("action of environment 0: expected 2 rows of {width} numbers, got {} numbers", rows.len()));
    }
    assert_eq!(step(&edge, 2).unwrap().1, [-1.0, 1.0]);
}

#[test]
fn clipping_keeps_actions_within_bounds_and_keeps_nan() {
    let space = Space::Box { low: vec![-1.0, 0.0], high: vec![1.0, f32::INFINITY] };
    let mut rows = [-3.0, -3.0, 0.5, 7.0, f32::NAN, 2.0];
    space.clip(&mut rows);
    assert_eq!(rows[..4], [-1.0, 0.0, 0.5, 7.0]);
    assert!(rows[4].is_nan());
}
