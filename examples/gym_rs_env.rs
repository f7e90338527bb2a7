//! Trains PPO on the CartPole of the crate gym-rs: `cargo run --features gym-rs --example gym_rs_env`.
//!
//! This needs cmake and the headers of SDL2_gfx. The physics differs from CartPole-v1 (see [`gradus::envs::gym_rs`]), so do not compare the
//! returns with those of `cartpole_ppo`.

use gradus::envs::gym_rs::GymRs;
use gradus::envs::gym_rs::envs::classical_control::cartpole::{CartPoleEnv, CartPoleObservation};
use gradus::envs::gym_rs::{spaces::BoxR, utils::renderer::RenderMode};
use gradus::envs::{EnvSpec, TimeLimit};
use gradus::evaluate::evaluate;
use gradus::{Config, Error, Mode, Trainer};

/// Returns the bounds of start states near the upright position. With gym-rs's default bounds most episodes end with the first step.
fn near_upright() -> BoxR<CartPoleObservation> {
    let all = |bound: f64| CartPoleObservation::new(bound.into(), bound.into(), bound.into(), bound.into());
    BoxR::new(all(-0.05), all(0.05))
}

fn main() -> Result<(), Error> {
    // gym-rs never truncates, so the environment gets a time limit
    let world = EnvSpec::new("gym-rs-cartpole", || {
        TimeLimit::new(GymRs::starting_between(|| CartPoleEnv::new(RenderMode::None), near_upright), 500)
    });
    let config = Config { environment: "gym-rs-cartpole".into(), ..Config::preset("ppo", "cartpole", None)? };
    let mut trainer = Trainer::in_world(config, world)?;
    while !trainer.is_finished() {
        trainer.iterate()?;
        if trainer.iteration().is_multiple_of(10) {
            println!("{:>6} steps, mean return {:.1}", trainer.steps(), trainer.recent_return());
        }
    }
    let returns = evaluate(trainer.policy(), &trainer.world(), 20, 1, Mode::Greedy)?;
    println!("evaluation: mean {:.1} over 20 episodes", returns.mean);
    Ok(())
}
