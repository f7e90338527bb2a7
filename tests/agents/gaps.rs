//! Returns that cannot be drawn do not stop a finished training: the policy is written, and the figure has gaps.

use std::fs;

use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step};
use gradus::saved::load_policy;
use gradus::{Config, Run, Show};

/// Episodes of two steps. In every seventh episode the rewards add up to more than the largest f32.
#[derive(Clone, Default)]
struct Windfall {
    seed: u64,
    step: u64,
}

impl Env for Windfall {
    fn observation_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (self.seed, self.step) = (seed, 0);
        observation[0] = 0.0;
    }

    fn step(&mut self, _: Action<'_>, observation: &mut [f32]) -> Step {
        self.step += 1;
        observation[0] = 1.0;
        let reward = if self.seed.is_multiple_of(7) { 3e38 } else { self.step as f64 };
        Step { reward, terminated: self.step == 2, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        vec![self.seed, self.step]
    }

    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let [seed, step] = *state else { return Err(EnvError::State("windfall: expected two words".into())) };
        (self.seed, self.step) = (seed, step);
        Ok(())
    }
}

#[test]
fn a_training_with_returns_beyond_f32_ends_with_a_policy_and_a_figure_with_gaps() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    gradus::envs::registry::register(EnvSpec::new("windfall", Windfall::default)).unwrap();
    let mut config = Config::preset("ppo", "cartpole", None).unwrap().with_setting("wrappers.normalise_rewards=true").unwrap();
    config.environment = "windfall".into();
    let config = config.with_setting("ppo.rollout_steps=16").unwrap().with_setting("envs=4").unwrap().with_setting("steps=2000").unwrap();
    Run::create(config, &dir).unwrap().train(Show::Nothing).unwrap();
    assert!(load_policy(&dir).is_ok());
    let episodes = fs::read_to_string(dir.join("episodes.csv")).unwrap();
    let infinite = episodes.lines().filter(|line| line.split(',').nth(3) == Some("inf")).count();
    assert!((50..250).contains(&infinite), "{infinite} infinite returns of 1000");
    // dots are the episodes with finite returns, all of them 3
    let svg = fs::read_to_string(dir.join("curve.svg")).unwrap();
    assert!(svg.contains("<circle") && !svg.contains("inf") && !svg.contains("NaN"));
    assert!(dir.join("curve.png").exists());
}
