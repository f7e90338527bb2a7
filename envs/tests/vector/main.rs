//! Many environments in lockstep: endings, resets, statistics and errors.

mod actions;
mod faults;
mod masks;
mod resets;
mod time_limits;

use gradus_base::random::episode_seed;
use gradus_envs::{Action, Autoreset, Env, EnvError, ScalarBatch, Space, Step, TimeLimit, VecEnv};

const SEED: u64 = 21;

/// An environment that terminates after `end` steps and panics if it is stepped after that. Its observation is a number that identifies the
/// episode's seed, and the number of steps taken. The reward is the number of steps taken plus ten times the action, so it shows an action
/// that should have been ignored.
#[derive(Clone)]
struct Count {
    end: u32,
    tag: f32,
    steps: u32,
}

impl Count {
    fn new(end: u32) -> Self {
        Self { end, tag: 0.0, steps: 0 }
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[self.tag, self.steps as f32]);
    }
}

fn tag(seed: u64) -> f32 {
    (seed % 10_007) as f32
}

impl Env for Count {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0; 2], high: vec![f32::INFINITY; 2] }
    }
    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (self.tag, self.steps) = (tag(seed), 0);
        self.observe(observation);
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(action) = action else { panic!("expected a whole number") };
        assert!(self.steps < self.end, "stepped after its end");
        self.steps += 1;
        self.observe(observation);
        Step { reward: f64::from(self.steps) + 10.0 * f64::from(action), terminated: self.steps >= self.end, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        vec![u64::from(self.tag.to_bits()), u64::from(self.steps)]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let [tag, steps] = *state else { return Err(EnvError::State(format!("expected 2 words, got {}", state.len()))) };
        (self.tag, self.steps) = (f32::from_bits(tag as u32), steps as u32);
        Ok(())
    }
}

/// Returns an environment for each pair of termination step and time limit. The environments are numbered from 3 on.
fn vec_env(ends: &[(u32, u32)], autoreset: Autoreset) -> VecEnv {
    let envs = ends.iter().map(|(end, limit)| TimeLimit::new(Count::new(*end), *limit)).collect();
    VecEnv::new(Box::new(ScalarBatch::new(envs)), 3..3 + ends.len(), SEED, autoreset).unwrap()
}

/// Returns the seed of an episode of the environment in row `env` of [`vec_env`].
fn seed(env: u64, episode: u64) -> u64 {
    episode_seed(SEED, 3 + env, episode)
}
