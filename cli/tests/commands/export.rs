//! `gradus export --hub`. `scripts/hub_check.py` reads the model card with Hugging Face's package.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn gradus(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn an_exported_policy_has_a_card_with_its_results() {
    let dir = gradus_testing::tempdir().unwrap();
    assert!(gradus(dir.path(), &["train", "ppo", "cartpole", "--steps", "4k", "--out", "run", "--quiet"]).status.success());
    let run = names(&dir.path().join("run"));
    let exported = gradus(dir.path(), &["export", "run", "--hub", "new/hub", "--episodes", "7", "--name", "mine"]);
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let hub = dir.path().join("new/hub");
    let files = ["README.md", "config.toml", "curve.png", "gradus_policy.py", "policy.safetensors", "replay.gif", "results.json"];
    assert_eq!((names(&hub), names(&dir.path().join("run"))), (files.map(String::from).into(), run), "the run folder is only read");
    // another command evaluates the same episodes, with the policy of the new folder
    let evaluated = gradus(dir.path(), &["eval", "new/hub", "--episodes", "7", "--json"]);
    let results = String::from_utf8(evaluated.stdout).unwrap();
    assert_eq!(fs::read_to_string(hub.join("results.json")).unwrap(), results);
    let number = |name: &str| -> f64 {
        let rest = results.split_once(&format!("\"{name}\":")).unwrap().1;
        rest.split([',', '}']).next().unwrap().parse().unwrap()
    };
    let card = fs::read_to_string(hub.join("README.md")).unwrap();
    for part in [
        &format!("value: {:.2} +/- {:.2}\n", number("mean"), number("std")),
        "- name: \"mine\"\n",
        "trained with the agent `ppo` for 4096 environment steps, with seed 1.",
        "The most probable actions in 7 episodes",
        "](replay.gif)",
        "](curve.png)",
        "\nagent = \"ppo\"\n",
    ] {
        assert!(card.contains(part), "expected {part}, got {card}");
    }
}

#[test]
fn the_card_of_a_policy_with_a_memory_says_how_it_is_kept() {
    let dir = gradus_testing::tempdir().unwrap();
    assert!(gradus(dir.path(), &["train", "ppo", "cartpole-masked", "--steps", "1k", "--out", "run", "--quiet"]).status.success());
    assert!(gradus(dir.path(), &["export", "run", "--hub", "hub", "--episodes", "2"]).status.success());
    let card = fs::read_to_string(dir.path().join("hub/README.md")).unwrap();
    assert!(card.contains("policy.predict_with(&observation, &mut memory, None, gradus::Mode::Greedy)?"), "{card}");
    assert!(card.contains("action = policy.act(observation, memory=memory)") && !card.contains(".act(observation)"), "{card}");
}

#[test]
fn what_cannot_be_exported_leaves_nothing_behind() {
    let dir = gradus_testing::tempdir().unwrap();
    assert!(gradus(dir.path(), &["train", "ppo", "cartpole", "--steps", "1k", "--out", "run", "--quiet"]).status.success());
    fs::write(dir.path().join("file"), "").unwrap();
    let before = names(dir.path());
    for (arguments, expected) in [
        (vec!["nowhere", "--hub", "hub"], "error: nowhere: expected a run folder, got none: config.toml is missing"),
        (vec!["file", "--hub", "hub"], "error: file: expected a run folder or a policy file (.safetensors), got neither"),
        (vec!["run", "--hub", "run"], "error: run: expected a folder that is new or empty, got a folder with other files"),
        (vec!["run", "--hub", "file"], "error: file: expected a folder that is new or empty, got a file"),
        (vec!["run", "--hub", "hub", "--episodes", "0"], "error: --episodes: expected a whole number from 1 up, got 0"),
        (vec!["run"], "error: the following required arguments were not provided: --hub <FOLDER>"),
    ] {
        let output = gradus(dir.path(), &[vec!["export"], arguments].concat());
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).trim_end()), (Some(2), expected));
        assert_eq!(names(dir.path()), before);
    }
}
