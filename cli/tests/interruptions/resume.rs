//! A run that is killed at any moment leaves either no folder, or a folder that resumes to the bytes of an uninterrupted run.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use gradus::envs::random::{Purpose, Stream};

fn gradus() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn train(dir: &Path) -> Command {
    started(dir, &["ppo", "cartpole", "--preset", "cleanrl", "--steps", "60k"])
}

/// Trains on texts, with limited concurrency, a reference policy and scores.
fn train_on_text(dir: &Path) -> Command {
    let settings = ["grpo.group_size=4", "reference.coefficient=0.05", "max_concurrent=5"];
    let settings: Vec<&str> = settings.into_iter().flat_map(|setting| ["--set", setting]).collect();
    started(dir, &[&["grpo", "target-sum", "--envs", "16", "--steps", "4k"], &settings[..]].concat())
}

/// Trains with a prioritised replay buffer.
fn train_on_values(dir: &Path) -> Command {
    started(dir, &["dqn", "cartpole", "--preset", "zoo", "--steps", "4k", "--set", "dqn.priority_exponent=0.6", "--set", "dqn.n_step=3"])
}

/// Trains with correlated noise, which is part of the state.
fn train_with_noise(dir: &Path) -> Command {
    let settings = ["network.hidden=[64,64]", "td3.batch_size=32", "td3.learning_starts=200", "td3.action_noise=ornstein-uhlenbeck"];
    let settings: Vec<&str> = settings.into_iter().flat_map(|setting| ["--set", setting]).collect();
    started(dir, &[&["td3", "pendulum", "--steps", "3k"], &settings[..]].concat())
}

/// Trains with a temperature, which is part of the state, and with gSDE.
fn train_with_temperature(dir: &Path) -> Command {
    let settings = ["network.hidden=[64,64]", "sac.batch_size=32", "network.gsde=true"];
    let settings: Vec<&str> = settings.into_iter().flat_map(|setting| ["--set", setting]).collect();
    started(dir, &[&["sac", "pendulum", "--steps", "3k"], &settings[..]].concat())
}

fn started(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = gradus();
    command.arg("train").args(arguments).args(["--seed", "5", "--quiet"]);
    command.args(["--checkpoint-every", "0.02", "--out"]).arg(dir);
    command
}

fn resume(dir: &Path) -> Command {
    let mut command = gradus();
    command.args(["train", "--quiet", "--checkpoint-every", "0.02", "--resume"]).arg(dir);
    command
}

fn files(dir: &Path) -> Vec<Vec<u8>> {
    ["metrics.csv", "episodes.csv", "policy.safetensors", "curve.svg"].map(|name| fs::read(dir.join(name)).unwrap()).into()
}

#[test]
fn killed_runs_resume_to_the_same_bytes() {
    kill_and_resume(train, 20);
}

#[test]
fn killed_runs_on_texts_resume_to_the_same_bytes() {
    kill_and_resume(train_on_text, 8);
}

#[test]
fn killed_runs_with_a_replay_buffer_resume_to_the_same_bytes() {
    kill_and_resume(train_on_values, 6);
}

#[test]
fn killed_runs_with_noise_resume_to_the_same_bytes() {
    kill_and_resume(train_with_noise, 6);
}

#[test]
fn killed_runs_with_a_temperature_resume_to_the_same_bytes() {
    kill_and_resume(train_with_temperature, 6);
}

/// Kills at least `wanted` times, or as often as the variable `GRADUS_KILLS` says.
fn kill_and_resume(train: fn(&Path) -> Command, wanted: u32) {
    let wanted = std::env::var("GRADUS_KILLS").map_or(wanted, |kills| kills.parse().unwrap());
    let folder = gradus_testing::tempdir().unwrap();
    let whole = folder.path().join("whole");
    let began = std::time::Instant::now();
    assert!(train(&whole).status().unwrap().success());
    let length = began.elapsed().as_secs_f64();
    let expected = files(&whole);

    let mut stream = Stream::new(17, Purpose::Shuffle, 0);
    let (mut kills, mut checkpoints) = (0, 0);
    for run in 0.. {
        let dir = folder.path().join(format!("killed-{run}"));
        // kill the run five times in a row, then let it finish
        for _ in 0..5 {
            let mut child = if dir.exists() { resume(&dir) } else { train(&dir) }.spawn().unwrap();
            std::thread::sleep(Duration::from_secs_f64(stream.uniform(0.0, 0.5 * length)));
            child.kill().unwrap(); // SIGKILL
            kills += u32::from(!child.wait().unwrap().success());
            // the kill came during training if something is logged and the policy is not written yet
            let logged = fs::metadata(dir.join("metrics.csv")).is_ok_and(|data| data.len() > 0);
            checkpoints += u32::from(logged && !dir.join("policy.safetensors").exists());
        }
        let last = if dir.exists() { resume(&dir) } else { train(&dir) }.status().unwrap();
        assert!(last.success(), "run {run} does not resume");
        assert!(files(&dir) == expected, "run {run} differs from an uninterrupted run");
        if kills >= wanted {
            break;
        }
    }
    assert!(checkpoints >= wanted / 4, "too few kills during training: {checkpoints} of {kills}");
}

#[test]
fn resuming_a_finished_run_changes_nothing() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    assert!(train(&dir).arg("--set").arg("ppo.epochs=1").status().unwrap().success());
    let contents = || -> Vec<_> {
        let mut files: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let before = contents();
    assert!(resume(&dir).status().unwrap().success());
    assert!(contents() == before);
    // exports are written again from the checkpoint
    fs::remove_file(dir.join("policy.safetensors")).unwrap();
    fs::remove_file(dir.join("curve.png")).unwrap();
    assert!(resume(&dir).status().unwrap().success());
    assert!(contents() == before);
}
