//! The training loop, written by hand: `cargo run --example by_hand`. `Trainer` and `gradus train` run the same steps, and learn the same
//! parameters bit for bit.

use std::process::ExitCode;

use gradus::{Agent, Config, Error, Mode};

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn train() -> Result<(), Error> {
    let mut agent = Agent::new(Config::preset("ppo", "CartPole-v1", None)?)?;
    let (mut envs, mut returns) = (agent.vec_env(agent.environments())?, Vec::new());
    while !agent.is_finished() {
        let actions = agent.act(envs.observation_rows(), envs.action_masks())?;
        envs.step(actions)?;
        agent.observe(&envs.outcome())?;
        if agent.update()?.is_some() {
            returns.extend(agent.episodes().iter().map(|episode| episode.episode_return));
            if agent.iterations().is_multiple_of(40) {
                println!("{:6} steps: {:3} episodes, mean return {:.1}", agent.steps(), returns.len(), mean(&returns));
                returns.clear();
            }
        }
    }
    println!("mean return of 100 episodes: {:.1}", agent.into_policy().evaluate(100, Mode::Greedy)?.mean);
    Ok(())
}

/// Reports an error in one line.
fn main() -> ExitCode {
    gradus::program(train)
}
