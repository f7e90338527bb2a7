//! NaN, infinities and invalid saved states are errors that name their place.

use gradus_envs::{Action, Actions, Autoreset, Env, EnvError, ScalarBatch, Space, Step, VecEnv};

use super::{Count, SEED, seed, vec_env};

/// An environment that returns `value` as reward or observation in step `at` (0: the reset).
#[derive(Clone)]
struct Fault {
    count: Count,
    at: u32,
    in_reward: bool,
    value: f64,
}

impl Env for Fault {
    fn observation_space(&self) -> Space {
        self.count.observation_space()
    }
    fn action_space(&self) -> Space {
        self.count.action_space()
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.count.reset(seed, observation);
        if self.at == 0 {
            observation[1] = self.value as f32;
        }
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let mut step = self.count.step(action, observation);
        if self.count.steps == self.at {
            match self.in_reward {
                true => step.reward = self.value,
                false => observation[1] = self.value as f32,
            }
        }
        step
    }
    fn save(&self) -> Vec<u64> {
        self.count.save()
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.count.load(state)
    }
}

/// Environment 3 is correct and ends after every step; environment 4 ends after 5 steps and has the fault.
fn faulty(at: u32, in_reward: bool, value: f64) -> Result<VecEnv, EnvError> {
    let sound = Fault { count: Count::new(1), at: u32::MAX, in_reward, value };
    let faulty = Fault { count: Count::new(5), at, in_reward, value };
    VecEnv::new(Box::new(ScalarBatch::new(vec![sound, faulty])), 3..5, SEED, Autoreset::SameStep)
}

#[test]
fn errors_of_numbers_that_are_not_finite_name_environment_step_and_seed() {
    let seed = seed(1, 0);
    // 1e300 is finite until it is rounded to f32
    let values = [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf"), (1e300, "inf")];
    for (in_reward, what) in [(true, "reward"), (false, "observation[1]")] {
        for (value, got) in values {
            for at in [1, 4, 5] {
                let mut envs = faulty(at, in_reward, value).unwrap();
                for _ in 1..at {
                    envs.step(Actions::Discrete(&[0, 0])).unwrap();
                }
                let error = envs.step(Actions::Discrete(&[0, 0])).unwrap_err().to_string();
                let place = format!("(step {at} of the episode with seed {seed})");
                assert_eq!(error, format!("environment: {what} of environment 4 is {got}, expected a finite number {place}"));
            }
        }
    }
    let error = faulty(0, false, f64::NAN).expect_err("an error").to_string();
    let place = format!("(step 0 of the episode with seed {seed})");
    assert_eq!(error, format!("environment: observation[1] of environment 4 is NaN, expected a finite number {place}"));
}

#[test]
fn loading_a_truncated_state_is_an_error() {
    let mut envs = vec_env(&[(9, 9), (9, 9)], Autoreset::SameStep);
    let words = envs.save();
    for len in 0..words.len() {
        assert!(matches!(envs.load(&words[..len]), Err(EnvError::State(_))), "{len} of {} words", words.len());
    }
    assert_eq!(envs.load(&[words.as_slice(), &[7]].concat()), Ok([7].as_slice()));
}

#[test]
fn loading_an_inconsistent_state_is_an_error() {
    let mut envs = vec_env(&[(9, 9)], Autoreset::SameStep);
    let words = envs.save();
    let mut refuses = |i: usize, word: u64, expected: &str| {
        let mut words = words.clone();
        words[i] = word;
        let error = envs.load(&words).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refuses(2, f64::NAN.to_bits(), "expected a finite return, got NaN");
    refuses(3, 1 << 32, "the length of its episode is not a 32-bit number");
    refuses(4, 1, "expected no wait for a reset, got one");
    refuses(4, 2, "flag of a wait for a reset: expected 0 or 1, got 2");
    let mut disabled = vec_env(&[(9, 9)], Autoreset::Disabled);
    let waiting: Vec<u64> = words.iter().enumerate().map(|(i, word)| if i == 4 { 1 } else { *word }).collect();
    assert!(disabled.load(&waiting).is_ok(), "without autoreset an environment may wait");
}
