//! `gradus plot` of run folders: groups of seeds, names, windows, axes and panels.

use std::path::Path;
use std::process::{Command, Output};

fn gradus(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).current_dir(folder).output().unwrap()
}

/// Returns the SVG that `gradus plot` draws with these arguments.
fn drawn(folder: &Path, arguments: &[&str]) -> String {
    let output = gradus(folder, &[&["plot"], arguments, &["--out", "figures/figure.svg"]].concat());
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    std::fs::read_to_string(folder.join("figures/figure.svg")).unwrap()
}

/// Trains three seeds of PPO on CartPole, and one run each of A2C there and of PPO on Pendulum.
fn train(folder: &Path) {
    let runs =
        [("ppo", "cartpole", "1"), ("ppo", "cartpole", "2"), ("ppo", "cartpole", "3"), ("a2c", "cartpole", "1"), ("ppo", "pendulum", "1")];
    for (agent, environment, seed) in runs {
        let name = format!("{agent}-{environment}-{seed}");
        let output = gradus(folder, &["train", agent, environment, "--steps", "6k", "--seed", seed, "--quiet", "--out", &name]);
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn seeds_are_one_line_with_a_band() {
    let folder = gradus_testing::tempdir().unwrap();
    train(folder.path());
    let seeds = ["ppo-cartpole-1", "ppo-cartpole-2", "ppo-cartpole-3"];
    let bands = |svg: &str| svg.matches("<polygon").count();
    let svg = drawn(folder.path(), &[&seeds[..], &["a2c-cartpole-1"]].concat());
    for text in [
        "ppo-cartpole (3 seeds)",
        "a2c-cartpole-1",
        "interquartile mean over 1 to 3 seeds with 95 % bootstrap intervals, mean of the last 100 episodes",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    assert_eq!(bands(&svg), 1, "a single run has no band");
    let each = drawn(folder.path(), &[&seeds[..], &["--each"]].concat());
    assert!(bands(&each) == 0 && each.contains("one line per seed"));
    let mean = drawn(folder.path(), &[&seeds[..], &["--mean", "--window", "7", "--label", "Ours", "--x", "time"]].concat());
    for text in [
        "mean over 3 seeds with 95 % bootstrap intervals up to the end of the first run, mean of the last 7 episodes",
        "seconds of training",
    ] {
        assert!(mean.contains(text), "{text}");
    }
    // on a busy machine one run may be over before another one has a point
    assert!(!mean.contains("interquartile") && bands(&mean) <= 1);
    let both = ["ppo-cartpole-1", "ppo-pendulum-1", "--metric", "train/loss", "--metric", "train/approx_kl"];
    let panels = drawn(folder.path(), &both);
    for text in ["train/loss, CartPole-v1", "train/loss, Pendulum-v1", "train/approx_kl, CartPole-v1", "train/approx_kl, Pendulum-v1"] {
        assert!(panels.contains(text), "{text}");
    }

    let limited = drawn(folder.path(), &[&seeds[..], &["--y", "0,100", "--x", "log"]].concat());
    assert!(limited.contains(">\n100\n</text>") && !limited.contains(">\n400\n</text>") && !limited.contains("solved at"), "{limited}");

    // a run that ended early ends the line, and is named
    let path = folder.path().join("ppo-cartpole-3/episodes.csv");
    let episodes = std::fs::read_to_string(&path).unwrap();
    let end = episodes.match_indices('\n').nth(60).unwrap().0 + 1;
    std::fs::write(&path, &episodes[..end]).unwrap();
    let step = |line: &str| line.split(',').next().unwrap().parse::<u64>().unwrap();
    let output = gradus(folder.path(), &[&["plot"], &seeds[..], &["--out", "figures/figure.svg"]].concat());
    let warning = String::from_utf8(output.stderr).unwrap();
    let least = step(episodes[..end].lines().last().unwrap());
    assert!(warning.starts_with(&format!("warning: ppo-cartpole-3 ended at step {least} and another seed at ")), "{warning}");
    assert!(
        std::fs::read_to_string(folder.path().join("figures/figure.svg")).unwrap().contains("intervals up to the end of the first run,")
    );
    assert!(gradus(folder.path(), &[&["plot", "--each"], &seeds[..], &["--out", "figures/figure.svg"]].concat()).stderr.is_empty());

    for (arguments, expected) in [
        (
            vec!["ppo-cartpole-1", "ppo-cartpole-2", "ppo-cartpole-1"],
            "ppo-cartpole-1: expected a seed that no other run with these settings has, got seed 1 as in ppo-cartpole-1; train another one with `--seed`",
        ),
        (
            vec!["ppo-cartpole-1", "a2c-cartpole-1", "--label", "A"],
            "--label: expected 2, one for each of `ppo-cartpole-1`, `a2c-cartpole-1`, got 1",
        ),
        (vec!["ppo-cartpole-1", "--window", "0"], "--window: expected a whole number from 1 up, got 0"),
        (vec!["ppo-cartpole-1", "--x", "hours"], "invalid value 'hours' for '--x <X>'; [possible values: steps, time, log]"),
        (vec!["ppo-cartpole-1", "--y", "3,1"], "--y: expected two numbers, the second above the first, such as -100,0, got 3,1"),
        (vec!["ppo-cartpole-1", "--each", "--mean"], "the argument '--each' cannot be used with '--mean'"),
    ] {
        let output = gradus(folder.path(), &[&["plot"], &arguments[..]].concat());
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("error: {expected}\n"));
        assert_eq!(output.status.code(), Some(2));
    }
}
