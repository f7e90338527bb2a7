//! Trains PPO on CartPole, draws a learning curve and an episode, and evaluates the policy: `cargo run --example cartpole_ppo`.

use gradus::{Config, Error, Run, Show, evaluate::play};

fn main() -> Result<(), Error> {
    let config = Config::preset("ppo", "cartpole", None)?;
    let mut run = Run::create_numbered(config, "cartpole_ppo")?;
    run.train(Show::Progress)?;

    let (policy, world, dir) = (run.trainer().policy(), run.trainer().world(), run.dir());
    play::write_gif(policy, &world, 0, dir.join("episode.gif"))?;

    println!("trained for {:.2} s, {} steps", run.seconds(), run.trainer().steps());
    println!("learning curve: {}", dir.join("curve.png").display());
    println!("an episode:     {}", dir.join("episode.gif").display());
    println!("evaluation: mean {:.1} over 100 episodes", run.evaluate(100)?.mean);
    Ok(())
}
