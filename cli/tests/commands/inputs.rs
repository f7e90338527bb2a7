//! Files that a run reads from outside are known by their contents, and found from any folder.

use std::fs;
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

fn error(dir: &Path, arguments: &[&str]) -> String {
    error_of(&run(dir, arguments))
}

const MAZE: &str = "step = -1\nS..\n.#.\n..G\n";
const WALLED: &str = "step = -1\nS..\n##.\n..G\n";

#[test]
fn a_map_is_known_by_its_contents() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir_all(dir.join("maps")).unwrap();
    fs::create_dir_all(dir.join("elsewhere")).unwrap();
    let map = dir.join("maps/maze.txt");
    fs::write(&map, MAZE).unwrap();
    gradus(dir, &["train", "q-learning", "grid:maps/maze.txt", "--steps", "500", "--quiet"]);
    assert!(dir.join("runs/q-learning-maze-1").exists(), "{:?}", contents(dir).iter().map(|file| &file.0).collect::<Vec<_>>());
    gradus(dir, &["train", "q-learning", "grid:maps/maze.txt", "--steps", "500", "--quiet", "--out", "run"]);
    let verified = gradus(dir, &["verify", "run", "--all"]);
    assert!(verified.contains("maze.txt: as when the run was created"), "{verified}");

    // from any folder
    let elsewhere = dir.join("elsewhere");
    gradus(&elsewhere, &["eval", "../run", "--episodes", "2"]);
    gradus(&elsewhere, &["values", "../run", "--out", "values.svg"]);
    gradus(&elsewhere, &["train", "--resume", "../run", "--steps", "800", "--quiet"]);
    gradus(&elsewhere, &["train", "q-learning", "grid:../maps/maze.txt", "--config", "../run/config.toml", "--out", "again", "--quiet"]);
    assert_eq!(fs::read(dir.join("run/metrics.csv")).unwrap(), fs::read(elsewhere.join("again/metrics.csv")).unwrap());

    // a trace names the map by its file
    gradus(&elsewhere, &["play", "../run", "--record", "trace.jsonl"]);
    assert!(gradus(dir, &["check", "grid:maps/maze.txt", "--trace", "elsewhere/trace.jsonl"]).contains("1 of 1 episodes agree"));

    // the whole project is moved, and then the map alone, whose new path is told
    let moved = gradus_testing::tempdir().unwrap();
    let moved = moved.path().join("project");
    Command::new("cp").arg("-r").arg(dir).arg(&moved).status().unwrap();
    fs::write(&map, WALLED).unwrap();
    gradus(&moved, &["eval", "run", "--episodes", "2"]);
    gradus(&moved, &["train", "--resume", "run", "--steps", "900", "--quiet"]);
    fs::rename(moved.join("maps"), moved.join("mazes")).unwrap();
    let message = error(&moved, &["eval", "run"]);
    assert!(message.contains("maps/maze.txt: expected a text file with a map"), "{message}");
    let settings = fs::read_to_string(moved.join("run/config.toml")).unwrap();
    assert!(settings.contains("environment = \"grid:../maps/maze.txt\""), "{settings}");
    fs::write(moved.join("run/config.toml"), settings.replace("grid:../maps", "grid:../mazes")).unwrap();
    gradus(&moved, &["eval", "run", "--episodes", "2"]);
    gradus(&moved, &["train", "--resume", "run", "--quiet"]);
    assert_eq!(run(&moved, &["verify", "run"]).status.code(), Some(0));
    fs::write(&map, MAZE).unwrap();

    // the map is edited
    fs::write(&map, WALLED).unwrap();
    let before = contents(dir);
    for command in [
        &["eval", "run"][..],
        &["play", "run"],
        &["values", "run"],
        &["train", "--resume", "run"],
        &["train", "--resume", "run", "--steps", "2k"],
        &["train", "q-learning", "grid:maps/maze.txt", "--config", "run/config.toml", "--out", "other"],
    ] {
        let message = error(dir, command);
        let expected = "environment: expected the contents with which the run was created (SHA-256 ";
        assert!(message.contains(expected) && message.contains("maze.txt"), "{command:?}: {message}");
    }
    let verified = run(dir, &["verify", "run"]);
    assert_eq!(verified.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&verified.stdout).contains("DAMAGED  "), "{verified:?}");
    assert!(contents(dir) == before);
    fs::write(&map, MAZE).unwrap();
    gradus(dir, &["eval", "run", "--episodes", "2"]);
}

/// A comparison finds its files from its own folder, and makes runs again whose map has changed.
#[test]
fn a_comparison_notices_an_edited_map() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir_all(dir.join("study/maps")).unwrap();
    fs::write(dir.join("study/maps/maze.txt"), MAZE).unwrap();
    let text = "environments = [\"grid:maps/maze.txt\"]\nsteps = { \"grid:maps/maze.txt\" = 300 }\nseeds = 2\nevaluations = 2\nevaluation_episodes = 2\n\
                [[agents]]\nagent = \"q-learning\"\n";
    fs::write(dir.join("study/study.toml"), text).unwrap();
    let compare = || gradus(dir, &["compare", "study/study.toml", "--out", "out"]);
    compare();
    let kept = compare();
    assert!(kept.contains("2 runs: 2 kept"), "{kept}");
    fs::write(dir.join("study/maps/maze.txt"), WALLED).unwrap();
    let again = compare();
    assert_eq!(again.matches("made again: environment has changed").count(), 2, "{again}");
}

/// Names, numbers and kept runs do not depend on the folder from which a comparison is called. Maps of one name in different folders are told apart.
#[test]
fn a_comparison_on_maps_is_the_same_from_any_folder() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    for (name, map) in [("a", MAZE), ("b", WALLED)] {
        fs::create_dir_all(dir.join("study").join(name)).unwrap();
        fs::write(dir.join("study").join(name).join("maze.txt"), map).unwrap();
    }
    let text = "environments = [\"grid:a/maze.txt\", \"grid:b/maze.txt\"]\nsteps = { \"grid:a/maze.txt\" = 300, \"grid:b/maze.txt\" = 300 }\n\
                seeds = 2\nevaluations = 2\nevaluation_episodes = 2\nscore = { \"grid:a/maze.txt\" = [-9, 0], \"grid:b/maze.txt\" = [-9, 0] }\n\
                [[agents]]\nagent = \"q-learning\"\n";
    fs::write(dir.join("study/study.toml"), text).unwrap();
    gradus(dir, &["compare", "study/study.toml", "--out", "out"]);
    let tables = ["results.csv", "summary.csv", "summary.md", "sample_efficiency.svg"];
    let read = |out: &str| tables.map(|name| fs::read_to_string(dir.join(out).join(name)).unwrap());
    let first = read("out");
    assert!(first[0].lines().nth(1).unwrap().starts_with("q-learning,grid:a/maze.txt,1,0,"), "{}", first[0]);
    assert!(first[2].contains("a/maze.txt: return") && first[2].contains("b/maze.txt: return"), "{}", first[2]);
    let kept = gradus(&dir.join("study"), &["compare", "study.toml", "--out", "../out"]);
    assert!(kept.contains("4 runs: 4 kept"), "{kept}");
    gradus(&dir.join("study/a"), &["compare", "../study.toml", "--out", "../../again"]);
    assert!(read("again") == first && read("out") == first);
}

/// The policy of another setting that says what numbers mean is refused, by the name of the setting.
#[test]
fn a_policy_that_means_something_else_is_refused() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let short = ["--steps", "600", "--quiet", "--set", "network.hidden=[8]"];
    gradus(dir, &[&["train", "ppo", "pendulum", "--set", "network.activation=tanh", "--out", "ppo"], &short[..]].concat());
    gradus(dir, &[&["train", "sac", "pendulum", "--set", "sac.log_std_bounds=tanh", "--out", "sac"], &short[..]].concat());
    let before = contents(dir);
    let normalises = fs::read_to_string(dir.join("ppo/config.toml")).unwrap().contains("normalise_observations = true");
    let (ours, theirs) = (!normalises, normalises);
    let normalise = format!("wrappers.normalise_observations={ours}");
    for (agent, settings, expected) in [
        (
            "ppo",
            vec!["init=ppo", "network.activation=relu"],
            "expected a policy with network.activation = \"relu\", got one with \"tanh\"".into(),
        ),
        (
            "ppo",
            vec!["init=ppo/policy.safetensors", "network.activation=tanh", &normalise],
            format!("expected a policy with wrappers.normalise_observations = {ours}, got one with {theirs}"),
        ),
        (
            "sac",
            vec!["init=sac", "sac.log_std_bounds=clamp"],
            "expected a policy with sac.log_std_bounds = \"clamp\", got one with \"tanh\"".into(),
        ),
    ] {
        let settings: Vec<&str> = settings.into_iter().flat_map(|setting| ["--set", setting]).collect();
        let message = error(dir, &[&["train", agent, "pendulum", "--out", "new"], &short[..], &settings].concat());
        assert!(message.ends_with(&expected), "{message}");
    }
    assert!(contents(dir) == before);
    gradus(
        dir,
        &[&["train", "sac", "pendulum", "--set", "sac.log_std_bounds=tanh", "--set", "init=sac", "--out", "new"], &short[..]].concat(),
    );
}

/// The policy that a run starts from, and the preferences that it learns from.
#[test]
fn other_inputs_are_known_by_their_contents() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir_all(dir.join("data")).unwrap();
    fs::create_dir_all(dir.join("elsewhere")).unwrap();
    gradus(dir, &["sft", "target-sum", "--steps", "5", "--batch", "4", "--quiet", "--out", "data/start"]);
    fs::write(dir.join("data/settings.toml"), "init = \"start\"\n").unwrap();
    let train = ["train", "grpo", "target-sum", "--steps", "100", "--set", "envs=16", "--quiet", "--config"];
    gradus(dir, &[&train[..], &["data/settings.toml", "--out", "run"]].concat());
    let settings = fs::read_to_string(dir.join("run/config.toml")).unwrap();
    assert!(settings.contains("\n[inputs]\ninit = \""), "{settings}");
    // the run is repeated from another folder, and goes on without the policy that it began with
    let elsewhere = dir.join("elsewhere");
    gradus(&elsewhere, &[&train[..], &["../run/config.toml", "--out", "again"]].concat());
    assert!(fs::read(dir.join("run/metrics.csv")).unwrap() == fs::read(elsewhere.join("again/metrics.csv")).unwrap());
    gradus(dir, &["sft", "target-sum", "--steps", "6", "--batch", "4", "--quiet", "--out", "other"]);
    fs::copy(dir.join("other/policy.safetensors"), dir.join("data/start/policy.safetensors")).unwrap();
    fs::copy(dir.join("other/config.toml"), dir.join("data/start/config.toml")).unwrap();
    let message = error(dir, &[&train[..], &["run/config.toml", "--out", "new"]].concat());
    assert!(message.contains("init: expected the contents with which the run was created"), "{message}");
    let verified = run(dir, &["verify", "run"]);
    // the run does not need it any more
    assert!(verified.status.code() == Some(0) && String::from_utf8_lossy(&verified.stdout).contains("init: expected the contents"));
    // another policy is another start, on purpose
    gradus(dir, &[&train[..], &["run/config.toml", "--set", "init=other", "--out", "new"]].concat());
    gradus(dir, &[&train[..], &["run/config.toml", "--set", "init=", "--out", "random"]].concat());
    assert!(!fs::read_to_string(dir.join("random/config.toml")).unwrap().contains("[inputs]"));
    let unknown = error(dir, &[&train[..], &["run/config.toml", "--set", "inputs.foo=bar", "--out", "no"]].concat());
    assert!(unknown.starts_with("unknown setting `inputs.foo`"), "{unknown}");
    gradus(&elsewhere, &["eval", "../run", "--episodes", "2"]);
    gradus(&elsewhere, &["train", "--resume", "../run", "--steps", "300", "--quiet"]);
}

/// An exported policy has the files of one's own that it needs, and a name that the hub accepts.
#[test]
fn an_export_is_complete() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    fs::create_dir_all(dir.join("my maps")).unwrap();
    fs::write(dir.join("my maps/a maze.txt"), MAZE).unwrap();
    fs::write(dir.join("sums.jsonl"), "{\"prompt\": \"1+1=\", \"answer\": \"2\"}\n{\"prompt\": \"1+2=\", \"answer\": \"3\"}\n").unwrap();
    gradus(dir, &["train", "q-learning", "grid:my maps/a maze.txt", "--steps", "3000", "--quiet", "--out", "maze"]);
    gradus(dir, &["sft", "file:sums.jsonl", "--steps", "5", "--batch", "4", "--quiet", "--out", "sums"]);
    let said = gradus(dir, &["export", "maze", "--hub", "hub", "--episodes", "3"]);
    assert!(said.contains("hf upload YOU/q-learning-a-maze hub"), "{said}");
    gradus(dir, &["export", "sums", "--hub", "texts", "--episodes", "2", "--name", "me/sums"]);
    let evaluated = |dir: &Path, policy: &str| {
        let text = gradus(dir, &["eval", policy, "--episodes", "3", "--json"]);
        text.split_once(",\"problems\"").map_or(text.clone(), |(results, _)| results.to_string()) // which name the file
    };
    let before = [evaluated(dir, "maze"), evaluated(dir, "sums")];
    // on another machine
    let other = gradus_testing::tempdir().unwrap();
    for name in ["hub", "texts"] {
        fs::rename(dir.join(name), other.path().join(name)).unwrap();
    }
    drop(folder);
    assert_eq!(before, [evaluated(other.path(), "hub"), evaluated(&other.path().join("texts"), ".")]);
    assert_eq!(run(other.path(), &["verify", "hub"]).status.code(), Some(0));
    for (name, expected) in [("a b", "`a b`"), ("a--b", "`a--b`"), ("x/y/z", "`x/y/z`"), (".x", "`.x`"), ("", "``")] {
        let message = error(other.path(), &["export", "hub", "--hub", "new", "--name", name]);
        assert!(message.starts_with("--name: expected at most 96 letters") && message.ends_with(expected), "{message}");
    }
}

#[test]
fn maps_and_traces_are_read_within_limits() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    fs::write(dir.join("marked.txt"), format!("\u{feff}{MAZE}")).unwrap();
    gradus(dir, &["train", "q-learning", "grid:marked.txt", "--steps", "300", "--quiet", "--out", "run"]);
    let trace = gradus_testing::golden::path("cartpole.jsonl");
    let line = fs::read_to_string(trace).unwrap().lines().next().unwrap().to_string();
    fs::write(dir.join("marked.jsonl"), format!("\u{feff}{line}\n")).unwrap();
    assert!(gradus(dir, &["check", "cartpole", "--trace", "marked.jsonl"]).contains("1 of 1 episodes agree"));
    fs::write(dir.join("twice.jsonl"), line.replacen('{', "{\"env\": \"x\", ", 1)).unwrap();
    let message = error(dir, &["check", "cartpole", "--trace", "twice.jsonl"]);
    assert!(message.contains("the key `env` occurs twice"), "{message}");
    fs::write(dir.join("large.txt"), "//".to_string() + &"x".repeat(1 << 20)).unwrap();
    let train = |map: &str| error(dir, &["train", "q-learning", map, "--steps", "300", "--out", "new"]);
    assert!(train("grid:large.txt").ends_with("large.txt: expected a text file with a map, got: expected at most 1048576 bytes, got more"));
    assert!(train("grid:").contains("expected grid:PATH"));
    assert!(train("grid:.").ends_with("got: expected a file, got a folder"));
    if cfg!(unix) {
        assert!(train("grid:/dev/zero").ends_with("got: expected a file, got a pipe, a socket or a device"));
        assert!(train("file:/dev/zero").ends_with("/dev/zero: expected a file, got a pipe, a socket or a device"));
    }
    let message = error(dir, &["train", "ppo", "cartpole", "--set", "ppo.value_coefficient=1e39"]);
    assert_eq!(message, "ppo.value_coefficient: expected a number from -3.4e38 to 3.4e38, got 1e39");
}
