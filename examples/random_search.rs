//! Finds settings for REINFORCE and GRPO on the classic tasks for which there are no published presets: random search with the same budget
//! for every agent and task. Writes `results/classic-control/search.csv`.
//!
//! For each agent and task, 64 settings are drawn from the tables below; a setting here is one choice from each row. Each setting is
//! trained with seeds 101 to 103, for the number of steps in the comparison. The three settings with the highest mean final return are
//! trained again with seeds 104 to 106. The setting with the highest mean over these new seeds is chosen. The comparison uses
//! seeds 1 to 10. A final return is the mean return of 50 greedy episodes with the final parameters.
//!
//! `cargo run --release --example random_search` takes 17 minutes on one core. With an agent and a task after `--` it searches only for
//! this pair and writes no file.

use std::fmt::Write;
use std::path::Path;

use gradus::envs::random::{Purpose, Stream};
use gradus::evaluate::{Mode, evaluate};
use gradus::nets::threads;
use gradus::{Config, Error, Trainer};

const SETTINGS: usize = 64;
const SEARCH_SEEDS: [u64; 3] = [101, 102, 103];
const CONFIRMED: usize = 3;
const CONFIRM_SEEDS: [u64; 3] = [104, 105, 106];
const EPISODES: usize = 50;

/// Tasks, with their numbers of steps in `results/classic-control/classic-control.toml`.
const TASKS: [(&str, &str); 4] =
    [("mountain-car", "1_000_000"), ("acrobot", "1_000_000"), ("mountain-car-continuous", "100_000"), ("pendulum", "500_000")];

/// A search space: from each row one choice is drawn, with equal probabilities. A choice may contain several settings.
type Table = &'static [&'static [&'static str]];

const BOTH: Table = &[
    &["optimiser.learning_rate=3e-4", "optimiser.learning_rate=1e-3", "optimiser.learning_rate=3e-3", "optimiser.learning_rate=1e-2"],
    &["optimiser.schedule=linear", "optimiser.schedule=constant"],
    &["network.hidden=[32]", "network.hidden=[64,64]"],
    &["wrappers.normalise_observations=true", "wrappers.normalise_observations=false"],
];

const CONTINUOUS: Table =
    &[&["network.gsde=true network.gsde_sample_every=16", "network.log_std_init=0.5", "network.log_std_init=0", "network.log_std_init=-1"]];

const REINFORCE: Table = &[
    &["envs=4", "envs=8", "envs=16", "envs=32"],
    &[
        "reinforce.baseline=none",
        "reinforce.baseline=mean",
        "reinforce.baseline=value",
        "reinforce.baseline=value optimiser.clip_per_group=true",
    ],
    &["reinforce.normalise_returns=true", "reinforce.normalise_returns=false"],
    &["reinforce.gamma=0.9", "reinforce.gamma=0.95", "reinforce.gamma=0.98", "reinforce.gamma=0.99", "reinforce.gamma=0.995"],
    &["wrappers.normalise_rewards=true", "wrappers.normalise_rewards=false"],
    &["reinforce.entropy_coefficient=0", "reinforce.entropy_coefficient=1e-3", "reinforce.entropy_coefficient=1e-2"],
];

const GRPO: Table = &[
    &[
        "grpo.group_size=4 envs=4",
        "grpo.group_size=4 envs=16",
        "grpo.group_size=8 envs=8",
        "grpo.group_size=8 envs=32",
        "grpo.group_size=16 envs=16",
    ],
    &["grpo.epochs=1", "grpo.epochs=2", "grpo.epochs=4", "grpo.epochs=8"],
    &["grpo.minibatches=1", "grpo.minibatches=4", "grpo.minibatches=8"],
    &["grpo.clip=0.1", "grpo.clip=0.2", "grpo.clip=0.3"],
    &["grpo.group_std=population", "grpo.group_std=none"],
    &["grpo.entropy_coefficient=0", "grpo.entropy_coefficient=1e-3", "grpo.entropy_coefficient=1e-2"],
];

/// Draws one choice from each row of `tables`.
fn draw(tables: &[Table], seed: u64) -> Vec<&'static str> {
    let mut stream = Stream::new(seed, Purpose::Initialisation, 0);
    let rows = tables.iter().flat_map(|table| table.iter());
    rows.flat_map(|choices| choices[stream.below(choices.len() as u32) as usize].split(' ')).collect()
}

/// Returns the final return of each setting with each of the three seeds. All runs are in parallel, each on one core.
fn final_returns((agent, task, steps): (&str, &str, &str), drawn: &[Vec<&str>], seeds: [u64; 3]) -> Result<Vec<[f64; 3]>, Error> {
    let mut runs: Vec<(&[&str], u64)> = drawn.iter().flat_map(|settings| seeds.map(|seed| (&settings[..], seed))).collect();
    let run = |(settings, seed): (&[&str], u64)| {
        // does not begin with a preset, because the preset may come from this search
        let plain = [format!("agent={agent}"), format!("environment={task}"), format!("steps={steps}"), format!("seed={seed}")];
        let all = plain.iter().map(String::as_str).chain(settings.iter().copied());
        let config = all.into_iter().try_fold(Config::default(), Config::with_setting)?;
        let mut trainer = Trainer::new(config)?;
        trainer.finish()?;
        Ok(evaluate(trainer.policy(), &trainer.world(), EPISODES, seed, Mode::Greedy)?.mean)
    };
    let returns = threads::with_default(|| threads::map(&mut runs, |_, (settings, seed)| run((settings, *seed))));
    let returns = returns.into_iter().collect::<Result<Vec<f64>, Error>>()?;
    Ok(returns.as_chunks::<3>().0.to_vec())
}

fn mean(numbers: &[f64; 3]) -> f64 {
    numbers.iter().sum::<f64>() / 3.0
}

fn main() -> Result<(), Error> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut csv = String::from("agent,env,steps,setting,settings,seed 101,seed 102,seed 103,seed 104,seed 105,seed 106\n");
    for (agent, own) in [("reinforce", REINFORCE), ("grpo", GRPO)] {
        for (task, steps) in TASKS {
            if ![agent, task].iter().zip(&wanted).all(|(name, wanted)| name == wanted) {
                continue;
            }
            let is_continuous = matches!(task, "mountain-car-continuous" | "pendulum");
            let tables: &[Table] = if is_continuous { &[own, BOTH, CONTINUOUS] } else { &[own, BOTH] };
            let drawn: Vec<Vec<&str>> = (0..SETTINGS as u64).map(|i| draw(tables, 1000 + i)).collect();
            let found = final_returns((agent, task, steps), &drawn, SEARCH_SEEDS)?;
            let mut order: Vec<usize> = (0..SETTINGS).collect();
            order.sort_by(|a, b| mean(&found[*b]).total_cmp(&mean(&found[*a])));

            let best: Vec<Vec<&str>> = order[..CONFIRMED].iter().map(|i| drawn[*i].clone()).collect();
            let confirmed = final_returns((agent, task, steps), &best, CONFIRM_SEEDS)?;
            let winner = (0..CONFIRMED).max_by(|a, b| mean(&confirmed[*a]).total_cmp(&mean(&confirmed[*b]))).unwrap_or(0);
            println!("{agent} on {task}: {:.1} in the search, {:.1} with new seeds", mean(&found[order[winner]]), mean(&confirmed[winner]));
            println!("  {}", best[winner].join(" "));
            for (place, i) in order.into_iter().enumerate() {
                let again = confirmed.get(place).map_or([const { String::new() }; 3], |returns| returns.map(|x| format!("{x:.2}")));
                let returns = [found[i].map(|x| format!("{x:.2}")), again].concat().join(",");
                writeln!(csv, "{agent},{task},{steps},{i},\"{}\",{returns}", drawn[i].join(" ")).expect("writing to a string cannot fail");
            }
        }
    }
    if !wanted.is_empty() {
        return Ok(());
    }
    let path = Path::new("results/classic-control/search.csv");
    std::fs::write(path, csv).map_err(|source| Error::Io { action: "write", path: path.into(), source })
}
