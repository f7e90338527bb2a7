//! Tests what `gradus bench` prints and writes, but not the speeds that it measures.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Returns the lines of standard output of a command that must succeed.
fn lines(dir: &Path, arguments: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).arg("bench").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Returns the ratio in the last line, which scripts parse.
fn ratio(lines: &[String]) -> f64 {
    let ratio = lines.last().and_then(|line| line.strip_prefix("ratio: ")).expect("the last line is the ratio");
    assert_eq!(ratio.split_once('.').map(|(_, digits)| digits.len()), Some(2), "{ratio}");
    ratio.parse().unwrap()
}

#[test]
fn the_roofline_ends_with_its_ratio() {
    let settings = ["--set", "network.hidden=[]", "--set", "ppo.rollout_steps=8", "--set", "ppo.minibatch_size=16", "--threads", "1"];
    let lines = lines(Path::new("."), &[&["roofline", "--envs", "8"], &settings[..]].concat());
    assert!(ratio(&lines).is_finite());
    assert_eq!(lines[0], "PPO on cartpole, preset cleanrl, 8 environments, 1 threads");
    // arithmetic: 4 x 3 weights with 26 operations each; optimiser: 16 updates of 15 parameters for 64 steps
    assert!(lines[2].starts_with("arithmetic             0.3 kFLOP per step"), "{}", lines[2]);
    assert!(lines[3].ends_with(" 0 tanh, 14 exp, 5 ln and 3.8 parameters moved by the optimiser per step"), "{}", lines[3]);
}

#[test]
fn growth_writes_only_a_table_and_a_figure() {
    let dir = gradus_testing::tempdir().unwrap();
    let printed = lines(dir.path(), &["growth", "--steps", "20k", "--to", "deep/growth"]);
    assert_eq!(printed.len(), 1 + 2 + 3, "{printed:?}");
    let folder = dir.path().join("deep/growth");
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["growth.csv", "growth.png", "growth.svg"]);
    let table = fs::read_to_string(folder.join("growth.csv")).unwrap();
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let columns = ["steps", "seconds", "mean_microseconds_per_step", "median_microseconds_per_step", "resident_bytes", "multiply_gflops"];
    assert_eq!(rows[0], columns);
    // training ends with a whole rollout of 512 steps
    assert_eq!(rows[1..].iter().map(|row| row[0]).collect::<Vec<_>>(), ["10240", "20480"]);
    let number = |row: usize, column: usize| rows[row][column].parse::<f64>().unwrap();
    // a row's seconds are those of the row before, plus the row's steps times its mean time per step
    for (row, steps, from) in [(1, 10_240.0, 0.0), (2, 10_240.0, number(1, 1))] {
        let seconds = 1e-6 * number(row, 2) * steps;
        assert!((number(row, 1) - from - seconds).abs() < 2e-3, "{table}");
    }
    let figure = fs::read_to_string(folder.join("growth.svg")).unwrap();
    for part in ["\nTime\n", "\nMemory\n", "\nmicroseconds per step\n", "\nresident, MB\n"] {
        assert_eq!(figure.contains(part), part != "\nMemory\n" && part != "\nresident, MB\n" || cfg!(target_os = "linux"), "{part}");
    }
}

#[test]
fn seeds_end_with_their_ratio() {
    let lines = lines(Path::new("."), &["seeds", "--seeds", "3", "--rounds", "1"]);
    assert!(ratio(&lines) > 0.0);
    assert!(lines[0].starts_with("PPO on cartpole, preset cleanrl: 3 trainings at once, one thread each"), "{}", lines[0]);
    let rate = |line: &str| line.split_whitespace().rev().nth(2).and_then(|number| number.parse::<f64>().ok()).unwrap();
    assert!(rate(&lines[1]) > 0.0 && rate(&lines[2]) > 0.0, "{lines:?}");
}
