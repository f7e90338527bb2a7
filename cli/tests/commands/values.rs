//! The commands that show what a policy thinks: `values`, `play --values`; and `bandit`.

use std::fs;
use std::path::Path;
use std::process::Command;

use gradus_testing::command::error_of;

fn gradus(dir: &Path, command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).current_dir(dir).args(command.split(' ')).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The windy grid world of example 6.5, whose shortest way has 15 steps.
#[test]
fn values_are_shown_as_numbers_and_arrows() {
    let folder = gradus_testing::tempdir().unwrap();
    gradus(folder.path(), "train value-iteration windy-grid --set value-iteration.gamma=1 --steps 40k --out run --quiet");
    let text = gradus(folder.path(), "values run");
    let rows: Vec<&str> = text.lines().collect();
    // the row of the start and the goal: arrows, because ten numbers have no room
    assert_eq!(rows[3], "→ → → → → → → · → ↓", "{text}");
    assert!(folder.path().join("run/values.svg").exists() && folder.path().join("run/values.png").exists());
    gradus(folder.path(), "values run --gif learning.gif");
    assert!(fs::read(folder.path().join("learning.gif")).unwrap().starts_with(b"GIF89a"));

    let text = gradus(folder.path(), "play run --values");
    let steps: Vec<&str> = text.lines().filter(|line| line.starts_with("step ")).collect();
    assert_eq!(steps.len(), 15, "{text}");
    assert!(
        steps[0].starts_with("step 0: action values -16.00 -15.00 -16.00 -16.00; probabilities 0.00 1.00 0.00 0.00; action 1"),
        "{}",
        steps[0]
    );
}

/// A policy that goes in circles has a mean without a spread, which says little.
#[test]
fn an_evaluation_says_that_no_episode_ended() {
    let folder = gradus_testing::tempdir().unwrap();
    gradus(folder.path(), "train sarsa cliff-walking --steps 300 --seed 3 --out young --quiet");
    let text = gradus(folder.path(), "eval young --episodes 3");
    assert!(text.ends_with("no episode ended: each was cut off after 1000 steps\n"), "{text}");
    gradus(folder.path(), "train sarsa cliff-walking --steps 30k --out old --quiet");
    assert!(!gradus(folder.path(), "eval old --episodes 3").contains("no episode ended"));
}

#[test]
fn a_network_shows_its_values() {
    let folder = gradus_testing::tempdir().unwrap();
    gradus(folder.path(), "train ppo frozen-lake --steps 4k --out ppo --quiet");
    assert_eq!(
        gradus(folder.path(), "values ppo").lines().next().unwrap().split_whitespace().count(),
        8,
        "an arrow and a value in each of four cells"
    );
    gradus(folder.path(), "train dqn mountain-car --steps 2k --set dqn.learning_starts=500 --out dqn --quiet");
    assert!(gradus(folder.path(), "values dqn").starts_with("values from "));
    assert!(gradus(folder.path(), "play ppo --values").contains("step 0: value "));
    gradus(folder.path(), "train ppo cartpole --steps 2k --set wrappers.normalise_observations=true --out normalised --quiet");
    gradus(folder.path(), "values normalised");
    let figure = fs::read_to_string(folder.path().join("normalised/values.svg")).unwrap();
    assert!(figure.contains("pole angle in rad"), "in the environment's units");
    gradus(folder.path(), "train q-learning blackjack --steps 2k --out cards --quiet");
    let text = gradus(folder.path(), "values cards");
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[1].trim() == "A  2  3  4  5  6  7  8  9  10" && rows[2].starts_with("21  ") && rows[11].starts_with("12  "), "{text}");
    assert!(text.contains("\nrows: the player's sum; columns: the dealer's card"), "{text}");
}

#[test]
fn a_network_shows_what_its_filters_answer_to() {
    let folder = gradus_testing::tempdir().unwrap();
    gradus(folder.path(), "train pqn breakout --steps 4096 --out games --quiet");
    for (name, features) in [("plain", ""), ("maps", " --features")] {
        gradus(folder.path(), &format!("play games --gif {name}.gif{features}"));
    }
    // the height and the width of a GIF are its bytes 8 to 9 and 6 to 7
    let size = |name: &str| {
        let bytes = fs::read(folder.path().join(name)).unwrap();
        [6, 8].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    };
    let (plain, maps) = (size("plain.gif"), size("maps.gif"));
    assert!(maps[0] == plain[0] && maps[1] < plain[1], "wider, so lower at the same width: {plain:?} {maps:?}");
    // one picture, smaller than an animation
    gradus(folder.path(), "play games --features --gif still.gif --step 2");
    let len = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(size("still.gif") == maps && len("still.gif") < len("maps.gif"));
    gradus(folder.path(), "train ppo cartpole --steps 2k --out numbers --quiet");
    for (arguments, expected) in [
        (
            "numbers --features",
            "--features: expected a policy that sees images through convolutional layers (network.trunk), on the device cpu, got another policy",
        ),
        ("numbers --gif a.gif --step 501", "--step: expected 0 to "),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gradus"));
        let refused = command.current_dir(folder.path()).arg("play").args(arguments.split(' ')).output().unwrap();
        assert!(error_of(&refused).starts_with(expected) && refused.status.code() == Some(2), "{}", error_of(&refused));
    }
    assert!(!folder.path().join("a.gif").exists());
}

/// The regret of each rule, in the order of the table.
fn regrets(dir: &Path) -> Vec<(String, f64)> {
    let text = fs::read_to_string(dir.join("summary.csv")).unwrap();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].to_owned(), cells[5].parse().unwrap())
    };
    text.lines().skip(1).map(row).collect()
}

/// On four Bernoulli arms, rules that use the divergence have a lower regret than epsilon-greedy, whose regret grows with every step, and Exp3 has a lower one than random arms.
#[test]
fn bandit_rules_have_regrets_in_the_known_order() {
    let folder = gradus_testing::tempdir().unwrap();
    let text = gradus(
        folder.path(),
        "bandit --problems bernoulli --values 0.6,0.4,0.4,0.4 --count 100 --steps 2000 epsilon-greedy=0.1 thompson kl-ucb exp3=0.05 --out a",
    );
    let all = regrets(&folder.path().join("a"));
    let of = |name: &str| all.iter().find(|(rule, _)| rule == name).unwrap().1;
    assert!(of("thompson") < of("kl-ucb") && of("kl-ucb") < of("epsilon-greedy=0.1"), "{all:?}");
    // random arms have 0.15 a step
    assert!(of("exp3=0.05") < 0.6 * 0.15 * 2000.0, "{all:?}");
    assert!(text.contains("(Lai and Robbins)"), "{text}");
    // 3 x 0.2 / KL(0.4, 0.6), where the divergence is 0.2 ln 1.5
    let constant: f64 = fs::read_to_string(folder.path().join("a/lai-robbins.csv")).unwrap().lines().nth(1).unwrap().parse().unwrap();
    assert!((constant - 3.0 / 1.5_f64.ln()).abs() < 1e-3, "{constant}");

    gradus(folder.path(), "bandit --problems contextual --count 30 --steps 400 --out b");
    let all = regrets(&folder.path().join("b"));
    assert!(all[1].1 < all[0].1 && all[2].1 < 0.9 * all[0].1, "LinUCB and Thompson's rule against epsilon-greedy: {all:?}");
    // the rules for normal rewards
    gradus(folder.path(), "bandit --count 100 --steps 1000 epsilon-greedy=0.1 thompson kl-ucb --out c");
    let all = regrets(&folder.path().join("c"));
    assert!(all[1].1 < 0.5 * all[0].1 && all[2].1 < 0.6 * all[0].1, "{all:?}");
    // the same bytes again
    let before = fs::read(folder.path().join("b/curves.csv")).unwrap();
    gradus(folder.path(), "bandit --problems contextual --count 30 --steps 400 --out b");
    assert!(before == fs::read(folder.path().join("b/curves.csv")).unwrap());
}
