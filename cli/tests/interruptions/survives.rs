//! What happens to files in a run's folder that are not the run's own, to files that are missing, and when the system refuses something. The
//! sweep of `scripts/faults.sh` tries every system call.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use gradus_testing::command::{contents, error_of};

fn run(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

fn gradus(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The exit code and the output of `gradus verify`.
fn verified(dir: &Path, arguments: &[&str]) -> (i32, String) {
    let output = run(dir, &[&["verify"], arguments].concat());
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

const DQN: [&str; 10] = ["train", "dqn", "cartpole", "--preset", "zoo", "--steps", "1500", "--quiet", "--set", "network.hidden=[8]"];

#[test]
fn files_of_others_are_kept() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let others = |folder: &Path| {
        for name in ["precious.safetensors", "0-5.safetensors", ".precious.safetensors.tmp-1"] {
            fs::write(folder.join(name), "mine").unwrap();
        }
    };
    let are_there = |folder: &Path| {
        for name in ["precious.safetensors", "0-5.safetensors", ".precious.safetensors.tmp-1"] {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), "mine", "{}", folder.join(name).display());
        }
    };
    // a replay buffer, also where the folder is a link to another one
    gradus(dir, &[&DQN[..], &["--out", "run"]].concat());
    fs::rename(dir.join("run/replay"), dir.join("shared")).unwrap();
    symlink(dir.join("shared"), dir.join("run/replay")).unwrap();
    others(&dir.join("shared"));
    gradus(dir, &["train", "--resume", "run", "--steps", "4k", "--checkpoint-every", "0", "--quiet"]);
    are_there(&dir.join("shared"));
    // the list, three files of others, and the only page of the last checkpoint
    assert_eq!(fs::read_dir(dir.join("shared")).unwrap().count(), 5, "old pages are removed");

    // the policies of a comparison
    let study = |agent: &str| {
        let text = format!(
            "environments = [\"cartpole\"]\nseeds = 1\nsteps = 300\nevaluations = 1\nevaluation_episodes = 2\n[[agents]]\nagent = \"{agent}\"\n"
        );
        fs::write(dir.join("study.toml"), text).unwrap();
        gradus(dir, &["compare", "study.toml", "--out", "out", "--quiet"]);
    };
    study("ppo");
    assert!(dir.join("out/policies/ppo-cartpole-1.safetensors").exists());
    others(&dir.join("out/policies"));
    study("a2c");
    are_there(&dir.join("out/policies"));
    assert!(dir.join("out/policies/a2c-cartpole-1.safetensors").exists() && !dir.join("out/policies/ppo-cartpole-1.safetensors").exists());

    // folders and files of other commands
    fs::create_dir(dir.join("bandit")).unwrap();
    fs::write(dir.join("bandit/.summary.csv.tmp-0123456789abcdef"), "half").unwrap();
    gradus(dir, &["bandit", "ucb=2", "--count", "5", "--steps", "20", "--out", "bandit"]);
    assert!(!dir.join("bandit/.summary.csv.tmp-0123456789abcdef").exists());
    fs::create_dir(dir.join("full")).unwrap();
    fs::write(dir.join("full/mine"), "mine").unwrap();
    let error = error_of(&run(dir, &["bandit", "ucb=2", "--count", "5", "--steps", "20", "--out", "full"]));
    assert_eq!(error, "full: expected a new folder, or one of `bandit`, got a folder with other files");
    fs::create_dir_all(dir.join(".own.new-0123456789abcdef/src")).unwrap();
    fs::write(dir.join(".own.new-0123456789abcdef/src/stale.rs"), "stale").unwrap();
    gradus(dir, &["new", "own", "--path", gradus_testing::root().to_str().unwrap()]);
    assert!(!contents(&dir.join("own")).iter().any(|(path, _)| path.ends_with("stale.rs") || path.ends_with(".lock")));
    assert!(!dir.join(".own.new-0123456789abcdef").exists());
}

/// As long as a lengthened run is not finished, it has no learning curve, which would be that of the shorter run.
#[test]
fn a_lengthened_run_loses_its_old_curve() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    gradus(dir, &["train", "ppo", "cartpole", "--steps", "2k", "--quiet", "--out", "run"]);
    let old = fs::read(dir.join("run/curve.svg")).unwrap();
    drop(gradus::Run::resume_until(dir.join("run"), 6000).unwrap());
    assert!(!dir.join("run/curve.svg").exists() && !dir.join("run/curve.png").exists() && !dir.join("run/policy.safetensors").exists());
    gradus(dir, &["train", "--resume", "run", "--quiet"]);
    assert!(dir.join("run/curve.png").exists() && fs::read(dir.join("run/curve.svg")).unwrap() != old);
}

#[test]
fn verify_notices_what_is_missing_and_lists_only_what_is_wrong() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    gradus(dir, &[&DQN[..], &["--out", "run"]].concat());
    let (code, said) = verified(dir, &["run"]);
    assert!(code == 0 && said.lines().count() == 1 && said.starts_with("run: ") && said.contains(" intact, 0 damaged"), "{said}");
    assert!(verified(dir, &["run", "--all"]).1.lines().count() > 5);

    // an agent that this program does not have: the settings are still those of the checkpoint, or they are not
    let settings = fs::read_to_string(dir.join("run/config.toml")).unwrap();
    fs::write(dir.join("run/config.toml"), settings.replacen("agent = \"dqn\"", "agent = \"dpn\"", 1)).unwrap();
    let (code, said) = verified(dir, &["run"]);
    assert!(code == 1 && said.contains("DAMAGED  run/config.toml: damaged: other settings than in state.safetensors"), "{said}");
    fs::write(dir.join("run/config.toml"), settings).unwrap();

    fs::rename(dir.join("run/state.safetensors"), dir.join("state")).unwrap();
    let (code, said) = verified(dir, &["run"]);
    let expected = "DAMAGED  run/state.safetensors: missing: expected the checkpoint of the run, got none";
    assert!(code == 1 && said.contains(expected), "{said}");
    fs::create_dir(dir.join("bare")).unwrap();
    fs::copy(dir.join("run/config.toml"), dir.join("bare/config.toml")).unwrap();
    let (code, said) = verified(dir, &["bare"]);
    assert!(code == 1 && said.contains("missing: expected a checkpoint or a policy, got none"), "{said}");
    // a policy alone is a whole folder
    gradus(dir, &["sft", "copy", "--steps", "2", "--batch", "4", "--quiet", "--out", "policy"]);
    assert_eq!(verified(dir, &["policy"]).0, 0);
}

/// A file that cannot be looked at is an error, and not a file that is not there.
#[test]
fn an_error_of_the_system_is_no_answer() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let text =
        "environments = [\"cartpole\"]\nseeds = 1\nsteps = 300\nevaluations = 1\nevaluation_episodes = 2\n[[agents]]\nagent = \"ppo\"\n";
    fs::write(dir.join("study.toml"), text).unwrap();
    gradus(dir, &["compare", "study.toml", "--out", "out", "--quiet"]);
    let policy =
        contents(&dir.join("out/runs")).into_iter().find(|(path, _)| path.extension().is_some_and(|e| e == "safetensors")).unwrap().0;
    fs::remove_file(&policy).unwrap();
    symlink(&policy, &policy).unwrap(); // a link to itself
    let error = error_of(&run(dir, &["compare", "study.toml", "--out", "out", "--quiet"]));
    assert!(error.contains("cannot find ") && error.contains(".safetensors"), "{error}");
}

/// The limit of a file's size (`ulimit -f`) sends a signal, which would end the process without a word.
#[test]
fn a_limit_of_file_sizes_is_an_error_like_others() {
    let folder = gradus_testing::tempdir().unwrap();
    let command = format!("ulimit -f 20; exec {} train ppo cartpole --steps 2k --quiet --out run", env!("CARGO_BIN_EXE_gradus"));
    let output = Command::new("sh").current_dir(folder.path()).args(["-c", &command]).output().unwrap();
    let error = error_of(&output);
    assert!(error.contains("state.safetensors: File too large"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

/// Names and files may contain control characters, and may be very long.
#[test]
fn messages_are_short_and_plain() {
    let folder = gradus_testing::tempdir().unwrap();
    let long = "x".repeat(3000);
    for name in ["\u{1b}[31mred\u{1b}[0m", &long] {
        let output = run(folder.path(), &["train", "ppo", name]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && !text.contains('\u{1b}') && text.len() < 700, "{text}");
    }
}

/// A run that cannot be resumed is left as it was: with its policy, its curves and its settings.
#[test]
fn a_refused_resume_changes_nothing() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    gradus(dir, &["train", "ppo", "cartpole", "--steps", "2k", "--quiet", "--out", "run"]);
    let metrics = dir.join("run/metrics.csv");
    let intact = fs::read_to_string(&metrics).unwrap();
    fs::write(&metrics, intact.replacen("\n1,", "\n2,", 1)).unwrap();
    let before = contents(dir);
    for more in [&["--steps", "20k"][..], &[]] {
        let error = error_of(&run(dir, &[&["train", "--resume", "run"], more].concat()));
        assert!(error.contains("metrics.csv: damaged"), "{error}");
        assert!(contents(dir) == before, "{more:?}");
    }
    fs::write(&metrics, intact).unwrap();
    fs::remove_file(dir.join("run/curve.png")).unwrap();
    fs::create_dir(dir.join("run/curve.png")).unwrap();
    let before = contents(dir);
    let error = error_of(&run(dir, &["train", "--resume", "run", "--steps", "20k"]));
    assert!(error.ends_with("run/curve.png: expected a file, got a folder") && contents(dir) == before, "{error}");
    // a finished run has a policy
    fs::remove_dir(dir.join("run/curve.png")).unwrap();
    fs::remove_file(dir.join("run/policy.safetensors")).unwrap();
    let (code, said) = verified(dir, &["run"]);
    assert!(code == 1 && said.contains("policy.safetensors: missing: expected the policy of the finished run"), "{said}");
    gradus(dir, &["train", "--resume", "run", "--quiet"]);
    assert_eq!(verified(dir, &["run"]).0, 0);
}

/// The policies that a comparison has published survive damage to its runs.
#[test]
fn published_policies_are_kept_and_verified() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let text =
        "environments = [\"cartpole\"]\nseeds = 2\nsteps = 300\nevaluations = 1\nevaluation_episodes = 2\n[[agents]]\nagent = \"ppo\"\n";
    fs::write(dir.join("study.toml"), text).unwrap();
    let compare = || gradus(dir, &["compare", "study.toml", "--out", "out"]);
    compare();
    let published = || contents(&dir.join("out/policies"));
    let before = published();
    let stored = || contents(&dir.join("out/runs")).into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "safetensors"));
    let (path, mut bytes) = stored().next().unwrap();
    fs::remove_file(&path).unwrap();
    assert!(compare().contains("2 kept") && published() == before, "a run without its policy");
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    assert!(compare().contains("made again: its stored policy is damaged") && published() == before);
    fs::write(&before[1].0, "damaged").unwrap();
    fs::remove_file(&before[2].0).unwrap();
    let (code, said) = verified(dir, &["out"]);
    assert!(code == 1 && said.matches("DAMAGED  out/policies/").count() == 2, "{said}");
}

/// A recording replaces an older one when it is whole.
#[test]
fn a_recording_appears_whole_or_not_at_all() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    gradus(dir, &["train", "ppo", "cartpole", "--steps", "2k", "--quiet", "--out", "run"]);
    gradus(dir, &["play", "run", "--record", "record.jsonl"]);
    let before = contents(dir);
    let command = format!("ulimit -f 1; exec {} play run --record record.jsonl --seed 2", env!("CARGO_BIN_EXE_gradus"));
    let output = Command::new("sh").current_dir(dir).args(["-c", &command]).output().unwrap();
    assert!(error_of(&output).contains("record.jsonl: File too large"), "{output:?}");
    assert!(contents(dir) == before, "the old record is kept, and nothing is left behind");
}
