//! Trains PPO on CartPole for 50,000 steps and shows the policy in the terminal: `cargo run --example first_policy`.

use gradus::{Config, Error, Mode, Policy, draw, make};

fn main() -> Result<(), Error> {
    let mut env = make("CartPole-v1", 1)?;
    let mut policy = Policy::train(Config { steps: 50_000, ..Config::preset("ppo", "CartPole-v1", None)? })?;
    while !env.step(policy.predict(env.observation(), Mode::Greedy)?)?.done() {
        draw::show(&mut env)?;
    }
    Ok(())
}
