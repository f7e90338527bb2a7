//! Trains PPO on a custom environment: `cargo run --example custom_env`. `examples/own_crate` is a crate
//! with the whole command line for its own environment and agent.
//!
//! A ball falls straight down a court of 7 columns and 10 rows, one row per step. The paddle at the bottom moves left, stays, or moves
//! right. The reward is 1 for catching the ball and -1 for missing it.

use std::process::ExitCode;

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step, checker};
use gradus::evaluate::evaluate;
use gradus::{Config, Error, Mode, Trainer};

/// The ball's column, the ball's height, and the paddle's column.
#[derive(Default)]
struct Catch([u64; 3]);

impl Env for Catch {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0; 3], high: vec![6.0, 9.0, 6.0] }
    }
    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        let column = Stream::new(seed, Purpose::Environment, 0).below(7);
        self.0 = [column.into(), 9, 3];
        observation.copy_from_slice(&self.0.map(|number| number as f32));
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(direction) = action else { panic!("Catch: expected action 0, 1 or 2, got {action:?}") };
        let [ball, height, paddle] = self.0;
        self.0 = [ball, height - 1, (paddle + u64::from(direction)).clamp(1, 7) - 1];
        observation.copy_from_slice(&self.0.map(|number| number as f32));
        let caught = if self.0[2] == ball { 1.0 } else { -1.0 };
        let terminated = self.0[1] == 0;
        Step { reward: if terminated { caught } else { 0.0 }, terminated, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        self.0.to_vec()
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.0 = state.try_into().map_err(|_| EnvError::State(format!("Catch: expected 3 words, got {state:?}")))?;
        Ok(())
    }
}

fn train() -> Result<(), Error> {
    let world = EnvSpec::new("catch", Catch::default);
    assert_eq!(checker::check_world(&world), []);
    let config = Config::preset_in("ppo", &world, None)?;
    let mut trainer = Trainer::in_world(config, world)?;
    while !trainer.is_finished() {
        trainer.iterate()?;
    }
    let returns = evaluate(trainer.policy(), &trainer.world(), 100, 1, Mode::Greedy)?;
    println!("{} steps, mean return {:.2} (the maximum is 1)", trainer.steps(), returns.mean);
    Ok(())
}

/// Reports an error in one line, also a panic of the environment.
fn main() -> ExitCode {
    gradus::program(train)
}
