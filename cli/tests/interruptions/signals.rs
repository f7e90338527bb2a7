//! SIGINT, SIGTERM and SIGHUP stop a command so that it can continue later with the same results. A second signal ends it at once.
#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running command. It is killed when the value is dropped.
struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    /// Starts the command in `dir` and waits for its first line.
    fn start(mut command: Command, dir: &Path) -> (Self, String) {
        let mut running = Self::start_silent(&mut command, dir);
        let mut line = String::new();
        running.output.read_line(&mut line).unwrap();
        (running, line)
    }

    fn start_silent(command: &mut Command, dir: &Path) -> Self {
        let mut child = command.current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    /// Sends a signal, such as `TERM`.
    fn send(&self, signal: &str) {
        // the shell's own `kill`, because not every machine has the command
        let kill = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit code, if no signal ended the command, and standard error.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut error = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        (self.child.wait().unwrap().code(), error)
    }
}

fn gradus(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.args(arguments);
    command
}

fn sleep(milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
}

/// The signals to test, with their exit codes. A shell starts background commands with SIGINT ignored; the test and its commands then
/// inherit this.
fn signals() -> Vec<(&'static str, i32)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    let ignores = |number: u32| bits.unwrap_or(0) >> (number - 1) & 1 == 1;
    let mut signals = vec![("TERM", 143)];
    signals.extend((!ignores(2)).then_some(("INT", 130)));
    signals.extend((cfg!(target_os = "linux") && !ignores(1)).then_some(("HUP", 129)));
    signals
}

/// Only the signal and the end of the run write a checkpoint, so the run continues from the step that the message names.
#[test]
fn a_signal_stops_a_training_which_resumes_to_the_same_bytes() {
    let folder = gradus_testing::tempdir().unwrap();
    let train = ["train", "ppo", "cartpole", "--preset", "cleanrl", "--seed", "5", "--steps", "300k", "--checkpoint-every", "1000"];
    let started = |out| gradus(&[&train[..], &["--out", out]].concat());
    assert!(started("whole").current_dir(folder.path()).output().unwrap().status.success());
    let mut from = String::new();
    for (signal, code) in signals() {
        let command = if from.is_empty() { started("run") } else { gradus(&["train", "--resume", "run", "--checkpoint-every", "1000"]) };
        let (mut running, line) = Running::start(command, folder.path());
        assert_eq!(line, format!("ppo on cartpole, 300032 steps, seed 5{from}, in run\n"));
        sleep(100);
        running.send(signal);
        let (got, error) = running.end();
        let step = error.strip_prefix("stopped at step ").and_then(|rest| rest.split_once(' ')).map(|(step, _)| step.to_owned());
        let step = step.unwrap_or_else(|| panic!("SIG{signal}: expected the step, got {error}"));
        let expected = format!("stopped at step {step} of 300032; continue with: gradus train --resume run\n");
        assert_eq!((got, error), (Some(code), expected), "SIG{signal}");
        assert!(!folder.path().join("run/policy.safetensors").exists(), "the run was already finished");
        from = format!(", from step {step}");
    }
    assert!(gradus(&["train", "--resume", "run"]).current_dir(folder.path()).output().unwrap().status.success());
    for name in ["metrics.csv", "episodes.csv", "policy.safetensors", "curve.svg"] {
        let [expected, got] = ["whole", "run"].map(|run| fs::read(folder.path().join(run).join(name)).unwrap());
        assert!(expected == got, "{name} differs from an uninterrupted run");
    }
}

/// The update would take hours.
#[test]
fn a_second_signal_ends_a_training_at_once() {
    let folder = gradus_testing::tempdir().unwrap();
    let settings = ["--set", "ppo.epochs=1000000", "--steps", "1m", "--out", "run"];
    let (mut running, _) = Running::start(gradus(&[&["train", "ppo", "cartpole"], &settings[..]].concat()), folder.path());
    running.send("TERM");
    sleep(300);
    assert!(running.child.try_wait().unwrap().is_none(), "expected the update to go on after the first signal");
    running.send("TERM");
    assert_eq!(running.end(), (Some(143), String::new()));
    assert!(folder.path().join("run/state.safetensors").exists(), "the checkpoint before the update is kept");
}

#[test]
fn a_comparison_that_was_stopped_continues_to_the_same_bytes() {
    let folder = gradus_testing::tempdir().unwrap();
    let file = "environments = [\"cartpole\"]\nseeds = 3\nsteps = 100000\n[[agents]]\nagent = \"ppo\"\npreset = \"cleanrl\"\n";
    fs::write(folder.path().join("study.toml"), file).unwrap();
    let compare = |out| gradus(&["compare", "study.toml", "--jobs", "2", "--quiet", "--out", out]);
    assert!(compare("whole").current_dir(folder.path()).output().unwrap().status.success());
    let mut running = Running::start_silent(&mut compare("stopped"), folder.path());
    let runs = folder.path().join("stopped/runs");
    while !runs.exists() {
        sleep(1);
    }
    sleep(200);
    running.send("TERM");
    let (code, error) = running.end();
    let rest = error.strip_prefix("stopped after ").and_then(|rest| rest.strip_suffix(" --jobs 2 --quiet --out stopped\n"));
    let finished = rest.and_then(|rest| rest.strip_suffix(" of 3 runs; continue with: gradus compare study.toml"));
    assert!(code == Some(143) && ["0", "1", "2"].map(Some).contains(&finished), "{code:?}, {error}");
    let checkpoints = fs::read_dir(&runs).unwrap().filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        path.extension().is_some_and(|ending| ending == "state")
    });
    assert!(checkpoints.count() > 0, "expected a checkpoint of each run that was stopped");
    assert!(!folder.path().join("stopped/results.csv").exists());
    assert!(compare("stopped").current_dir(folder.path()).output().unwrap().status.success());
    for name in ["results.csv", "summary.csv", "sample_efficiency.svg"] {
        let [expected, got] = ["whole", "stopped"].map(|out| fs::read(folder.path().join(out).join(name)).unwrap());
        assert!(expected == got, "{name} differs from an uninterrupted comparison");
    }
}

#[test]
fn commands_without_checkpoints_write_nothing() {
    let folder = gradus_testing::tempdir().unwrap();
    let sft: &[&str] = &["sft", "addition", "--steps", "1000000", "--evaluate-every", "1", "--out", "out"];
    let growth: &[&str] = &["bench", "growth", "--to", "."];
    for (arguments, expected) in [(sft, "stopped before the end; no result was written\n"), (growth, "; no result was written\n")] {
        let (mut running, _) = Running::start(gradus(arguments), folder.path());
        running.send("TERM");
        let (code, error) = running.end();
        assert!(code == Some(143) && error.starts_with("stopped ") && error.ends_with(expected), "{arguments:?}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments:?}");
    }
}

/// As `nohup` does.
#[cfg(target_os = "linux")]
#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = gradus_testing::tempdir().unwrap();
    let mut command = Command::new("sh");
    let script = "trap '' HUP; exec \"$0\" train ppo cartpole --preset cleanrl --steps 60k --out run";
    command.args(["-c", script, env!("CARGO_BIN_EXE_gradus")]);
    let (mut running, _) = Running::start(command, folder.path());
    running.send("HUP");
    std::io::copy(&mut running.output, &mut std::io::sink()).unwrap();
    assert_eq!(running.end(), (Some(0), String::new()));
}

/// A scheduler sends SIGTERM once and kills some seconds later. The update would take hours.
#[test]
fn a_signal_other_than_ctrl_c_is_not_ignored_for_long() {
    let folder = gradus_testing::tempdir().unwrap();
    let settings = ["--set", "ppo.epochs=1000000", "--steps", "1m", "--out", "run"];
    let (mut running, _) = Running::start(gradus(&[&["train", "ppo", "cartpole"], &settings[..]].concat()), folder.path());
    running.send("TERM");
    let (code, error) = running.end();
    let lines: Vec<&str> = error.lines().collect();
    let expected = "stopped within an iteration; continue from the last checkpoint with: gradus train --resume run";
    assert!(code == Some(143) && lines.last() == Some(&expected), "{code:?}, {error}");
}
