//! Damaged files are noticed: by `gradus verify`, and by every command that reads them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn gradus(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).output().unwrap()
}

fn train(dir: &Path) {
    let out = gradus(&["train", "ppo", "cartpole", "--steps", "2k", "--quiet", "--out", dir.to_str().unwrap()]);
    assert!(out.status.success(), "{out:?}");
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Flips a bit in the middle of a file, and returns the file's old contents.
fn flip(path: &Path) -> Vec<u8> {
    let intact = fs::read(path).unwrap();
    let mut flipped = intact.clone();
    flipped[intact.len() / 2] ^= 1;
    fs::write(path, flipped).unwrap();
    intact
}

#[test]
fn every_damaged_file_of_a_run_is_named() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("run");
    train(&dir);
    let shown = dir.to_str().unwrap();
    let out = gradus(&["verify", shown]);
    assert!(out.status.success() && stdout(&out).ends_with("run: 7 intact, 0 damaged\n"), "{out:?}");

    let events = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let events = events.into_iter().find(|name| name.starts_with("events.out")).unwrap();
    let can_be_used = format!("evaluate it with `gradus eval {shown}`, or start a new run from it with `--set init={shown}`");
    for (name, problem) in [
        (
            "state.safetensors",
            format!("damaged: its SHA-256 is not the one that was stored with it; policy.safetensors is intact: {can_be_used}"),
        ),
        ("metrics.csv", "bytes have changed since the checkpoint; the run cannot be continued".into()),
        ("episodes.csv", "bytes have changed since the checkpoint".into()),
        ("timing.csv", "bytes have changed since the checkpoint".into()),
        (&*events, "bytes have changed since the checkpoint; delete it, and a new one is started".into()),
        (
            "policy.safetensors",
            format!("damaged: its SHA-256 is not the one that was stored with it; `gradus train --resume {shown}` writes it again"),
        ),
    ] {
        let intact = flip(&dir.join(name));
        let out = gradus(&["verify", shown]);
        assert_eq!(out.status.code(), Some(1), "{name}: {out:?}");
        let line = stdout(&out).lines().find(|line| line.starts_with("DAMAGED")).unwrap().to_owned();
        assert!(line.contains(&format!("{name}: ")) && line.contains(&problem), "{line}");
        // the command that reads the file refuses it in the same words, and changes nothing
        let out = if name == "policy.safetensors" { gradus(&["eval", shown]) } else { gradus(&["train", "--resume", shown]) };
        assert_eq!((out.status.code(), stderr(&out).lines().count()), (Some(2), 1), "{name}: {out:?}");
        assert!(stderr(&out).contains(&problem), "{name}: {out:?}");
        fs::write(dir.join(name), intact).unwrap();
    }
    // what the advice promises
    let policy = flip(&dir.join("policy.safetensors"));
    assert!(gradus(&["train", "--resume", shown, "--quiet"]).status.success());
    assert_eq!(fs::read(dir.join("policy.safetensors")).unwrap(), policy);
    flip(&dir.join("state.safetensors"));
    assert!(gradus(&["eval", shown, "--episodes", "1"]).status.success());
    flip(&dir.join(&events));
    fs::remove_file(dir.join("state.safetensors")).unwrap();
    let out = gradus(&["verify", shown]);
    assert!(out.status.code() == Some(1) && stdout(&out).contains("state.safetensors: missing"), "the policy is intact: {out:?}");
}

#[test]
fn a_policy_folder_and_a_file_are_verified() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path().join("warm");
    let shown = dir.to_str().unwrap();
    assert!(gradus(&["sft", "copy", "--steps", "2", "--batch", "4", "--quiet", "--out", shown]).status.success());
    assert!(stdout(&gradus(&["verify", shown])).ends_with("warm: 3 intact, 0 damaged\n"));
    flip(&dir.join("metrics.csv"));
    let out = gradus(&["verify", shown]);
    assert!(
        out.status.code() == Some(1) && stdout(&out).contains("metrics.csv: damaged: its SHA-256 is not the one in policy.safetensors")
    );
    let file = dir.join("policy.safetensors");
    assert!(gradus(&["verify", file.to_str().unwrap()]).status.success());
    flip(&file);
    assert_eq!(gradus(&["verify", file.to_str().unwrap()]).status.code(), Some(1));
    let out = gradus(&["verify", folder.path().to_str().unwrap()]);
    assert!(out.status.code() == Some(2) && stderr(&out).contains("expected a run folder (with config.toml) or a comparison"), "{out:?}");
}

#[test]
fn a_comparison_is_verified_and_damaged_runs_are_made_again() {
    let folder = gradus_testing::tempdir().unwrap();
    let (file, dir) = (folder.path().join("study.toml"), folder.path().join("out"));
    fs::write(&file, "environments = [\"cartpole\"]\nseeds = 2\nsteps = 600\nevaluations = 1\n[[agents]]\nagent = \"ppo\"\n").unwrap();
    let (file, shown) = (file.to_str().unwrap(), dir.to_str().unwrap());
    assert!(gradus(&["compare", file, "--out", shown]).status.success());
    let out = gradus(&["verify", shown]);
    assert!(out.status.success() && stdout(&out).ends_with("out: 12 intact, 0 damaged\n"), "{out:?}");
    let results = fs::read(dir.join("results.csv")).unwrap();
    flip(&dir.join("results.csv"));
    let run = fs::read_dir(dir.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let run = run.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "csv")).unwrap();
    flip(&run);
    let out = gradus(&["verify", shown]);
    assert!(out.status.code() == Some(1) && stdout(&out).ends_with("out: 10 intact, 2 damaged\n"), "{out:?}");
    let out = gradus(&["compare", file, "--out", shown]);
    assert!(stdout(&out).contains("made again: its stored result is damaged"), "{out:?}");
    assert_eq!(fs::read(dir.join("results.csv")).unwrap(), results);
    assert!(gradus(&["verify", shown]).status.success());
}
