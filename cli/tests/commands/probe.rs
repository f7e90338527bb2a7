//! `gradus probe`: the agents have the properties that the probe worlds ask for, and an agent with a planted mistake lacks the right one.

use std::process::{Command, Output};

use gradus::agents::registry;

fn probe(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gradus")).arg("probe").args(arguments.split(' ')).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn all_agents_have_all_properties() {
    for agent in registry::all() {
        // one of those that share most of their code is enough here; `.ci/long` tries all
        let is_similar = [
            "double-q-learning",
            "expected-sarsa",
            "n-step-sarsa",
            "policy-iteration",
            "n-step-td",
            "monte-carlo-prediction",
            "qr-dqn",
            "a3c",
        ];
        if is_similar.contains(&agent.name) && std::env::var_os("GRADUS_SEEDS").is_none() {
            continue;
        }
        let output = probe(agent.name);
        match agent.name {
            "dpo" => assert_eq!(output.status.code(), Some(2), "{}: {}", agent.name, text(&output)),
            name => assert!(output.status.success() && text(&output).contains("passes"), "{name}: {}", text(&output)),
        }
    }
}

#[test]
fn agents_with_a_recurrent_cell_remember() {
    for arguments in ["ppo --set network.cell=gru", "a2c --set network.cell=lstm", "pqn --set network.cell=gru"] {
        let (output, property) = (probe(arguments), "passes   acts on what it has seen a step ago");
        assert!(output.status.success() && text(&output).contains(property), "{arguments}: {}", text(&output));
    }
}

#[test]
fn a_planted_mistake_fails_the_right_probe() {
    for (arguments, property) in [
        ("ppo --set optimiser.learning_rate=1e-9", "learns the value of a constant reward"),
        ("ppo --set ppo.gamma=0", "finds the action that is rewarded a step later"),
        ("ppo --set network.cell=gru --set optimiser.learning_rate=1e-9", "acts on what it has seen a step ago"),
        ("dqn --set dqn.gamma=0", "finds the action that is rewarded a step later"),
        ("a2c --set optimiser.learning_rate=1e-9", "learns the value of a constant reward"),
        ("q-learning --set q-learning.alpha=1e-9", "learns the value of a constant reward"),
        ("sac --set optimiser.learning_rate=1e-9", "finds the best continuous action"),
    ] {
        let output = probe(arguments);
        let text = text(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {text}");
        let failed: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("FAILS")).map(str::trim).collect();
        assert!(failed.contains(&property), "{arguments}: {text}");
        assert_eq!(text.matches("look first at").count(), 1, "{text}");
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, expected) in [
        ("pp", "unknown agent `pp`; did you mean `ppo`?"),
        ("ppo --set ppo.gamma=2", "ppo.gamma: expected a number from 0 to 1, got 2"),
        ("ppo --seed x", "--seed: expected a whole number from 0 up, got x"),
    ] {
        let output = probe(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(text(&output).contains(expected), "{arguments}: {}", text(&output));
    }
}
