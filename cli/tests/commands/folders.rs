//! Folders of runs, settings from elsewhere, and folders that came from somebody else.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn command(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
    command.current_dir(dir).args(arguments.split(' '));
    command
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns standard output and standard error of a command that succeeds.
fn said(dir: &Path, arguments: &str) -> (String, String) {
    let output = command(dir, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments}: {:?}", texts(&output));
    texts(&output)
}

#[test]
fn an_evaluation_goes_on_after_a_run_that_cannot_be_read() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    for name in ["a", "b", "c"] {
        said(dir, &format!("train ppo cartpole --steps 2k --quiet --out all/{name}"));
    }
    fs::write(dir.join("all/b/policy.safetensors"), "damaged").unwrap();
    let output = command(dir, "eval all --episodes 2").output().unwrap();
    let (said, complained) = texts(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("all/a: mean ") && said.contains("all/c: mean ") && !said.contains("all/b"), "{said}");
    assert!(complained.starts_with("error: all/b/policy.safetensors: ") && complained.lines().count() == 1, "{complained}");
    let whole = texts(&command(dir, "eval all --episodes 2 --json").output().unwrap()).0;
    assert!(whole.starts_with("{\"differences\":") || whole.starts_with("{\"evaluations\":"), "{whole}");
    assert!(texts(&command(dir, "eval all/a --episodes 2 --json").output().unwrap()).0.starts_with("{\"mode\":"));
}

#[test]
fn a_reward_model_is_no_policy() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    said(dir, "train grpo preference --steps 300 --set envs=16 --quiet --out all/a");
    said(dir, "reward-model preference --pairs 200 --held-out 50 --quiet --out all/model");
    assert!(!said(dir, "eval all --episodes 5").0.contains("model"));
    for arguments in ["eval all/model --episodes 5", "play all/model", "export all/model --hub hub"] {
        let output = command(dir, arguments).output().unwrap();
        assert_eq!(texts(&output).1, "error: all/model: expected a policy that acts, got a reward model\n", "{arguments}");
    }
}

#[test]
fn sampled_episodes_can_be_watched() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    said(dir, "train ppo cartpole --steps 100 --quiet --out run");
    let greedy: Vec<String> = (1..6).map(|seed| said(dir, &format!("play run --seed {seed}")).0).collect();
    let sampled: Vec<String> = (1..6).map(|seed| said(dir, &format!("play run --sampled --seed {seed}")).0).collect();
    assert_ne!(greedy, sampled);
    assert_eq!(sampled[0], said(dir, "play run --sampled --seed 1").0);
}

#[cfg(unix)]
#[test]
fn settings_come_through_a_pipe() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    fs::write(dir.join("c.toml"), "agent = \"ppo\"\nenvironment = \"cartpole\"\nsteps = 2000\n").unwrap();
    let line = format!("cat c.toml | {} train --config /dev/stdin --quiet --out run", env!("CARGO_BIN_EXE_gradus"));
    assert!(Command::new("sh").args(["-c", &line]).current_dir(dir).status().unwrap().success());
    assert!(fs::read_to_string(dir.join("run/config.toml")).unwrap().contains("\nsteps = 2000\n"));
}

#[test]
fn the_file_of_an_environment_is_beside_that_of_the_settings() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir(dir.join("other")).unwrap();
    fs::write(dir.join("other/m.txt"), "step = -1\nS..\n.#.\n..G\n").unwrap();
    fs::write(dir.join("other/c.toml"), "agent = \"q-learning\"\nenvironment = \"grid:m.txt\"\nsteps = 500\n").unwrap();
    said(dir, "train --config other/c.toml --quiet --out run");
}

#[test]
fn rules_that_do_not_suit_the_values_are_named() {
    let folder = gradus_testing::tempdir().unwrap();
    let warned = |arguments: &str| said(folder.path(), &format!("bandit {arguments} --count 5 --steps 20")).1;
    let far = warned("thompson optimistic=5 ucb=2 --values 10,11");
    let lines: Vec<&str> = far.lines().collect();
    assert!(
        lines.len() == 2 && lines[0].starts_with("warning: thompson expects values") && lines[1].contains("optimistic=5 begins with 5"),
        "{far}"
    );
    assert_eq!(warned("thompson optimistic=5 --values 0.5,1"), "");
}

/// To look at a policy of somebody else runs no program of theirs.
#[test]
fn rewards_that_came_with_a_folder_do_not_run() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let mark = dir.join("ran");
    let source =
        format!("open({:?}, 'w').close()\ndef one(completions):\n    return [1.0 for _ in completions]\n", mark.display().to_string());
    fs::write(dir.join("own.py"), source).unwrap();
    said(dir, "train grpo target-sum --steps 100 --set envs=16 --set text.rewards=python:own.py --quiet --out run");
    said(dir, "export run --hub hub");
    let ran = |arguments: &str, trust: Option<&str>| {
        let _ = fs::remove_file(&mark);
        let mut command = command(dir, arguments);
        trust.into_iter().for_each(|value| _ = command.env("GRADUS_TRUST", value));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{arguments}: {:?}", texts(&output));
        (mark.exists(), texts(&output).1.contains("warning: rewards are those of the task alone"))
    };
    assert_eq!(ran("eval run --episodes 2", None), (true, false), "it is one's own");
    for arguments in ["eval hub --episodes 2", "play hub", "sample hub --prompt 3> -n 1"] {
        assert_eq!(ran(arguments, None), (false, true), "{arguments}");
        assert_eq!(ran(arguments, Some("no")), (false, true), "{arguments}");
    }
    assert_eq!(ran("eval hub --episodes 2", Some("yes")), (true, false));
}
