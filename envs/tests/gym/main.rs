//! Environments of Gymnasium, by `gym:`. What needs Python with Gymnasium is ignored by default; `scripts/gym.sh` runs it.

use std::path::PathBuf;

use gradus_envs::random::{Purpose, Stream};
use gradus_envs::{Action, Actions, Autoreset, EnvSpec, Shape, Space, gym, registry};

/// Refuses to run where there is no Gymnasium, so that no test passes without it.
fn find(name: &str) -> EnvSpec {
    registry::find(name).unwrap_or_else(|error| panic!("{error}"))
}

/// Tests that choose an interpreter take turns.
static CHOSEN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn of_tests(name: &str) -> String {
    format!("gym:tests.gym.worlds:{name}")
}

fn error_of(name: &str) -> String {
    registry::find(name).err().map_or_else(|| panic!("{name}: expected an error"), |error| error.to_string())
}

/// A program that answers as `script` says, in the place of Python.
#[cfg(unix)]
fn pretender(name: &str, script: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("gradus-pretender-{}-{name}", std::process::id()));
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[cfg(unix)]
#[test]
fn what_is_no_worker_is_an_error() {
    let _turn = CHOSEN.lock().unwrap();
    let old = r#"{"protocol": 0}"#;
    let cases = [
        ("absent", None, "cannot run /nowhere/python"),
        ("exit", Some("exit 3".to_string()), "its Python process ended with code 3"),
        ("kill", Some("kill -9 $$".into()), "its Python process ended by signal 9"),
        ("noise", Some("echo hello; cat >/dev/null".into()), "expected an answer of the protocol, got 'h'"),
        ("old", Some(format!("printf 'j\\017\\000\\000\\000{old}'; cat >/dev/null")), "expected a worker of protocol 2, got 0"),
        ("text", Some("printf 'j\\003\\000\\000\\000abc'; cat >/dev/null".into()), "expected JSON"),
        ("short", Some("printf 'j\\377\\000\\000\\000abc'".into()), "its Python process ended with code 0"),
        ("huge", Some("printf 'j\\377\\377\\377\\377'".into()), "its Python process ended with code 0"),
        ("says", Some("echo 'what now' >&2; exit 1".into()), "; what Python printed is in "),
    ];
    for (name, script, expected) in cases {
        let path = script.map_or("/nowhere/python".into(), |script| pretender(name, &script));
        gym::set_python(&path);
        let error = error_of("gym:CartPole-v1");
        assert!(error.starts_with("gym:CartPole-v1: ") && error.contains(expected), "{name}: {error}");
        assert_eq!(error.lines().count(), 1, "{name}: {error}");
        _ = std::fs::remove_file(path);
    }
}

/// Random bytes instead of answers: an error of one line, and at once.
#[cfg(unix)]
#[test]
fn noise_is_an_error() {
    let _turn = CHOSEN.lock().unwrap();
    let mut stream = Stream::new(2, Purpose::Environment, 0);
    let dir = std::env::temp_dir();
    for case in 0..40 {
        // most begin as an answer does
        let mut bytes: Vec<u8> = (0..stream.below(200)).map(|_| stream.below(256) as u8).collect();
        if case % 3 > 0 {
            bytes.splice(0..0, [b"jekm"[case % 4], 40, 0, 0, 0]);
        }
        let file = dir.join(format!("gradus-noise-{}-{case}", std::process::id()));
        std::fs::write(&file, &bytes).unwrap();
        let path = pretender(&format!("noise-{case}"), &format!("cat {}", file.display()));
        gym::set_python(&path);
        let error = error_of("gym:CartPole-v1");
        assert!(error.starts_with("gym:CartPole-v1: ") && error.lines().count() == 1, "{bytes:?}: {error}");
        _ = std::fs::remove_file(path);
        _ = std::fs::remove_file(file);
    }
}

/// Random bytes instead of requests: the worker answers with errors, and ends when its pipe does.
#[cfg(unix)]
#[test]
#[ignore = "needs Python with gymnasium"]
fn workers_survive_noise() {
    use std::io::Write;
    use std::process::{Command, Stdio};
    let mut stream = Stream::new(3, Purpose::Environment, 0);
    for case in 0..12 {
        let mut bytes = Vec::new();
        for _ in 0..20 {
            let text: Vec<u8> = match stream.below(4) {
                0 => (0..stream.below(30)).map(|_| stream.below(256) as u8).collect(),
                1 => br#"{"id": "CartPole-v1"}"#.to_vec(),
                2 => br#"{"n": -1, "frame": 3}"#.to_vec(),
                _ => b"[]".to_vec(),
            };
            bytes.push(b"sarmdvpx"[stream.below(8) as usize]);
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text);
        }
        let mut child = Command::new(gym::python())
            .arg("src/gym/worker.py")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let writer = std::thread::spawn(move || _ = pipe.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert_eq!(output.status.code(), Some(0), "case {case}");
        assert!(output.stdout.contains(&b'e'), "case {case}");
    }
}

#[test]
fn identifiers_are_those_of_gymnasium() {
    assert_eq!(gym::id("gym:CartPole-v1?x=3"), Some("CartPole-v1"));
    assert_eq!((gym::id("cartpole"), gym::is_gym("gym:A"), gym::is_gym("gymA")), (None, true, false));
    for name in ["gym:", "gym:?a=1", "gym:A-v0?size"] {
        assert!(error_of(name).contains("expected gym:ID"), "{name}");
    }
}

/// Plays Gymnasium's environment and ours from the same states, with the same actions.
fn compare_dynamics(native: &str, gymnasium: &str, states: usize) {
    let (own, other) = (find(native), find(&format!("gym:{gymnasium}?wrapper=tests.gym.worlds.Rounded")));
    let (mut own, mut theirs) = (own.env(), other.env());
    let width = own.observation_space().width();
    let (mut seen, mut expected) = (vec![0.0; width], vec![0.0; width + states]);
    let mut stream = Stream::new(5, Purpose::Evaluation, 0);
    let mut steps = 0;
    for episode in 0..20 {
        theirs.reset(episode, &mut expected);
        let start: Vec<f64> = expected[width..].iter().map(|x| f64::from(*x)).collect();
        own.start_from(&start, &mut seen).unwrap();
        for step in 0..150 {
            let numbers;
            let action = match own.action_space() {
                Space::Discrete(n) => Action::Discrete(stream.below(n)),
                Space::Box { low, high } => {
                    numbers = [low[0] + (high[0] - low[0]) * (stream.below(1000) as f32 / 1000.0)];
                    Action::Continuous(&numbers)
                }
                other => panic!("{other}"),
            };
            let (a, b) = (own.step(action, &mut seen), theirs.step(action, &mut expected));
            assert_eq!(seen, expected[..width], "{native}, episode {episode}, step {step}");
            assert_eq!((a.reward as f32, a.terminated), (b.reward as f32, b.terminated), "{native}, episode {episode}, step {step}");
            steps += 1;
            if b.done() {
                break;
            }
        }
    }
    assert!(steps > 300, "{native}: {steps} steps");
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn gymnasiums_episodes_are_ours() {
    compare_dynamics("cartpole", "CartPole-v1", 4);
    compare_dynamics("acrobot", "Acrobot-v1", 4);
    compare_dynamics("pendulum", "Pendulum-v1", 2);
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn the_frozen_lake_is_ours() {
    let (own, theirs) = (find("frozen-lake-deterministic").one_hot(), find("gym:FrozenLake-v1?is_slippery=false"));
    assert_eq!((theirs.one_hot_states(), theirs.is_one_hot(), theirs.max_episode_steps), (Some(16), true, Some(100)));
    let (mut own, mut theirs) = (own.single(1).unwrap(), theirs.single(1).unwrap());
    let mut stream = Stream::new(5, Purpose::Evaluation, 0);
    for _ in 0..1000 {
        let action = Action::Discrete(stream.below(4));
        let (a, b) = (own.step(action).unwrap(), theirs.step(action).unwrap());
        assert_eq!((a, own.observation()), (b, theirs.observation()));
    }
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn observations_are_rows_of_numbers() {
    // the observation of step 1 in each space
    for (kind, expected, parts) in [
        ("box", vec![1.0, 1.0, 2.0, -1.0], "observation"),
        ("bytes", vec![1.0; 6], "observation"),
        ("discrete", vec![0.0, 1.0, 0.0, 0.0, 0.0], "observation"),
        ("multi", vec![0.0, 1.0, 0.0, 0.0, 1.0], "observation"),
        ("binary", vec![1.0, 1.0, 0.0], "observation"),
        ("dict", vec![1.0, 1.0, 2.0, -1.0, 0.0, 1.0], "a z"),
        ("tuple", vec![0.0, 1.0, 1.0, 1.0, 2.0, -1.0, 1.0], "0 1.0 1.1"),
    ] {
        let name = of_tests(&format!("Counting-v0?kind={kind}"));
        let known = gym::describe(&name).unwrap();
        let names: Vec<&str> = known.parts.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names.join(" "), known.render_fps), (parts.to_string(), Some(4)), "{kind}");
        assert_eq!(known.left_out, if kind == "dict" { vec!["words"] } else { vec![] }, "{kind}");
        let mut env = find(&name).single(1).unwrap();
        assert_eq!(env.action_space(), Space::Discrete(3));
        for action in 0..3 {
            // the reward says that the action is in Gymnasium's space, which begins at -1
            assert_eq!(env.step(Action::Discrete(action)).unwrap().reward, 1.0, "{kind}");
            if action == 0 {
                assert_eq!(env.observation(), expected, "{kind}");
            }
        }
    }
    let some = of_tests("Counting-v0?kind=dict&keys=z");
    assert_eq!(gym::describe(&some).unwrap().parts, [("z".to_string(), 2)]);
    let stacked = of_tests("Counting-v0?kind=bytes&wrapper=FrameStackObservation(3)&wrapper=FlattenObservation");
    assert_eq!(find(&stacked).env().observation_space(), Space::Box { low: vec![0.0; 18], high: vec![255.0; 18] });
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn boxes_of_actions_keep_their_bounds() {
    let mut env = find(&of_tests("Counting-v0?kind=box&actions=box")).single(1).unwrap();
    assert_eq!(env.action_space(), Space::Box { low: vec![-1.0, 0.0], high: vec![1.0, 10.0] });
    assert_eq!(env.step(Action::Continuous(&[-1.0, 10.0])).unwrap().reward, 1.0);
    // the nearest f32 of these bounds lie outside of them
    let mut env = find(&of_tests("Counting-v0?kind=box&actions=double")).single(1).unwrap();
    for bound in [0.1, 0.3] {
        assert_eq!(env.step(Action::Continuous(&[bound])).unwrap().reward, 1.0, "{bound}");
    }
    let several = |kind: &str| find(&of_tests(&format!("Counting-v0?kind=box&actions={kind}")));
    // any action belongs to their space
    for (kind, sizes) in [("multi", vec![3, 1, 2, 4]), ("binary", vec![2, 2, 2])] {
        let mut env = several(kind).single(1).unwrap();
        assert_eq!(env.action_space(), Space::MultiDiscrete(sizes.clone()));
        for action in [0, 1, sizes.iter().product::<u32>() - 1] {
            assert_eq!(env.step(Action::Discrete(action)).unwrap().reward, 1.0, "{kind}, {action}");
        }
        assert!(env.step(Action::Discrete(sizes.iter().product())).is_err());
    }
    let unbounded = find(&of_tests("Counting-v0?kind=box&actions=unbounded"));
    assert_eq!(unbounded.env().action_space(), Space::Box { low: vec![f32::NEG_INFINITY; 2], high: vec![f32::INFINITY; 2] });
    assert_eq!(find(&of_tests("Counting-v0?kind=box&actions=one")).env().action_space(), Space::Discrete(1));
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn ends_are_those_of_every_autoreset_mode() {
    let name = of_tests("Counting-v0?kind=discrete&limit=3");
    let state = |row: &[f32]| row.iter().position(|x| *x == 1.0).unwrap();
    for (mode, expected) in [(Autoreset::SameStep, [1, 2, 0, 1, 2, 0, 1]), (Autoreset::NextStep, [1, 2, 3, 0, 1, 2, 3])] {
        let mut envs = find(&name).vec_env_with(0..2, 1, mode).unwrap();
        let mut finals = Vec::new();
        let seen = expected.map(|_| {
            let step = envs.step(Actions::Discrete(&[0, 1])).unwrap();
            finals.extend(step.finished.iter().map(|end| (state(&end.observation), end.length, end.ending.truncated())));
            state(&envs.observation_rows()[..5])
        });
        assert_eq!(seen, expected, "{mode:?}");
        assert_eq!(finals, [(3, 3, true); 4], "{mode:?}");
    }
    let mut envs = find(&name).vec_env_with(0..2, 1, Autoreset::Disabled).unwrap();
    for _ in 0..3 {
        envs.step(Actions::Discrete(&[0, 1])).unwrap();
    }
    assert!(envs.step(Actions::Discrete(&[0, 1])).is_err());
    envs.begin_next(1).unwrap();
    envs.step_unfinished(Actions::Discrete(&[0, 1])).unwrap();
    assert_eq!(state(&envs.observation_rows()[5..]), 1);
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn episodes_do_not_depend_on_the_vectors() {
    let world = find("gym:CartPole-v1");
    let play = |ids: std::ops::Range<usize>| {
        let mut envs = world.vec_env(ids.clone(), 3).unwrap();
        let mut all = Vec::new();
        for t in 0..200_u32 {
            let actions: Vec<u32> = ids.clone().map(|id| (t + id as u32) % 2).collect();
            all.push((envs.step(Actions::Discrete(&actions)).unwrap().finished.len(), envs.observation_rows().to_vec()));
        }
        all
    };
    let (both, first, second) = (play(0..4), play(0..1), play(1..4));
    for t in 0..200 {
        assert_eq!(both[t].1, [&first[t].1[..], &second[t].1[..]].concat(), "step {t}");
        assert_eq!(both[t].0, first[t].0 + second[t].0);
    }
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn loaded_vectors_begin_new_episodes() {
    let world = find("gym:CartPole-v1");
    let mut envs = world.vec_env(0..2, 3).unwrap();
    let first = envs.observation_rows().to_vec();
    let new = envs.save();
    for _ in 0..5 {
        envs.step(Actions::Discrete(&[0, 1])).unwrap();
    }
    let running = envs.save();
    let mut other = world.vec_env(0..2, 3).unwrap();
    other.load(&new).unwrap();
    assert_eq!(other.observation_rows(), first, "an episode that has just begun begins again");
    other.load(&running).unwrap();
    assert_ne!(other.observation_rows(), envs.observation_rows());
    let mut stacked = world.clone().stacked(2).vec_env(0..2, 3).unwrap();
    let words = stacked.save();
    stacked.load(&words).unwrap();
    assert_eq!((other.episodes_begun(0), envs.episodes_begun(0)), (2, 1));
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn masks_follow_the_episodes() {
    let world = find(&of_tests("Masked-v0"));
    let mut envs = world.vec_env(0..2, 3).unwrap();
    assert_eq!(envs.action_masks().unwrap(), [true, false, false, true, false, false]);
    // the second one takes a wrong action, and begins again
    let step = envs.step(Actions::Discrete(&[0, 2])).unwrap();
    assert_eq!(step.finished[0].mask, Some(vec![false, true, false]), "the mask of the final observation");
    assert_eq!(envs.action_masks().unwrap(), [false, true, false, true, false, false]);
}

/// A mask of several choices is one array, or one for each choice; the digits of an action are the choices.
#[test]
#[ignore = "needs Python with gymnasium"]
fn masks_have_a_row_for_each_choice() {
    let rows = |masks: &str| {
        let mut envs = find(&of_tests(&format!("Dials-v0?masks={masks}"))).vec_env(0..3, 3).unwrap();
        for step in 0..50 {
            let (seen, masks) = (envs.observation_rows().to_vec(), envs.action_masks().unwrap().to_vec());
            let mut actions = [0; 3];
            for env in 0..3 {
                let right = |from: usize, n: usize| seen[7 * env + from..7 * env + from + n].iter().position(|x| *x == 1.0).unwrap();
                let (first, second) = (right(0, 3), right(3, 4));
                let expected: Vec<bool> = (0..7).map(|i| i != (first + 1) % 3 && i != 3 + (second + 1) % 4).collect();
                assert_eq!(masks[7 * env..7 * env + 7], expected, "step {step}");
                actions[env] = (4 * first + second) as u32;
            }
            assert_eq!(envs.step(Actions::Discrete(&actions)).unwrap().rewards, [2.0; 3], "step {step}");
        }
        envs.observation_rows().to_vec()
    };
    assert_eq!(rows("parts"), rows("flat"));
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn pictures_are_those_of_rgb_array() {
    let mut env = find(&of_tests("Counting-v0?kind=box")).single(1).unwrap();
    env.step(Action::Discrete(0)).unwrap();
    let scene = env.render().unwrap().expect("a picture");
    let Shape::Picture(picture) = &scene.shapes[0] else { panic!("{scene:?}") };
    // one without this mode, whose constructor does not know it
    assert_eq!(find(&of_tests("Bad-v0")).single(1).unwrap().render().unwrap(), None);
    assert_eq!((picture.width, picture.height, &picture.rgb[..]), (3, 2, &[1; 18][..]));
}

/// The bytes that `tests/gym/atari.py` writes of a game with Gymnasium's own wrapper: for each observation a flag, whether an episode has ended with it, the reward
/// and the picture.
fn of_gymnasiums_wrapper(id: &str, seed: u64, steps: usize) -> Vec<u8> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gym/atari.py");
    let output = std::process::Command::new(gym::python()).args([script, id, &seed.to_string(), &steps.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Gymnasium's pictures are OpenCV's, which rounds ties in both directions.
#[test]
#[ignore = "needs Python with ale-py and opencv-python"]
fn atari_games_are_those_of_gymnasiums_wrapper() {
    const PIXELS: usize = 84 * 84;
    for (id, steps) in [("MsPacmanNoFrameskip-v4", 1500), ("ALE/Freeway-v5", 600), ("ALE/Skiing-v5", 300)] {
        let world = gym::atari(&format!("gym:{id}"), gym::AtariEpisodes::Games).unwrap();
        assert!(matches!(world.env().observation_space(), Space::Image(image) if image.len() == PIXELS));
        let actions = world.env().action_space().elements().unwrap();
        let mut env = world.env();
        let mut picture = vec![0.0; PIXELS];
        let (mut seed, mut others, mut episodes) = (3, 0, 0);
        env.reset(seed, &mut picture);
        let (mut reward, mut ended) = (0.0, 0);
        let all = of_gymnasiums_wrapper(id, seed, steps);
        let (chunks, rest) = all.as_chunks::<{ 5 + PIXELS }>();
        assert!(rest.is_empty() && chunks.len() == steps);
        for (step, theirs) in chunks.iter().enumerate() {
            let at = format!("{id}, step {step}");
            assert_eq!((theirs[0], f32::from_le_bytes(theirs[1..5].try_into().unwrap())), (ended, reward), "{at}");
            if ended == 0 {
                let differences = || picture.iter().zip(&theirs[5..]).map(|(a, b)| (*a as i32 - i32::from(*b)).abs());
                assert!(differences().max() <= Some(1), "{at}");
                others += differences().sum::<i32>();
            } else {
                seed += 1;
                env.reset(seed, &mut picture);
            }
            let result = env.step(Action::Discrete((step as u32 / 3 * 7) % actions), &mut picture);
            (reward, ended) = (result.reward as f32, u8::from(result.terminated) + 2 * u8::from(result.truncated));
            episodes += usize::from(ended > 0);
        }
        assert!((others as f64) < 0.01 * (PIXELS * steps) as f64, "{id}: {others} pixels differ");
        assert!(episodes > 0 || !id.starts_with("MsPacman"), "expected the end of a game");
    }
}

#[test]
#[ignore = "needs Python with ale-py and opencv-python"]
fn an_episode_of_atari_is_a_life_or_a_game() {
    let lives = gym::atari("gym:BreakoutNoFrameskip-v4", gym::AtariEpisodes::Lives).unwrap().stacked(2);
    let games = lives.clone().on_split(gradus_envs::text::Split::Test);
    let play = |world: &EnvSpec, episodes: usize| {
        let mut envs = world.vec_env(0..2, 1).unwrap();
        let mut lengths = Vec::new();
        for step in 0_u32.. {
            let stepped = envs.step(Actions::Discrete(&[step % 4, step / 2 % 4])).unwrap();
            lengths.extend(stepped.finished.iter().filter(|finished| finished.env == 0).map(|finished| finished.length));
            if lengths.len() >= episodes {
                break;
            }
        }
        lengths
    };
    let (of_lives, of_games) = (play(&lives, 5), play(&games, 1));
    assert_eq!(lives.max_episode_steps, Some(27_000));
    // a game has five lives
    assert!(
        of_lives.iter().all(|length| *length < of_games[0]) && of_lives.iter().sum::<u32>() < 2 * of_games[0],
        "{of_lives:?} {of_games:?}"
    );
    // an episode follows from its seed, whatever was reset before it
    let mut env = lives.env();
    let [mut first, mut again] = [(); 2].map(|()| vec![0.0; env.observation_space().width()]);
    env.reset(7, &mut first);
    env.reset(3, &mut again);
    env.reset(7, &mut again);
    assert_eq!(first, again);
    for wrong in ["gym:CartPole-v1", "gym:ALE/Pong-v5?frameskip=2", "gym:ALE/Pong-v5?wrapper=ClipReward(-1,1)"] {
        let error = gym::atari(wrong, gym::AtariEpisodes::Lives).err().unwrap().to_string();
        let expected =
            "expected a game of the Arcade Learning Environment without wrappers, obs_type and frameskip for Atari's preprocessing, got";
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn a_name_without_a_version_is_that_of_the_newest_one() {
    assert_eq!(find("gym:CartPole").name, "gym:CartPole-v1");
    assert_eq!(find("gym:CartPole?sutton_barto_reward=true").name, "gym:CartPole-v1?sutton_barto_reward=true");
    assert_eq!(find(&of_tests("Bad?how=nan")).name, of_tests("Bad-v0?how=nan"));
}

#[test]
#[ignore = "needs Python with gymnasium"]
fn faults_are_named_in_one_line() {
    for (how, expected) in [
        ("raise", "ValueError: lost the ball (at "),
        ("shape", "observation: expected the shape (3,), got (4,)"),
        ("type", "observation: expected numbers of type float32, got complex64"),
        ("nan", "observation[1] of environment 1 is NaN, expected a finite number"),
        ("reward", "reward of environment 1 is inf, expected a finite number"),
        ("nothing", "reward: expected a number, got None"),
        ("rewards", "reward: expected one number, got the shape (2,)"),
        ("text", "reward: expected a number, got 'much'"),
        ("exit", "SystemExit: 3"),
        ("die", "its Python process ended with code 7"),
        ("four", "step: expected (observation, reward, terminated, truncated, info), got 4 values"),
        ("flag", "terminated: expected True or False, got 'False'"),
        ("flags", "truncated: expected True or False, got array([False, False])"),
        ("none", "truncated: expected True or False, got None"),
        ("spaces", "reset: expected the space Box(-1.0, 1.0, (3,), float32), got Box(-1.0, 1.0, (4,), float32)"),
        ("reset", "reset: expected (observation, info), got ndarray"),
        ("inside", "reset: expected a space of the form ((), '2', 'None', 0), got Discrete(3)"),
        ("info", "info: expected a dict, got None"),
        ("mask", "info: expected \"action_mask\" from the first reset on, or never, got the first one in a step"),
    ] {
        let name = of_tests(&format!("Bad-v0?how={how}"));
        // the second environment alone goes wrong: the first one has fewer steps
        let error = (|| {
            let mut envs = find(&name).vec_env(0..2, 3)?;
            for _ in 0..60 {
                envs.step(Actions::Discrete(&[0, 0]))?;
            }
            Ok::<_, gradus_envs::EnvError>(())
        })()
        .expect_err(how)
        .to_string();
        let expected = expected.replace("environment 1", "environment 0");
        assert!(error.contains(&name) && error.contains(&expected), "{how}: {error}");
        assert_eq!(error.lines().count(), 1, "{how}: {error}");
    }
    for how in ["", "print", "array", "close"] {
        let mut envs = find(&of_tests(&format!("Bad-v0?how={how}"))).vec_env(0..2, 3).unwrap();
        for _ in 0..120 {
            envs.step(Actions::Discrete(&[0, 0])).unwrap();
        }
    }
    for (kind, problem) in [
        ("kind=sequence", "got Sequence"),
        ("kind=graph", "got Graph"),
        ("kind=oneof", "got OneOf"),
        ("kind=text", "observations: expected numbers, got only the text observation"),
        ("kind=box&actions=huge", "actions: expected fewer than 2^32 combinations of choices, got MultiDiscrete([70000, 70000])"),
        ("kind=box&actions=text", "actions: expected Discrete, Box, MultiDiscrete or MultiBinary, got Text"),
        ("kind=box&keys=a", "keys: expected an environment with a Dict of observations, got Box"),
        ("kind=dict&keys=b", "keys: expected some of a, words, z, got b"),
        ("kind=box&wrapper=Nothing", "unknown wrapper `Nothing`"),
        (
            "kind=box&wrapper=NormalizeReward",
            "wrapper NormalizeReward: expected none with statistics, which would differ from process to process, got one",
        ),
        ("kind=box&wrapper=", "wrapper: expected a name with numbers or texts, such as FrameStackObservation(4), got ``"),
        ("kind=box&size=3", "unexpected keyword argument 'size'"),
    ] {
        let error = error_of(&of_tests(&format!("Counting-v0?{kind}")));
        assert!(error.contains(problem), "{kind}: {error}");
    }
    for (name, problem) in [
        ("gym:Nothing-v0", "doesn't exist"),
        ("gym:no_such_module:A-v0", "no module no_such_module in "),
        ("gym:worlds.py/A:A-v0", "expected MODULE:ID, such as my_worlds:Maze-v0 of the file my_worlds.py, got worlds.py/A:A-v0"),
        ("gym:no_such_module/A-v0", " -m pip install no-such-module"),
    ] {
        assert!(error_of(name).contains(problem), "{name}: {}", error_of(name));
    }
}
