//! Wrappers: Gymnasium's observations and rewards, checkpoints in mid-episode, and calls that pass to the inner environment.
//!
//! The golden file is written by `scripts/golden/gymnasium_wrappers.py`.

use gradus_testing::golden;

use std::sync::Arc;

use golden::{floats, numbers};
use gradus_envs::wrappers::{ActionMask, ClipReward, FrameStack, MaskVelocity, NormaliseObservation, OneHot, RunningStatistics, TimeAware};
use gradus_envs::{Action, CartPole, Env, EnvError, EnvSpec, Scene, Space, Step, TimeLimit, registry};
use serde_json::Value;

/// Returns bounds, which are strings because JSON has no infinity.
fn bounds(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|bound| bound.as_str().unwrap().parse().unwrap()).collect()
}

fn cartpole(golden: &Value) -> TimeLimit<CartPole> {
    TimeLimit::new(CartPole::default(), golden["limit"].as_u64().unwrap() as u32)
}

/// Replays the recorded episode `name` in `env`. The results must be equal to the bit.
fn replay(golden: &Value, name: &str, mut env: impl Env) {
    let episode = &golden["cartpole"][name];
    let space = Space::Box { low: bounds(&episode["low"]), high: bounds(&episode["high"]) };
    assert_eq!(env.observation_space(), space, "{name}");
    let mut got = vec![f32::NAN; space.width()];
    env.start_from(&numbers(&episode["start"]), &mut got).unwrap();
    assert_eq!(got, floats(&episode["observations"][0]), "{name}, start");
    let rewards = numbers(&episode["rewards"]);
    for (t, action) in numbers(&golden["actions"]).into_iter().enumerate() {
        let step = env.step(Action::Discrete(action as u32), &mut got);
        assert_eq!(got, floats(&episode["observations"][t + 1]), "{name}, step {}", t + 1);
        assert_eq!(step, Step { reward: rewards[t], terminated: false, truncated: t + 1 == rewards.len() }, "{name}, step {}", t + 1);
    }
}

#[test]
fn episodes_with_wrappers_match_gymnasium() {
    let golden = golden::read("wrappers.json");
    let limit = golden["limit"].as_u64().unwrap() as u32;
    replay(&golden, "frame_stack", FrameStack::new(cartpole(&golden), 3));
    replay(&golden, "time_aware", TimeAware::new(cartpole(&golden), limit));
    replay(&golden, "time_fraction", TimeAware::fraction(cartpole(&golden), limit));
    replay(&golden, "clip_reward", ClipReward::new(cartpole(&golden), -0.5, 0.25));
    replay(&golden, "stacked_time", FrameStack::new(TimeAware::new(cartpole(&golden), limit), 2));
    let known = [vec![100.0], numbers(&golden["mean"]), numbers(&golden["variance"])].concat();
    let known = Arc::new(RunningStatistics::load(4, &known).unwrap());
    replay(&golden, "normalised", NormaliseObservation::new(cartpole(&golden), known, f32::INFINITY));
}

/// A corridor of 16 cells. The two actions move one and four cells forward. An episode starts in one of the first four cells and terminates
/// in the last cell. [`Env::start_from`] can start it in any cell.
#[derive(Default)]
struct Corridor {
    cell: u32,
    rng: u64,
}

impl Corridor {
    const CELLS: u32 = 16;

    fn show(&self, observation: &mut [f32]) {
        assert_eq!(observation.len(), 1, "the observation has one number");
        observation[0] = self.cell as f32;
    }
}

impl Env for Corridor {
    fn observation_space(&self) -> Space {
        Space::Discrete(Self::CELLS)
    }
    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        *self = Self { cell: (seed % 4) as u32, rng: seed };
        self.show(observation);
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        self.cell = (self.cell + if action == Action::Discrete(1) { 4 } else { 1 }).min(Self::CELLS - 1);
        self.show(observation);
        Step { reward: f64::from(self.cell), terminated: self.cell == Self::CELLS - 1, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        vec![u64::from(self.cell), self.rng]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        match *state {
            [cell, rng] if cell < u64::from(Self::CELLS) => *self = Self { cell: cell as u32, rng },
            _ => return Err(EnvError::State(format!("corridor: {state:?}"))),
        }
        Ok(())
    }
    fn start_from(&mut self, state: &[f64], observation: &mut [f32]) -> Result<(), EnvError> {
        self.cell = state[0] as u32;
        self.show(observation);
        Ok(())
    }
    fn reseed(&mut self, seed: u64) {
        self.rng = seed;
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        mask.copy_from_slice(&[true, self.cell.is_multiple_of(2)]);
        true
    }
    fn render(&self) -> Option<Scene> {
        Some(Scene { x: [0.0, f64::from(self.cell)], y: [0.0, 1.0], shapes: vec![] })
    }
}

/// The expected rows are those of Gymnasium's `FlattenObservation` on FrozenLake without slippery ice, for the actions right, right, down.
#[test]
fn one_hot_observations_match_gymnasium() {
    let golden = golden::read("wrappers.json");
    let mut env = OneHot::new(Corridor::default());
    assert_eq!(env.observation_space(), Space::Box { low: vec![0.0; 16], high: vec![1.0; 16] });
    let mut got = vec![f32::NAN; 16];
    env.reset(0, &mut got);
    assert_eq!(got, floats(&golden["one_hot"][0]));
    for (t, action) in [0, 0, 1].into_iter().enumerate() {
        env.step(Action::Discrete(action), &mut got);
        assert_eq!(got, floats(&golden["one_hot"][t + 1]));
    }
    env.start_from(&[15.0], &mut got).unwrap();
    assert_eq!(got.iter().position(|x| *x == 1.0), Some(15));
}

#[test]
fn rewards_are_clipped_at_both_bounds() {
    let mut env = ClipReward::new(Corridor::default(), 2.0, 5.0);
    let mut row = [0.0];
    env.reset(0, &mut row);
    let rewards = [0, 0, 0, 1].map(|action| env.step(Action::Discrete(action), &mut row).reward);
    assert_eq!(rewards, [2.0, 2.0, 3.0, 5.0]); // 1, 2, 3, 7
}

#[test]
fn a_custom_mask_restricts_the_environments_mask() {
    let far = |env: &Corridor, mask: &mut [bool]| mask[1] &= env.cell < 8;
    let mut env = ActionMask::new(Corridor::default(), far);
    let (mut row, mut mask) = ([0.0], [false; 2]);
    for (cell, expected) in [(2.0, [true, true]), (3.0, [true, false]), (10.0, [true, false])] {
        env.start_from(&[cell], &mut row).unwrap();
        assert!(env.action_mask(&mut mask));
        assert_eq!(mask, expected, "cell {cell}");
    }
    // if the environment has no mask, the custom mask begins with all actions allowed
    let env = ActionMask::new(CartPole::default(), |_, mask| assert_eq!(*mask, [true, true]));
    assert!(env.action_mask(&mut mask));
}

/// Returns worlds of the environments that `make` creates: at least one for each wrapper but [`OneHot`], and one with several wrappers. The
/// observation space of the environments must be a box.
fn all(make: impl Fn() -> Box<dyn Env> + Clone + Send + Sync + 'static) -> Vec<EnvSpec> {
    let width = make().observation_space().width();
    let known = [vec![9.0], vec![0.1; width], vec![0.2; width]].concat();
    let known = Arc::new(RunningStatistics::load(width, &known).unwrap());
    vec![
        EnvSpec::new("time limit", make.clone()).wrapped(|env| TimeLimit::new(env, 6)),
        EnvSpec::new("time aware", make.clone()).wrapped(|env| TimeAware::new(env, 100)),
        EnvSpec::new("time fraction", make.clone()).wrapped(|env| TimeAware::fraction(env, 100)),
        EnvSpec::new("frame stack", make.clone()).wrapped(|env| FrameStack::new(env, 4)),
        EnvSpec::new("mask velocity", make.clone()).wrapped(|env| MaskVelocity::new(env, &[1])),
        EnvSpec::new("clip reward", make.clone()).wrapped(|env| ClipReward::new(env, 2.0, 5.0)),
        EnvSpec::new("normalise", make.clone()).wrapped(move |env| NormaliseObservation::new(env, known.clone(), 10.0)),
        EnvSpec::new("mask", make.clone()).wrapped(|env| ActionMask::new(env, |_, mask| mask[0] = true)),
        EnvSpec::new("all", make).wrapped(|env| FrameStack::new(ClipReward::new(TimeAware::new(TimeLimit::new(env, 9), 9), 0.0, 3.0), 2)),
    ]
}

fn corridor() -> Box<dyn Env> {
    Box::new(OneHot::new(Corridor::default()))
}

/// Observation, result, mask and saved state of a step.
type Seen = (Vec<f32>, Step, [bool; 2], Vec<u64>);

/// Plays the rest of an episode.
fn rest(env: &mut dyn Env) -> Vec<Seen> {
    let mut row = vec![f32::NAN; env.observation_space().width()];
    let mut mask = [false; 2];
    let mut seen: Vec<Seen> = Vec::new();
    while !seen.last().is_some_and(|(_, step, ..)| step.done()) {
        let step = env.step(Action::Discrete(u32::from(seen.len() % 5 == 3)), &mut row);
        assert!(env.action_mask(&mut mask));
        seen.push((row.clone(), step, mask, env.save()));
    }
    seen
}

#[test]
fn a_saved_episode_continues_identically_with_every_wrapper() {
    for world in all(corridor).into_iter().chain([EnvSpec::new("one-hot", corridor)]) {
        let mut env = world.env();
        let mut row = vec![0.0; env.observation_space().width()];
        env.reset(1, &mut row);
        for _ in 0..2 {
            env.step(Action::Discrete(0), &mut row);
        }
        let saved = env.save();
        let expected = rest(&mut *env);
        let mut later = world.env();
        later.reset(2, &mut row);
        later.load(&saved).unwrap();
        assert_eq!(later.save(), saved, "{}", world.name);
        assert_eq!(rest(&mut *later), expected, "{}", world.name);
        // a state that is too short is an error, not a panic
        for short in 0..saved.len() {
            assert!(world.env().load(&saved[..short]).is_err(), "{}: {short} words", world.name);
        }
    }
}

/// A new episode does not depend on the one before, whether it begins with `reset` or with `start_from`.
#[test]
fn an_episode_is_determined_by_its_seed_with_every_wrapper() {
    for world in all(corridor) {
        let mut fresh = world.env();
        let width = fresh.observation_space().width();
        let (mut expected, mut got) = (vec![f32::NAN; width], vec![f32::NAN; width]);
        fresh.reset(3, &mut expected);
        let mut used = world.env();
        used.reset(1, &mut got);
        for _ in 0..4 {
            used.step(Action::Discrete(0), &mut got);
        }
        used.reset(3, &mut got);
        assert_eq!((&got, used.save()), (&expected, fresh.save()), "{}", world.name);
        used.step(Action::Discrete(0), &mut got);
        used.start_from(&[3.0], &mut got).unwrap();
        assert_eq!(got, expected, "{}", world.name);
        assert_eq!(rest(&mut *used), rest(&mut *fresh), "{}", world.name);
    }
}

#[test]
fn reseeding_masks_and_scenes_pass_through_every_wrapper() {
    for world in all(corridor) {
        let mut env = world.env();
        let mut row = vec![0.0; env.observation_space().width()];
        env.reset(1, &mut row);
        env.reseed(77);
        assert_eq!(env.save()[1], 77, "{}", world.name);
        assert_eq!(env.render().unwrap().x, [0.0, 1.0], "{}", world.name);
        let mut mask = [true; 2];
        assert!(env.action_mask(&mut mask), "{}", world.name);
        assert_eq!(mask, [true, false], "{}", world.name);
        assert_eq!(env.action_space(), Space::Discrete(2), "{}", world.name);
        assert!(env.step(Action::Discrete(0), &mut row).reward >= 2.0, "{}", world.name);
    }
}

#[test]
fn a_wrapped_world_gives_the_same_observations_alone_and_in_a_batch() {
    let world = registry::find("cartpole").unwrap().wrapped(|env| FrameStack::new(TimeAware::new(env, 500), 2));
    assert_eq!((world.title().as_str(), world.solved_at), ("CartPole-v1", Some(475.0)));
    let mut many = world.vec_env(0..3, 1).unwrap();
    assert_eq!(many.observations().dim(), (3, 10));
    for _ in 0..300 {
        many.step(gradus_envs::Actions::Discrete(&[1, 0, 1])).unwrap();
        for row in many.observation_rows().chunks_exact(10) {
            let first = row[9] == 0.0 && row[..5] == row[5..];
            assert!(first || row[9] == row[4] + 1.0, "{row:?}");
        }
    }
}

#[test]
fn vectors_of_stacked_environments_are_those_of_single_ones() {
    for name in ["cartpole", "breakout", "cartpole-masked"] {
        let world = registry::find(name).unwrap().stacked(3);
        assert_eq!(gradus_checker::check_world(&world), []);
        // the same words save a vector, however it is made
        let mut together = world.vec_env(0..4, 1).unwrap();
        let mut others = world.clone().scalar().vec_env(0..4, 1).unwrap();
        let step = |envs: &mut gradus_envs::VecEnv, t: u32| {
            envs.step(gradus_envs::Actions::Discrete(&[t % 2, 1, 0, t / 2 % 2])).unwrap();
            envs.observation_rows().to_vec()
        };
        (0..30).for_each(|t| _ = step(&mut together, t));
        (0..7).for_each(|t| _ = step(&mut others, t + 1));
        others.load(&together.save()).unwrap();
        assert!((0..30).all(|t| step(&mut together, t) == step(&mut others, t)), "{name}");
        together.load(&others.save()).unwrap();
        assert!((0..30).all(|t| step(&mut together, t) == step(&mut others, t)), "{name}");
        let words = together.save();
        assert!(together.load(&words[..words.len() - 1]).is_err(), "{name}");
    }
}

#[test]
fn a_wrapper_that_does_not_fit_panics_with_a_message() {
    fn message<E>(make: impl FnOnce() -> E + std::panic::UnwindSafe) -> String {
        let panic = std::panic::catch_unwind(make).err().expect("a panic");
        *panic.downcast().unwrap()
    }
    let boxed = message(|| OneHot::new(CartPole::default()));
    assert!(boxed.starts_with("OneHot: expected discrete observations, got Box(4 dimensions"), "{boxed}");
    let discrete = "expected a box of observations (see OneHot), got Discrete(16), that is 0 to 15";
    assert_eq!(message(|| TimeAware::new(Corridor::default(), 5)), format!("TimeAware: {discrete}"));
    assert_eq!(message(|| FrameStack::new(Corridor::default(), 5)), format!("FrameStack: {discrete}"));
    assert_eq!(message(|| ClipReward::new(CartPole::default(), 1.0, -1.0)), "ClipReward: expected low <= high, got 1 and -1");
    let narrow = message(|| NormaliseObservation::new(CartPole::default(), Arc::new(RunningStatistics::new(3)), 10.0));
    assert!(narrow.contains("NormaliseObservation: expected statistics of 4 numbers, got 3"), "{narrow}");
}
