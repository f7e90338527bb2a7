//! Action masks: the mask of a finished environment is not read, the environments of a group have the same start, and a running episode
//! without a valid action is an error.

use gradus_base::random::episode_seed;
use gradus_envs::{Action, Actions, Autoreset, Env, EnvError, EnvSpec, Space, Starts, Step};

/// A game without a valid action at its end: the mask of the final state is all false, and no action is chosen from it.
struct LastMove(u32);

impl Env for LastMove {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0], high: vec![9.0] }
    }
    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.0 = 1 + (seed % 3) as u32;
        observation[0] = self.0 as f32;
    }
    fn step(&mut self, _: Action<'_>, observation: &mut [f32]) -> Step {
        self.0 -= 1;
        observation[0] = self.0 as f32;
        Step { reward: 0.0, terminated: self.0 == 0, truncated: false }
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        mask.copy_from_slice(&[self.0 > 0, false]);
        true
    }
    fn save(&self) -> Vec<u64> {
        vec![self.0.into()]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.0 = state[0] as u32;
        Ok(())
    }
}

#[test]
fn a_waiting_environment_is_not_asked_for_its_mask() {
    let world = EnvSpec::new("last-move", || LastMove(0));
    for autoreset in [Autoreset::SameStep, Autoreset::NextStep, Autoreset::Disabled] {
        let mut envs = world.vec_env_with(0..8, 1, autoreset).unwrap();
        let mut ended = 0;
        for _ in 0..4 {
            let masks = envs.action_masks().unwrap().to_vec();
            assert!(masks.chunks(2).all(|mask| mask[0]), "{autoreset:?}: {masks:?}");
            ended += envs.step_unfinished(Actions::Discrete(&[0; 8])).unwrap().finished.len();
        }
        assert!(ended >= 8, "{autoreset:?}: {ended}");
    }
}

/// The two environments of a group have the same start, and not all groups have the same start. A finished environment waits until
/// `begin_next` is called.
#[test]
fn groups_have_the_same_start_and_finished_environments_wait() {
    let world = EnvSpec::new("last-move", || LastMove(0));
    let mut envs = world.vec_env_with(0..6, Starts { seed: 1, group: 2 }, Autoreset::Disabled).unwrap();
    let start = envs.observation_rows().to_vec();
    assert!(start.chunks(2).all(|pair| pair[0] == pair[1]) && start.iter().any(|x| *x != start[0]), "{start:?}");
    let mut lengths = [0; 6];
    for _ in 0..3 {
        for finished in &envs.step_unfinished(Actions::Discrete(&[0; 6])).unwrap().finished {
            lengths[finished.env] = finished.length;
        }
    }
    assert!(lengths.iter().zip(&start).all(|(length, start)| *length == *start as u32), "{lengths:?} from {start:?}");
    assert_eq!(envs.observation_rows(), [0.0; 6]);
    assert!(envs.step(Actions::Discrete(&[0; 6])).is_err(), "`step` does not skip finished environments");
    envs.begin_next(3).unwrap();
    let waiting: Vec<bool> = envs.observation_rows().iter().map(|x| *x == 0.0).collect();
    assert_eq!(waiting, [true, true, true, false, true, true]);
}

/// A [`LastMove`] of three steps in which no action is valid after the first step.
struct Stuck(LastMove);

impl Env for Stuck {
    fn observation_space(&self) -> Space {
        self.0.observation_space()
    }
    fn action_space(&self) -> Space {
        self.0.action_space()
    }
    fn reset(&mut self, _: u64, observation: &mut [f32]) {
        self.0.reset(2, observation); // three steps long
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        self.0.step(action, observation)
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        mask.copy_from_slice(&[self.0.0 == 3, false]);
        true
    }
    fn save(&self) -> Vec<u64> {
        self.0.save()
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.0.load(state)
    }
}

#[test]
fn a_running_episode_without_a_valid_action_is_an_error_that_names_it() {
    let mut envs = EnvSpec::new("stuck", || Stuck(LastMove(0))).vec_env(4..6, 1).unwrap();
    let message = envs.step(Actions::Discrete(&[0, 0])).unwrap_err().to_string();
    let seed = episode_seed(1, 4, 0);
    let expected =
        format!("stuck: action mask of environment 4: expected at least one action, got none (step 1 of the episode with seed {seed})");
    assert_eq!(message, expected);
}
