//! `gradus explain` finds planted mistakes, and says nothing about healthy runs.
//!
//! `GRADUS_SEEDS` sets the number of seeds of each healthy run; `.ci/long` tries eight, which are 432 runs. A last policy that fails is no false alarm: 200 other episodes say whether it does.

use std::path::Path;
use std::process::Command;

use gradus::nets::threads;
use gradus::{Config, Run, Show};

/// Trains each of some runs, `AGENT ENVIRONMENT [PRESET] STEPS SETTING...` with `-` for the default preset, and returns the names of the symptoms of each.
fn symptoms(runs: &[(String, u64)]) -> Vec<Vec<String>> {
    let folder = gradus_testing::tempdir().unwrap();
    let mut jobs: Vec<usize> = (0..runs.len()).collect();
    threads::with_default(|| {
        threads::map(&mut jobs, |_, job| {
            let (line, seed) = &runs[*job];
            let dir = folder.path().join(job.to_string());
            let words: Vec<&str> = line.split(' ').collect();
            let [agent, environment, preset, steps, settings @ ..] = &words[..] else { panic!("{line}") };
            let config = Config::preset(agent, environment, Some(*preset).filter(|preset| *preset != "-")).unwrap();
            let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
            let mut run = threads::with(1, || Run::create(Config { steps: steps.parse().unwrap(), seed: *seed, ..config }, &dir)).unwrap();
            threads::with(1, || run.train(Show::Nothing)).unwrap();
            let mut names = names(&dir);
            if names == ["greedy-fails"] && greedy_policy_fails(&dir) {
                names = vec![CONFIRMED.into()];
            }
            names
        })
    })
}

/// The name of `greedy-fails` after 200 other episodes have found the same.
const CONFIRMED: &str = "greedy-fails, confirmed";

/// Whether the greedy policy returns less in 200 episodes of another seed than the last 100 of the training, by four standard errors, or none of them ends before the limit.
fn greedy_policy_fails(dir: &Path) -> bool {
    let arguments = ["eval", dir.to_str().unwrap(), "--episodes", "200", "--seed", "77", "--json"];
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).output().unwrap();
    let played: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let lengths = played["lengths"].as_array().unwrap();
    if lengths.len() == 200 && lengths.iter().all(|length| *length == lengths[0]) {
        return true;
    }
    let numbers = |text: &str, column: &str| -> Vec<f64> {
        let mut lines = text.lines();
        let place = lines.next().unwrap().split(',').position(|name| name == column).unwrap();
        lines.map(|line| line.split(',').nth(place).unwrap().parse().unwrap()).collect()
    };
    let all = numbers(&std::fs::read_to_string(dir.join("episodes.csv")).unwrap(), "return");
    let trained = &all[all.len().saturating_sub(100)..];
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    let error = (trained.iter().map(|value| (value - mean(trained)).powi(2)).sum::<f64>()).sqrt() / trained.len() as f64;
    let greedy: Vec<f64> = played["returns"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    let of_greedy = (greedy.iter().map(|value| (value - mean(&greedy)).powi(2)).sum::<f64>()).sqrt() / greedy.len() as f64;
    mean(&greedy) < mean(trained) - 4.0 * (error * error + of_greedy * of_greedy).sqrt()
}

fn names(dir: &Path) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).arg("explain").arg(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let is_name = |name: &str| name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    let name = |line: &str| line.split_once(": ").map(|(name, _)| name.to_owned()).filter(|name| is_name(name));
    text.lines().filter_map(name).collect()
}

#[test]
fn planted_mistakes_are_named() {
    let planted = [
        ("ppo cartpole - 50000 optimiser.learning_rate=0.3", "entropy-collapsed"),
        ("ppo cartpole - 50000 optimiser.learning_rate=10", "entropy-collapsed"),
        ("ppo cartpole - 30000 ppo.gamma=0", "gamma-too-small"),
        ("ppo cartpole - 30000 ppo.value_coefficient=1e6", "gradients-cut"),
        ("q-learning taxi - 30000 q-learning.alpha=1e-6", "unusual-setting"),
        ("ppo cartpole - 50000 optimiser.learning_rate=1e-9", "policy-stands-still"),
        ("ppo cartpole - 50000 ppo.entropy_coefficient=50", "entropy-stays"),
        ("ppo cartpole - 50000 ppo.clip=inf optimiser.learning_rate=0.05 optimiser.schedule=constant", "entropy-collapsed"),
        ("ppo cartpole - 50000 optimiser.max_grad_norm=1e-9", "gradients-cut"),
        ("ppo pendulum - 100000 wrappers.clip_reward=1e-6", "critic-no-use"),
        ("ppo pendulum - 60000 ppo.epochs=100 optimiser.learning_rate=1e-2 optimiser.schedule=constant", "kl-exploded"),
        ("ppo mountain-car - 50000 network.hidden=[2] wrappers.normalise_observations=false", "one-return"),
        ("a2c cartpole - 50000 optimiser.learning_rate=1", "entropy-collapsed"),
        ("a2c cartpole - 50000 optimiser.learning_rate=1e-8", "critic-no-use"),
        ("reinforce cartpole - 50000 optimiser.learning_rate=1", "entropy-collapsed"),
        ("trpo cartpole - 50000 trpo.step=vanilla trpo.step_size=1000", "entropy-collapsed"),
        ("dqn cartpole cleanrl 20000 dqn.learning_starts=1000000", "no-update"),
        ("dqn cartpole cleanrl 30000 dqn.exploration_final_eps=1", "still-random"),
        ("dqn cartpole cleanrl 30000 optimiser.learning_rate=1", "unusual-setting"),
        ("dqn cartpole cleanrl 50000 dqn.gamma=1 dqn.target_update_interval=1 optimiser.learning_rate=0.03", "values-diverge"),
        ("pqn cartpole cleanrl 60000 optimiser.learning_rate=10", "unusual-setting"),
        (
            "td3 pendulum - 6000 td3.learning_starts=200 optimiser.learning_rate=0.03 td3.tau=1 td3.gamma=1 network.hidden=[32,32]",
            "value-loss-grows",
        ),
        ("ppo cartpole - 50000 ppo.clip=0.0001", "clipped"),
        ("ppo taxi - 160 envs=1 ppo.rollout_steps=8 ppo.minibatch_size=8", "no-episode"),
        ("grpo copy - 20000 text.max_new_tokens=2", "completions-cut"),
        ("grpo target-sum - 30000 optimiser.learning_rate=0.1", "groups-equal"),
        ("grpo target-sum - 30000 text.max_new_tokens=1", "one-return"),
        ("q-learning taxi - 50000 q-learning.epsilon=1", "still-random"),
        ("ppo memory-len-30 - 40000 network.cell=gru", "memory-unused"),
        // found by a reader who typed what people type
        ("dqn cartpole - 30000 optimiser.learning_rate=1", "unusual-setting"),
        ("dqn cartpole - 30000 dqn.target_update_interval=1000000", "unusual-setting"),
        ("dqn cartpole - 20000 dqn.learning_starts=19990", "few-updates"),
        ("ppo cartpole - 100000 ppo.value_coefficient=0", "unusual-setting"),
        ("q-learning frozen-lake - 50000 q-learning.epsilon=0", "unusual-setting"),
        ("ppo cartpole - 100000 optimiser.max_grad_norm=1e-9", "gradients-cut"),
        ("ppo cartpole - 100000 ppo.gamma=0.5", "gamma-too-small"),
        ("reinforce cartpole - 100000 optimiser.learning_rate=1e-7", "unusual-setting"),
        ("reinforce short-corridor - 100000", "greedy-fails"),
        ("off-policy-monte-carlo cliff-walking - 100000", "greedy-fails"),
        ("q-learning frozen-lake-8x8 - 20000 q-learning.epsilon=0 q-learning.initial=-1", "one-return"),
    ];
    let runs: Vec<(String, u64)> = planted.iter().map(|(line, _)| ((*line).to_owned(), 1)).collect();
    let found = symptoms(&runs);
    let missed: Vec<_> =
        planted.iter().zip(&found).filter(|((_, expected), found)| !found.iter().any(|name| name.starts_with(expected))).collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn healthy_runs_raise_no_alarm() {
    let healthy = [
        "ppo cartpole - 100000",
        "a2c cartpole - 200000",
        "reinforce cartpole - 100000",
        "grpo target-sum - 60000",
        "q-learning cliff-walking - 50000 q-learning.gamma=1 q-learning.alpha=0.5",
        "dyna-q dyna-maze - 5000",
        "td-lambda random-walk - 20000",
        "trpo cartpole - 60000",
        // all episodes have the same length
        "ppo memory-len-3 - 40000 network.cell=gru network.cell_bias=3",
        "ppo cartpole cleanrl 150000",
        "ppo cartpole zoo 100000",
        "ppo cartpole sb3 50000",
        "ppo cartpole penalty 150000",
        "a3c cartpole - 200000",
        "reinforce cartpole mean 200000",
        "reinforce cartpole none 200000",
        "grpo cartpole - 100000",
        "dqn cartpole cleanrl 150000",
        "qr-dqn cartpole - 50000",
        "pqn cartpole cleanrl 120000",
        "ppo acrobot - 200000",
        "a2c acrobot - 200000",
        "grpo acrobot - 300000",
        "trpo acrobot - 100000",
        "pqn acrobot - 300000",
        "ppo mountain-car - 500000",
        "a2c mountain-car - 500000",
        "ppo mountain-car-continuous - 60000",
        "a2c mountain-car-continuous - 60000",
        "ppo pendulum - 150000",
        "a2c pendulum - 400000",
        "trpo pendulum - 150000",
        "sac pendulum - 5000 network.hidden=[64,64]",
        "td3 pendulum - 20000 network.hidden=[64,64]",
        "ddpg pendulum - 20000 network.hidden=[64,64]",
        "ppo target-sum - 60000",
        "reinforce target-sum - 60000",
        "grpo preference - 60000",
        "ppo contextual-bandit - 30000",
        "double-q-learning taxi - 300000",
        "sarsa windy-grid - 50000 sarsa.gamma=1 sarsa.alpha=0.5",
        "expected-sarsa cliff-walking - 50000",
        "n-step-sarsa frozen-lake-deterministic - 50000",
        "sarsa-lambda cliff-walking - 50000",
        "monte-carlo blackjack - 100000",
        "off-policy-monte-carlo blackjack - 100000",
        "prioritised-sweeping dyna-maze - 5000",
        "tile-sarsa mountain-car - 60000",
        "value-iteration frozen-lake - 3000",
        "policy-iteration frozen-lake - 3000",
        "n-step-td random-walk - 20000",
        "monte-carlo-prediction random-walk - 20000",
        "policy-evaluation random-walk - 20000",
        "dpo target-sum - 60000",
        "ppo memory-len-10 - 200000 network.cell=gru network.cell_bias=3",
    ];
    // without the variable, the first nine with one seed
    let seeds: Option<u64> = std::env::var("GRADUS_SEEDS").ok().map(|seeds| seeds.parse().expect("a number of seeds"));
    let healthy: Vec<&str> = healthy.into_iter().take(if seeds.is_some() { usize::MAX } else { 9 }).collect();
    let seeds = seeds.unwrap_or(1);
    let runs: Vec<(String, u64)> = (1..=seeds).flat_map(|seed| healthy.iter().map(move |line| ((*line).to_owned(), seed))).collect();
    let found = symptoms(&runs);
    // a run whose last policy fails is not healthy, whatever its settings
    let (failed, alarms): (Vec<_>, Vec<_>) =
        runs.iter().zip(&found).filter(|(_, names)| !names.is_empty()).partition(|(_, names)| *names == &[CONFIRMED]);
    assert!(alarms.is_empty(), "{alarms:?}");
    assert!(failed.len() * 33 <= runs.len(), "{failed:?}");
}

/// The pages that `explain` names exist, and have the sections.
#[test]
fn pages_and_their_sections_exist() {
    let read = |name: &str| std::fs::read_to_string(gradus_testing::root().join("cli/src/explain").join(name)).unwrap();
    let source = ["symptoms.rs", "causes.rs"].map(read).concat();
    let pages: Vec<&str> = source.split("page: \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(pages.len() >= 18, "{pages:?}");
    for page in pages {
        let output = Command::new(env!("CARGO_BIN_EXE_gradus")).args(["guide", page]).output().unwrap();
        assert!(output.status.success() && output.stdout.len() > 200, "{page}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
