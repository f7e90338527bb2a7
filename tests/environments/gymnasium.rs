//! Our CartPole and the other classic control tasks match Gymnasium's. Recorded episodes replay, and a difference is reported with its
//! step.
//!
//! The golden files are written by `scripts/golden/gymnasium_cartpole.py` and `gymnasium_classic.py`.

use std::path::PathBuf;

use gradus::evaluate::trace::{self, Difference, Episode, Quantity, RecordedAction, Start, TraceError};
use gradus_envs::{Action, Ending, Env, EnvError, EnvSpec, Space, Step, registry};
use serde_json::{Value, json};

fn golden_file_of(name: &str) -> PathBuf {
    gradus_testing::golden::path(&format!("{name}.jsonl"))
}

fn golden_file() -> PathBuf {
    golden_file_of("cartpole")
}

fn golden() -> Vec<Episode> {
    trace::read(golden_file()).unwrap()
}

/// Returns the shortest golden episode with this ending.
fn shortest(ending: Ending) -> Episode {
    golden().into_iter().filter(|episode| episode.ending == ending).min_by_key(|episode| episode.actions.len()).unwrap()
}

fn cartpole() -> EnvSpec {
    registry::find("CartPole-v1").unwrap()
}

fn difference(episode: &Episode) -> Difference {
    trace::replay(&cartpole(), episode).unwrap().expect("a difference")
}

/// The tests of gradus-envs replay the episodes of the other tasks, to the bit.
#[test]
fn every_episode_of_cartpole_replays() {
    let report = trace::check_file(&cartpole(), golden_file()).unwrap();
    let differences: Vec<String> =
        report.episodes.iter().filter_map(|e| e.difference.as_ref().map(|d| format!("line {}: {d}", e.line))).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!((report.agreeing(), report.episodes[0].line), (report.episodes.len(), 1));
}

#[test]
fn the_golden_file_has_every_kind_of_ending() {
    let episodes = golden();
    let count = |ending| episodes.iter().filter(|episode| episode.ending == ending).count();
    let at_the_limit = episodes.iter().filter(|episode| episode.ending.truncated() && episode.actions.len() == 500).count();
    assert!(episodes.len() >= 36 && at_the_limit >= 8, "{} episodes, {at_the_limit} at the limit", episodes.len());
    assert!(count(Ending::Terminated) >= 8 && count(Ending::Truncated) >= 8 && count(Ending::Both) >= 1 && count(Ending::Running) == 0);

    let late = |episode: &&Episode| episode.ending == Ending::Terminated && episode.actions.len() > 200;
    assert!(episodes.iter().filter(late).count() >= 4, "too few episodes end late");
    let past = |i: usize, limit: f32| {
        move |episode: &&Episode| episode.ending.terminated() && episode.observations.last().unwrap()[i].abs() > limit
    };
    assert!(episodes.iter().filter(past(0, 2.4)).count() >= 1, "no cart leaves the track");
    assert!(episodes.iter().filter(past(2, 0.2094)).count() >= 1, "no pole falls");
}

/// An error in the last digit of a start state grows until the episode is a different one. Without its feature `float_roundtrip`,
/// serde_json makes such errors.
#[test]
fn start_states_are_read_to_the_last_digit() {
    let text = std::fs::read_to_string(golden_file()).unwrap();
    for (line, episode) in text.lines().zip(golden()) {
        let numbers = line.split_once("\"start\":[").unwrap().1.split_once(']').unwrap().0;
        let exact: Vec<f64> = numbers.split(',').map(|number| number.parse().unwrap()).collect();
        assert_eq!(episode.start, Start::State(exact), "{}", episode.place);
    }
}

#[test]
fn a_changed_observation_is_reported_at_its_step() {
    let mut episode = shortest(Ending::Terminated);
    let true_value = episode.observations[5][2];
    episode.observations[5][2] = f32::from_bits(true_value.to_bits() + 3);
    let found = difference(&episode);
    assert_eq!((found.step, found.what, found.ulps), (5, Quantity::Observation(2), Some(3)));
    let expected = format!("step 5: observation[2]: expected {:?}, got {true_value:?} (3 ulps apart)", episode.observations[5][2]);
    assert_eq!(found.to_string(), expected);

    episode.observations[5][2] = f32::from_bits(true_value.to_bits() + 1);
    assert_eq!(trace::replay(&cartpole(), &episode).unwrap(), None, "one unit in the last place is rounding");
    episode.observations[0][3] += 0.5;
    assert_eq!((difference(&episode).step, difference(&episode).what), (0, Quantity::Observation(3)));
}

/// CartPole is unstable, so long episodes are sensitive to the last digits of the start angle.
#[test]
fn a_start_angle_off_by_four_ulps_gives_another_episode() {
    let long = golden().into_iter().filter(|episode| episode.actions.len() == 500);
    let steps: Vec<Option<usize>> = long
        .map(|mut episode| {
            let Start::State(state) = &mut episode.start else { panic!("expected a state, got {:?}", episode.start) };
            state[2] = f64::from_bits(state[2].to_bits() + 4);
            trace::replay(&cartpole(), &episode).unwrap().map(|difference| difference.step)
        })
        .collect();
    let noticed = steps.iter().flatten().count();
    assert!(2 * noticed > steps.len() && steps.iter().flatten().all(|step| *step > 100), "{steps:?}");
}

#[test]
fn a_last_reward_of_0_is_reported() {
    let mut episode = shortest(Ending::Terminated);
    let last = episode.actions.len();
    episode.rewards[last - 1] = 0.0;
    assert_eq!(difference(&episode).to_string(), format!("step {last}: reward: expected 0.0, got 1.0"));
}

#[test]
fn a_reward_may_differ_by_one_ulp() {
    let pendulum = registry::find("pendulum").unwrap();
    let mut episode = trace::read(golden_file_of("pendulum")).unwrap().swap_remove(0);
    let bits = episode.rewards[7].to_bits();
    episode.rewards[7] = f32::from_bits(bits + 1);
    assert_eq!(trace::replay(&pendulum, &episode).unwrap(), None);
    episode.rewards[7] = f32::from_bits(bits + 2);
    let found = trace::replay(&pendulum, &episode).unwrap().expect("a difference");
    assert_eq!((found.step, found.what), (8, Quantity::Reward));
}

#[test]
fn an_end_one_step_late_is_reported() {
    let mut episode = shortest(Ending::Terminated);
    let last = episode.actions.len();
    episode.actions.push(RecordedAction::Discrete(0));
    episode.observations.push(episode.observations[last].clone());
    episode.rewards.push(1.0);
    assert_eq!(difference(&episode).to_string(), format!("step {last}: end: expected running, got terminated"));
}

#[test]
fn an_end_one_step_early_is_reported() {
    let mut episode = shortest(Ending::Terminated);
    let last = episode.actions.len() - 1;
    episode.actions.pop();
    episode.observations.pop();
    episode.rewards.pop();
    assert_eq!(difference(&episode).to_string(), format!("step {last}: terminated: expected true, got false"));
}

#[test]
fn truncation_recorded_as_termination_is_reported() {
    let mut episode = shortest(Ending::Truncated);
    episode.ending = Ending::Terminated;
    assert_eq!(difference(&episode).to_string(), "step 500: terminated: expected true, got false");
    let mut episode = shortest(Ending::Both);
    episode.ending = Ending::Terminated;
    assert_eq!(difference(&episode).to_string(), "step 500: truncated: expected false, got true");
}

#[test]
fn a_recording_that_stops_early_replays() {
    let mut episode = shortest(Ending::Terminated);
    episode.actions.truncate(5);
    episode.rewards.truncate(5);
    episode.observations.truncate(6);
    episode.ending = Ending::Running;
    assert_eq!(trace::replay(&cartpole(), &episode).unwrap(), None);
}

#[test]
fn differences_are_reported_and_are_not_an_error() {
    let (_folder, path) = file_with(&[sample(), "".into(), sample().replace("\"rewards\":[1.0", "\"rewards\":[0.0")].join("\n"));
    let report = trace::check_file(&cartpole(), &path).unwrap();
    assert_eq!((report.episodes.len(), report.agreeing()), (2, 1));
    let (first, second) = (&report.episodes[0], &report.episodes[1]);
    assert_eq!((first.line, first.steps, first.difference.is_none()), (1, 9, true));
    assert_eq!((second.line, second.steps), (3, 9), "expected blank lines to count in line numbers");
    assert_eq!(second.difference.as_ref().unwrap().step, 1);
}

#[test]
fn ulps_count_across_zero() {
    let tiny = f32::from_bits(1);
    assert_eq!((trace::ulps(0.0, -0.0), trace::ulps(-0.0, tiny), trace::ulps(-tiny, tiny)), (0, 1, 2));
    assert_eq!((trace::ulps(-1.0, -1.0 - f32::EPSILON), trace::ulps(1.0, 2.0)), (1, 1 << 23));
    assert_eq!(trace::ulps(f32::MAX, f32::INFINITY), 1);
    assert_eq!(trace::ulps(f32::NEG_INFINITY, f32::INFINITY), 0xFF00_0000);
    assert_eq!(trace::ulps(f32::NAN, 1.0), u32::MAX);
}

/// An environment in which a continuous action moves a point.
#[derive(Clone)]
struct Walk(f64);

impl Env for Walk {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![f32::NEG_INFINITY], high: vec![f32::INFINITY] }
    }
    fn action_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }
    fn reset(&mut self, _seed: u64, observation: &mut [f32]) {
        self.0 = 0.0;
        observation[0] = 0.0;
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Continuous(action) = action else { panic!("expected a continuous action") };
        self.0 += f64::from(action[0]);
        observation[0] = self.0 as f32;
        Step { reward: -1.0, terminated: self.0 > 1.0, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        vec![self.0.to_bits()]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.0 = f64::from_bits(state[0]);
        Ok(())
    }
    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.0 = state[0];
        observation[0] = self.0 as f32;
        Ok(())
    }
}

#[test]
fn actions_of_a_box_are_arrays_of_numbers() {
    let world = EnvSpec::new("walk", || Walk(0.0));
    let line = json!({"env": "walk", "start": [0.25], "actions": [[0.5], [0.75]], "observations": [[0.25], [0.75], [1.5]],
        "rewards": [-1, -1], "terminated": true, "truncated": false});
    let (_folder, path) = file_with(&line.to_string());
    assert_eq!(trace::check_file(&world, &path).unwrap().agreeing(), 1);

    let (_folder, path) = file_with(&line.to_string().replace("[[0.5],[0.75]]", "[[0.5],[1.25]]"));
    let error = trace::check_file(&world, &path).unwrap_err().to_string();
    assert!(error.ends_with("line 1: actions[1]: expected Box(1 dimensions, low [-1.0], high [1.0]), got [1.25]"), "{error}");
}

/// Returns the line of the shortest golden episode.
fn sample() -> String {
    let text = std::fs::read_to_string(golden_file()).unwrap();
    text.lines().min_by_key(|line| line.len()).unwrap().into()
}

fn file_with(text: &str) -> (gradus_testing::TempDir, PathBuf) {
    let folder = gradus_testing::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// Returns the error for a file with `line` as its second line, without the file's name and the line number.
fn error_on(line: &str) -> String {
    let (_folder, path) = file_with(&format!("{}\n{line}\n", sample()));
    let error = trace::check_file(&cartpole(), &path).unwrap_err().to_string();
    assert!(!error.contains('\n'), "more than one line: {error}");
    let rest = error.strip_prefix(&format!("{}, line 2: ", path.display()));
    rest.unwrap_or_else(|| panic!("expected file and line, got: {error}")).into()
}

/// Returns the error for the shortest golden episode after `change`.
fn error_after(change: impl FnOnce(&mut Value)) -> String {
    let mut episode: Value = serde_json::from_str(&sample()).unwrap();
    change(&mut episode);
    error_on(&episode.to_string())
}

#[test]
fn malformed_json_is_refused() {
    assert_eq!(error_on("{\"env\": "), "episode: expected a JSON object, got EOF while parsing a value at column 8");
    assert_eq!(error_on("[1, 2]"), "episode: expected a JSON object, got [1,2]");
    let long = error_on(&format!("[{}0]", "0, ".repeat(1000)));
    assert_eq!(long, format!("episode: expected a JSON object, got [{}0...", "0,".repeat(19)));
}

#[test]
fn a_missing_key_is_refused() {
    for key in ["env", "start", "actions", "observations", "rewards", "terminated", "truncated"] {
        let error = error_after(|episode| drop(episode.as_object_mut().unwrap().remove(key)));
        assert_eq!(error, format!("{key}: expected a value, got no such key"));
    }
}

#[test]
fn a_value_of_another_type_is_refused() {
    assert_eq!(error_after(|e| e["env"] = json!(1)), "env: expected a name, got 1");
    assert_eq!(error_after(|e| e["start"][1] = json!("0")), "start[1]: expected a number, got \"0\"");
    assert_eq!(error_after(|e| e["rewards"] = json!(1)), "rewards: expected an array, got 1");
    assert_eq!(error_after(|e| e["observations"][2] = json!(0)), "observations[2]: expected an array of numbers, got 0");
    assert_eq!(error_after(|e| e["truncated"] = json!(0)), "truncated: expected true or false, got 0");
}

#[test]
fn wrong_lengths_are_refused() {
    let drop_last = |key: &'static str| move |episode: &mut Value| drop(episode[key].as_array_mut().unwrap().pop());
    assert_eq!(error_after(drop_last("observations")), "observations: expected 10 rows, one more than actions, got 9");
    assert_eq!(error_after(drop_last("rewards")), "rewards: expected 9 numbers, one per action, got 8");
    assert_eq!(error_after(drop_last("start")), "start: state of the environment: CartPole: expected 4 numbers, got 3");
    assert_eq!(error_after(|e| drop(e["observations"][3].as_array_mut().unwrap().pop())), "observations[3]: expected 4 numbers, got 3");
    assert_eq!(error_after(|e| e["actions"] = json!([])), "actions: expected at least 1, got 0");
}

#[test]
fn an_episode_of_another_environment_is_refused() {
    assert_eq!(error_after(|e| e["env"] = json!("Acrobot-v1")), "env: expected `CartPole-v1`, got `Acrobot-v1`");
    assert_eq!(error_after(|e| e["env"] = json!("CartPole-v0")), "env: expected `CartPole-v1`, got `CartPole-v0`");
}

#[test]
fn an_action_outside_the_space_is_refused() {
    let expected = "actions[4]: expected Discrete(2), that is 0 to 1, got";
    assert_eq!(error_after(|e| e["actions"][4] = json!(2)), format!("{expected} 2"));
    assert_eq!(error_after(|e| e["actions"][4] = json!([0.5])), format!("{expected} [0.5]"));
    let expected = "actions[4]: expected a whole number or an array of numbers, got";
    assert_eq!(error_after(|e| e["actions"][4] = json!(-1)), format!("{expected} -1"));
    assert_eq!(error_after(|e| e["actions"][4] = json!(0.5)), format!("{expected} 0.5"));
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    let (before, after) = sample().split_once("\"rewards\":[").map(|(a, b)| (a.to_string(), b.to_string())).unwrap();
    let column = before.len() + "\"rewards\":[".len() + 1;
    for (token, column) in [("NaN", column), ("Infinity", column), ("-Infinity", column + 1)] {
        let error = error_on(&format!("{before}\"rewards\":[{token},{after}"));
        assert_eq!(error, format!("column {column}: expected a finite number, got {}", token.trim_start_matches('-')));
    }
    let error = error_after(|e| e["rewards"][0] = json!(1e39));
    assert!(error.starts_with("rewards[0]: expected a finite f32 number, got 1e"), "{error}");
    assert_eq!(error_after(|e| e["observations"][1][0] = json!(null)), "observations[1][0]: expected a number, got null");
}

#[test]
fn a_file_without_episodes_is_refused() {
    for text in ["", "\n\n"] {
        let (_folder, path) = file_with(text);
        let error = trace::check_file(&cartpole(), &path).unwrap_err().to_string();
        assert_eq!(error, format!("{}: expected one episode per line, got an empty file", path.display()));
    }
    let error = trace::read("no/such/file.jsonl").unwrap_err();
    assert!(matches!(error, TraceError::File { .. }) && error.to_string().starts_with("cannot read no/such/file.jsonl: "), "{error}");
}
