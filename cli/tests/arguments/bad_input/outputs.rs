//! No command panics because its output cannot be written, and no command waits for something in a folder that is not a file.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::{gradus, short_run};
use gradus_testing::command::error_of;

/// Runs `gradus` in a shell, which redirects its output.
fn in_shell(dir: &Path, arguments: &str, redirection: &str) -> Output {
    let line = format!("'{}' {arguments} {redirection}", env!("CARGO_BIN_EXE_gradus"));
    Command::new("bash").args(["-c", &format!("set -o pipefail; {line}")]).current_dir(dir).output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_no_panic() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    // one step of 8 environments ends no episode, so `train` also prints a warning
    let train = "train ppo cartpole --steps 8 --set ppo.rollout_steps=1 --set ppo.minibatch_size=8 --out";
    let valid = ["--help", "--version", "list", "eval run --episodes 1", "play run", "plot run", &format!("{train} a")];
    let invalid = ["", "nothing", "eval nowhere", "train ppo nothing", "eval run --episodes 0"];
    for (arguments, code) in valid.map(|arguments| (arguments, 0)).into_iter().chain(invalid.map(|arguments| (arguments, 2))) {
        for redirection in ["2>/dev/full", "2>&-", ">&- 2>&-", "| head -0", "2>&1 | head -0"] {
            let output = in_shell(dir.path(), arguments, redirection);
            assert_eq!(output.status.code(), Some(code), "{arguments} {redirection}");
            let _ = fs::remove_dir_all(dir.path().join("a"));
        }
        // the error is printed if it can be
        assert_eq!(in_shell(dir.path(), arguments, ">/dev/full 2>/dev/full").status.code(), Some(2), "{arguments}");
        let _ = fs::remove_dir_all(dir.path().join("a"));
        if code == 0 {
            let error = error_of(&in_shell(dir.path(), arguments, ">/dev/full"));
            assert_eq!(error, "cannot write to standard output: No space left on device (os error 28)", "{arguments}");
            let _ = fs::remove_dir_all(dir.path().join("a"));
        }
    }
}

/// Runs `gradus`, which must end within seconds.
fn ends(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    let mut child = command.current_dir(dir).args(arguments).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(30) {
            child.kill().unwrap();
            panic!("{arguments:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_not_a_file_is_named() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    let run = dir.path().join("run");
    let resume: &[&str] = &["train", "--resume", "run"];
    let eval: &[&str] = &["eval", "run"];
    let cases: [(&str, &[&str]); 8] = [
        ("config.toml", eval),
        ("config.toml", resume),
        ("policy.safetensors", eval),
        ("state.safetensors", resume),
        ("metrics.csv", resume),
        ("episodes.csv", &["plot", "run"]),
        ("metrics.csv", &["plot", "run", "--metric", "train/loss"]),
        (".lock", resume),
    ];
    for (name, arguments) in cases {
        let path = run.join(name);
        let original = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let expected = |got: &str| format!("run/{name}: expected a file, got {got}");
        // not every machine has the command
        if Command::new("mkfifo").arg(&path).status().is_ok_and(|status| status.success()) {
            assert_eq!(error_of(&ends(dir.path(), arguments)), expected("a pipe, a socket or a device"), "{arguments:?}");
            fs::remove_file(&path).unwrap();
        }
        fs::create_dir(&path).unwrap();
        assert_eq!(error_of(&ends(dir.path(), arguments)), expected("a folder"), "{arguments:?}");
        fs::remove_dir(&path).unwrap();
        symlink("/dev/zero", &path).unwrap();
        assert_eq!(error_of(&ends(dir.path(), arguments)), expected("a pipe, a socket or a device"), "{arguments:?}");
        fs::remove_file(&path).unwrap();
        fs::write(&path, original).unwrap();
    }
    assert!(gradus(dir.path(), resume).status.success(), "the run is as it was");
}

#[test]
fn a_pipe_that_the_user_names_is_read() {
    let dir = gradus_testing::tempdir().unwrap();
    let train = "train ppo cartpole --steps 256 --quiet --out";
    let piped = in_shell(dir.path(), &format!("{train} a --config <(echo 'ppo.epochs = 2')"), "");
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    assert!(fs::read_to_string(dir.path().join("a/config.toml")).unwrap().contains("\nepochs = 2\n"));
    let stdin = in_shell(dir.path(), &format!("{train} b --config /dev/stdin"), "<<< 'ppo.epochs = 3'");
    assert!(stdin.status.success(), "{}", String::from_utf8_lossy(&stdin.stderr));
    assert!(fs::read_to_string(dir.path().join("b/config.toml")).unwrap().contains("\nepochs = 3\n"));
}

/// The file has a size, but no blocks on the disk.
#[test]
#[cfg(target_os = "linux")]
fn a_file_larger_than_the_memory_is_refused_before_it_is_read() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    let file = fs::OpenOptions::new().write(true).open(dir.path().join("run/policy.safetensors")).unwrap();
    if file.set_len(1 << 42).is_err() {
        return; // this file system has no files of 4 TiB
    }
    let error = error_of(&ends(dir.path(), &["eval", "run"]));
    assert!(error.starts_with("run/policy.safetensors: expected at most "), "{error}");
    assert!(error.ends_with(", the available memory, got 4.0 TiB"), "{error}");
}
