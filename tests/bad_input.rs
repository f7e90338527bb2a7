//! Bad input: one clear line that names the thing, what was expected and what was got; exit code 2; nothing lost, nothing half-written.
#![cfg(unix)]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use common::{contents, error_of};
use gradus::envs::{Action, Env, EnvError, Space, Step, World};
use gradus::{Config, Run, Show};

fn gradus(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

/// A short finished run.
fn short_run(dir: &Path) {
    let output = gradus(dir, &["train", "ppo", "cartpole", "--preset", "cleanrl", "--steps", "2k", "--out", "run", "--quiet"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn names_and_ranges() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["pbo", "cartpole"], "unknown agent `pbo`; did you mean `ppo`?"),
        (&["ppo", "cartpol"], "unknown environment `cartpol`; did you mean `cartpole`?"),
        (&["ppo", "CartPole-v2"], "unknown environment `CartPole-v2`; did you mean `CartPole-v1`?"),
        (&["ppo", "cartpole", "--preset", "cleanrI"], "unknown preset `cleanrI`; did you mean `cleanrl`?"),
        (&["ppo", "cartpole", "--set", "ppo.clib=0.1"], "unknown setting `ppo.clib`; did you mean `ppo.clip`?"),
        (&["ppo", "cartpole", "--set", "ppo.clip"], "--set: expected key=value, got `ppo.clip`"),
        (&["ppo", "cartpole", "--set", "ppo.clip=much"], "ppo.clip: expected a number, got \"much\""),
        (&["ppo", "cartpole", "--set", "ppo.epochs=1.5"], "ppo.epochs: expected a whole number from 0 up, got 1.5"),
        (&["ppo", "cartpole", "--set", "ppo.epochs=-1"], "ppo.epochs: expected a whole number from 0 up, got -1"),
        (&["ppo", "cartpole", "--set", "optimiser.rule=adma"], "optimiser.rule: expected adam or rmsprop, got \"adma\""),
        (&["ppo", "cartpole", "--set", "agent=grpo"], "agent: expected ppo, as the command line has it, got grpo"),
        (&["ppo", "cartpole", "--set", "environment=pendulum"], "environment: expected cartpole, as the command line has it, got pendulum"),
        (&["ppo", "cartpole", "--set", "agent=dqn"], "unknown agent `dqn`; expected one of: reinforce, a2c, trpo, ppo, grpo"),
        (&["ppo", "cartpole", "--set", "environment=cartpol"], "unknown environment `cartpol`; did you mean `cartpole`?"),
        (
            &["ppo", "cartpole", "--set", "evaluate_episodes=9223372036854775807"],
            "evaluate_episodes: expected 1 to 16777216, got 9223372036854775807",
        ),
        (
            &["ppo", "cartpole", "--set", "network.hidden=[65536,65536,65536]"],
            "network.hidden: expected at most 2^28 weights in all, got 8590327808",
        ),
        (&["ppo", "cartpole", "--set", "envs=16777216"], "ppo.rollout_steps: expected a rollout of at most 2^27 decisions, got 32"),
        (
            &["ppo", "cartpole", "--seed", "9223372036854775808"],
            "--seed: expected a whole number from 0 to 9223372036854775807, got 9223372036854775808",
        ),
        (&["ppo", "cartpole", "--stpes", "5"], "unexpected argument '--stpes' found; tip: a similar argument exists: '--steps'"),
        (&["ppo"], "the following required arguments were not provided: <ENV>"),
        (&["ppo", "cartpole", "--set", "ppo=1"], "unknown setting `ppo`"),
        (&["ppo", "cartpole", "--set", "ppo.clip=0"], "ppo.clip: expected a number above 0, or inf, got 0"),
        (&["ppo", "cartpole", "--set", "ppo.gamma=1.5"], "ppo.gamma: expected a number from 0 to 1, got 1.5"),
        (&["ppo", "cartpole", "--set", "ppo.gamma=nan"], "ppo.gamma: expected a number from 0 to 1, got NaN"),
        (&["ppo", "cartpole", "--set", "optimiser.learning_rate=-1"], "optimiser.learning_rate: expected a number above 0, got -1"),
        (&["ppo", "cartpole", "--set", "ppo.epochs=0"], "ppo.epochs: expected at least 1, got 0"),
        (&["ppo", "cartpole", "--set", "network.hidden=[64,0]"], "network.hidden: expected widths from 1 to 65536, got 0"),
        (
            &["ppo", "cartpole", "--set", "stop_at=475"],
            "stop_at: expected evaluations to stop at: evaluate_every above 0, got evaluate_every = 0",
        ),
        (
            &["ppo", "cartpole", "--preset", "cleanrl", "--set", "ppo.minibatch_size=513"],
            "ppo.minibatch_size: expected 1 to 512, the decisions of a rollout (4 environments x 128 steps), got 513",
        ),
        (&["ppo", "cartpole", "--envs", "0"], "--envs: expected a whole number from 1 up, got 0"),
        (&["ppo", "cartpole", "--envs", "-4"], "--envs: expected a whole number from 1 up, got -4"),
        (&["ppo", "cartpole", "--set", "envs=0"], "envs: expected 1 to 16777216, got 0"),
        (&["ppo", "cartpole", "--steps", "-5"], "--steps: expected a number of steps above 0, such as 5000, 500k or 2m, got -5"),
        (&["ppo", "cartpole", "--steps", "0"], "--steps: expected a number of steps above 0, such as 5000, 500k or 2m, got 0"),
        (&["ppo", "cartpole", "--steps", "1.5"], "--steps: expected a number of steps above 0, such as 5000, 500k or 2m, got 1.5"),
        (&["ppo", "cartpole", "--seed", "x"], "--seed: expected a whole number from 0 up, got x"),
        (&["ppo", "cartpole", "--threads", "0"], "--threads: expected a whole number from 1 up, got 0"),
        (&["ppo", "cartpole", "--checkpoint-every", "-1"], "--checkpoint-every: expected seconds from 0 up, got -1"),
        (&["ppo", "cartpole", "--config", "missing.toml"], "cannot read missing.toml: No such file or directory (os error 2)"),
        (&["--resume", "nowhere"], "nowhere: expected a run folder, got none: config.toml is missing"),
    ];
    for (arguments, expected) in cases {
        let error = error_of(&gradus(dir.path(), &[&["train"], *arguments].concat()));
        assert!(error.starts_with(expected), "{arguments:?}:\n  expected {expected}\n  got      {error}");
        assert!(contents(dir.path()).is_empty(), "{arguments:?} left something behind");
    }
}

#[test]
fn benchmarks() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["roofline", "--preset", "cleanrI"], "unknown preset `cleanrI`; did you mean `cleanrl`?"),
        (&["roofline", "--envs", "0"], "--envs: expected a whole number from 1 up, got 0"),
        (&["roofline", "--envs", "16777217"], "--envs: expected a whole number from 1 to 16777216, got 16777217"),
        (&["roofline", "--set", "ppo.clib=0.1"], "unknown setting `ppo.clib`; did you mean `ppo.clip`?"),
        (&["roofline", "--set", "network.hidden"], "--set: expected key=value, got `network.hidden`"),
        (&["roofline", "--set", "agent=a2c"], "roofline: expected ppo with perceptrons, got a2c"),
        (&["roofline", "--set", "device=cuda"], "device: expected cpu, for the roofline is this processor's, got cuda:0"),
        (&["roofline", "--threads", "0"], "--threads: expected a whole number from 1 up, got 0"),
        (&["growth"], "the following required arguments were not provided: --to <DIR>"),
        (&["growth", "--to", "g", "--steps", "99999"], "--steps: expected 100000 steps or more, such as 100k or 100m, got 99999"),
        (&["growth", "--to", "g", "--steps", "-1m"], "--steps: expected 100000 steps or more, such as 100k or 100m, got -1m"),
        (&["growth", "--to", "g", "--threads", "300"], "--threads: expected 1 to 256, got 300"),
        (&["growth", "--to", "/dev/null"], "cannot create /dev/null: File exists (os error 17)"),
        (&["seeds", "--seeds", "0"], "--seeds: expected a whole number from 1 up, got 0"),
        (&["seeds", "--seeds", "257"], "--seeds: expected a whole number from 1 to 256, got 257"),
        (&["seeds", "--rounds", "x"], "--rounds: expected a whole number from 1 up, got x"),
        (&["seeds", "--preset", "zo"], "unknown preset `zo`; did you mean `zoo`?"),
    ];
    for (arguments, expected) in cases {
        let error = error_of(&gradus(dir.path(), &[&["bench"], *arguments].concat()));
        assert_eq!(error, *expected, "{arguments:?}");
        assert!(contents(dir.path()).is_empty(), "{arguments:?} left something behind");
    }
}

#[test]
fn a_configuration_file_is_named_in_its_errors() {
    let dir = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("steps = [", "bad.toml: settings: expected TOML, got "),
        ("stepps = 3", "bad.toml: unknown setting `stepps`; did you mean `steps`?"),
        ("[ppo]\nclip = true", "bad.toml: ppo.clip: expected a number, got true"),
    ] {
        fs::write(dir.path().join("bad.toml"), text).unwrap();
        let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--config", "bad.toml"]));
        assert!(error.starts_with(expected), "expected {expected}\ngot      {error}");
    }
}

#[test]
fn a_folder_that_holds_another_run_or_other_files_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    short_run(dir.path());
    let before = contents(dir.path());
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "run"]));
    assert!(error.starts_with("run: holds another run; go on with it by `gradus train --resume run`"), "{error}");
    assert!(contents(dir.path()) == before);

    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/thesis.txt"), "precious").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "mine"]));
    assert_eq!(error, "mine: expected a folder that is new or empty, got one with other files in it");
    assert_eq!(fs::read(dir.path().join("mine/thesis.txt")).unwrap(), b"precious");
}

#[test]
fn runs_that_start_together_get_folders_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let start = |_| {
        let arguments = ["train", "ppo", "cartpole", "--steps", "2k", "--threads", "1", "--quiet"];
        Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir.path()).args(arguments).spawn().unwrap()
    };
    let children: Vec<_> = (0..6).map(start).collect();
    assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()));
    for i in 1..=6 {
        let run = dir.path().join(format!("runs/ppo-cartpole-{i}"));
        assert!(["config.toml", "state.safetensors", "policy.safetensors"].iter().all(|name| run.join(name).exists()), "{run:?}");
    }
}

#[test]
fn a_configuration_that_was_edited_after_the_run_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    short_run(dir.path());
    let path = dir.path().join("run/config.toml");
    let edited = fs::read_to_string(&path).unwrap().replace("activation = \"tanh\"", "activation = \"relu\"");
    fs::write(&path, edited).unwrap();
    let expected = "belongs to other settings than config.toml beside it: network.activation differs";
    let error = error_of(&gradus(dir.path(), &["eval", "run"]));
    assert_eq!(error, format!("run/policy.safetensors: {expected}"));
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert_eq!(error, format!("run/state.safetensors: {expected}"));
}

/// The learning rate takes the parameters to infinity in the last update, after the last look at a loss.
#[test]
fn parameters_that_overflow_stop_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let settings = ["ppo.epochs=1", "ppo.minibatch_size=256", "optimiser.learning_rate=3e38", "optimiser.critic_learning_rate_ratio=100"];
    let mut arguments = vec!["train", "ppo", "cartpole", "--steps", "256", "--out", "run"];
    settings.iter().for_each(|setting| arguments.extend(["--set", setting]));
    let error = error_of(&gradus(dir.path(), &arguments));
    assert!(error.starts_with("the parameter is ") && error.contains("of the run with seed 1: expected a finite number"), "{error}");
    assert!(gradus(dir.path(), &["eval", "run"]).status.success(), "the checkpoint from before is good");
}

#[test]
fn a_resume_that_fails_creates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    short_run(dir.path());
    fs::remove_file(dir.path().join("run/timing.csv")).unwrap();
    let before = contents(dir.path());
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert!(error.starts_with("cannot open run/timing.csv: "), "{error}");
    assert!(contents(dir.path()) == before);
}

#[test]
fn a_folder_in_use_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    short_run(dir.path());
    let _held = Run::resume(dir.path().join("run")).unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert_eq!(error, "run: another process is training in this folder");
}

#[test]
fn damaged_checkpoints_are_named_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    short_run(dir.path());
    let read = |name: &str| fs::read(dir.path().join("run").join(name)).unwrap();
    let (state, policy) = (read("state.safetensors"), read("policy.safetensors"));
    // the last f32 of the file becomes NaN
    let with_nan = |bytes: &[u8]| [&bytes[..bytes.len() - 4], &f32::NAN.to_le_bytes()].concat();
    let renamed = |bytes: &[u8], from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("eval", policy[..policy.len() / 2].to_vec(), "not a safetensors file: "),
        ("eval", Vec::new(), "not a safetensors file: "),
        ("eval", b"GIF89a and so on and on".to_vec(), "not a safetensors file: "),
        ("eval", with_nan(&policy), "expected finite numbers in their range, got NaN at position "),
        ("eval", renamed(&policy, "actor.0.bias", "actor.9.bias"), "tensor `actor.0.bias` is missing"),
        ("eval", renamed(&policy, "[64,4]", "[4,64]"), "tensor `actor.0.weight`: expected F32 [64, 4], got F32 [4, 64]"),
        ("resume", state[..state.len() / 2].to_vec(), "not a safetensors file: "),
        ("resume", Vec::new(), "not a safetensors file: "),
        ("resume", policy.clone(), "tensor `"),
        ("resume", renamed(&state, "policy.actor.0.bias", "policy.actor.9.bias"), "tensor `actor.0.bias` is missing"),
        ("resume", renamed(&state, "seed = 1", "seed = 2"), "belongs to other settings than config.toml beside it"),
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
    // a log that is shorter than the checkpoint says
    fs::write(dir.path().join("run/metrics.csv"), "iteration\n").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert!(error.starts_with("run/metrics.csv: expected at least ") && error.ends_with("got 10"), "{error}");
}

#[test]
fn an_output_folder_that_cannot_be_written_to() {
    let dir = tempfile::tempdir().unwrap();
    // tests may run as root, whom permissions do not stop; /proc and a file in the way stop everyone
    fs::write(dir.path().join("file"), "in the way").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "file/run"]));
    assert!(error.starts_with("cannot create file"), "{error}");
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "file"]));
    assert_eq!(error, "file: expected a folder that is new or empty, got a file");
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "/proc/run"]));
    assert!(error.starts_with("cannot create /proc/run: "), "{error}");
    assert_eq!(contents(dir.path()), [(dir.path().join("file"), b"in the way".to_vec())]);
}

#[test]
fn a_full_disk_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    // no file may grow beyond 160 KiB: events.out.tfevents reaches that in mid-run
    let limited = format!(
        "trap '' XFSZ; ulimit -f 320; exec {} train ppo cartpole --preset cleanrl --steps 300k --checkpoint-every 0.01 --out run --quiet",
        env!("CARGO_BIN_EXE_gradus")
    );
    let output = Command::new("sh").current_dir(dir.path()).args(["-c", &limited]).output().unwrap();
    let error = error_of(&output);
    assert!(error.starts_with("cannot write run/") && error.contains("File too large"), "{error}");
    // with room again it goes on where the last checkpoint was
    let output = gradus(dir.path(), &["train", "--resume", "run"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(", from step "), "it began anew: {text}");
}

#[test]
fn evaluation_and_playing() {
    let dir = tempfile::tempdir().unwrap();
    short_run(dir.path());
    for (arguments, expected) in [
        (vec!["eval", "run", "--episodes", "0"], "--episodes: expected a whole number from 1 up, got 0"),
        (
            vec!["eval", "run", "--episodes", "9223372036854775807"],
            "--episodes: expected a whole number from 1 to 16777216, got 9223372036854775807",
        ),
        (vec!["eval", "nowhere"], "nowhere: expected a run folder, got none: config.toml is missing"),
        (vec!["play", "run", "--gif", "episode.mp4"], "episode.mp4: expected a name ending in .gif"),
        (vec!["plot", "run", "--out", "curve.pdf"], "curve.pdf: "),
        (vec!["plot", "nowhere"], "nowhere: expected a run folder"),
        (vec!["check", "cartpole", "--trace", "nothing.jsonl"], "nothing.jsonl: "),
        (vec!["check", "cartpol", "--trace", "nothing.jsonl"], "unknown environment `cartpol`; did you mean `cartpole`?"),
    ] {
        let before = contents(dir.path());
        let error = error_of(&gradus(dir.path(), &arguments));
        assert!(error.contains(expected), "{arguments:?}:\n  expected {expected}\n  got      {error}");
        assert!(contents(dir.path()) == before, "{arguments:?} left something behind");
    }
}

/// Ten steps an episode; from its 200th step on the rewards are NaN.
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
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("run");
    let mut config = Config { envs: 2, steps: 1000, ..Config::default() };
    config = config.with_setting("ppo.rollout_steps=32").unwrap().with_setting("ppo.minibatch_size=16").unwrap();
    let world = || World::new("breaks", Breaks::default);
    let mut run = Run::create_in_world(config, world(), &folder).unwrap();
    run.checkpoint_every(std::time::Duration::ZERO);
    let error = run.train(Show::Nothing).unwrap_err().to_string();
    assert!(error.starts_with("reward of environment 0 is NaN, expected a finite number (step 10 of the episode with seed "), "{error}");
    drop(run);
    let run = Run::resume_in_world(&folder, world()).unwrap();
    assert_eq!(run.trainer().steps(), 6 * 64, "the checkpoint is that of the last whole iteration");
    assert!(run.trainer().actor_critic().unwrap().parameters().iter().all(|x| x.is_finite()));
}

/// A short finished run on text.
fn short_text_run(dir: &Path) {
    let arguments = ["train", "grpo", "target-sum", "--steps", "100", "--set", "transformer.layers=1", "--out", "run", "--quiet"];
    let output = gradus(dir, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_makes_no_sense_on_texts() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["trpo", "target-sum"], "agent: expected reinforce, a2c, ppo or grpo, for a transformer knows no Fisher information, got trpo"),
        (
            &["grpo", "target-sum", "--set", "grpo.group_size=1"],
            "grpo.group_size: expected at least 2, for a group of one has nothing to compare, got 1",
        ),
        (
            &["ppo", "target-sum", "--set", "wrappers.normalise_observations=true"],
            "wrappers.normalise_observations: expected false, for observations are texts, got true",
        ),
        (
            &["ppo", "target-sum", "--set", "wrappers.time_aware=true"],
            "wrappers.time_aware: expected false, for observations are texts, got true",
        ),
        (&["ppo", "target-sum", "--set", "wrappers.frame_stack=4"], "wrappers.frame_stack: expected 1, for observations are texts, got 4"),
        (&["ppo", "target-sum", "--set", "max_concurrent=100000000"], "max_concurrent: expected 0 to 16777216, got 100000000"),
        (
            &["ppo", "target-sum", "--set", "transformer.width=40"],
            "transformer.width: expected a multiple of 16 for each of 4 heads, that is of 64, up to 8192, got 40",
        ),
        (
            &["ppo", "target-sum", "--set", "text.length_penalty=-1"],
            "text: `target-sum`: length_penalty: expected a finite number of at least 0, got -1",
        ),
        (
            &["ppo", "target-sum", "--set", "text.max_new_tokens=1000000000000"],
            "text: `target-sum`: max_new_tokens: expected 1 to 65536, got 1000000000000",
        ),
        (&["ppo", "target-sum", "--set", "reward_model.folder=nowhere"], "cannot read nowhere: No such file or directory (os error 2)"),
        (
            &["ppo", "target-sum", "--set", "reward_model.retrain_every=5"],
            "reward_model.pairs: expected above 0, to train the model again with, got 0",
        ),
        (&["ppo", "target-sum", "--set", "reward_model.completions=1"], "reward_model.completions: expected 2 to 1024, got 1"),
        (&["ppo", "target-sum", "--set", "reward_model.completions=1025"], "reward_model.completions: expected 2 to 1024, got 1025"),
        (
            &["ppo", "target-sum", "--set", "reward_model.pairs=8", "--set", "wrappers.clip_reward=1"],
            "wrappers: expected rewards as they are, for a reward model gives them, got normalised or clipped ones",
        ),
        (&["ppo", "target-sum", "--set", "init=nowhere"], "cannot read nowhere: No such file or directory (os error 2)"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), &[&["train"], *arguments].concat())), *expected, "{arguments:?}");
    }
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "target-sum", "--set", "network.gsde=true"]));
    assert!(error.starts_with("unknown setting `network.gsde`; "), "{error}");
    assert!(contents(dir.path()).is_empty(), "something was left behind");
}

#[test]
fn parameters_of_another_policy() {
    let dir = tempfile::tempdir().unwrap();
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
    // the right one is taken, and a run that goes on needs it no more
    let arguments =
        ["train", "grpo", "target-sum", "--steps", "100", "--set", "transformer.layers=1", "--set", "init=run", "--out", "other"];
    assert!(gradus(dir.path(), &arguments).status.success());
    fs::remove_dir_all(dir.path().join("run")).unwrap();
    assert!(gradus(dir.path(), &["train", "--resume", "other"]).status.success());
}

#[test]
fn warm_starts_that_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["cartpole"], "a warm start: expected a task of text, got `cartpole`"),
        (&["additoin"], "unknown environment `additoin`; did you mean `addition`?"),
        (&["addition", "--until-exact", "40"], "--until-exact: expected a fraction from 0 to 1, got 40"),
        (&["addition", "--steps", "0"], "--steps: expected a whole number from 1 up, got 0"),
        (&["addition", "--batch", "0"], "--batch: expected a whole number from 1 up, got 0"),
        (&["addition", "--set", "environment=sort"], "environment: expected addition, as the command line has it, got sort"),
        (&["addition", "--set", "optimiser.learning_rate=0"], "optimiser.learning_rate: expected a number above 0, got 0"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), &[&["sft"], *arguments].concat())), *expected, "{arguments:?}");
    }
    assert!(contents(dir.path()).is_empty(), "something was left behind");
    let made = || gradus(dir.path(), &["sft", "target-sum", "--steps", "2", "--quiet", "--out", "policy"]);
    assert!(made().status.success());
    let before = contents(dir.path());
    assert_eq!(error_of(&made()), "policy: holds a policy; choose another folder");
    let expected = "policy: expected a run, got a policy alone; begin a run with it by `--set init=policy`";
    assert_eq!(error_of(&gradus(dir.path(), &["train", "--resume", "policy"])), expected);
    assert!(contents(dir.path()) == before);
    for command in [&["eval", "policy", "--episodes", "3"][..], &["sample", "policy", "--prompt", "3>"], &["play", "policy"]] {
        assert!(gradus(dir.path(), command).status.success(), "{command:?}");
    }
}

#[test]
fn reward_models_and_comparisons_that_cannot_be() {
    let dir = tempfile::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["reward-model", "cartpole"], "a reward model: expected a task of text, got `cartpole`"),
        (&["reward-model", "sort", "--pairs", "0"], "--pairs: expected a whole number from 1 up, got 0"),
        (&["reward-model", "sort", "--completions", "1"], "--completions: expected a whole number from 2 up, got 1"),
        (&["reward-model", "sort", "--completions", "1025"], "--completions: expected a whole number from 2 to 1024, got 1025"),
        (&["reward-model", "sort", "--init", "nowhere"], "cannot read nowhere: No such file or directory (os error 2)"),
        (&["inspect", "nowhere"], "nowhere: expected a run folder, got none: config.toml is missing"),
        (&["inspect", "nowhere", "--group-size", "1"], "--group-size: expected a whole number from 2 up, got 1"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), arguments)), *expected, "{arguments:?}");
    }
    assert!(contents(dir.path()).is_empty(), "something was left behind");
    let made = gradus(dir.path(), &["reward-model", "target-sum", "--pairs", "60", "--held-out", "30", "--out", "model"]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success() && said.lines().last().unwrap().starts_with("accuracy: "), "{said}");
    let made = gradus(dir.path(), &["reward-model", "target-sum", "--pairs", "60", "--completions", "4", "--out", "of-rankings"]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success() && said.contains(" rankings, loss ") && said.contains("% of the pairs of "), "{said}");
    let train = ["train", "grpo", "target-sum", "--steps", "100", "--set", "reward_model.folder=model", "--out", "run", "--quiet"];
    assert!(gradus(dir.path(), &train).status.success());
    let metrics = fs::read_to_string(dir.path().join("run/metrics.csv")).unwrap();
    assert!(metrics.lines().next().unwrap().contains(",reward/mean,reward/std,reward/true,"), "{metrics}");
    let shown = gradus(dir.path(), &["inspect", "run", "--groups", "4", "--group-size", "3"]);
    let said = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && said.contains("rloo") && said.contains("cosine"), "{said}");
    assert!(said.starts_with("rewards are those of the run's reward model; beside them, what the world itself pays\n"), "{said}");
    let sampled = gradus(dir.path(), &["sample", "run", "--prompt", "3>"]);
    let said = String::from_utf8_lossy(&sampled.stdout).into_owned();
    assert!(said.contains("  learned reward ") && said.contains(", true ") && said.contains("grpo compares completions"), "{said}");
    // a run that goes on needs the folder no more
    fs::remove_dir_all(dir.path().join("model")).unwrap();
    assert!(gradus(dir.path(), &["train", "--resume", "run", "--quiet"]).status.success());
}

/// Each agent's advantages are what `sample` shows: the return itself without a baseline, nothing for a group of one.
#[test]
fn completions_are_compared_as_the_agent_compares() {
    let dir = tempfile::tempdir().unwrap();
    let sampled = |baseline: &str, n: &str| {
        let baseline = format!("reinforce.baseline={baseline}");
        let train = ["train", "reinforce", "target-sum", "--steps", "100", "--quiet", "--set", "envs=8"];
        let group = if baseline.ends_with("one-out") { "reinforce.group_size=4" } else { "reinforce.group_size=1" };
        let settings = ["--set", &baseline, "--set", group, "--set", "reinforce.gamma=0.5", "--out", &baseline];
        if !dir.path().join(&baseline).exists() {
            let made = gradus(dir.path(), &[&train[..], &settings].concat());
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        let shown = gradus(dir.path(), &["sample", &baseline, "--prompt", "3>", "-n", n, "--seed", "2"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let alone = sampled("leave-one-out", "1");
    assert!(alone.ends_with("reinforce compares completions with each other: -n 8 shows advantages\n"), "{alone}");
    let advantages = |said: &str| -> Vec<f64> { said.lines().filter_map(|line| line.split_whitespace().nth(4)?.parse().ok()).collect() };
    assert!(advantages(&alone).is_empty() && !advantages(&sampled("leave-one-out", "8")).is_empty());
    // each token is worth half of what the next one is
    let plain = sampled("none", "30");
    let found = advantages(&plain);
    assert!(found.windows(2).any(|two| two[0] > 0.0 && (2.0 * two[0] - two[1]).abs() < 2e-3), "{plain}");
}

#[test]
fn prompts_that_cannot_be_completed() {
    let dir = tempfile::tempdir().unwrap();
    short_text_run(dir.path());
    let cases: &[(&[&str], &str)] = &[
        (&["run", "--prompt", "7a>"], "text: character `a` of `7a>`: expected one of the symbols 0 1 2 3 4 5 6 7 >"),
        (&["run", "--prompt", "777777"], "text: prompt: expected 1 to 5 tokens, got 6"),
        (&["run", "--prompt", ""], "text: prompt: expected 1 to 5 tokens, got 0"),
        (&["run", "--prompt", "3>", "--temperature", "-1"], "--temperature: expected a number from 0 up, got -1"),
        (&["run", "--prompt", "3>", "--top-p", "much"], "--top-p: expected a number, got much"),
        (&["run", "--prompt", "3>", "--min-p", "2"], "--min-p: expected a number from 0 to 1, got 2"),
        (&["run", "--prompt", "3>", "-n", "0"], "-n: expected a whole number from 1 up, got 0"),
        (&["nowhere", "--prompt", "3>"], "nowhere: expected a run folder, got none: config.toml is missing"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), &[&["sample"], *arguments].concat())), *expected, "{arguments:?}");
    }
}

#[test]
fn devices_that_there_are_none_of() {
    let dir = tempfile::tempdir().unwrap();
    let expected = |name: &str| format!("device: expected cpu, torch-cpu, cuda, cuda:N or mps, got {name}");
    for name in ["gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:128", "CUDA", "tpu:0"] {
        for command in [&["train", "ppo", "cartpole"][..], &["doctor"]] {
            let error = error_of(&gradus(dir.path(), &[command, &["--device", name]].concat()));
            assert_eq!(error, expected(name));
        }
        let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--set", &format!("device='{name}'")]));
        assert_eq!(error, expected(&format!("{name:?}")));
    }
    assert_eq!(error_of(&gradus(dir.path(), &["doctor", "--device", ""])), expected("nothing"));
    assert!(contents(dir.path()).is_empty());
    fs::write(dir.path().join("gpu.toml"), "device = \"gpu\"").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--config", "gpu.toml"]));
    assert_eq!(error, format!("gpu.toml: {}", expected("\"gpu\"")));
}

#[cfg(not(feature = "tch"))]
#[test]
fn libtorchs_devices_need_the_feature() {
    let dir = tempfile::tempdir().unwrap();
    let expected = |device: &str| {
        let problem = "expected cpu, for this gradus was built without the feature `tch`; `gradus doctor` says how to build it with";
        format!("device {device}: {problem}")
    };
    fs::write(dir.path().join("cuda.toml"), "device = \"cuda\"").unwrap();
    let before = contents(dir.path());
    for (name, device) in [("torch-cpu", "torch-cpu"), ("cuda", "cuda:0"), ("cuda:7", "cuda:7"), ("mps", "mps")] {
        assert_eq!(error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--device", name])), expected(device));
        assert_eq!(error_of(&gradus(dir.path(), &["doctor", "--device", name])), expected(device));
    }
    assert_eq!(error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--config", "cuda.toml"])), expected("cuda:0"));
    assert_eq!(contents(dir.path()), before);
}

#[cfg(not(feature = "tch"))]
#[test]
fn doctor_says_that_the_feature_is_off() {
    for arguments in [&["doctor"][..], &["doctor", "--device", "cpu"]] {
        let output = gradus(Path::new("."), arguments);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("the feature `tch` is off"), "{text}");
        assert!(text.contains("LIBTORCH_USE_PYTORCH=1 cargo build --features tch"), "{text}");
    }
}

#[cfg(not(feature = "tch"))]
#[test]
fn a_run_of_a_gpu_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    short_run(dir.path());
    trained_on(&dir.path().join("run"), "cuda:0");
    let before = contents(dir.path());
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert!(error.starts_with("device cuda:0: expected cpu, for this gradus was built without the feature `tch`"), "{error}");
    assert_eq!(contents(dir.path()), before);
    // one policy at work needs no GPU
    assert!(gradus(dir.path(), &["eval", "run", "--episodes", "2"]).status.success());
}

/// Makes of a run on the processor one that was trained on `device`.
#[cfg(not(feature = "tch"))]
fn trained_on(run: &Path, device: &str) {
    use gradus::nets::tensors::{decode, encode};
    let instead = |text: &str| text.replace("device = \"cpu\"", &format!("device = \"{device}\""));
    let config = fs::read_to_string(run.join("config.toml")).unwrap();
    assert_ne!(instead(&config), config);
    fs::write(run.join("config.toml"), instead(&config)).unwrap();
    for name in ["state.safetensors", "policy.safetensors"] {
        let (tensors, note) = decode(&fs::read(run.join(name)).unwrap()).unwrap();
        fs::write(run.join(name), encode(&tensors, &instead(&note))).unwrap();
    }
}
