//! Invalid warm starts, reward models and prompts are refused in one line, and valid ones are accepted.

use std::fs;

use super::{gradus, short_text_run};
use gradus_testing::command::{contents, error_of};

#[test]
fn invalid_warm_starts_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["cartpole"], "a warm start: expected a text task, got `cartpole`"),
        (&["additoin"], "unknown environment `additoin`; did you mean `addition`?"),
        (&["addition", "--until-exact", "40"], "--until-exact: expected a fraction from 0 to 1, got 40"),
        (&["addition", "--steps", "0"], "--steps: expected a whole number from 1 up, got 0"),
        (&["addition", "--batch", "0"], "--batch: expected a whole number from 1 up, got 0"),
        (&["addition", "--set", "environment=sort"], "environment: expected addition, as on the command line, got sort"),
        (&["addition", "--set", "optimiser.learning_rate=0"], "optimiser.learning_rate: expected a number above 0, got 0"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), &[&["sft"], *arguments].concat())), *expected, "{arguments:?}");
    }
    assert!(contents(dir.path()).is_empty(), "something was left behind");
    let made = || gradus(dir.path(), &["sft", "target-sum", "--steps", "2", "--quiet", "--out", "policy"]);
    assert!(made().status.success());
    let before = contents(dir.path());
    assert_eq!(error_of(&made()), "policy: holds a policy; choose another folder");
    let expected = "policy: expected a run, got only a policy; start a run from it with `--set init=policy`";
    assert_eq!(error_of(&gradus(dir.path(), &["train", "--resume", "policy"])), expected);
    assert!(contents(dir.path()) == before);
    for command in [&["eval", "policy", "--episodes", "3"][..], &["sample", "policy", "--prompt", "3>"], &["play", "policy"]] {
        assert!(gradus(dir.path(), command).status.success(), "{command:?}");
    }
}

#[test]
fn invalid_reward_models_are_refused_and_valid_ones_are_used() {
    let dir = gradus_testing::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["reward-model", "cartpole"], "a reward model: expected a text task, got `cartpole`"),
        (&["reward-model", "sort", "--pairs", "0"], "--pairs: expected a whole number from 1 up, got 0"),
        (&["reward-model", "sort", "--completions", "1"], "--completions: expected a whole number from 2 up, got 1"),
        (&["reward-model", "sort", "--completions", "1025"], "--completions: expected a whole number from 2 to 1024, got 1025"),
        (&["reward-model", "sort", "--init", "nowhere"], "cannot read nowhere: No such file or directory (os error 2)"),
        (&["inspect", "nowhere"], "nowhere: expected a run folder, got none: config.toml is missing"),
        (&["inspect", "nowhere", "--group-size", "1"], "--group-size: expected a whole number from 2 up, got 1"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), arguments)), *expected, "{arguments:?}");
    }
    assert!(contents(dir.path()).is_empty(), "something was left behind");
    let made = gradus(dir.path(), &["reward-model", "target-sum", "--pairs", "60", "--held-out", "30", "--out", "model"]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success() && said.lines().last().unwrap().starts_with("accuracy: "), "{said}");
    let made = gradus(dir.path(), &["reward-model", "target-sum", "--pairs", "60", "--completions", "4", "--out", "of-rankings"]);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(made.status.success() && said.contains(" rankings, loss ") && said.contains("% of the pairs in "), "{said}");
    let train = ["train", "grpo", "target-sum", "--steps", "100", "--set", "reward_model.folder=model", "--out", "run", "--quiet"];
    assert!(gradus(dir.path(), &train).status.success());
    let metrics = fs::read_to_string(dir.path().join("run/metrics.csv")).unwrap();
    assert!(metrics.lines().next().unwrap().contains(",reward/mean,reward/std,reward/true,"), "{metrics}");
    let shown = gradus(dir.path(), &["inspect", "run", "--groups", "4", "--group-size", "3"]);
    let said = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success() && said.contains("rloo") && said.contains("cosine"), "{said}");
    assert!(said.starts_with("rewards are from the run's reward model; the column `true` has the environment's rewards\n"), "{said}");
    let sampled = gradus(dir.path(), &["sample", "run", "--prompt", "3>"]);
    let said = String::from_utf8_lossy(&sampled.stdout).into_owned();
    assert!(said.contains("  learned reward ") && said.contains(", true ") && said.contains("grpo compares completions"), "{said}");
    // a resumed run no longer needs the folder of the reward model
    fs::remove_dir_all(dir.path().join("model")).unwrap();
    assert!(gradus(dir.path(), &["train", "--resume", "run", "--quiet"]).status.success());
}

/// Without a baseline, the advantage is the return. With the leave-one-out baseline, a group of one has no advantages.
#[test]
fn sample_shows_the_advantages_of_the_agent() {
    let dir = gradus_testing::tempdir().unwrap();
    let sampled = |baseline: &str, n: &str| {
        let baseline = format!("reinforce.baseline={baseline}");
        let train = ["train", "reinforce", "target-sum", "--steps", "100", "--quiet", "--set", "envs=8"];
        let group = if baseline.ends_with("one-out") { "reinforce.group_size=4" } else { "reinforce.group_size=1" };
        let settings = ["--set", &baseline, "--set", group, "--set", "reinforce.gamma=0.5", "--out", &baseline];
        if !dir.path().join(&baseline).exists() {
            let made = gradus(dir.path(), &[&train[..], &settings].concat());
            assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        }
        let shown = gradus(dir.path(), &["sample", &baseline, "--prompt", "3>", "-n", n, "--seed", "2"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let alone = sampled("leave-one-out", "1");
    assert!(alone.ends_with("reinforce compares completions with each other: -n 8, for example, shows advantages\n"), "{alone}");
    let rows = |said: &str| said.lines().filter(|line| line.starts_with("  ")).map(str::to_owned).collect::<Vec<_>>();
    let advantages =
        |said: &str| -> Vec<f64> { rows(said).iter().filter_map(|line| line.split_whitespace().nth(6)?.parse().ok()).collect() };
    assert!(advantages(&alone).is_empty() && !advantages(&sampled("leave-one-out", "8")).is_empty());
    // the advantage of each token is half of the next one's
    let plain = sampled("none", "30");
    let found = advantages(&plain);
    assert!(found.windows(2).any(|two| two[0] > 0.0 && (2.0 * two[0] - two[1]).abs() < 2e-3), "{plain}");
}

#[test]
fn invalid_prompts_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    short_text_run(dir.path());
    let cases: &[(&[&str], &str)] = &[
        (&["run", "--prompt", "7a>"], "text: character `a` of `7a>`: expected one of the symbols 0 1 2 3 4 5 6 7 >"),
        (&["run", "--prompt", "777777"], "text: prompt: expected 1 to 5 tokens, got 6"),
        (&["run", "--prompt", ""], "text: prompt: expected 1 to 5 tokens, got 0"),
        (&["run", "--prompt", "3>", "--temperature", "-1"], "--temperature: expected a number from 0 up, got -1"),
        (&["run", "--prompt", "3>", "--top-p", "much"], "--top-p: expected a number, got much"),
        (&["run", "--prompt", "3>", "--min-p", "2"], "--min-p: expected a number from 0 to 1, got 2"),
        (&["run", "--prompt", "3>", "-n", "0"], "-n: expected a whole number from 1 up, got 0"),
        (&["nowhere", "--prompt", "3>"], "nowhere: expected a run folder, got none: config.toml is missing"),
    ];
    for (arguments, expected) in cases {
        assert_eq!(error_of(&gradus(dir.path(), &[&["sample"], *arguments].concat())), *expected, "{arguments:?}");
    }
}
