//! The command line prints numbers with meaningful digits, notes about finished runs, and warnings about missing episodes.

use std::path::Path;
use std::process::{Command, Output};

use gradus::draw::{self, Animation, Frame};
use gradus::envs::{Action, Env, EnvError, EnvSpec, Space, Step};
use gradus::evaluate::play::{play, write_gif};
use gradus::saved::load_policy;
use gradus::{Config, Run, Show};

fn gradus(folder: &Path, arguments: &str) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_gradus")).args(arguments.split(' ')).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn stdout(folder: &Path, arguments: &str) -> String {
    String::from_utf8(gradus(folder, arguments).stdout).unwrap()
}

/// Returns the number after `before`, as it is written.
fn number<'a>(text: &'a str, before: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("expected `{before}` in {text}")).1;
    rest.split([' ', ',', ')', '\n']).next().unwrap()
}

fn decimals(number: &str) -> usize {
    number.split_once('.').map_or(0, |(_, decimals)| decimals.len())
}

/// FrozenLake's return is 0 or 1: the mean of 100 episodes has an error of some hundredths, so one decimal is not enough.
#[test]
fn small_returns_have_the_digits_that_their_error_allows() {
    let folder = gradus_testing::tempdir().unwrap();
    let trained = stdout(folder.path(), "train ppo frozen-lake --steps 50k --out lake");
    assert_eq!(decimals(number(&trained, "training episodes: ")), 3, "{trained}");
    let evaluated = stdout(folder.path(), "eval lake");
    let json: serde_json::Value = serde_json::from_str(&stdout(folder.path(), "eval lake --json")).unwrap();
    let mean = number(&evaluated, "mean ");
    assert_eq!(mean, format!("{:.3}", json["mean"].as_f64().unwrap()), "{evaluated}");
    assert_eq!(decimals(number(&evaluated, "std ")), 3, "{evaluated}");
    assert!(evaluated.ends_with("min 0, max 1)\n"), "{evaluated}");
}

#[test]
fn large_returns_have_no_meaningless_digits() {
    let folder = gradus_testing::tempdir().unwrap();
    stdout(folder.path(), "train ppo pendulum --steps 4k --quiet --out pendulum");
    let evaluated = stdout(folder.path(), "eval pendulum --episodes 30");
    let json: serde_json::Value = serde_json::from_str(&stdout(folder.path(), "eval pendulum --episodes 30 --json")).unwrap();
    let (mean, std) = (json["mean"].as_f64().unwrap(), json["std"].as_f64().unwrap());
    assert!(std / 30_f64.sqrt() > 10.0 && std < 1000.0, "standard deviation after little training: {std}");
    assert_eq!(number(&evaluated, "mean "), format!("{mean:.0}"), "{evaluated}");
    let played = stdout(folder.path(), "play pendulum --gif pendulum.gif");
    let shown = number(&played, "return ");
    assert!(shown.trim_start_matches('-').replace('.', "").len() <= 4, "{played}");

    // the title of the animation is only the environment's name
    let (_, world, policy) = load_policy(folder.path().join("pendulum")).unwrap();
    let [written, expected] = ["written.gif", "expected.gif"].map(|name| folder.path().join(name));
    write_gif(policy.as_ref(), &world, 3, &written).unwrap();
    let played = play(policy.as_ref(), &world, 3).unwrap();
    let frames: Vec<Frame> = played.frames.iter().step_by(2).cloned().collect();
    draw::write_gif(&Animation { title: "Pendulum-v1".into(), chapters: &[], frames: &frames, frames_per_second: 25 }, &expected).unwrap();
    assert!(std::fs::read(written).unwrap() == std::fs::read(expected).unwrap());
}

#[test]
fn resuming_a_finished_run_says_so() {
    let folder = gradus_testing::tempdir().unwrap();
    let first = stdout(folder.path(), "train ppo cartpole --steps 4k --out run");
    assert!(number(&first, "trained for ").parse::<f64>().unwrap() > 0.0, "{first}");
    let again = stdout(folder.path(), "train --resume run");
    let seconds = number(&first, "trained for ");
    assert!(again.contains(&format!("\nthis run was already finished; it trained for {seconds} s in total, ")), "{again}");
    assert!(again.ends_with("\ntrain it further with: gradus train --resume run --steps 8192\n"), "{again}");
    assert_eq!(again.lines().count(), first.lines().count() + 1);
    assert!(!first.contains("already finished"), "{first}");
    let further = stdout(folder.path(), "train --resume run --steps 6k");
    assert!(further.starts_with("ppo on cartpole, 6144 steps, seed 1, from step 4096, in run\n"), "{further}");
}

#[test]
fn a_training_without_a_finished_episode_warns() {
    let folder = gradus_testing::tempdir().unwrap();
    let output = gradus(folder.path(), "train ppo pendulum --steps 64 --envs 4 --set ppo.rollout_steps=16 --out short");
    let warning = String::from_utf8(output.stderr).unwrap();
    let expected = "warning: no episode has ended in 64 steps, so there is no return to report: give the environment a terminal \
                    state or a time limit, or train for more steps\n";
    assert_eq!(warning, expected);
    assert!(!String::from_utf8(output.stdout).unwrap().contains("NaN"));
    let quiet = gradus(folder.path(), "train ppo pendulum --steps 64 --envs 4 --set ppo.rollout_steps=16 --out quiet --quiet");
    assert!(quiet.stderr.is_empty() && quiet.stdout.is_empty());
    let ended = gradus(folder.path(), "train ppo cartpole --steps 2k --out ended");
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// An environment whose episodes never end.
struct Endless;

impl Env for Endless {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }

    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }

    fn reset(&mut self, _seed: u64, observation: &mut [f32]) {
        observation.fill(0.0);
    }

    fn step(&mut self, _action: Action<'_>, observation: &mut [f32]) -> Step {
        observation.fill(0.5);
        Step { reward: 1.0, terminated: false, truncated: false }
    }

    fn save(&self) -> Vec<u64> {
        Vec::new()
    }

    fn load(&mut self, _state: &[u64]) -> Result<(), EnvError> {
        Ok(())
    }
}

#[test]
fn an_environment_that_never_ends_trains_and_has_no_return() {
    let folder = gradus_testing::tempdir().unwrap();
    let config = Config { steps: 2_048, environment: "endless".into(), ..Config::default() };
    let world = EnvSpec::new("endless", || Endless);
    let mut run = Run::create_in_world(config, world, folder.path().join("run")).unwrap();
    run.train(Show::Nothing).unwrap();
    assert_eq!((run.trainer().recent_episodes(), run.trainer().recent_return_shown()), (0, None));
    assert!(folder.path().join("run/policy.safetensors").exists());
}

/// Runs that differ only in their seed share a name in the legend. Every metric has a panel.
#[test]
fn metrics_of_runs_are_drawn_by_name() {
    let folder = gradus_testing::tempdir().unwrap();
    for (name, settings) in [("clip-0.2", ""), ("clip-inf", " --set ppo.clip=inf")] {
        for seed in [1, 2] {
            stdout(folder.path(), &format!("train ppo cartpole --steps 2k --quiet --seed {seed} --out {name}-{seed}{settings}"));
        }
    }
    let said = stdout(folder.path(), "plot clip-0.2-1 --metric train/approx_kl");
    assert_eq!(said.replace('\\', "/"), "clip-0.2-1/metrics.svg\nclip-0.2-1/metrics.png\n");
    let runs = "clip-0.2-1 clip-0.2-2 clip-inf-1 clip-inf-2";
    stdout(folder.path(), &format!("plot {runs} --metric train/approx_kl --metric eval/mean_reward --out both.svg"));
    let svg = std::fs::read_to_string(folder.path().join("both.svg")).unwrap();
    for text in
        ["CartPole-v1", "clip-0.2 (2 seeds)", "clip-inf (2 seeds)", "train/approx_kl", "eval/mean_reward", "no values in these runs"]
    {
        assert_eq!(svg.matches(text).count(), 1, "{text}");
    }
}
