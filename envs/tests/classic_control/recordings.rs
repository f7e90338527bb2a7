//! Gymnasium's recorded episodes replay to the bit, and the recordings cover the special cases of the tasks.

use gradus_envs::Env;
use serde_json::Value;

use super::{Chosen, bits, worlds};

pub struct Golden {
    pub place: String,
    /// The state after the reset and after every step.
    pub states: Vec<Vec<f64>>,
    pub actions: Vec<Chosen>,
    pub observations: Vec<Vec<f32>>,
    pub rewards: Vec<f32>,
    pub terminated: bool,
    pub truncated: bool,
}

/// The recorded episodes of a task.
pub fn golden(name: &str) -> Vec<Golden> {
    let file = gradus_testing::golden::path(&format!("{}.jsonl", name.replace('-', "_")));
    let text = std::fs::read_to_string(file).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let numbers = |value: &Value| -> Vec<f64> { list(value).iter().map(|x| x.as_f64().unwrap()).collect() };
    let singles = |value: &Value| -> Vec<f32> { numbers(value).into_iter().map(|x| x as f32).collect() };
    let action = |value: &Value| match value.as_u64() {
        Some(action) => Chosen::Discrete(action as u32),
        None => Chosen::Continuous(singles(value)),
    };
    let episode = |(i, line): (usize, &str)| {
        let episode: Value = serde_json::from_str(line).unwrap();
        Golden {
            place: format!("{name}, line {}", i + 1),
            states: [&episode["start"]].into_iter().chain(&list(&episode["states"])).map(numbers).collect(),
            actions: list(&episode["actions"]).iter().map(action).collect(),
            observations: list(&episode["observations"]).iter().map(singles).collect(),
            rewards: singles(&episode["rewards"]),
            terminated: episode["terminated"].as_bool().unwrap(),
            truncated: episode["truncated"].as_bool().unwrap(),
        }
    };
    text.lines().enumerate().map(episode).collect()
}

/// Replays observations, rewards and both flags to the bit, from only the first state and the actions. Our arithmetic is the same on every
/// machine, so these recordings need no tolerance. Other recordings may need one; see `src/evaluate/trace`.
#[test]
fn whole_episodes_replay_to_the_bit() {
    for world in worlds() {
        for episode in golden(&world.name) {
            let mut env = world.env();
            let mut row = vec![0.0; env.observation_space().width()];
            env.start_from(&episode.states[0], &mut row).unwrap();
            assert_eq!(bits(&row), bits(&episode.observations[0]), "{}, start", episode.place);
            for (t, action) in episode.actions.iter().enumerate() {
                let step = env.step(action.action(), &mut row);
                let place = format!("{}, step {}", episode.place, t + 1);
                let last = t + 1 == episode.actions.len();
                assert_eq!(bits(&row), bits(&episode.observations[t + 1]), "{place}");
                assert_eq!((step.reward as f32).to_bits(), episode.rewards[t].to_bits(), "{place}");
                let ends = (step.terminated, step.truncated);
                assert_eq!(ends, (last && episode.terminated, last && episode.truncated), "{place}");
            }
        }
    }
}

/// Takes one step from every recorded state but the last, and compares the states in f64. The differences from Gymnasium come from the
/// rounding of a sine or cosine, or of a square, which Python computes as a power.
#[test]
fn single_steps_agree_up_to_f64_rounding() {
    for (world, tolerance) in worlds().zip([2e-18, 0.0, 5e-16, 0.0]) {
        let (mut steps, mut equal) = (0, 0);
        for episode in golden(&world.name) {
            let mut env = world.env();
            let mut row = vec![0.0; env.observation_space().width()];
            for (t, action) in episode.actions.iter().enumerate() {
                let mut words: Vec<u64> = episode.states[t].iter().map(|number| number.to_bits()).collect();
                if world.name == "mountain-car-continuous" {
                    words.push(u64::from(t > 0)); // the state is f32 after the first step
                }
                words.push(0); // elapsed steps
                env.load(&words).unwrap();
                env.step(action.action(), &mut row);
                let expected = &episode.states[t + 1];
                let got: Vec<f64> = env.save()[..expected.len()].iter().map(|word| f64::from_bits(*word)).collect();
                let close = got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= tolerance);
                assert!(close, "{}, step {}: expected {expected:?}, got {got:?}", episode.place, t + 1);
                steps += 1;
                equal += usize::from(got == *expected);
            }
        }
        assert!(steps > 3000 && steps - equal <= steps / 200, "{}: {equal} of {steps} equal", world.name);
    }
}

/// The special cases that the recordings must contain.
#[test]
fn the_recordings_cover_the_special_cases() {
    for world in worlds() {
        let episodes = golden(&world.name);
        let count = |terminated, truncated| {
            episodes.iter().filter(|episode| (episode.terminated, episode.truncated) == (terminated, truncated)).count()
        };
        let ends = (count(true, false), count(false, true), count(true, true), count(false, false));
        match world.name.as_str() {
            "pendulum" => assert!(ends.1 >= 12 && (ends.0, ends.2, ends.3) == (0, 0, 0), "{ends:?}"),
            _ => assert!(ends.0 >= 10 && ends.1 >= 3 && ends.2 >= 1 && ends.3 == 0, "{}: {ends:?}", world.name),
        }
    }
    let steps_where = |name: &str, is: &dyn Fn(&[f64], &[f64]) -> bool| {
        golden(name).iter().flat_map(|episode| episode.states.windows(2)).filter(|pair| is(&pair[0], &pair[1])).count()
    };
    for name in ["mountain-car", "mountain-car-continuous"] {
        let stopped = steps_where(name, &|_, after| after[0] <= -1.2 && after[1] == 0.0);
        assert!(stopped >= 2, "{name}: {stopped} steps end at the wall");
    }
    let turns = steps_where("acrobot", &|before, after| (before[0] - after[0]).abs() > 4.0 || (before[1] - after[1]).abs() > 4.0);
    assert!(turns >= 5, "acrobot: {turns} angles are wrapped");
    let (fast, far) = (steps_where("pendulum", &|_, s| s[1].abs() == 8.0), steps_where("pendulum", &|_, s| s[0].abs() > 9.5));
    assert!(fast >= 5 && far >= 20, "pendulum: {fast} at the greatest speed, {far} past a whole turn");
    let held = golden("pendulum").iter().filter(|episode| episode.observations[100..].iter().all(|row| row[0] > 0.99)).count();
    assert!(held >= 4, "pendulum: {held} episodes balance in their second half");
}
