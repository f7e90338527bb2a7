//! A program that calls `gradus::program` reports a failure of a custom environment in one line, with exit code 2. This test has its own
//! `main`, which is also the program: with an argument it does what the argument says.

mod failing;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::AtomicBool;

use failing::{Fault, world};
use gradus::envs::{checker, registry};
use gradus::evaluate::{evaluate, play, record};
use gradus::{Config, Error, Mode, Run, Show, Trainer};
use gradus_compare::{Code, Comparison, Execution, compare};

const COMMANDS: [&str; 7] = ["train", "resume", "evaluate", "play", "record", "compare", "check"];

fn config() -> Result<Config, Error> {
    let settings = ["ppo.rollout_steps=32", "ppo.minibatch_size=64", "network.hidden=[8]"];
    let config = Config { steps: 512, ..Config::preset("ppo", "failing", None)? };
    settings.iter().try_fold(config, |config, setting| config.with_setting(setting))
}

/// Does what `command` says in an environment that panics.
fn run(command: &str, dir: &Path) -> Result<(), Error> {
    let sound = world(Fault::None, 0, 0);
    registry::register(world(Fault::Step, 2, 3))?;
    let policy = || Trainer::in_world(config()?, sound.clone());
    match command {
        "train" => Run::create(config()?, dir.join("run"))?.train(Show::Nothing),
        "resume" => Run::resume_in_world(dir.join("run"), sound)?.train(Show::Nothing),
        "evaluate" => evaluate(policy()?.policy(), &world(Fault::Step, 1, 3), 10, 1, Mode::Sampled).map(|_| ()),
        "play" => Ok(play::play(policy()?.policy(), &world(Fault::Step, 1, 3), 7).map(|_| ())?),
        "record" => {
            let actions = play::play(policy()?.policy(), &sound, 7)?.actions;
            record::write_episode(&world(Fault::Step, 1, 3), 7, &actions, dir.join("trace"))
        }
        "compare" => {
            let file = dir.join("comparison.toml");
            let text = "environments = [\"failing\"]\nseeds = 2\nsteps = 512\n[[agents]]\nagent = \"ppo\"\n";
            fs::write(&file, text).map_err(|source| Error::Io { action: "write", path: file.clone(), source })?;
            let execution = Execution { jobs: 2, command: "", code: Code::Program, stop: &AtomicBool::new(false), show: Show::Nothing };
            compare(&Comparison::read(&file)?, &dir.join("results"), execution, |_| ()).map(|_| ())
        }
        _ => {
            println!("{:?}", checker::check_world(&world(Fault::Step, 1, 3)));
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [command, dir] if COMMANDS.contains(&command.as_str()) => gradus::program(|| run(command, dir.as_ref())),
        _ => {
            check();
            ExitCode::SUCCESS
        }
    }
}

fn check() {
    let dir = gradus_testing::tempdir().unwrap();
    for command in COMMANDS {
        let mut program = Command::new(std::env::current_exe().unwrap());
        let output = program.env_remove("RUST_BACKTRACE").arg(command).arg(dir.path()).output().unwrap();
        let (text, error) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        if ["resume", "check"].contains(&command) {
            assert!(output.status.success() && error.is_empty(), "{command}: {error}");
            assert!(command == "resume" || text.contains("expected no panic, got \\\"in step 3 of episode 1 with seed "), "{text}");
            continue;
        }
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{command}: {error}");
        let episode = if ["train", "compare"].contains(&command) { 2 } else { 1 };
        let place = format!("failing: panicked at step 3 of episode {episode} (environment ");
        assert!(error.starts_with("error: ") && error.contains(&place), "{command}: {error}");
        let source = format!("at {}:", Path::new("compare/tests/failing.rs").display());
        assert!(error.contains(&source), "{command}: expected the place in the source, got {error}");
    }
    println!("{} commands report a panic in one line", COMMANDS.len());
}
