//! Preferences as data: reward models and DPO from files, judges, and best of n.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use gradus::{Config, Trainer};
use gradus_testing::command::{contents, error_of};

fn run(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments).output().unwrap()
}

fn gradus(dir: &Path, arguments: &[&str]) -> String {
    let output = run(dir, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes a file of preferences for sums of three digits: the right solution before a wrong one.
fn write_pairs(path: &Path) {
    let line = |i: u32| {
        let [a, b, c] = [i / 100, i / 10 % 10, i % 10];
        let (first, sum) = (a + b, a + b + c);
        let chosen = format!("\"chosen\": \"{first};{sum}#{sum}\", \"rejected\": \"{first};{}#{}\"", sum + 1, sum + 1);
        format!("{{\"prompt\": \"{a}+{b}+{c}=\", {chosen}}}\n")
    };
    fs::write(path, (0..1000).step_by(3).map(line).collect::<String>()).unwrap();
}

#[test]
fn a_file_of_preferences_trains_a_reward_model_and_dpo() {
    let dir = gradus_testing::tempdir().unwrap();
    let gradus = |arguments: &[&str]| gradus(dir.path(), arguments);
    write_pairs(&dir.path().join("pairs.jsonl"));
    let said = gradus(&["reward-model", "chain-sum", "--pairs", "pairs.jsonl", "--out", "model"]);
    assert!(said.contains("rankings, loss") && said.contains("rankings of the file's held-out prompts, margin"), "{said}");
    // the folder's rankings are those of the file's training prompts
    let table = fs::read_to_string(dir.path().join("model/metrics.csv")).unwrap();
    let counts: Vec<usize> = table.lines().nth(1).unwrap().split(',').take(2).map(|n| n.parse().unwrap()).collect();
    assert!(counts[0] + counts[1] == 334 && counts[1] > 20, "{table}");

    let small = ["--set", "envs=16", "--set", "dpo.group_size=4", "--steps", "600", "--quiet"];
    let train = |pairs: &str, out: &str| gradus(&[&["train", "dpo", "chain-sum", "--set", pairs, "--out", out], &small[..]].concat());
    train("dpo.pairs=pairs.jsonl", "file");
    train("dpo.pairs=model", "folder");
    train("dpo.pairs=", "online");
    let log = |run: &str| fs::read_to_string(dir.path().join(run).join("metrics.csv")).unwrap();
    assert!(log("file").lines().next().unwrap().contains(",rewards/chosen,rewards/rejected,rewards/margins,rewards/accuracies,"));
    assert_eq!(log("file"), log("folder"), "the same pairs in the same order");
    assert_ne!(log("file"), log("online"));
    // DPO has no critic, so `sample` compares completions
    let shown = gradus(&["sample", "online", "--prompt", "3+4+2="]);
    assert!(shown.contains("dpo compares completions with each other"), "{shown}");
}

/// A training continues from a checkpoint with the same numbers. It does not continue with other pairs.
#[test]
fn a_training_on_a_file_resumes_only_with_its_pairs() {
    let dir = gradus_testing::tempdir().unwrap();
    let path = dir.path().join("pairs.jsonl");
    write_pairs(&path);
    let settings = [format!("dpo.pairs={}", path.display()), "envs=16".into(), "dpo.group_size=4".into(), "dpo.epochs=2".into()];
    let base = Config::preset("dpo", "chain-sum", None).unwrap();
    let config = settings.iter().fold(base, |config, setting| config.with_setting(setting).unwrap());
    let mut trainer = Trainer::new(config.clone()).unwrap();
    trainer.iterate().unwrap();
    let saved = trainer.save();
    let iterated = |trainer: &mut Trainer| (0..3).for_each(|_| _ = trainer.iterate().unwrap());
    iterated(&mut trainer);
    let mut resumed = Trainer::new(config.clone()).unwrap();
    resumed.load(&saved).unwrap();
    iterated(&mut resumed);
    assert!(resumed.save() == trainer.save());

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"chosen\": \"0;", "\"chosen\": \"1;")).unwrap();
    let error = Trainer::new(config).unwrap().load(&saved).unwrap_err().to_string();
    assert!(error.contains("dpo.pairs: expected the pairs with which the training began, got others"), "{error}");
}

/// A judge ranks the completions instead of the verifier. Its agreement with the verifier is reported.
#[test]
fn a_judge_ranks_completions() {
    let dir = gradus_testing::tempdir().unwrap();
    let gradus = |arguments: &[&str]| gradus(dir.path(), arguments);
    let model = ["reward-model", "target-sum", "--pairs", "150", "--held-out", "60"];
    gradus(&[&model[..], &["--out", "model", "--quiet"]].concat());
    gradus(&["train", "grpo", "target-sum", "--steps", "200", "--set", "envs=16", "--quiet", "--out", "policy"]);
    for judge in ["model", "policy"] {
        let out = format!("by-{judge}");
        let said = gradus(&[&model[..], &["--judge", judge, "--seed", "3", "--out", &out]].concat());
        assert!(said.contains("the judge agrees with the verifier in "), "{said}");
        let table = fs::read_to_string(dir.path().join(&out).join("metrics.csv")).unwrap();
        assert!(table.starts_with("pairs,held_out,judge_agreement,reward_model/loss,"), "{table}");
    }
    // a model that learned from a judge is a reward model like any other
    let shown = gradus(&["eval", "policy", "--best-of", "4", "--judge", "by-model", "--episodes", "5"]);
    assert!(shown.starts_with("best of n by by-model, 5 problems"), "{shown}");
}

/// Best of n by the verifier never falls with n, and best of 1 is the sampled mean for any judge.
#[test]
fn best_of_n_is_reported_for_every_power_of_two() {
    let dir = gradus_testing::tempdir().unwrap();
    let gradus = |arguments: &[&str]| gradus(dir.path(), arguments);
    gradus(&["sft", "target-sum", "--steps", "20", "--quiet", "--out", "start"]);
    let best = |more: &[&str]| -> Vec<[f64; 4]> {
        let shown = gradus(&[&["eval", "start", "--best-of", "12", "--json"], more].concat());
        let parsed: serde_json::Value = serde_json::from_str(&shown).unwrap();
        let number = |row: &serde_json::Value, key: &str| row[key].as_f64().unwrap();
        let rows = parsed["best_of"].as_array().unwrap().iter();
        rows.map(|row| ["n", "kl_bound", "worth", "reward"].map(|key| number(row, key))).collect()
    };
    let by_verifier = best(&[]);
    assert_eq!(by_verifier.iter().map(|row| row[0]).collect::<Vec<_>>(), [1.0, 2.0, 4.0, 8.0, 12.0]);
    assert!(by_verifier.windows(2).all(|two| two[0][3] < two[1][3] && two[0][1] < two[1][1]), "{by_verifier:?}");
    assert!(by_verifier.iter().all(|row| (row[1] - (row[0].ln() - (row[0] - 1.0) / row[0])).abs() < 1e-12));
    let by_itself = best(&["--judge", "start"]);
    assert!((by_itself[0][3] - by_verifier[0][3]).abs() < 1e-12, "the judge changes the completions");
    assert!(by_itself.windows(2).all(|two| two[0][2] < two[1][2]), "{by_itself:?}");
    assert_eq!(best(&[]), by_verifier);
}

/// Wrong files and folders are refused with one line, and nothing is written.
#[test]
fn bad_preferences_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    write_pairs(&path("pairs.jsonl"));
    gradus(dir.path(), &["train", "grpo", "target-sum", "--steps", "100", "--set", "envs=16", "--quiet", "--out", "other"]);
    gradus(dir.path(), &["train", "ppo", "cartpole", "--steps", "100", "--quiet", "--out", "cartpole"]);
    fs::write(path("empty.jsonl"), "").unwrap();
    fs::write(path("two.jsonl"), "{\"prompt\": \"1+1+1=\", \"chosen\": \"2;3#3\"}\n").unwrap();
    let one = "{\"prompt\": \"1+1+1=\", \"chosen\": \"2;3#3\", \"rejected\": \"1\", \"split\": \"train\"}\n";
    fs::write(path("untested.jsonl"), one).unwrap();
    fs::write(path("binary.jsonl"), [0xff, 0xfe, 0x00, 0x0a]).unwrap();
    fs::write(path("long.jsonl"), vec![b'x'; 3 << 20]).unwrap();
    let before = contents(dir.path());
    let refused = |arguments: &[&str], expected: &str| {
        let error = error_of(&run(dir.path(), arguments));
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(contents(dir.path()) == before, "{arguments:?} wrote files");
    };
    for (file, expected) in [
        ("missing.jsonl", "cannot read missing.jsonl: "),
        ("empty.jsonl", "empty.jsonl: expected at least one preference for training, got an empty file"),
        ("two.jsonl", "two.jsonl: line 1: expected either chosen and rejected, or a ranking"),
        ("binary.jsonl", "binary.jsonl: line 1: expected UTF-8, got other bytes"),
        ("long.jsonl", "long.jsonl: line 1: expected at most 1048576 bytes, got more"),
    ] {
        refused(&["reward-model", "chain-sum", "--pairs", file, "--out", "new"], expected);
        let setting = format!("dpo.pairs={file}");
        refused(&["train", "dpo", "chain-sum", "--set", &setting, "--out", "new"], expected);
    }
    refused(&["reward-model", "chain-sum", "--pairs", "untested.jsonl", "--out", "new"], "expected a preference for the evaluation");
    refused(&["reward-model", "addition", "--pairs", "pairs.jsonl", "--out", "new"], "line 1: completion `0;0#0`");
    for (option, value) in [("--judge", "other"), ("--completions", "3"), ("--held-out", "9")] {
        refused(&["reward-model", "chain-sum", "--pairs", "pairs.jsonl", option, value], &format!("{option}: expected no such option"));
    }
    refused(&["reward-model", "chain-sum", "--pairs", "pairs.jsonl", "--process"], "--process: expected no such option");
    refused(&["reward-model", "chain-sum", "--judge", "other"], "expected a judge with the vocabulary of chain-sum");
    refused(&["reward-model", "chain-sum", "--judge", "cartpole"], "expected a run on a text task, got one on cartpole");
    refused(&["reward-model", "chain-sum", "--judge", "nowhere"], "nowhere");
    refused(&["reward-model", "chain-sum", "--judge", "other", "--process"], "--judge");
    refused(&["train", "dpo", "cartpole", "--out", "new"], "dpo: expected a text task, because it compares completions, got cartpole");
    refused(
        &["train", "dpo", "chain-sum", "--set", "dpo.pairs=other", "--out", "new"],
        "expected a folder of `gradus reward-model`, got none",
    );
    gradus(dir.path(), &["sft", "chain-sum", "--steps", "30", "--quiet", "--out", "start"]);
    gradus(dir.path(), &["reward-model", "addition", "--pairs", "300", "--completions", "8", "--quiet", "--out", "sums"]);
    let process = ["--process", "--labels", "verifier", "--init", "start", "--pairs", "40", "--held-out", "20"];
    gradus(dir.path(), &[&["reward-model", "chain-sum", "--quiet", "--out", "steps"], &process[..]].concat());
    let before = contents(dir.path());
    let refused = |arguments: &[&str], expected: &str| {
        let error = error_of(&run(dir.path(), arguments));
        assert!(error.contains(expected), "{arguments:?}: {error}");
        assert!(contents(dir.path()) == before, "{arguments:?} wrote files");
    };
    refused(
        &["train", "dpo", "chain-sum", "--set", "dpo.pairs=sums", "--out", "new"],
        "expected a policy with the vocabulary of chain-sum",
    );
    refused(
        &["train", "dpo", "chain-sum", "--set", "dpo.pairs=steps", "--out", "new"],
        "expected a reward model with reward_model.supervision = outcome",
    );
    refused(&["train", "dpo", "chain-sum", "--set", "reference.stop_kl=1", "--out", "new"], "reference.stop_kl: expected inf");
    refused(
        &["train", "dpo", "chain-sum", "--set", "reference.adaptive_target=5", "--out", "new"],
        "reference.adaptive_target: expected inf, because DPO's beta",
    );
    refused(&["reward-model", "chain-sum", "--pairs", "20q"], "--pairs: expected a whole number");
    refused(&["train", "dpo", "chain-sum", "--set", "reference.coefficient=0.1", "--out", "new"], "because DPO has dpo.beta, got 0.1");
    refused(&["eval", "cartpole", "--best-of", "4"], "best of n");
    refused(&["eval", "other", "other", "--best-of", "4"], "--best-of: expected one run folder, got 2 folders");
    refused(&["eval", "other", "--best-of", "0"], "--best-of");
    refused(&["eval", "other", "--judge", "other"], "--best-of");
}
