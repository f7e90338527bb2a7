//! Training on a task from a file.

use std::fs;

use gradus::run::sft::{WarmStart, warm_start};
use gradus::{Config, Run, Show};

/// A policy learns the sums of a file. The run refuses to be resumed, and its policy to be loaded, after the file has changed.
#[test]
fn a_run_learns_a_file_and_refuses_another() {
    let dir = gradus_testing::tempdir().unwrap();
    let path = dir.path().join("sums.jsonl");
    let line = |a: u32, b: u32| format!("{{\"prompt\": \"{a}+{b}=\", \"answer\": {}, \"verifier\": \"number\"}}\n", a + b);
    let text: String = (0..100).map(|i| line(i / 10, i % 10)).collect();
    fs::write(&path, &text).unwrap();
    let small = ["transformer.layers=1", "transformer.width=32", "transformer.heads=2", "optimiser.learning_rate=2e-3"];
    let config = Config::preset("grpo", &format!("file:{}", path.display()), None).unwrap();
    let config = small.iter().fold(config, |config, setting| config.with_setting(setting).unwrap());

    let world = config.world().unwrap();
    let mut policy = config.network.policy(&world, 1).unwrap();
    let wanted = WarmStart { steps: 200, evaluate_every: 200, ..WarmStart::default() };
    let progress = warm_start(policy.as_mut(), &world, &config, &wanted, |_| {}).unwrap();
    assert!(progress[0].loss < 0.5, "{progress:?}");

    let folder = dir.path().join("run");
    let config = Config { steps: 400, envs: 16, ..config };
    Run::create(config, &folder).unwrap().train(Show::Nothing).unwrap();
    assert!(gradus::saved::load_policy(&folder).is_ok());
    fs::write(&path, text + &line(11, 11)).unwrap();
    let expected = "environment: expected the contents with which the run was created";
    let error = gradus::saved::load_policy(&folder).err().unwrap().to_string();
    assert!(error.contains(expected), "{error}");
    let error = Run::resume(&folder).err().unwrap().to_string();
    assert!(error.contains(expected), "{error}");
}
