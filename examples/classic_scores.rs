//! Makes `results/classic-control/scores.csv`: trains A2C and PPO with their presets on four classic tasks, with ten seeds each. A
//! score is the mean return of 100 greedy episodes with the final parameters. The table also has the scores that rl-zoo publishes.
//!
//! `cargo run --release --example classic_scores`

use std::fmt::Write;
use std::path::Path;

use gradus::evaluate::{Mode, evaluate};
use gradus::nets::threads;
use gradus::{Config, Error, Trainer};

/// Agent, environment, and the score in rl-zoo's `benchmark.md`, which is that of a single policy, with the steps of its training.
const PUBLISHED: [(&str, &str, f64, u64); 8] = [
    ("a2c", "mountain-car", -111.263, 1_000_000),
    ("ppo", "mountain-car", -110.423, 1_000_000),
    ("a2c", "acrobot", -83.353, 500_000),
    ("ppo", "acrobot", -73.506, 1_000_000),
    ("a2c", "mountain-car-continuous", 91.166, 100_000),
    ("ppo", "mountain-car-continuous", 88.343, 20_000),
    ("a2c", "pendulum", -162.965, 1_000_000),
    ("ppo", "pendulum", -172.225, 100_000),
];

fn score(config: Config) -> Result<f64, Error> {
    let seed = config.seed;
    let mut trainer = Trainer::new(config)?;
    trainer.finish()?;
    Ok(evaluate(trainer.policy(), &trainer.world(), 100, seed, Mode::Greedy)?.mean)
}

fn main() -> Result<(), Error> {
    let mut csv = String::from("agent,env,steps,seed,greedy_mean_of_100_episodes,published_by_rl_zoo,steps_of_rl_zoo\n");
    for (agent, world, published, its_steps) in PUBLISHED {
        let config = Config::preset(agent, world, None)?;
        // trains with all seeds in parallel, each on one core
        let mut seeds: Vec<u64> = (1..=10).collect();
        let scores = threads::with_default(|| threads::map(&mut seeds, |_, seed| score(Config { seed: *seed, ..config.clone() })));
        let scores = scores.into_iter().collect::<Result<Vec<_>, _>>()?;
        for (seed, score) in seeds.iter().zip(&scores) {
            writeln!(csv, "{agent},{world},{},{seed},{score},{published},{its_steps}", config.steps)
                .expect("writing to a string cannot fail");
        }
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        let (least, most) = scores.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), s| (low.min(*s), high.max(*s)));
        println!("{agent} on {world}, {} steps: mean {mean:.2} ({least:.2} to {most:.2}); rl-zoo publishes {published}", config.steps);
    }
    let path = Path::new("results/classic-control/scores.csv");
    std::fs::write(path, csv).map_err(|source| Error::Io { action: "write", path: path.into(), source })
}
