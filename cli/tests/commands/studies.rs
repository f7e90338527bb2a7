//! `gradus sweep` and `gradus tune`, and studies that many processes share: the same bytes for any number of them.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

const SWEEP: &str = r#"
name = "clip & rate"
environments = ["cartpole", "acrobot"]
seeds = 2
steps = 1024
evaluation_episodes = 2
score = { cartpole = [0, 500], acrobot = [-500, 0] }

[[agents]]
agent = "ppo"
preset = "cleanrl"
environments.acrobot = { preset = "default", settings = { envs = 4, "ppo.rollout_steps" = 64 } }

[agents.space]
"ppo.clip" = [0.1, 0.2, 0.4]
learning_rate = { log_uniform = [1e-4, 1e-2], points = 2 }
"ppo.normalise_advantages" = [true, false]
"#;

const TUNING: &str = r#"
environments = ["cartpole"]
seeds = 2
test_seeds = 3
steps = 1024
evaluation_episodes = 2
trials = 8
batch = 4

[[agents]]
agent = "ppo"
preset = "cleanrl"

[agents.space]
"ppo.clip" = { uniform = [0.05, 0.5] }
learning_rate = { log_uniform = [1e-4, 1e-2] }
"#;

fn command(dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.current_dir(dir).args(arguments);
    command
}

fn gradus(dir: &Path, arguments: &[&str]) -> Output {
    command(dir, arguments).output().unwrap()
}

fn lines(dir: &Path, arguments: &[&str]) -> Vec<String> {
    let output = gradus(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

fn folder() -> gradus_testing::TempDir {
    let dir = gradus_testing::tempdir().unwrap();
    fs::write(dir.path().join("sweep.toml"), SWEEP).unwrap();
    fs::write(dir.path().join("tune.toml"), TUNING).unwrap();
    dir
}

/// A sweep whose runs fail in one of its environments has the tables of the other one.
#[test]
fn a_sweep_goes_on_without_an_environment_in_which_all_runs_fail() {
    let dir = gradus_testing::tempdir().unwrap();
    let broken = SWEEP
        .replace("\"ppo.rollout_steps\" = 64 }", "\"ppo.rollout_steps\" = 64, learning_rate = 1e30 }")
        .replace("learning_rate = { log_uniform = [1e-4, 1e-2], points = 2 }\n", "");
    fs::write(dir.path().join("sweep.toml"), broken).unwrap();
    let output = gradus(dir.path(), &["sweep", "sweep.toml", "--out", "out", "--quiet"]);
    let (said, out) = (String::from_utf8_lossy(&output.stderr).into_owned(), dir.path().join("out"));
    assert!(output.status.success(), "{said}");
    let points = read(&out, "points.csv");
    let rows: Vec<Vec<&str>> = points.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 6, "{points}");
    assert!(rows.iter().all(|row| row[4] == "cartpole" && row[6] == "0" && row[7].parse::<f64>().unwrap().is_finite()), "{points}");
    assert!(!read(&out, "responses.csv").contains("NaN"));
}

/// Trials that fail are no winners, and do not keep a tuning from its end.
#[test]
fn a_tuning_ends_although_trials_fail() {
    let dir = folder();
    let broken = TUNING.replace("learning_rate = { log_uniform = [1e-4, 1e-2] }", "learning_rate = { log_uniform = [1e-3, 1e30] }");
    fs::write(dir.path().join("tune.toml"), broken).unwrap();
    let printed = lines(dir.path(), &["tune", "tune.toml", "--out", "out"]);
    assert!(printed.iter().any(|line| line.contains("with 3 fresh seeds nothing is decided")), "{printed:?}");
    let summary = read(&dir.path().join("out"), "summary.csv");
    assert!(summary.lines().count() > 2 && !summary.contains("NaN") && !summary.contains("inf"), "{summary}");
}

/// The files of a study that do not depend on times.
fn repeating(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let named = entries.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap()));
    named.filter(|(name, _)| !["timing.csv", "SHA256SUMS", "report.html", ".lock"].contains(&name.as_str())).collect()
}

/// The first line that a command with a wrong file complains of.
fn complaint(dir: &Path, command: &str, text: &str) -> String {
    fs::write(dir.join("wrong.toml"), text).unwrap();
    let output = gradus(dir, &[command, "wrong.toml"]);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_setting_has_one_name_and_a_rung_has_updates() {
    let dir = folder();
    let twice = "\"ppo.clip\" = [0.1, 0.2, 0.4]\nclip = [0.3]";
    let message = complaint(dir.path(), "sweep", &SWEEP.replace("\"ppo.clip\" = [0.1, 0.2, 0.4]", twice));
    assert!(message.contains("settings: expected each setting once, got `ppo.clip` twice"), "{message}");
    let twice = "\"ppo.clip\" = { uniform = [0.05, 0.5] }\nclip = [0.3]";
    let message = complaint(dir.path(), "tune", &TUNING.replace("\"ppo.clip\" = { uniform = [0.05, 0.5] }", twice));
    assert!(message.contains("space: expected each setting once, got `ppo.clip` twice"), "{message}");
    let dqn = "agent = \"dqn\"\nsettings = { learning_starts = 300 }\n\n[agents.space]\n\"dqn.batch_size\" = [32, 64]\n";
    let (head, _) = TUNING.split_once("agent = ").unwrap();
    let message = complaint(dir.path(), "tune", &format!("{head}{dqn}"));
    let expected = "rungs: with 0.25 of the steps: agent \"default\" on cartpole: dqn.learning_starts: expected below the 256 steps of a run, or there is no update, got 300";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn the_tasks_of_a_cluster_have_the_python_of_the_command() {
    let dir = folder();
    for command in [&["sweep", "sweep.toml"][..], &["tune", "tune.toml"], &["reproduce", "all"]] {
        let script = lines(dir.path(), &[command, &["--python", "my env/bin/python", "--emit", "slurm"]].concat()).join("\n");
        let expected = format!("\ngradus --python 'my env/bin/python' {}", command.join(" "));
        assert!(script.contains(&expected), "{expected}: {script}");
        let without = lines(dir.path(), &[command, &["--emit", "slurm"]].concat()).join("\n");
        assert!(!without.contains("--python"), "{without}");
    }
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn a_sweep_writes_tables_figures_and_a_report() {
    let dir = folder();
    let printed = lines(dir.path(), &["sweep", "sweep.toml", "--out", "out"]);
    assert_eq!(printed[0], "12 points, 48 runs");
    let out = dir.path().join("out");
    for name in ["response.svg", "choices.png", "effects.svg", "heat.svg", "coordinates.svg", "report.html", "sweep.toml"] {
        assert!(out.join(name).exists(), "{name}");
    }
    // a row for each point in each environment and in all of them
    let points = read(&out, "points.csv");
    assert_eq!(points.lines().count(), 1 + 12 * 3);
    assert!(points.starts_with("point,agent,learning_rate,ppo.clip,ppo.normalise_advantages,env,runs,failed,value,low,high\n"), "{points}");
    // the value of a point is that of its runs: with two seeds the interquartile mean is the mean
    let results = read(&out, "results.csv");
    let last = |seed: &str| -> f64 {
        let rows = results.lines().filter(|row| row.starts_with("learning_rate=1e-4 clip=0.1 normalise_advantages=true,cartpole,"));
        rows.map(|row| row.split(',').collect::<Vec<_>>()).rfind(|cells| cells[2] == seed).unwrap()[4].parse().unwrap()
    };
    let row: Vec<&str> = points.lines().nth(1).unwrap().split(',').collect();
    assert_eq!(row[..8], ["1", "ppo", "1e-4", "0.1", "true", "cartpole", "2", "0"]);
    assert!((row[8].parse::<f64>().unwrap() - (last("1") + last("2")) / 2.0).abs() < 1e-9);
    // 3 + 2 + 2 levels
    assert_eq!(read(&out, "responses.csv").lines().count(), 1 + 7 * 3);
    assert_eq!(read(&out, "effects.csv").lines().filter(|row| row.contains(",seed,")).count(), 3);
    lines(dir.path(), &["verify", "out"]);
    // a second call makes nothing, and writes the same
    let before = repeating(&out);
    let again = lines(dir.path(), &["sweep", "sweep.toml", "--out", "out", "--jobs", "1"]);
    assert!(again.iter().any(|line| line == "48 runs: 48 kept (same settings, code and files), 0 made"), "{again:?}");
    assert!(before == repeating(&out));
}

#[test]
fn parts_and_merged_folders_have_the_bytes_of_one_process() {
    let dir = folder();
    lines(dir.path(), &["sweep", "sweep.toml", "--out", "whole", "--quiet"]);
    let whole = repeating(&dir.path().join("whole"));
    // task by task
    let list = lines(dir.path(), &["sweep", "sweep.toml", "--out", "tasks", "--list"]);
    assert_eq!(list.len(), 49);
    assert!(list[48].starts_with("48,learning_rate=0.01 clip=0.4 normalise_advantages=false,acrobot,2,"), "{}", list[48]);
    for part in ["1-7,48", "8-20", "20-47"] {
        lines(dir.path(), &["sweep", "sweep.toml", "--out", "tasks", "--task", part, "--quiet"]);
    }
    assert!(lines(dir.path(), &["sweep", "sweep.toml", "--out", "tasks", "--list"]).iter().skip(1).all(|row| row.ends_with(",made")));
    let printed = lines(dir.path(), &["sweep", "sweep.toml", "--out", "tasks"]);
    assert!(printed.iter().any(|line| line.contains(" 0 made")), "{printed:?}");
    assert!(whole == repeating(&dir.path().join("tasks")));
    // three machines without a shared folder
    for part in ["1", "2", "3"] {
        lines(dir.path(), &["sweep", "sweep.toml", "--out", part, "--shard", &format!("{part}/3"), "--quiet"]);
    }
    let missing = gradus(dir.path(), &["sweep", "sweep.toml", "--out", "merged", "--merge", "1", "3"]);
    let text = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert_eq!(missing.status.code(), Some(2), "{text}");
    assert!(text.starts_with("error: merged: expected all 48 runs, got 32 without ") && text.ends_with(" and others\n"), "{text}");
    assert!(!dir.path().join("merged").exists());
    let printed = lines(dir.path(), &["sweep", "sweep.toml", "--out", "merged", "--merge", "1", "2", "3"]);
    assert!(printed[0] == "48 runs copied" && printed.iter().any(|line| line.contains(" 0 made")), "{printed:?}");
    assert!(whole == repeating(&dir.path().join("merged")));
    // a result of another version
    let key = list[1].split(',').nth(4).unwrap();
    let path = dir.path().join("1/runs").join(format!("{key}.csv"));
    let other: String = read(&dir.path().join("1/runs"), &format!("{key}.csv")).replacen("sources ", "sources 0", 1);
    fs::write(&path, other).unwrap();
    let wrong = gradus(dir.path(), &["sweep", "sweep.toml", "--out", "again", "--merge", "1", "2", "3"]);
    let text = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(wrong.status.code() == Some(2) && text.lines().count() == 1 && text.contains("expected the result of this version"), "{text}");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Processes that share a folder, of which some are killed, make every run once, and the tables of one process.
#[test]
fn killed_processes_lose_nothing() {
    let dir = folder();
    fs::write(dir.path().join("sweep.toml"), SWEEP.replace("1024", "4096")).unwrap();
    lines(dir.path(), &["sweep", "sweep.toml", "--out", "whole", "--quiet"]);
    let start = || {
        let mut child = command(dir.path(), &["sweep", "sweep.toml", "--out", "out", "--jobs", "1", "--quiet"]);
        Killed(child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    for delay in [100, 200, 300] {
        let all = [start(), start()];
        thread::sleep(Duration::from_millis(delay));
        drop(all);
    }
    let claims = || {
        fs::read_dir(dir.path().join("out/runs")).unwrap().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name().to_string_lossy().into_owned();
            name.ends_with(".claim") || name.ends_with(".stale")
        })
    };
    let mut all = [start(), start(), start()];
    assert!(all.iter_mut().all(|child| child.0.wait().unwrap().success()));
    assert!(repeating(&dir.path().join("whole")) == repeating(&dir.path().join("out")));
    assert_eq!(claims().count(), 0);
}

#[test]
fn a_tuning_has_one_journal_and_tests_with_fresh_seeds() {
    let dir = folder();
    let printed = lines(dir.path(), &["tune", "tune.toml", "--out", "out"]);
    let out = dir.path().join("out");
    let journal = read(&out, "journal.csv");
    // 8 trials at the first rung, 4 at the second, 2 at the last
    assert_eq!(journal.lines().count(), 1 + 8 + 4 + 2, "{journal}");
    assert!(journal.starts_with("trial,rung,steps,seeds,score,learning_rate,ppo.clip\n1,1,0.25,1,"), "{journal}");
    assert!(printed.iter().any(|line| line.starts_with("  default: ")), "{printed:?}");
    // seeds of the test are others than those of the search
    let seeds: Vec<String> = read(&out, "fresh/results.csv").lines().skip(1).map(|row| row.split(',').nth(2).unwrap().to_owned()).collect();
    assert!(seeds.iter().all(|seed| ["10001", "10002", "10003"].contains(&seed.as_str())), "{seeds:?}");
    // the preset is one, and says where it is from
    let preset = read(&out, "presets/ppo/cartpole/tuned.toml");
    assert!(preset.contains("with 3 fresh seeds") && preset.contains("with seeds 1 to 2"), "{preset}");
    lines(
        dir.path(),
        &["train", "ppo", "cartpole", "--config", "out/presets/ppo/cartpole/tuned.toml", "--steps", "600", "--quiet", "--out", "x"],
    );
    let config = read(dir.path(), "x/config.toml");
    let clip = preset.lines().find(|line| line.starts_with("clip = ")).unwrap();
    assert!(config.lines().any(|line| line == clip), "{clip}: {config}");
    // interrupted, and by two processes: the same journal, byte for byte
    let start = || {
        let mut child = command(dir.path(), &["tune", "tune.toml", "--out", "shared", "--jobs", "1", "--quiet"]);
        Killed(child.stdout(Stdio::null()).spawn().unwrap())
    };
    let first = start();
    thread::sleep(Duration::from_millis(250));
    drop(first);
    let mut both = [start(), start()];
    assert!(both.iter_mut().all(|child| child.0.wait().unwrap().success()));
    assert!(repeating(&out) == repeating(&dir.path().join("shared")));
    // more trials continue the journal
    fs::write(dir.path().join("tune.toml"), TUNING.replace("trials = 8", "trials = 12")).unwrap();
    lines(dir.path(), &["tune", "tune.toml", "--out", "out", "--quiet"]);
    let longer = read(&out, "journal.csv");
    assert!(longer.starts_with(&journal) && longer.lines().count() == 1 + 12 + 6 + 3);
}
