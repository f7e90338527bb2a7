//! The library as a program of one's own uses it: policies that predict, runs with callbacks, and runs that are trained further.

use std::fs;
use std::ops::ControlFlow;

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::{Action, Actions, Autoreset};
use gradus::evaluate::{Mode, evaluate, play::play};
use gradus::saved::load_behaviour;
use gradus::{Config, Error, Policy, Run, Show, make};
use gradus_testing::tempdir;

fn small(agent: &str, environment: &str, steps: u64) -> Config {
    Config { steps, ..Config::preset(agent, environment, None).unwrap() }
}

#[test]
fn predicted_actions_are_those_of_an_evaluation() {
    // normalised observations, one-hot observations, stacked frames, texts and masks
    let pendulum = small("ppo", "pendulum", 4096).with_setting("wrappers.normalise_observations=true").unwrap();
    let stacked = small("ppo", "cartpole", 2048).with_setting("wrappers.frame_stack=3").unwrap();
    for config in [pendulum, stacked, small("ppo", "taxi", 2048), small("dqn", "frozen-lake", 500), small("grpo", "addition", 500)] {
        let at = format!("{} on {}", config.agent, config.environment);
        let folder = tempdir().unwrap();
        let mut run = Run::create(config, folder.path().join("run")).unwrap();
        run.train(Show::Nothing).unwrap();
        // reads while the folder is locked
        let mut policy = Policy::load(run.dir()).unwrap();
        let (_, world, behaviour) = load_behaviour(run.dir()).unwrap();
        let played = play(behaviour.as_ref(), &world, 7).unwrap();
        let mut env = policy.world().single_episode(7).unwrap();
        for step in 0.. {
            let (observation, mask) = (env.observation().to_vec(), env.action_mask().map(<[bool]>::to_vec));
            let action = policy.predict_masked(&observation, mask.as_deref(), Mode::Greedy).unwrap();
            assert_eq!(played.actions[step], action.into(), "{at}, step {step}");
            if env.step(action).unwrap().done() {
                break;
            }
        }
        assert_eq!((env.length() as usize, env.episode_return()), (played.steps, played.episode_return), "{at}");
        let evaluation = policy.evaluate(5, Mode::Greedy).unwrap();
        assert_eq!(evaluation.returns, run.evaluate(5).unwrap().returns, "{at}");
        let copy = folder.path().join("copy");
        policy.save(&copy).unwrap();
        assert_eq!(Policy::load(&copy).unwrap().evaluate(5, Mode::Greedy).unwrap(), evaluation, "{at}");
        assert_eq!(run.into_policy().evaluate(5, Mode::Greedy).unwrap(), evaluation, "{at}");
    }
}

/// What is inspected is what predicts, with normalised observations, too.
#[test]
fn the_inspected_probabilities_are_those_of_the_prediction() {
    let mut policy =
        Policy::train(small("ppo", "mountain-car", 4096).with_setting("wrappers.normalise_observations=true").unwrap()).unwrap();
    let mut chosen = [0; 3];
    for place in 0..40 {
        let observation = [-1.2 + 0.045 * place as f32, 0.07 - 0.0035 * place as f32];
        let best = policy.inspect(&observation).unwrap()[0].best_actions()[0];
        assert_eq!(policy.predict(&observation, Mode::Greedy).unwrap(), Action::Discrete(best as u32), "{observation:?}");
        chosen[best] += 1;
    }
    assert!(chosen.iter().filter(|count| **count > 0).count() > 1, "{chosen:?}");
    assert_eq!(policy.inspect(&[0.0; 3]).unwrap_err().to_string(), "observations: expected rows of 2 numbers, got 3");
    assert_eq!(policy.inspect(&[0.0, f32::NAN]).unwrap_err().to_string(), "observations: expected finite numbers, got NaN");
}

#[test]
fn many_observations_get_the_actions_of_each() {
    for (agent, environment) in [("ppo", "cartpole"), ("sac", "pendulum")] {
        let mut policy = Policy::train(small(agent, environment, 300)).unwrap();
        let mut envs = policy.world().vec_env_with(0..5, 3, Autoreset::SameStep).unwrap();
        for _ in 0..20 {
            let observations = envs.observations().to_owned();
            let all: Vec<Vec<f32>> = observations.rows().into_iter().map(|row| row.to_vec()).collect();
            let alone: Vec<Vec<f32>> = all.iter().map(|row| numbers(policy.predict(row, Mode::Greedy).unwrap())).collect();
            let actions = policy.predict_many(observations.view(), envs.action_masks(), Mode::Greedy).unwrap();
            assert_eq!((0..5).map(|i| numbers(actions.get(i))).collect::<Vec<_>>(), alone);
            envs.step(actions).unwrap();
            // rows that are not contiguous
            let reversed = observations.slice(ndarray::s![..;-1, ..]);
            let actions = policy.predict_many(reversed, None, Mode::Greedy).unwrap();
            assert_eq!(numbers(actions.get(4)), alone[0]);
        }
    }
}

fn numbers(action: Action<'_>) -> Vec<f32> {
    match action {
        Action::Discrete(action) => vec![action as f32],
        Action::Continuous(row) => row.to_vec(),
    }
}

#[test]
fn sampled_actions_follow_the_distribution_and_the_seed() {
    let mut policy = Policy::train(small("ppo", "cartpole", 8)).unwrap();
    let observation = [0.0, 0.5, 0.02, -0.3];
    let drawn = |policy: &mut Policy| {
        let sampled = (0..2000).map(|_| policy.predict(&observation, Mode::Sampled).unwrap() == Action::Discrete(1));
        sampled.collect::<Vec<bool>>()
    };
    policy.set_seed(4);
    let first = drawn(&mut policy);
    assert_ne!(drawn(&mut policy), first, "the stream goes on");
    policy.set_seed(4);
    assert_eq!(drawn(&mut policy), first);
    // the probability that the network gives to action 1
    let (mut ones, mut stream) = (0, [Stream::new(9, Purpose::Action, 0)]);
    let (mut actions, mut log_prob) = (gradus::nets::ActionRows::Discrete(vec![0]), [0.0]);
    policy.behaviour().actor().act(&observation, None, gradus::nets::Choice::Sample(&mut stream), &mut actions, &mut log_prob);
    let probability = f64::from(log_prob[0].exp());
    let probability = if actions.view() == Actions::Discrete(&[1]) { probability } else { 1.0 - probability };
    first.iter().for_each(|is_one| ones += u32::from(*is_one));
    let error = (f64::from(ones) / 2000.0 - probability).abs();
    assert!(error < 4.0 * (probability * (1.0 - probability) / 2000.0).sqrt(), "{ones} of 2000, expected the share {probability}");
}

#[test]
fn wrong_observations_are_errors() {
    let mut policy = Policy::train(small("ppo", "cartpole", 8)).unwrap();
    let message =
        |policy: &mut Policy, row: &[f32], mask: Option<&[bool]>| policy.predict_masked(row, mask, Mode::Greedy).unwrap_err().to_string();
    assert_eq!(message(&mut policy, &[0.0; 3], None), "observation: expected 4 numbers, got 3");
    assert_eq!(message(&mut policy, &[], None), "observation: expected 4 numbers, got 0");
    assert_eq!(message(&mut policy, &[0.0, 0.0, f32::NAN, 0.0], None), "observation[2]: expected a finite number, got NaN");
    assert_eq!(message(&mut policy, &[0.0; 4], Some(&[true])), "action mask: expected 1 x 2 entries, got 1");
    assert_eq!(message(&mut policy, &[0.0; 4], Some(&[false; 2])), "action mask: expected at least one allowed action, got none");
    let empty = ndarray::Array2::<f32>::zeros((0, 4));
    assert_eq!(policy.predict_many(empty.view(), None, Mode::Sampled).unwrap().len(), 0);

    let mut policy = Policy::train(small("ppo", "frozen-lake", 8)).unwrap();
    assert_eq!(message(&mut policy, &[16.0], None), "observation: expected a whole number from 0 to 15, got 16");
    assert_eq!(message(&mut policy, &[0.5], None), "observation: expected a whole number from 0 to 15, got 0.5");
    let mut code = [0.0; 16];
    code[3] = 1.0;
    let of_code = numbers(policy.predict(&code, Mode::Greedy).unwrap());
    assert_eq!(numbers(policy.predict(&[3.0], Mode::Greedy).unwrap()), of_code, "a number and its one-hot code are the same");
    let mut policy = Policy::train(small("sac", "pendulum", 8)).unwrap();
    assert_eq!(message(&mut policy, &[0.0; 3], Some(&[true])), "action mask: expected none, because actions are continuous, got one");
    let file = Policy::load("Cargo.toml").err().unwrap().to_string();
    assert_eq!(file, "Cargo.toml: expected a run folder or a policy file (.safetensors), got neither");
    assert!(Policy::load("missing").is_err_and(|error| error.to_string().contains("expected a run folder")));
}

/// A run with evaluations, in a new folder.
fn evaluated(dir: &std::path::Path, steps: u64) -> Run {
    let config = Config { steps, evaluate_every: 2000, evaluate_episodes: 5, ..small("ppo", "cartpole", 0) };
    Run::create(config, dir).unwrap()
}

#[test]
fn callbacks_see_every_update_and_evaluation_and_can_end_a_run() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("run");
    let mut run = evaluated(&dir, 50_000);
    let (mut updates, mut best, mut lengths) = (0, f64::NEG_INFINITY, 0);
    run.train_with(Show::Nothing, |update| {
        updates += 1;
        assert_eq!(update.trainer.iteration(), updates);
        lengths += update.iteration.episodes.iter().map(|episode| u64::from(episode.length)).sum::<u64>();
        if let Some(mean) = update.iteration.evaluation {
            assert_eq!(update.iteration.is_best, mean > best);
            best = best.max(mean);
            // the file has the best policy at once, and it can be read while the run goes on
            if update.iteration.is_best {
                let kept = Policy::load(dir.join("best_policy.safetensors")).unwrap();
                assert_eq!(kept.behaviour().save(), update.trainer.policy().save());
            }
        }
        if update.iteration.steps >= 10_000 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .unwrap();
    let steps = run.trainer().steps();
    assert!((10_000..20_000).contains(&steps) && lengths <= steps && best > 0.0);
    assert!(run.trainer().is_finished() && dir.join("policy.safetensors").exists() && dir.join("curve.svg").exists());
    let config = run.trainer().config().clone();
    assert_eq!((config.steps, config.earlier_steps.len()), (steps, 1));
    assert_eq!((config.earlier_steps[0].steps, config.earlier_steps[0].until), (50_000, steps));
    drop(run);
    assert!(Run::resume(&dir).unwrap().trainer().is_finished());
    assert_eq!(*Policy::load(&dir).unwrap().config(), config);
}

#[test]
fn a_run_is_trained_further_and_the_folder_records_it() {
    let folder = tempdir().unwrap();
    let [dir, killed] = ["run", "killed"].map(|name| folder.path().join(name));
    for dir in [&dir, &killed] {
        let mut run = evaluated(dir, 8000);
        run.train(Show::Nothing).unwrap();
        let steps = run.trainer().steps();
        assert_eq!(steps, 8192);
        drop(run);
        let too_few = Run::resume_until(dir, 8192).err().unwrap().to_string();
        assert_eq!(too_few, "steps: expected more than the 8192 that are done, got 8192");
    }
    let best = fs::read(dir.join("best_policy.safetensors")).unwrap();
    let mut run = Run::resume_until(&dir, 16_000).unwrap();
    assert!(!dir.join("policy.safetensors").exists(), "the checkpoint has the newest policy");
    assert_eq!(fs::read(dir.join("best_policy.safetensors")).unwrap(), best);
    // the old best policy, and the checkpoint from before the change, can be read
    for path in [dir.join("best_policy.safetensors"), dir.clone()] {
        Policy::load(path).unwrap();
    }
    run.train(Show::Nothing).unwrap();
    assert_eq!(run.trainer().steps(), 16_128);
    drop(run);

    // the same, but killed before the first checkpoint after the change, and stopped later
    drop(Run::resume_until(&killed, 16_000).unwrap());
    let mut run = Run::resume(&killed).unwrap();
    assert_eq!(run.trainer().total_steps(), 16_128);
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    run.stop_when(stop);
    assert!(matches!(run.train(Show::Nothing), Err(Error::Stopped(_))));
    drop(run);
    Run::resume(&killed).unwrap().train(Show::Nothing).unwrap();
    for name in ["config.toml", "policy.safetensors", "best_policy.safetensors", "episodes.csv"] {
        assert!(fs::read(dir.join(name)).unwrap() == fs::read(killed.join(name)).unwrap(), "{name} differs");
    }
    let config = fs::read_to_string(dir.join("config.toml")).unwrap();
    assert!(config.contains("[[earlier_steps]]\nsteps = 8000\nuntil = 8192\n"), "{config}");
    let (config, world, behaviour) = load_behaviour(&dir).unwrap();
    assert_eq!(config.steps, 16_000);
    evaluate(behaviour.as_ref(), &world, 3, 1, Mode::Greedy).unwrap();
}

#[test]
fn a_run_that_an_evaluation_ended_is_trained_further() {
    let folder = tempdir().unwrap();
    let dir = folder.path().join("run");
    let config = Config { steps: 20_000, evaluate_every: 2000, stop_at: 1.0, ..small("ppo", "cartpole", 0) };
    let mut run = Run::create(config, &dir).unwrap();
    run.train(Show::Nothing).unwrap();
    let steps = run.trainer().steps();
    assert!(steps < 10_000);
    drop(run);
    assert!(Run::resume(&dir).unwrap().trainer().is_finished());
    let mut run = Run::resume_until(&dir, 30_000).unwrap();
    assert!(!run.trainer().is_finished());
    run.train(Show::Nothing).unwrap();
    assert!(run.trainer().steps() > steps);
}

#[test]
fn the_first_example_shows_an_environment_in_the_terminal() {
    let mut env = make("CartPole-v1", 1).unwrap();
    gradus::draw::show(&mut env).unwrap(); // standard output is not a terminal here
    assert_eq!(env.length(), 0);
}

/// A preset begins with the settings of another one, whichever of the two is read first, also in another environment.
#[test]
fn presets_inherit() {
    let folder = tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    file("ppo/acrobot/heir.toml", "inherits = \"cartpole/child\"\nsteps = 7000\n");
    file("ppo/cartpole/child.toml", "inherits = \"parent\"\n[ppo]\nclip = 0.3\n");
    file("ppo/cartpole/parent.toml", "steps = 9000\n[ppo]\nclip = 0.1\nepochs = 3\n");
    gradus::config::register_presets(folder.path()).unwrap();
    let of = |environment: &str, name: &str| {
        let config = Config::preset("ppo", environment, Some(name)).unwrap();
        let settings = config.settings();
        let value = |key: &str| settings.iter().find(|(known, _)| known == key).unwrap().1.clone();
        ["environment", "steps", "ppo.clip", "ppo.epochs"].map(value)
    };
    assert_eq!(of("cartpole", "parent"), ["\"cartpole\"", "9000", "0.1", "3"]);
    assert_eq!(of("cartpole", "child"), ["\"cartpole\"", "9000", "0.3", "3"]);
    assert_eq!(of("acrobot", "heir"), ["\"acrobot\"", "7000", "0.3", "3"]);
}

#[test]
fn presets_that_inherit_from_nothing_or_in_a_circle_are_refused() {
    for (agent, parent) in [("a2c", "none"), ("reinforce", "pendulum/heir"), ("trpo", "heir")] {
        let folder = tempdir().unwrap();
        let path = folder.path().join(agent).join("cartpole");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("heir.toml"), format!("inherits = \"{parent}\"\n")).unwrap();
        let error = gradus::config::register_presets(folder.path()).unwrap_err().to_string();
        let expected = format!(
            "heir.toml: inherits: expected another preset of {agent}, as NAME or ENVIRONMENT/NAME, that does not inherit from this one, got {parent}"
        );
        assert!(error.ends_with(&expected), "{error}");
    }
}

/// A struct that holds one of these can derive `Debug`.
#[test]
fn the_types_that_programs_hold_can_be_printed() {
    let folder = tempdir().unwrap();
    let config = small("ppo", "cartpole", 2048);
    let policy = Policy::train(config.clone()).unwrap();
    let agent = gradus::Agent::new(config.clone()).unwrap();
    let run = Run::create(config, folder.path().join("run")).unwrap();
    let world = policy.world();
    let shown =
        [format!("{policy:?}"), format!("{agent:?}"), format!("{run:?}"), format!("{world:?}"), format!("{:?}", policy.make(1).unwrap())];
    for (text, name) in shown.iter().zip([
        "Policy { config: Config {",
        "Agent { config: ",
        "Run { dir: ",
        "EnvSpec { name: \"cartpole\"",
        "SingleEnv { world: \"cartpole\"",
    ]) {
        assert!(text.starts_with(name) && text.ends_with(".. }"), "{text}");
    }
}
