//! Bad arguments of `bench`, `eval`, `play`, `plot` and `check` are refused in one line.

use super::{gradus, short_run};
use gradus_testing::command::{contents, error_of};

#[test]
fn bad_arguments_of_bench_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["roofline", "--preset", "cleanrI"], "unknown preset `cleanrI`; did you mean `cleanrl`?"),
        (&["roofline", "--envs", "0"], "--envs: expected a whole number from 1 up, got 0"),
        (&["roofline", "--envs", "16777217"], "--envs: expected a whole number from 1 to 16777216, got 16777217"),
        (&["roofline", "--set", "ppo.clib=0.1"], "unknown setting `ppo.clib`; did you mean `ppo.clip`?"),
        (&["roofline", "--set", "network.hidden"], "--set: expected key=value, got `network.hidden`"),
        (&["roofline", "--set", "agent=a2c"], "agent: expected ppo, which --set does not change, got a2c"),
        (
            &["roofline", "--agent", "a2c", "--preset", "default"],
            "roofline: expected ppo, dqn, ddpg, td3 or sac, with perceptrons, got a2c",
        ),
        (&["roofline", "--set", "device=cuda"], "device: expected cpu, because the roofline measures the processor, got cuda:0"),
        (&["roofline", "--threads", "0"], "--threads: expected a whole number from 1 up, got 0"),
        (&["growth"], "the following required arguments were not provided: --out <DIR>"),
        (&["growth", "--to", "g", "--steps", "9999"], "--steps: expected 10000 steps or more, such as 10k or 100m, got 9999"),
        (&["growth", "--to", "g", "--steps", "-1m"], "--steps: expected 10000 steps or more, such as 10k or 100m, got -1m"),
        (&["growth", "--to", "g", "--threads", "300"], "--threads: expected 1 to 256, got 300"),
        #[cfg(unix)]
        (&["growth", "--to", "/dev/null"], "cannot create /dev/null: File exists (os error 17)"),
        (&["seeds", "--seeds", "0"], "--seeds: expected a whole number from 1 up, got 0"),
        (&["seeds", "--seeds", "257"], "--seeds: expected a whole number from 1 to 256, got 257"),
        (&["seeds", "--rounds", "x"], "--rounds: expected a whole number from 1 up, got x"),
        (&["seeds", "--preset", "zo"], "unknown preset `zo`; did you mean `zoo`?"),
    ];
    for (arguments, expected) in cases {
        let error = error_of(&gradus(dir.path(), &[&["bench"], *arguments].concat()));
        assert_eq!(error, *expected, "{arguments:?}");
        assert!(contents(dir.path()).is_empty(), "{arguments:?} left something behind");
    }
}

#[test]
fn bad_arguments_of_eval_play_plot_and_check_are_refused() {
    let dir = gradus_testing::tempdir().unwrap();
    short_run(dir.path());
    for (arguments, expected) in [
        (vec!["eval", "run", "--episodes", "0"], "--episodes: expected a whole number from 1 up, got 0"),
        (
            vec!["eval", "run", "--episodes", "9223372036854775807"],
            "--episodes: expected a whole number from 1 to 16777216, got 9223372036854775807",
        ),
        (vec!["eval", "nowhere"], "nowhere: expected a run folder, got none: config.toml is missing"),
        (
            vec!["train", "ppo", "cartpole", "--watch"],
            "--watch: expected a program with the feature `watch`, such as `cargo run --features watch",
        ),
        (vec!["plot", "run", "--format", "eps"], "invalid value 'eps' for '--format <FORMAT>': expected svg, png or pdf"),
        (
            vec!["plot", "run", "--format", "pdf", "--out", "a.svg"],
            "plot: expected --format or --out for run folders, because the ending of --out is the format, got both",
        ),
        (vec!["play", "run/curve.png"], "run/curve.png: expected a run folder or a policy file (.safetensors), got neither"),
        (vec!["play", "run", "--gif", "episode.mp4"], "episode.mp4: expected a name ending in .gif"),
        (vec!["plot", "run", "--out", "curve.eps"], "curve.eps: "),
        (vec!["plot", "nowhere"], "nowhere: expected a run folder"),
        (vec!["plot", "run", "--metric", "train/aprox_kl"], "unknown metric `train/aprox_kl`; did you mean `train/approx_kl`?"),
        (
            vec!["plot", "run", "--metric", "clip"],
            "unknown metric `clip`; did you mean `train/clip_fraction` or `train/clip_low` or `train/clip_high` or `train/clip_range`?",
        ),
        (vec!["plot", "run", "--metric", "x"], "unknown metric `x`; the first line of metrics.csv names all"),
        (vec!["plot", "run", "--metric", "train/loss", "--out", "loss.eps"], "loss.eps: "),
        (vec!["plot", "nowhere", "--metric", "train/loss"], "nowhere: expected a run folder"),
        (vec!["check", "cartpole", "--trace", "nothing.jsonl"], "nothing.jsonl: "),
        (vec!["check", "cartpol", "--trace", "nothing.jsonl"], "unknown environment `cartpol`; did you mean `cartpole`?"),
    ] {
        let before = contents(dir.path());
        let error = error_of(&gradus(dir.path(), &arguments));
        assert!(error.contains(expected), "{arguments:?}:\n  expected {expected}\n  got      {error}");
        assert!(contents(dir.path()) == before, "{arguments:?} left something behind");
    }
}
