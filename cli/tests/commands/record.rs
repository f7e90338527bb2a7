//! Recorded episodes replay to the last digit, with their start and their length.

use gradus::envs::random::{Purpose, Stream};
use gradus::envs::wrappers::TimeAware;
use gradus::envs::{Action, Actions, Ending, Env, EnvError, EnvSpec, Space, Step, registry};
use gradus::evaluate::record::{Recorder, Recordings};
use gradus::evaluate::trace::{self, Episode, RecordedAction, Start};

/// A random walk of a point: the seed determines the start, and the dynamics seed determines how far each action moves the point.
#[derive(Default)]
struct Drift {
    at: f64,
    rng: Option<Stream>,
}

impl Env for Drift {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![f32::NEG_INFINITY; 2], high: vec![f32::INFINITY; 2] }
    }
    fn action_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.reseed(seed);
        self.start_from(&[seed as f64 / 7.0], observation).unwrap();
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Continuous(push) = action else { panic!("expected a box, got {action:?}") };
        self.at += f64::from(push[0]) * self.rng.as_mut().unwrap().unit_f64();
        observation.copy_from_slice(&[self.at as f32, -0.0]);
        Step { reward: -self.at / 3.0, terminated: self.at > 20.0, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        vec![self.at.to_bits()]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.at = f64::from_bits(state[0]);
        Ok(())
    }
    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.at = state[0];
        self.rng.get_or_insert(Stream::new(0, Purpose::Environment, 0));
        observation.copy_from_slice(&[self.at as f32, -0.0]);
        Ok(())
    }
    fn reseed(&mut self, seed: u64) {
        self.rng = Some(Stream::new(seed, Purpose::Environment, 1));
    }
}

fn drift() -> EnvSpec {
    EnvSpec::new("drift", Drift::default)
}

/// Returns the episodes that `play` records, after checking that they replay.
fn recorded(play: impl FnOnce(&mut Recorder<Drift>, &mut [f32])) -> Vec<Episode> {
    let folder = gradus_testing::tempdir().unwrap();
    let file = folder.path().join("episodes.jsonl");
    let recordings = Recordings::create(&file).unwrap();
    let mut env = Recorder::new(Drift::default(), "drift", recordings.clone());
    play(&mut env, &mut [0.0; 2]);
    drop(env);
    if recordings.finish().unwrap() == 0 {
        return Vec::new();
    }
    let report = trace::check_file(&drift(), &file).unwrap();
    assert_eq!(report.agreeing(), report.episodes.len(), "{report:?}");
    trace::read(&file).unwrap()
}

fn walk(env: &mut impl Env, row: &mut [f32], steps: usize) {
    for _ in 0..steps {
        env.step(Action::Continuous(&[0.7]), row);
    }
}

#[test]
fn an_episode_is_recorded_with_its_seed() {
    let episodes = recorded(|env, row| {
        env.reset(u64::MAX, row);
        walk(env, row, 1);
        env.reset(139, row); // begins at 19.86
        walk(env, row, 3);
    });
    let (first, second) = (&episodes[0], &episodes[1]);
    assert_eq!(first.start, Start::Seed { seed: u64::MAX, rng: None });
    assert_eq!((&first.actions, first.ending), (&vec![RecordedAction::Continuous(vec![0.7])], Ending::Terminated));
    assert_eq!((second.start.clone(), second.observations[0][0]), (Start::Seed { seed: 139, rng: None }, 139.0_f32 / 7.0));
    assert_eq!(second.ending, Ending::Terminated);
    assert_eq!((second.env.as_str(), second.observations.len()), ("drift", second.rewards.len() + 1));
    // steps after the end are not part of the episode
    assert!(second.actions.len() < 3);
}

#[test]
fn an_abandoned_episode_is_recorded_as_unfinished() {
    let lengths = |episodes: Vec<Episode>| -> Vec<usize> {
        assert!(episodes.iter().all(|episode| episode.ending == Ending::Running));
        episodes.iter().map(|episode| episode.actions.len()).collect()
    };
    let by_reset = recorded(|env, row| {
        env.reset(1, row);
        walk(env, row, 5);
        env.reset(2, row);
        env.reset(3, row);
        walk(env, row, 2);
    });
    assert_eq!(lengths(by_reset), [5, 2]);
    // the start of a loaded episode is unknown, so the episode is not recorded
    let by_load = recorded(|env, row| {
        env.reset(1, row);
        walk(env, row, 5);
        env.load(&env.save()).unwrap();
        walk(env, row, 5);
    });
    assert_eq!(lengths(by_load), [5]);
    assert!(recorded(|env, row| env.reset(1, row)).is_empty());
}

#[test]
fn reseeding_is_recorded_at_the_start_and_ends_the_recording_later() {
    let episodes = recorded(|env, row| {
        env.reset(1, row);
        env.reseed(2);
        walk(env, row, 4);
        env.reseed(3);
        walk(env, row, 4);
        env.start_from(&[0.1], row).unwrap();
    });
    assert_eq!(episodes.len(), 1);
    assert_eq!((episodes[0].start.clone(), episodes[0].actions.len()), (Start::Seed { seed: 1, rng: Some(2) }, 4));
}

#[test]
fn an_episode_from_a_given_state_is_recorded_with_that_state() {
    let episodes = recorded(|env, row| {
        env.start_from(&[0.1 + 0.2], row).unwrap();
        walk(env, row, 4);
    });
    assert_eq!(episodes[0].start, Start::State(vec![0.1 + 0.2]));
}

/// Another wrapper is around the recorder, so the recorder records the observations of the unwrapped environment.
#[test]
fn episodes_of_a_vector_environment_replay() {
    let folder = gradus_testing::tempdir().unwrap();
    let file = folder.path().join("episodes.jsonl");
    let recordings = Recordings::create(&file).unwrap();
    let cartpole = registry::find("cartpole").unwrap();
    let world = recordings.of(cartpole.clone()).wrapped(|env| TimeAware::new(env, 500));
    let mut envs = world.vec_env(0..5, 1).unwrap();
    let mut finished = 0;
    for t in 0..400 {
        let actions: Vec<u32> = (0..5).map(|env| (t / (env + 1)) % 2).collect();
        finished += envs.step(Actions::Discrete(&actions)).unwrap().finished.len();
    }
    drop(envs);
    assert_eq!(recordings.finish().unwrap(), finished + 5);
    let report = trace::check_file(&cartpole, &file).unwrap();
    assert_eq!((report.agreeing(), report.episodes.iter().map(|episode| episode.steps).sum::<usize>()), (finished + 5, 5 * 400));
    // a replay finds a changed recording
    let text = std::fs::read_to_string(&file).unwrap().replacen("\"episode_seed\":", "\"episode_seed\":1", 1);
    std::fs::write(&file, text).unwrap();
    assert_eq!(trace::check_file(&cartpole, &file).unwrap().agreeing(), finished + 4);
}

#[test]
fn an_invalid_seed_is_refused() {
    let folder = gradus_testing::tempdir().unwrap();
    let file = folder.path().join("episodes.jsonl");
    let error = |seeds: &str| {
        let line = format!(
            r#"{{"env":"cartpole",{seeds},"actions":[0],"observations":[[],[]],"rewards":[1],"terminated":true,"truncated":false}}"#
        );
        std::fs::write(&file, line).unwrap();
        let error = trace::read(&file).unwrap_err().to_string();
        error.split_once("line 1: ").unwrap().1.to_string()
    };
    assert_eq!(error(r#""episode_seed":-1"#), "episode_seed: expected a whole number from 0 up, got -1");
    assert_eq!(error(r#""episode_seed":1,"dynamics_seed":"x""#), "dynamics_seed: expected a whole number from 0 up, got \"x\"");
}

#[test]
fn a_file_that_cannot_be_written_is_an_error() {
    let error = Recordings::create("no/such/folder/file").err().unwrap().to_string();
    assert!(error.starts_with("cannot create no/such/folder/file: "), "{error}");
    #[cfg(target_os = "linux")]
    {
        let recordings = Recordings::create("/dev/full").unwrap();
        let mut env = Recorder::new(Drift::default(), "drift", recordings.clone());
        env.reset(1, &mut [0.0; 2]);
        walk(&mut env, &mut [0.0; 2], 3);
        drop(env);
        let error = recordings.finish().unwrap_err().to_string();
        assert!(error.starts_with("cannot write /dev/full: "), "{error}");
    }
}

/// The policy receives one-hot or normalised observations, but the file contains the observations of the unwrapped environment.
#[test]
fn a_played_episode_replays() {
    let folder = gradus_testing::tempdir().unwrap();
    let gradus = |arguments: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_gradus"))
            .args(arguments.split(' '))
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    for world in ["frozen-lake", "pendulum"] {
        gradus(&format!("train ppo {world} --steps 1000 --set wrappers.normalise_observations=true --out {world} --quiet"));
        gradus(&format!("play {world} --seed 5 --record {world}.jsonl"));
        assert_eq!(gradus(&format!("check {world} --trace {world}.jsonl")), "1 of 1 episodes agree\n");
    }
}
