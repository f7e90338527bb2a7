//! Folders that are taken, in use or not writable are named in the error and not changed. On a full disk, no checkpoint is lost.

use std::fs;
use std::process::Command;

use gradus::Run;

use super::{gradus, short_run};
use gradus_testing::command::{contents, error_of};

#[test]
fn a_folder_that_holds_another_run_or_other_files_is_left_alone() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    let before = contents(dir.path());
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "run"]));
    assert!(error.starts_with("run: holds another run; continue it with `gradus train --resume run`"), "{error}");
    assert!(contents(dir.path()) == before);

    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/thesis.txt"), "precious").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "mine"]));
    assert_eq!(error, "mine: expected a folder that is new or empty, got a folder with other files");
    assert_eq!(fs::read(dir.path().join("mine/thesis.txt")).unwrap(), b"precious");
}

#[test]
fn runs_that_start_together_get_different_folders() {
    let dir = gradus_testing::tempdir().unwrap();
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
fn a_folder_in_use_is_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    let _held = Run::resume(dir.path().join("run")).unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "--resume", "run"]));
    assert_eq!(error, "run: another process is training in this folder");
}

#[test]
fn an_output_folder_that_cannot_be_written_to_is_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    // permissions do not stop a test that runs as root; /proc and a file in place of the folder do
    fs::write(dir.path().join("file"), "in the way").unwrap();
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "file/run"]));
    assert!(error.starts_with("cannot create file"), "{error}");
    let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "file"]));
    assert_eq!(error, "file: expected a folder that is new or empty, got a file");
    if cfg!(target_os = "linux") {
        let error = error_of(&gradus(dir.path(), &["train", "ppo", "cartpole", "--out", "/proc/run"]));
        assert!(error.starts_with("cannot create /proc/run: "), "{error}");
    }
    assert_eq!(contents(dir.path()), [(dir.path().join("file"), b"in the way".to_vec())]);
}

#[cfg(unix)]
#[test]
fn a_full_disk_loses_nothing() {
    let dir = gradus_testing::tempdir().unwrap();
    // no file may grow beyond 160 KiB; events.out.tfevents reaches this limit during the run
    let limited = format!(
        "trap '' XFSZ; ulimit -f 320; exec {} train ppo cartpole --preset cleanrl --steps 300k --checkpoint-every 0.01 --out run --quiet",
        env!("CARGO_BIN_EXE_gradus")
    );
    let output = Command::new("sh").current_dir(dir.path()).args(["-c", &limited]).output().unwrap();
    let error = error_of(&output);
    assert!(error.starts_with("cannot write run/") && error.contains("File too large"), "{error}");
    // without the limit, the run continues from the last checkpoint
    let output = gradus(dir.path(), &["train", "--resume", "run"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains(", from step "), "the run started again: {text}");
}
