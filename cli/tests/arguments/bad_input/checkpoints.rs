//! Checkpoints and policies that are damaged, edited or of another shape are named in the error and not changed. A run that fails keeps its
//! last good checkpoint.

use std::fs;

use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step};
use gradus::evaluate::play::play;
use gradus::{Config, Run, Show};

use super::{gradus, short_run, short_text_run};
use gradus_testing::command::{contents, error_of};

#[test]
fn a_configuration_that_was_edited_after_the_run_is_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    let path = dir.path().join("run/config.toml");
    let edited = fs::read_to_string(&path).unwrap().replace("activation = \"tanh\"", "activation = \"relu\"");
    fs::write(&path, edited).unwrap();
    let expected = "made with other settings than config.toml in the same folder: network.activation differs";
    let error = error_of(&gradus(dir.path(), &["eval", "run"]));
    assert_eq!(error, format!("run/policy.safetensors: {expected}"));
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert_eq!(error, format!("run/state.safetensors: {expected}"));
}

/// The learning rate makes the parameters infinite in the last update, after the last check of a loss.
#[test]
fn parameters_that_overflow_stop_the_run() {
    let dir = gradus_testing::tempdir().unwrap();
    let settings = ["ppo.epochs=1", "ppo.minibatch_size=256", "optimiser.learning_rate=3e38", "optimiser.critic_learning_rate_ratio=100"];
    let mut arguments = vec!["train", "ppo", "cartpole", "--steps", "256", "--quiet", "--out", "run"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let error = error_of(&gradus(dir.path(), &arguments));
    assert!(error.starts_with("the parameter is ") && error.contains("of the run with seed 1: expected a finite number"), "{error}");
    assert!(gradus(dir.path(), &["eval", "run"]).status.success(), "expected a usable previous checkpoint");
}

#[test]
fn a_resume_that_fails_creates_nothing() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    fs::remove_file(dir.path().join("run/timing.csv")).unwrap();
    let before = contents(dir.path());
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert!(error.starts_with("cannot open run/timing.csv: "), "{error}");
    assert!(contents(dir.path()) == before);
}

#[test]
fn damaged_checkpoints_are_named_and_kept() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    let read = |name: &str| fs::read(dir.path().join("run").join(name)).unwrap();
    let (state, policy) = (read("state.safetensors"), read("policy.safetensors"));
    // the last f32 of the file becomes NaN
    let with_nan = |bytes: &[u8]| [&bytes[..bytes.len() - 4], &f32::NAN.to_le_bytes()].concat();
    let place = |bytes: &[u8], text: &str| bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
    let renamed = |bytes: &[u8], from: &str, to: &str| {
        let at = place(bytes, from);
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    // with the right hash, as if the program had written the wrong contents
    let sealed = |mut bytes: Vec<u8>| {
        let at = place(&bytes, "# sha256 ") + 9;
        bytes[at..at + 64].fill(b'0');
        let hash: String = hmac_sha256::Hash::hash(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        bytes[at..at + 64].copy_from_slice(hash.as_bytes());
        bytes
    };
    let damaged = "damaged: its SHA-256 is not the one that was stored with it; ";
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("eval", policy[..policy.len() / 2].to_vec(), damaged),
        ("eval", with_nan(&policy), damaged),
        ("eval", Vec::new(), "not a safetensors file: "),
        ("eval", b"GIF89a and so on and on".to_vec(), "not a safetensors file: "),
        ("eval", sealed(with_nan(&policy)), "expected finite numbers in their range, got NaN at position "),
        ("eval", sealed(renamed(&policy, "actor.0.bias", "actor.9.bias")), "tensor `actor.0.bias` is missing"),
        ("eval", sealed(renamed(&policy, "[64,4]", "[4,64]")), "tensor `actor.0.weight`: expected F32 [64, 4], got F32 [4, 64]"),
        ("resume", state[..state.len() / 2].to_vec(), damaged),
        ("resume", renamed(&state, "seed = 1", "seed = 2"), damaged),
        ("resume", Vec::new(), "not a safetensors file: "),
        ("resume", policy.clone(), "tensor `"),
        ("resume", sealed(renamed(&state, "policy.actor.0.bias", "policy.actor.9.bias")), "tensor `actor.0.bias` is missing"),
        ("resume", sealed(renamed(&state, "seed = 1", "seed = 2")), "made with other settings than config.toml in the same folder"),
    ];
    for (command, bytes, expected) in cases {
        let name = if command == "eval" { "policy.safetensors" } else { "state.safetensors" };
        let path = dir.path().join("run").join(name);
        fs::write(&path, &bytes).unwrap();
        let arguments: &[&str] = if command == "eval" { &["eval", "run"] } else { &["train", "--resume", "run"] };
        let error = error_of(&gradus(dir.path(), arguments));
        let start = format!("run/{name}: ");
        assert!(error.starts_with(&start) && error.contains(expected), "{command}:\n  expected {start}...{expected}\n  got      {error}");
        assert!(fs::read(&path).unwrap() == bytes, "{command} has changed the damaged file");
        fs::write(&path, if command == "eval" { &policy } else { &state }).unwrap();
    }
    // a log that is shorter than its length in the checkpoint is refused
    fs::write(dir.path().join("run/metrics.csv"), "iteration\n").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert!(
        error.starts_with("run/metrics.csv: expected at least ") && error.contains(", got 10; the run cannot be continued; "),
        "{error}"
    );
}

/// An environment with episodes of ten steps. From its 200th step on, over all episodes, rewards are NaN.
#[derive(Default)]
struct Breaks {
    steps: u64,
}

impl Env for Breaks {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0], high: vec![1.0] }
    }
    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }
    fn reset(&mut self, _seed: u64, observation: &mut [f32]) {
        observation[0] = 0.5;
    }
    fn step(&mut self, _action: Action<'_>, observation: &mut [f32]) -> Step {
        self.steps += 1;
        observation[0] = 0.5;
        let reward = if self.steps < 200 { 1.0 } else { f64::NAN };
        Step { reward, terminated: self.steps.is_multiple_of(10), truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        vec![self.steps]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.steps = state[0];
        Ok(())
    }
}

#[test]
fn an_environment_that_returns_nan_stops_the_run_and_keeps_the_last_checkpoint() {
    let dir = gradus_testing::tempdir().unwrap();
    let folder = dir.path().join("run");
    let mut config = Config { envs: 2, steps: 1000, environment: "breaks".into(), ..Config::default() };
    config = config.with_setting("ppo.rollout_steps=32").unwrap().with_setting("ppo.minibatch_size=16").unwrap();
    let world = || EnvSpec::new("breaks", Breaks::default);
    let mut run = Run::create_in_world(config, world(), &folder).unwrap();
    run.checkpoint_every(std::time::Duration::ZERO);
    let error = run.train(Show::Nothing).unwrap_err().to_string();
    assert!(
        error.starts_with("breaks: reward of environment 0 is NaN, expected a finite number (step 10 of the episode with seed "),
        "{error}"
    );
    drop(run);
    let run = Run::resume_in_world(&folder, world()).unwrap();
    assert_eq!(run.trainer().steps(), 6 * 64, "expected the checkpoint of the last whole iteration");
    assert!(run.trainer().actor_critic().unwrap().parameters().iter().all(|x| x.is_finite()));
    let world = EnvSpec::new("breaks", || Breaks { steps: 195 });
    let error = play(run.trainer().policy(), &world, 7).err().expect("a reward that is NaN").to_string();
    assert_eq!(error, "breaks: reward of environment 0 is NaN, expected a finite number (step 5 of the episode with seed 7)");
}

#[test]
fn parameters_of_another_policy_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    short_text_run(dir.path());
    let before = contents(dir.path());
    let train = |arguments: &[&str]| gradus(dir.path(), &[&["train"], arguments, &["--out", "other", "--quiet"]].concat());
    let symbols = "0 1 2 3 4 5 6 7 >";
    let cases: &[(&[&str], String)] = &[
        (
            &["grpo", "addition", "--set", "init=run"],
            format!(
                "run/policy.safetensors: expected a policy with the vocabulary of addition, 0 1 2 3 4 5 6 7 8 9 + =, got one with {symbols}"
            ),
        ),
        (
            &["grpo", "target-sum", "--set", "init=run", "--set", "transformer.width=128"],
            "run/policy.safetensors: tensor `model.embed_tokens.weight`: expected F32 [10, 128], got F32 [10, 64]".into(),
        ),
        (
            &["grpo", "target-sum", "--set", "init=run/policy.safetensors"],
            "run/policy.safetensors: tensor `model.layers.1.input_layernorm.weight` is missing".into(),
        ),
        (
            &["grpo", "target-sum", "--set", "init=run", "--set", "transformer.layers=1", "--set", "transformer.heads=2"],
            "run/policy.safetensors: expected a policy with transformer.heads = 2, got one with 4".into(),
        ),
        (&["ppo", "cartpole", "--set", "init=run"], "run/policy.safetensors: tensor `actor.0.weight` is missing".into()),
        (&["ppo", "target-sum", "--set", "init=run/metrics.csv"], String::new()),
        (&["ppo", "target-sum", "--set", "init=."], ".: expected a run folder, got none: policy.safetensors is missing".into()),
    ];
    for (arguments, expected) in cases {
        let error = error_of(&train(arguments));
        if expected.is_empty() {
            assert!(error.starts_with("run/metrics.csv: not a safetensors file: "), "{error}");
        } else {
            assert_eq!(error, *expected, "{arguments:?}");
        }
    }
    assert!(contents(dir.path()) == before, "something was lost or left behind");
    // a matching policy is accepted, and a resumed run no longer needs it
    let arguments =
        ["train", "grpo", "target-sum", "--steps", "100", "--set", "transformer.layers=1", "--set", "init=run", "--out", "other"];
    assert!(gradus(dir.path(), &arguments).status.success());
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    assert!(gradus(dir.path(), &["train", "--resume", "other"]).status.success());
}
