//! In each autoreset mode, a vector returns the final observation, and each environment plays the episodes of its own seeds.

use gradus_envs::{Action, Actions, Autoreset, Ending, Env, EnvError, Finished, registry};

use super::{SEED, seed, tag, vec_env};

#[test]
fn same_step_autoreset_returns_the_final_observation() {
    let mut envs = vec_env(&[(3, 100), (100, 2)], Autoreset::SameStep);
    assert_eq!(envs.observation_rows(), [tag(seed(0, 0)), 0.0, tag(seed(1, 0)), 0.0]);
    envs.step(Actions::Discrete(&[0, 1])).unwrap();

    let transition = envs.step(Actions::Discrete(&[0, 0])).unwrap();
    assert_eq!((transition.rewards.as_slice(), transition.resets.as_slice()), ([2.0, 2.0].as_slice(), [false; 2].as_slice()));
    assert_eq!(transition.endings, [Ending::Running, Ending::Truncated]);
    let observation = vec![tag(seed(1, 0)), 2.0];
    let second = Finished {
        env: 1,
        seed: seed(1, 0),
        ending: Ending::Truncated,
        episode_return: 13.0,
        length: 2,
        observation,
        mask: None,
        scores: Vec::new(),
    };
    assert_eq!(transition.finished, [second]);
    assert_eq!(envs.observation_rows(), [tag(seed(0, 0)), 2.0, tag(seed(1, 1)), 0.0]);

    let transition = envs.step(Actions::Discrete(&[2, 0])).unwrap();
    let observation = vec![tag(seed(0, 0)), 3.0];
    let first = Finished {
        env: 0,
        seed: seed(0, 0),
        ending: Ending::Terminated,
        episode_return: 26.0,
        length: 3,
        observation,
        mask: None,
        scores: Vec::new(),
    };
    assert_eq!(transition.finished, [first]);
    assert_eq!(transition.rewards, [23.0, 1.0]);
    assert_eq!(envs.observation_rows(), [tag(seed(0, 1)), 0.0, tag(seed(1, 1)), 1.0]);
}

/// Tests CartPole, an environment with real dynamics.
#[test]
fn the_final_observation_equals_that_of_a_single_environment() {
    let world = registry::find("cartpole").unwrap();
    let mut envs = world.vec_env(5..9, SEED).unwrap();
    let mut checked = 0;
    for _ in 0..60 {
        let transition = envs.step(Actions::Discrete(&[0, 1, 0, 1])).unwrap().clone();
        for finished in transition.finished {
            let (mut env, mut row) = (world.env(), [0.0; 4]);
            env.reset(finished.seed, &mut row);
            for t in 1..=finished.length {
                assert_eq!(env.step(Action::Discrete(finished.env as u32 % 2), &mut row).done(), t == finished.length);
            }
            assert_eq!(finished.observation, row);
            let now = &envs.observation_rows()[4 * finished.env..4 * finished.env + 4];
            assert!(now.iter().all(|number| number.abs() <= 0.05), "expected a first observation, got {now:?}");
            checked += 1;
        }
    }
    assert!(checked >= 16, "{checked} episodes");
}

/// A common mistake is to count the dummy transition of Gymnasium's default mode as a step.
#[test]
fn next_step_autoreset_marks_the_reset_and_does_not_count_it() {
    let mut envs = vec_env(&[(2, 100), (100, 100)], Autoreset::NextStep);
    let mut length = 0;
    for episode in 0..3 {
        envs.step(Actions::Discrete(&[0, 0])).unwrap();
        let transition = envs.step(Actions::Discrete(&[1, 0])).unwrap();
        let observation = vec![tag(seed(0, episode)), 2.0];
        let ended = Finished {
            env: 0,
            seed: seed(0, episode),
            ending: Ending::Terminated,
            episode_return: 13.0,
            length: 2,
            observation,
            mask: None,
            scores: Vec::new(),
        };
        assert_eq!(transition.finished, [ended]);
        assert_eq!(transition.resets, [false, false]);
        length += 2;
        assert_eq!(envs.observation_rows(), [tag(seed(0, episode)), 2.0, tag(seed(1, 0)), length as f32], "the final observation stays");

        // in environment 0, which is reset, the action 2 would add 20 to the reward
        let transition = envs.step(Actions::Discrete(&[2, 2])).unwrap();
        length += 1;
        assert_eq!(transition.resets, [true, false]);
        assert_eq!(transition.rewards, [0.0, 20.0 + length as f32]);
        assert_eq!((transition.endings.as_slice(), transition.finished.len()), ([Ending::Running; 2].as_slice(), 0));
        assert_eq!(envs.observation_rows(), [tag(seed(0, episode + 1)), 0.0, tag(seed(1, 0)), length as f32]);
    }
}

#[test]
fn without_autoreset_stepping_a_finished_environment_is_an_error() {
    let mut envs = vec_env(&[(100, 100), (1, 100)], Autoreset::Disabled);
    let transition = envs.step(Actions::Discrete(&[0, 0])).unwrap();
    assert_eq!(transition.finished.len(), 1);
    let before = envs.save();
    let error = envs.step(Actions::Discrete(&[0, 0])).unwrap_err();
    assert_eq!(error, EnvError::Finished { env: 4 });
    assert_eq!(envs.save(), before, "no environment takes a step");
    assert_eq!(envs.observation_rows()[2..], [tag(seed(1, 0)), 1.0], "the final observation stays");

    envs.reset_finished().unwrap();
    assert_eq!(envs.observation_rows(), [tag(seed(0, 0)), 1.0, tag(seed(1, 1)), 0.0]);
    let again = envs.save();
    envs.reset_finished().unwrap();
    assert_eq!(envs.save(), again, "only finished environments are reset");
    let transition = envs.step(Actions::Discrete(&[1, 1])).unwrap();
    assert_eq!((transition.rewards.as_slice(), transition.resets.as_slice()), ([12.0, 11.0].as_slice(), [false; 2].as_slice()));
    assert_eq!((transition.finished[0].length, transition.finished[0].episode_return), (1, 11.0));
}

#[test]
fn termination_and_truncation_are_reported_separately() {
    let mut envs = vec_env(&[(3, 9), (9, 3), (3, 3)], Autoreset::SameStep);
    for _ in 0..2 {
        assert_eq!(envs.step(Actions::Discrete(&[0; 3])).unwrap().endings, [Ending::Running; 3]);
    }
    let transition = envs.step(Actions::Discrete(&[0; 3])).unwrap();
    assert_eq!(transition.endings, [Ending::Terminated, Ending::Truncated, Ending::Both]);
    assert_eq!(transition.finished.iter().map(|finished| finished.ending).collect::<Vec<_>>(), transition.endings);
    assert_eq!(transition.endings.iter().map(|e| e.terminated()).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(transition.endings.iter().map(|e| e.truncated()).collect::<Vec<_>>(), [false, true, true]);
    assert!(transition.endings.iter().all(|ending| ending.done()) && !Ending::Running.done());
}

#[test]
fn each_environment_plays_the_episodes_of_its_own_seeds() {
    for autoreset in [Autoreset::SameStep, Autoreset::NextStep, Autoreset::Disabled] {
        let mut envs = vec_env(&[(2, 9), (3, 9), (9, 4)], autoreset);
        let mut played = [0_u64; 3];
        for _ in 0..60 {
            let transition = envs.step(Actions::Discrete(&[0; 3])).unwrap().clone();
            for finished in transition.finished {
                let expected = seed(finished.env as u64, played[finished.env]);
                assert_eq!((finished.seed, finished.observation[0]), (expected, tag(expected)), "{autoreset:?}");
                played[finished.env] += 1;
            }
            if autoreset == Autoreset::Disabled {
                envs.reset_finished().unwrap();
            }
        }
        let expected = if autoreset == Autoreset::NextStep { [20, 15, 12] } else { [30, 20, 15] };
        assert_eq!(played, expected, "{autoreset:?}");
    }
}
