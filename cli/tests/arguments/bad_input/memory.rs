//! Settings that need more memory than there is are refused before anything is allocated. The shell's `ulimit -v` limits the memory.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::{short_run, short_text_run};
use gradus_testing::command::error_of;

/// Runs `gradus` with at most this many KiB of address space.
fn limited(dir: &Path, kilobytes: u64, arguments: &str) -> Output {
    let line = format!("ulimit -v {kilobytes}; exec '{}' {arguments}", env!("CARGO_BIN_EXE_gradus"));
    Command::new("bash").args(["-c", &line]).current_dir(dir).output().unwrap()
}

#[test]
fn numbers_that_are_too_large_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    fs::rename(dir.path().join("run"), dir.path().join("numbers")).unwrap();
    short_text_run(dir.path());
    let comparison = "environments = [\"cartpole\"]\nseeds = 64\nsteps = 100\n[[agents]]\nagent = \"ppo\"\n";
    let settings = "settings = { envs = 65536, \"ppo.rollout_steps\" = 32, \"ppo.minibatch_size\" = 65536 }\n";
    fs::write(dir.path().join("c.toml"), format!("{comparison}{settings}")).unwrap();
    let at_once = "--set ppo.rollout_steps=8 --set ppo.minibatch_size=65536";
    let cases = [
        (&*format!("train ppo cartpole --envs 16777216 {at_once}"), "envs: expected at most "),
        (&format!("bench train ppo cartpole --set envs=16777216 {at_once}"), "envs: expected at most "),
        ("train ppo cartpole --envs 1 --set ppo.rollout_steps=134217728", "ppo.rollout_steps: expected at most "),
        ("train ppo taxi --envs 200000", "envs: expected at most "),
        ("train a2c cartpole --envs 200000 --set wrappers.frame_stack=1024", "envs: expected at most "),
        ("train grpo target-sum --envs 16777216", "envs: expected at most "),
        ("train ppo cartpole --set network.hidden=[65536,4000]", "network: expected one that fits into "),
        ("train grpo target-sum --set transformer.width=8192 --set transformer.layers=64", "transformer: expected one that fits into "),
        ("train ppo sort --set reward_model.pairs=16777216", "reward_model.pairs: expected at most "),
        ("reward-model sort --pairs 16777216 --completions 64", "pairs: expected at most "),
        ("bench text --prompts 4096 --group 4096", "envs: expected at most "),
        ("bench text --layers 64 --width 8192 --feed-forward-width 32768", "transformer: expected one that fits into "),
        ("eval numbers --episodes 16777216", "episodes: expected at most "),
        ("inspect numbers --groups 65536 --group-size 65536", "--groups: expected at most "),
        ("inspect run --groups 65536 --group-size 65536", "--groups: expected at most "),
        ("compare c.toml --out c --jobs 64", "--jobs: expected at most "),
    ];
    for (arguments, expected) in cases {
        let error = error_of(&limited(dir.path(), 3_000_000, arguments));
        assert!(error.starts_with(expected) && error.contains(" needs "), "{arguments}: {error}");
    }
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).filter(|name| name == "runs").collect();
    assert!(left.is_empty(), "a training that is refused leaves no folder");
}

/// Returns the bytes in `text` after the word `needs`.
fn needed(text: &str) -> f64 {
    let (_, needed) = text.split_once("needs ").unwrap_or_else(|| panic!("expected an estimate, got {text}"));
    let (number, unit) = needed.split_once(' ').unwrap();
    let unit = ["MiB", "GiB"].iter().position(|known| *known == unit).unwrap();
    number.parse::<f64>().unwrap() * [f64::from(1 << 20), f64::from(1 << 30)][unit]
}

/// An estimate may not exceed what a training really needs, or Gradus would refuse trainings that work. The system tells the peak of the
/// resident memory as long as the process exists.
#[test]
fn an_estimate_is_a_little_below_the_measured_memory() {
    let dir = gradus_testing::tempdir().unwrap();
    let common = "--steps 1 --quiet --set ppo.epochs=1 --set ppo.minibatch_size=8192 --out run";
    let cases = [
        format!("train ppo cartpole --envs 60000 --set ppo.rollout_steps=16 {common}"),
        format!("train ppo taxi --envs 3000 --set ppo.rollout_steps=16 {common}"),
        format!("train ppo cartpole --envs 256 --set network.hidden=[1000,1000] --set network.orthogonal=false {common}"),
        "train grpo target-sum --steps 1 --quiet --envs 1024 --set transformer.layers=8 --set transformer.width=128 --out run".to_string(),
    ];
    for arguments in cases {
        // the address space suffices for one environment, but not for all
        let error = error_of(&limited(dir.path(), 120_000, &arguments));
        assert!(error.starts_with("envs: "), "{arguments}: {error}");
        let estimate = needed(&error);
        let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
        let mut child = command.current_dir(dir.path()).args(arguments.split(' ')).stdout(Stdio::null()).spawn().unwrap();
        let (status, mut peak) = (format!("/proc/{}/status", child.id()), 0.0);
        while child.try_wait().unwrap().is_none() {
            let status = fs::read_to_string(&status).unwrap_or_default();
            let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            peak = line.map_or(peak, |line| 1024.0 * line.trim().trim_end_matches(" kB").parse::<f64>().unwrap());
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let share = estimate / peak;
        assert!((0.55..1.05).contains(&share), "{arguments}: estimated {estimate}, measured {peak}, {share}");
        fs::remove_dir_all(dir.path().join("run")).unwrap();
    }
}
