//! A run of any agent is trained further: after its end, after a signal and after a callback that ended it. Its `config.toml` repeats it, and
//! where no schedule depends on the number of steps it equals a run that was planned for all steps from the beginning.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gradus::agents::registry as agents;
use gradus::envs::registry;
use gradus::nets::{NetworkConfig, TransformerConfig};
use gradus::{Config, Error, Run, Show, Trainer};
use gradus_testing::command::{contents, error_of};

/// Returns a short training with settings whose state matters: a replay buffer that is full or not, priorities, statistics of observations, a
/// reference policy, a reward model that is trained further.
fn trainings() -> Vec<(String, Config)> {
    let more: [(&str, &str, &[&str]); 7] = [
        // the signal arrives when one of the workers has begun
        ("a3c", "cartpole-masked", &["network.cell=gru", "network.cell_width=10"]),
        ("dqn", "cartpole", &["dqn.priority_exponent=0.6", "dqn.buffer_size=700", "wrappers.normalise_observations=true"]),
        ("qr-dqn", "taxi", &["qr-dqn.priority_exponent=0.6", "qr-dqn.n_step=3"]),
        ("td3", "pendulum", &["td3.priority_exponent=0.6", "td3.action_noise=ornstein-uhlenbeck", "wrappers.normalise_rewards=true"]),
        ("grpo", "target-sum", &["grpo.group_size=4", "reference.coefficient=0.05", "reference.adaptive_target=0.1"]),
        ("ppo", "target-sum", &["reward_model.pairs=8", "reward_model.retrain_every=1"]),
        ("reinforce", "cartpole", &["wrappers.normalise_rewards=true", "wrappers.frame_stack=2"]),
    ];
    let worlds = ["cartpole", "pendulum", "frozen-lake", "target-sum", "mountain-car"];
    // tables share their loop and their checkpoint: one of each family is enough
    let is_table = |entry: &agents::Entry| entry.help.iter().any(|(setting, _)| *setting == "alpha_decay");
    let families = ["q-learning", "monte-carlo", "td-lambda"];
    let all = agents::all().into_iter().filter(|entry| !is_table(entry) || families.contains(&entry.name));
    let every = all.map(|entry| {
        let config = worlds.iter().map(|world| short(entry.name, world, &[])).find(|config| Trainer::new(config.clone()).is_ok());
        (entry.name.to_string(), config.unwrap_or_else(|| panic!("{}: trains nowhere", entry.name)))
    });
    every.chain(more.into_iter().map(|(agent, world, settings)| (format!("{agent} {settings:?}"), short(agent, world, settings)))).collect()
}

fn short(agent: &str, world: &str, settings: &[&str]) -> Config {
    let config = Config { environment: world.into(), ..Config::default() }.with_toml(&format!("agent = \"{agent}\"")).unwrap();
    let small = TransformerConfig { layers: 1, width: 16, heads: 1, feed_forward_width: 16, ..TransformerConfig::default() };
    let is_text = registry::find(world).unwrap().text.is_some();
    let config = if is_text { config.with_value("environment", world.into()).unwrap() } else { config };
    let network = if is_text { small.into() } else { NetworkConfig { hidden: vec![8], ..NetworkConfig::default() }.into() };
    let config = Config { network, steps: 1000, envs: 8, ..config };
    let config = settings.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());
    config.clone().with_setting(&format!("{agent}.learning_starts=300")).unwrap_or(config)
}

fn finish(run: &mut Run) {
    run.train(Show::Nothing).unwrap();
}

#[test]
fn every_run_is_trained_further_and_its_configuration_repeats_it() {
    let folder = gradus_testing::tempdir().unwrap();
    for (name, config) in trainings() {
        let dir = folder.path().join("run");
        let opened = |run: Result<Run, Error>| run.unwrap_or_else(|error| panic!("{name}: {error}"));
        // a signal arrives in the first iteration
        let mut run = opened(Run::create(config.clone(), &dir));
        run.stop_when(Arc::new(AtomicBool::new(true)));
        let stopped = run.train(Show::Nothing);
        let first = run.trainer().steps();
        assert!(matches!(stopped, Err(Error::Stopped(_))) || run.trainer().is_finished(), "{name}");
        drop(run);
        // a callback ends the run in the second one
        let mut run = opened(Run::resume_until(&dir, first + 9000));
        run.train_with(Show::Nothing, |_| ControlFlow::Break(())).unwrap();
        let second = run.trainer().steps();
        assert!(second > first && run.trainer().is_finished(), "{name}");
        drop(run);
        // then it is trained to the end, twice
        let mut done = second;
        for more in [300, 2500] {
            let mut run = opened(Run::resume_until(&dir, done + more));
            finish(&mut run);
            assert!(run.trainer().steps() >= done + more, "{name}");
            done = run.trainer().steps();
        }
        let run = opened(Run::resume(&dir));
        let config = run.trainer().config();
        assert_eq!(config.earlier_steps.len(), 4, "{name}: {:?}", config.earlier_steps);
        let mut again = Trainer::new(config.clone()).unwrap();
        again.finish().unwrap();
        let (got, expected) = (again.save(), run.trainer().save());
        let differs = expected.keys().find(|key| got.get(*key) != expected.get(*key));
        assert!(differs.is_none() && got.len() == expected.len(), "{name}: {differs:?} differs");
        drop(run);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn without_schedules_a_lengthened_run_equals_a_longer_one() {
    let folder = gradus_testing::tempdir().unwrap();
    for (name, config) in trainings() {
        let agent = config.agent.clone();
        let constant = [
            "optimiser.schedule=constant".to_string(),
            format!("{agent}.clip_schedule=constant"),
            format!("{agent}.importance_exponent=1"),
            format!("{agent}.exploration_initial_eps=0.1"),
            format!("{agent}.exploration_final_eps=0.1"),
            format!("{agent}.first_epsilon=0.1"),
            format!("{agent}.epsilon=0.1"),
        ];
        // an agent has only some of these settings
        let with = |config: Config, setting: &String| config.clone().with_setting(setting).unwrap_or(config);
        let config = constant.iter().fold(config, with);
        // two whole iterations, then two more
        let mut whole = Trainer::new(Config { steps: 1_000_000, ..config.clone() }).unwrap();
        let planned: Vec<u64> = (0..4).map(|_| (whole.iterate().unwrap(), whole.steps()).1).collect();
        let mut whole = Trainer::new(Config { steps: planned[3], ..config.clone() }).unwrap();
        whole.finish().unwrap();

        let dir = folder.path().join("run");
        finish(&mut Run::create(Config { steps: planned[1], ..config }, &dir).unwrap());
        let run = Run::resume_until(&dir, planned[3]).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(run.trainer().jumps(), [], "{name}");
        drop(run);
        // a plan that no update has followed is not the one before
        drop(Run::resume_until(&dir, 50_000_000).unwrap());
        let mut run = Run::resume_until(&dir, planned[3]).unwrap();
        assert_eq!(run.trainer().jumps(), [], "{name}");
        finish(&mut run);
        let (got, expected) = (run.trainer().save(), whole.save());
        let differs = expected.keys().find(|key| got.get(*key) != expected.get(*key));
        assert!(differs.is_none() && got.len() == expected.len(), "{name}: {differs:?} differs");
        drop(run);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}

fn gradus(dir: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

#[test]
fn the_output_says_which_schedules_start_anew() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let said = |agent: &str, environment: &str, settings: &[&str]| {
        let out = format!("{agent}-{environment}");
        let hidden = if environment == "taxi" { "seed=1" } else { "network.hidden=[8]" };
        let train = ["train", agent, environment, "--envs", "8", "--steps", "2000", "--quiet", "--set", hidden, "--out", &out];
        printed(&gradus(dir, &[&train[..], settings].concat()));
        let lines = printed(&gradus(dir, &["train", "--resume", &out, "--steps", "10k"]));
        lines.lines().find(|line| line.starts_with("schedules")).unwrap_or_default().to_string()
    };
    // 2048 steps in rollouts of 256: the last update had an eighth of the learning rate; then 10,240 steps
    let linear = ["--set", "ppo.rollout_steps=32", "--set", "optimiser.learning_rate=0.001", "--set", "optimiser.schedule=linear"];
    let constant = ["--set", "ppo.clip_schedule=constant"];
    let expected = "schedules follow the new number of steps from here on: optimiser.learning_rate jumps from 0.00013 to 0.0008";
    assert_eq!(said("ppo", "cartpole", &[&linear[..], &constant].concat()), expected);
    let fixed = ["--set", "optimiser.schedule=constant", "--set", "ppo.clip_schedule=constant"];
    assert_eq!(said("ppo", "acrobot", &fixed), "");
    let exploration =
        ["dqn.exploration_fraction=0.9", "dqn.exploration_initial_eps=1", "dqn.exploration_final_eps=0.1", "dqn.learning_starts=0"];
    let own = ["optimiser.schedule=constant", "dqn.priority_exponent=0.5", "dqn.importance_exponent=0.4", "dqn.rollout_steps=4"];
    let all: Vec<&str> = exploration.into_iter().chain(own).flat_map(|setting| ["--set", setting]).collect();
    let line = said("dqn", "cartpole", &all);
    assert!(line.ends_with(": dqn.epsilon jumps from 0.1 to 0.8, dqn.importance_exponent jumps from 0.99 to 0.52"), "{line}");
    let line = said("q-learning", "taxi", &["--set", "q-learning.epsilon_fraction=0.9", "--set", "q-learning.first_epsilon=1"]);
    assert!(line.contains("q-learning.epsilon jumps from"), "{line}");
}

fn printed(output: &std::process::Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `--config` takes the file of a run that was trained further.
#[test]
fn the_settings_of_a_lengthened_run_train_another_one() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let train = ["train", "dqn", "cartpole", "--preset", "zoo", "--quiet", "--set", "network.hidden=[8]"];
    printed(&gradus(dir, &[&train[..], &["--steps", "2k", "--out", "run"]].concat()));
    printed(&gradus(dir, &["train", "--resume", "run", "--steps", "4k", "--quiet"]));
    printed(&gradus(dir, &[&train[..], &["--config", "run/config.toml", "--out", "again"]].concat()));
    for name in ["config.toml", "metrics.csv", "episodes.csv", "policy.safetensors"] {
        assert!(
            std::fs::read(dir.join("run").join(name)).unwrap() == std::fs::read(dir.join("again").join(name)).unwrap(),
            "{name} differs"
        );
    }
    // another number of steps is a plan of its own
    printed(&gradus(dir, &[&train[..], &["--config", "run/config.toml", "--steps", "1k", "--out", "short"]].concat()));
    assert!(!std::fs::read_to_string(dir.join("short/config.toml")).unwrap().contains("earlier_steps"));
    std::fs::write(dir.join("wrong.toml"), "earlier_steps = [{ steps = 5000, until = 9000 }]\nsteps = 4000\n").unwrap();
    let before = contents(dir);
    let error = error_of(&gradus(dir, &[&train[..], &["--config", "wrong.toml", "--out", "wrong"]].concat()));
    assert_eq!(error, "earlier_steps.until: expected 0 to 4000, between the change before and steps, got 9000");
    assert!(contents(dir) == before, "expected no new files");
    std::fs::write(dir.join("wrong.toml"), "earlier_steps = 3\n").unwrap();
    let error = error_of(&gradus(dir, &[&train[..], &["--config", "wrong.toml", "--out", "wrong"]].concat()));
    assert!(error.contains("earlier_steps: expected a list of { steps, until }"), "{error}");
}
