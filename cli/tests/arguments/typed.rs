//! What people type does what they mean, and `train` says what its policy is worth.

use std::path::Path;
use std::process::{Command, Output};

fn gradus(dir: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(arguments.split(' ')).output().unwrap()
}

/// Returns standard output and standard error of a command that succeeds.
fn said(dir: &Path, arguments: &str) -> String {
    let output = gradus(dir, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {text}");
    text
}

#[test]
fn a_training_says_what_its_policy_is_worth() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let solved = said(dir, "train ppo cartpole --out a");
    assert!(solved.contains("evaluation: mean 500 over 100 episodes, greedy: solved, which is 475 or more\n"), "{solved}");
    assert!(solved.ends_with("of 20 seeds with these settings 20 end with a return of 475 or more\n"), "{solved}");
    // the numbers are those of `gradus eval`
    assert!(said(dir, "eval a").starts_with("evaluation: mean 500 over 100 episodes"));
    let short = said(dir, "train ppo pendulum --steps 2k --set network.hidden=[8] --out b");
    assert!(short.contains("greedy: not measurably better than random actions (about -12") && !short.contains("of 20 seeds"), "{short}");
    let table = said(dir, "train value-iteration frozen-lake --out c");
    assert!(table.contains("within two standard errors of the optimum, 0.74; random actions have 0"), "{table}");
    let prediction = said(dir, "train td-lambda random-walk --steps 2k --out d");
    assert!(!prediction.contains("evaluation:"), "{prediction}");
    let text = said(dir, "train grpo target-sum --steps 20k --out e");
    assert!(text.contains("over all 7 problems, also used in training") && text.contains("an untrained policy has"), "{text}");
}

/// A policy that an evaluation kept and that is better than the final one is evaluated in the same episodes.
#[test]
fn a_better_policy_that_evaluations_kept_is_named() {
    let folder = gradus_testing::tempdir().unwrap();
    let text = said(
        folder.path(),
        "train ppo cartpole --steps 40k --set evaluate_every=8000 --set optimiser.learning_rate=0.05 --set optimiser.schedule=constant --out a",
    );
    let best =
        text.lines().find(|line| line.starts_with("the best policy of the evaluations has mean ")).unwrap_or_else(|| panic!("{text}"));
    assert!(best.ends_with("over 100 episodes in the same episodes: gradus play a/best_policy.safetensors"), "{best}");
    let mean = |line: &str| line.split("mean ").nth(1).unwrap().split(' ').next().unwrap().parse::<f64>().unwrap();
    let last = text.lines().find(|line| line.starts_with("evaluation: ")).unwrap();
    assert!(mean(best) > mean(last), "{text}");
    let eval = said(folder.path(), "eval a/best_policy.safetensors");
    assert!((mean(&eval) - mean(best)).abs() < 1.0, "{eval} {best}");
}

#[test]
fn settings_and_steps_without_an_effect_are_named() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    let text = said(dir, "train td3 pendulum --steps 3000 --out a");
    assert!(
        text.contains("warning: td3.learning_starts: no update is made within 3000 steps, because it asks for 10000 before the first one"),
        "{text}"
    );
    assert!(text.contains("no update was made: updates begin after step 10000, and the run has 3000 steps\n"), "{text}");
    assert!(said(dir, "explain a").starts_with("no-update: "));
    let text = said(dir, "train q-learning taxi --steps 2000 --set network.hidden=[3] --out b");
    assert!(text.contains("warning: network.hidden = [3] has no effect, because the agent has a table instead of a network"), "{text}");
    let quiet = said(dir, "train q-learning taxi --steps 2000 --out c");
    assert!(!quiet.contains("warning"), "{quiet}");
}

#[test]
fn names_in_any_spelling_lists_and_folders_of_runs_are_understood() {
    let folder = gradus_testing::tempdir().unwrap();
    let dir = folder.path();
    for (seed, typed, run) in [
        (1, "PPO CartPole", "ppo-cartpole-1"),
        (1, "q_learning Frozen_Lake", "q-learning-frozen-lake-1"),
        (2, "Ppo cartpole-v1", "ppo-cartpole-2"),
    ] {
        said(dir, &format!("train {typed} --seed {seed} --steps 600 --quiet"));
        let settings = std::fs::read_to_string(dir.join("runs").join(run).join("config.toml")).unwrap();
        let agent = run.rsplit_once('-').unwrap().0.split("-cartpole").next().unwrap().split("-frozen").next().unwrap();
        assert!(settings.contains(&format!("agent = \"{agent}\"")), "{settings}");
    }
    let all = said(dir, "eval runs --episodes 2");
    assert_eq!(all.lines().filter(|line| line.starts_with("runs/")).count(), 3, "{all}");
    said(dir, "plot runs --out curves.svg");
    assert!(dir.join("curves.svg").exists());
    assert!(said(dir, "list agents").starts_with("agents\n") && said(dir, "list envs").starts_with("environments\n"));
    let sac = said(dir, "list sac");
    assert!(
        sac.starts_with("# sac, with the values of its default preset on pendulum\n")
            && sac.contains("\nsac.tau = ")
            && !sac.contains("\nreference."),
        "{sac}"
    );
    let table = said(dir, "list Q_Learning");
    assert!(table.contains("\nq-learning.alpha = 0.1") && !table.contains("\nnetwork.") && !table.contains("\noptimiser."), "{table}");
    let presets = said(dir, "list CartPole-v1");
    assert!(
        presets.contains("ppo on cartpole: default") && presets.contains("20 of 20 seeds end with a return of 475 or more"),
        "{presets}"
    );
    assert!(said(dir, "guide").contains("\n  metrics ") && said(dir, "guide PPO").starts_with("# PPO\n"));
    assert!(said(dir, "guide metrics#value-function").starts_with("## Value function\n") && !said(dir, "guide metrics").contains("<!--"));
}
