//! A seed gives the same numbers bit for bit, for any number of threads, and for single and vectorised environments.

use std::fs;
use std::path::Path;
use std::process::Command;

use gradus::envs::simd::{LIMIT, Level};
use gradus::envs::{EnvSpec, registry};
use gradus::nets::threads;
use gradus::{Config, Run, Show, Trainer};

fn config() -> Config {
    let config = Config::preset("ppo", "cartpole", Some("cleanrl")).unwrap();
    Config { steps: 20_000, seed: 3, envs: 5, evaluate_every: 6_000, ..config }
}

/// Returns the contents of the files that must be reproduced byte for byte.
fn files(dir: &Path) -> Vec<Vec<u8>> {
    ["metrics.csv", "episodes.csv", "policy.safetensors", "config.toml"].map(|name| fs::read(dir.join(name)).unwrap()).into()
}

fn train(config: Config, world: EnvSpec, count: usize) -> Vec<Vec<u8>> {
    let dir = gradus_testing::tempdir().unwrap();
    threads::with(count, || {
        let mut run = Run::create_in_world(config, world, dir.path().join("run")).unwrap();
        run.train(Show::Nothing).unwrap();
    });
    files(&dir.path().join("run"))
}

#[test]
fn runs_do_not_depend_on_the_number_of_threads() {
    let world = || registry::find("cartpole").unwrap();
    let one = train(config(), world(), 1);
    assert!(one[1].len() > 1000, "expected more episodes");
    assert!(one == train(config(), world(), 2), "a run with two threads differs from a run with one");
    assert!(one == train(config(), world(), 5), "a run with five threads differs from a run with one");
    assert!(one != train(Config { seed: 4, ..config() }, world(), 1), "another seed gives the same run");
}

#[test]
fn scalar_and_vector_environments_give_the_same_run() {
    let world = || registry::find("cartpole").unwrap();
    assert!(train(config(), world(), 2) == train(config(), world().scalar(), 2));
}

/// The expected hash is fixed, so the test fails if the numbers change on any processor. An intended change must be in the changelog.
#[test]
fn a_seed_gives_the_same_run_on_every_machine() {
    let mut trainer = Trainer::new(Config { steps: 4_096, ..config() }).unwrap();
    trainer.finish().unwrap();
    // FNV-1a over the parameters' bits
    let bits = trainer.actor_critic().unwrap().parameters().iter().flat_map(|x| x.to_bits().to_le_bytes());
    let hash = bits.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    assert_eq!(format!("{hash:016x}"), "fc82f8e55dc6a074");
}

/// `docs/determinism.md` prints a command and the checksum of the tensors that it trains.
#[test]
fn the_checksum_of_the_page_is_that_of_a_run_at_every_instruction_set() {
    let page = fs::read_to_string(gradus_testing::root().join("docs/determinism.md")).unwrap();
    let command = page.lines().find_map(|line| line.strip_prefix("gradus train ")).expect("the page has a command");
    let expected = page.lines().find_map(|line| line.strip_prefix("ok       runs/a/policy.safetensors: tensors ")).expect("and a checksum");
    let arguments: Vec<&str> = command.split_once(" --out").unwrap().0.split(' ').collect();
    let dir = gradus_testing::tempdir().unwrap();
    for level in Level::available() {
        let out = level.name();
        let gradus = |arguments: &[&str]| {
            let program = env!("CARGO_BIN_EXE_gradus");
            let output = Command::new(program).current_dir(dir.path()).env(LIMIT, level.name()).args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap()
        };
        gradus(&[&["train"], &arguments[..], &["--out", out]].concat());
        let verified = gradus(&["verify", "--all", &format!("{out}/policy.safetensors")]);
        let got = verified.lines().next().unwrap().rsplit(' ').next().unwrap();
        assert_eq!(got, expected, "{level:?}");
    }
}
