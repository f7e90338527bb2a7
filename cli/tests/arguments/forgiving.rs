//! Input that is unusual but clear is understood, and settings that are hardly meant give a warning.

use std::path::Path;
use std::process::Command;

/// Returns standard output and standard error of a command that succeeds.
fn gradus(folder: &Path, arguments: &str) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments.split(' ')).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn the_version_is_that_of_gradus() {
    let (version, _) = gradus(&std::env::temp_dir(), "--version");
    assert_eq!(version, concat!("gradus ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn agent_and_environment_may_come_in_either_order() {
    let folder = gradus_testing::tempdir().unwrap();
    assert!(gradus(folder.path(), "train CartPole-v1 ppo --steps 100 --out a").0.starts_with("ppo on cartpole, 256 steps"));
}

#[test]
fn settings_may_lack_their_section_and_numbers_may_end_in_k_or_m() {
    let folder = gradus_testing::tempdir().unwrap();
    let arguments = "train ppo cartpole --set clip=0.3 --set steps=1k --set evaluate_every=10k --set hidden=[32] --out a";
    assert!(gradus(folder.path(), arguments).0.starts_with("ppo on cartpole, 1024 steps"));
    let config = std::fs::read_to_string(folder.path().join("a/config.toml")).unwrap();
    for line in ["clip = 0.3", "steps = 1000", "evaluate_every = 10000", "hidden = [32]"] {
        assert!(config.lines().any(|other| other == line), "{line}");
    }
    std::fs::write(folder.path().join("short.toml"), "steps = \"2k\"\n").unwrap();
    let (told, _) = gradus(folder.path(), "train ppo cartpole --config short.toml --out b");
    assert!(told.starts_with("ppo on cartpole, 2048 steps"), "{told}");
}

#[test]
fn a_learning_rate_that_is_hardly_meant_gives_a_warning() {
    let folder = gradus_testing::tempdir().unwrap();
    let (_, warning) = gradus(folder.path(), "train ppo cartpole --steps 100 --set learning_rate=1e9 --out a");
    assert_eq!(warning, "warning: optimiser.learning_rate: 1e9 is far above the usual 1e-5 to 1e-1, so the training will hardly succeed\n");
    assert_eq!(gradus(folder.path(), "train ppo cartpole --steps 100 --set learning_rate=1 --out b").1, "");
    assert_eq!(gradus(folder.path(), "train ppo cartpole --steps 100 --set learning_rate=1e9 --quiet --out c"), Default::default());
}

#[test]
fn figures_and_animations_create_their_folders() {
    let folder = gradus_testing::tempdir().unwrap();
    gradus(folder.path(), "train ppo cartpole --steps 500 --out a");
    gradus(folder.path(), "plot a --out new/figures/a.svg");
    gradus(folder.path(), "play a --gif new/animations/a.gif");
    assert!(folder.path().join("new/figures/a.svg").exists() && folder.path().join("new/animations/a.gif").exists());
}

#[test]
fn lists_fit_80_columns() {
    let folder = gradus_testing::tempdir().unwrap();
    for list in ["list", "list --presets", "list --settings"] {
        let (text, _) = gradus(folder.path(), list);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{list}: {line}");
        }
    }
    let (text, _) = gradus(folder.path(), "list");
    assert!(
        text.contains("\n  ppo                     proximal policy optimisation: clipped surrogate or KL\n                          penalty, and GAE\n"),
        "{text}"
    );
}
