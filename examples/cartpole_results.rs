//! Trains PPO on CartPole with the preset `cleanrl`, with `cleanrl` and `ppo.truncated=bootstraps`, and with the preset `zoo`, each
//! with twenty seeds. Writes `returns.csv` and the learning curves of the first ten seeds to `results/cartpole/`.
//!
//! `cargo run --release --example cartpole_results`

use std::fmt::Write;
use std::fs;
use std::path::Path;

use gradus::evaluate::{Mode, evaluate};
use gradus::figure::{self, Curve, LearningCurves};
use gradus::nets::threads;
use gradus::{Config, Error, Trainer};

struct Outcome {
    seed: u64,
    training: f64,
    greedy: f64,
    episodes: Vec<(f64, f64)>,
}

fn train(config: Config) -> Result<Outcome, Error> {
    let seed = config.seed;
    let mut trainer = Trainer::new(config)?;
    let mut episodes = Vec::new();
    while !trainer.is_finished() {
        episodes.extend(trainer.iterate()?.episodes.iter().map(|episode| (episode.step as f64, episode.episode_return)));
    }
    let greedy = evaluate(trainer.policy(), &trainer.world(), 100, seed, Mode::Greedy)?.mean;
    Ok(Outcome { seed, training: trainer.recent_return(), greedy, episodes })
}

fn main() -> Result<(), Error> {
    let dir = Path::new("results/cartpole");
    let mut csv = String::from("settings,steps,seed,mean_of_last_100_training_episodes,greedy_mean_of_100_episodes\n");
    for (name, preset, settings) in
        [("cleanrl", "cleanrl", None), ("cleanrl-bootstraps", "cleanrl", Some("ppo.truncated=bootstraps")), ("zoo", "zoo", None)]
    {
        let mut config = Config::preset("ppo", "cartpole", Some(preset))?;
        if let Some(setting) = settings {
            config = config.with_setting(setting)?;
        }
        // trains with all seeds in parallel, each on one core
        let mut seeds: Vec<u64> = (1..=20).collect();
        let outcomes = threads::with_default(|| threads::map(&mut seeds, |_, seed| train(Config { seed: *seed, ..config.clone() })));
        let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
        println!("{name}, {} steps", config.steps);
        for Outcome { seed, training, greedy, .. } in &outcomes {
            println!("  seed {seed:>2}: last 100 training episodes {training:.1}, greedy {greedy:.1}");
            writeln!(csv, "{name},{},{seed},{training},{greedy}", config.steps).expect("writing to a string cannot fail");
        }
        let mean = outcomes.iter().map(|outcome| outcome.training).sum::<f64>() / outcomes.len() as f64;
        let least = outcomes.iter().map(|outcome| outcome.training).fold(f64::INFINITY, f64::min);
        let solved = outcomes.iter().filter(|outcome| outcome.greedy >= 475.0).count();
        println!("  training: mean {mean:.1}, minimum {least:.1}; greedy mean of at least 475: {solved} of {} seeds", outcomes.len());

        let curves: Vec<Curve> = outcomes.into_iter().take(10).map(|o| Curve::new(format!("seed {}", o.seed), o.episodes)).collect();
        let title = format!("PPO on CartPole-v1, {name}, ten seeds");
        for extension in ["svg", "png"] {
            let figure = LearningCurves { title: title.clone(), curves: &curves, threshold: Some(475.0) }.figure();
            figure::write(&figure, &dir.join(format!("{name}.{extension}")))?;
        }
    }
    fs::write(dir.join("returns.csv"), csv).map_err(|source| Error::Io { action: "write", path: dir.join("returns.csv"), source })
}
