//! Makes `results/off-policy/cleanrl.csv`: trains DQN and PQN with the presets `cleanrl` on three classic tasks, with ten seeds each. The
//! table has the mean return of the last 100 training episodes of each run, and the mean that CleanRL publishes.
//!
//! `cargo run --release --example cleanrl_values`

use std::fmt::Write;
use std::path::Path;

use gradus::evaluate::{Mode, evaluate};
use gradus::nets::threads;
use gradus::{Config, Error, Trainer};

/// Agent, environment, and the mean return that CleanRL publishes for `dqn.py` or `pqn.py`.
const PUBLISHED: [(&str, &str, f64); 6] = [
    ("dqn", "cartpole", 488.69),
    ("dqn", "acrobot", -91.54),
    ("dqn", "mountain-car", -194.95),
    ("pqn", "cartpole", 495.1),
    ("pqn", "acrobot", -95.6),
    ("pqn", "mountain-car", -200.0),
];

fn train(config: Config) -> Result<(f64, f64), Error> {
    let seed = config.seed;
    let mut trainer = Trainer::new(config)?;
    trainer.finish()?;
    let greedy = evaluate(trainer.policy(), &trainer.world(), 100, seed, Mode::Greedy)?.mean;
    Ok((trainer.recent_return(), greedy))
}

fn main() -> Result<(), Error> {
    let mut csv =
        String::from("agent,env,steps,seed,mean_of_last_100_training_episodes,greedy_mean_of_100_episodes,published_by_cleanrl\n");
    for (agent, world, published) in PUBLISHED {
        let config = Config::preset(agent, world, Some("cleanrl"))?;
        // trains with all seeds in parallel, each on one core
        let mut seeds: Vec<u64> = (1..=10).collect();
        let outcomes = threads::with_default(|| threads::map(&mut seeds, |_, seed| train(Config { seed: *seed, ..config.clone() })));
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (seed, (training, greedy)) in seeds.iter().zip(&outcomes) {
            writeln!(csv, "{agent},{world},{},{seed},{training},{greedy},{published}", config.steps)
                .expect("writing to a string cannot fail");
        }
        let mean = outcomes.iter().map(|(training, _)| training).sum::<f64>() / outcomes.len() as f64;
        println!(
            "{agent} on {world}, {} steps: mean of the last 100 training episodes {mean:.2}; CleanRL publishes {published}",
            config.steps
        );
    }
    let path = Path::new("results/off-policy/cleanrl.csv");
    std::fs::write(path, csv).map_err(|source| Error::Io { action: "write", path: path.into(), source })
}
