//! `gradus check` prints one line per topic and a summary, and returns an exit code.

use std::process::{Command, Output};

fn gradus(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments).output().unwrap()
}

#[test]
fn every_topic_has_a_line() {
    let output = gradus(&["check", "CartPole-v1"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), output.status.code()), (13, Some(0)), "{text}");
    assert!(lines[..12].iter().all(|line| line.starts_with("ok     ")), "{text}");
    assert_eq!(lines[12], "CartPole-v1: 12 of 12 topics passed");
}

#[test]
fn an_unknown_environment_is_refused() {
    let output = gradus(&["check", "cartpol"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((error.as_str(), output.status.code()), ("error: unknown environment `cartpol`; did you mean `cartpole`?\n", Some(2)));
}
