//! Many environments in lockstep: ends, resets, statistics and refusals.

use gradus_envs::random::episode_seed;
use gradus_envs::{
    Action, Actions, Autoreset, Ending, Env, EnvError, Finished, ScalarBatch, Space, Starts, Step, TimeLimit, VecEnv, World, registry,
};

const SEED: u64 = 21;

/// Terminates after `end` steps and will not be stepped after that. Observes a number that belongs to the episode's seed, and the
/// steps taken; pays the steps taken and ten times the action, so that an action that should have been ignored shows.
#[derive(Clone)]
struct Count {
    end: u32,
    tag: f32,
    steps: u32,
}

impl Count {
    fn new(end: u32) -> Self {
        Self { end, tag: 0.0, steps: 0 }
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&[self.tag, self.steps as f32]);
    }
}

fn tag(seed: u64) -> f32 {
    (seed % 10_007) as f32
}

impl Env for Count {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0; 2], high: vec![f32::INFINITY; 2] }
    }
    fn action_space(&self) -> Space {
        Space::Discrete(3)
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        (self.tag, self.steps) = (tag(seed), 0);
        self.observe(observation);
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Discrete(action) = action else { panic!("expected a whole number") };
        assert!(self.steps < self.end, "stepped after its end");
        self.steps += 1;
        self.observe(observation);
        Step { reward: f64::from(self.steps) + 10.0 * f64::from(action), terminated: self.steps >= self.end, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        vec![u64::from(self.tag.to_bits()), u64::from(self.steps)]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        let [tag, steps] = *state else { return Err(EnvError::State(format!("expected 2 words, got {}", state.len()))) };
        (self.tag, self.steps) = (f32::from_bits(tag as u32), steps as u32);
        Ok(())
    }
}

/// Environments of the given (termination step, time limit), with ids from 3 on.
fn vec_env(ends: &[(u32, u32)], autoreset: Autoreset) -> VecEnv {
    let envs = ends.iter().map(|(end, limit)| TimeLimit::new(Count::new(*end), *limit)).collect();
    VecEnv::new(Box::new(ScalarBatch::new(envs)), 3..3 + ends.len(), SEED, autoreset).unwrap()
}

/// The seed of an episode of the environment in row `env` of [`vec_env`].
fn seed(env: u64, episode: u64) -> u64 {
    episode_seed(SEED, 3 + env, episode)
}

#[test]
fn a_reset_within_the_step_hands_over_the_final_observation() {
    let mut envs = vec_env(&[(3, 100), (100, 2)], Autoreset::SameStep);
    assert_eq!(envs.observation_rows(), [tag(seed(0, 0)), 0.0, tag(seed(1, 0)), 0.0]);
    envs.step(Actions::Discrete(&[0, 1])).unwrap();

    let transition = envs.step(Actions::Discrete(&[0, 0])).unwrap();
    assert_eq!((transition.rewards.as_slice(), transition.resets.as_slice()), ([2.0, 2.0].as_slice(), [false; 2].as_slice()));
    assert_eq!(transition.endings, [Ending::Running, Ending::Truncated]);
    let observation = vec![tag(seed(1, 0)), 2.0];
    let second =
        Finished { env: 1, seed: seed(1, 0), ending: Ending::Truncated, episode_return: 13.0, length: 2, observation, scores: Vec::new() };
    assert_eq!(transition.finished, [second]);
    assert_eq!(envs.observation_rows(), [tag(seed(0, 0)), 2.0, tag(seed(1, 1)), 0.0]);

    let transition = envs.step(Actions::Discrete(&[2, 0])).unwrap();
    let observation = vec![tag(seed(0, 0)), 3.0];
    let first =
        Finished { env: 0, seed: seed(0, 0), ending: Ending::Terminated, episode_return: 26.0, length: 3, observation, scores: Vec::new() };
    assert_eq!(transition.finished, [first]);
    assert_eq!(transition.rewards, [23.0, 1.0]);
    assert_eq!(envs.observation_rows(), [tag(seed(0, 1)), 0.0, tag(seed(1, 1)), 1.0]);
}

/// The final observation is what a lone environment saw, for a world whose observations are not made up.
#[test]
fn the_final_observation_is_the_lone_environments() {
    let world = registry::find("cartpole").unwrap();
    let mut envs = world.vec_env(5..9, SEED).unwrap();
    let mut checked = 0;
    for _ in 0..60 {
        let transition = envs.step(Actions::Discrete(&[0, 1, 0, 1])).unwrap().clone();
        for finished in transition.finished {
            let (mut env, mut row) = (world.env(), [0.0; 4]);
            env.reset(finished.seed, &mut row);
            for t in 1..=finished.length {
                assert_eq!(env.step(Action::Discrete(finished.env as u32 % 2), &mut row).done(), t == finished.length);
            }
            assert_eq!(finished.observation, row);
            let now = &envs.observation_rows()[4 * finished.env..4 * finished.env + 4];
            assert!(now.iter().all(|number| number.abs() <= 0.05), "expected a first observation, got {now:?}");
            checked += 1;
        }
    }
    assert!(checked >= 16, "{checked} episodes");
}

/// A mistake often made: the dummy transition of Gymnasium's default mode is taken for a step.
#[test]
fn a_reset_in_the_next_step_is_marked_and_counts_for_nothing() {
    let mut envs = vec_env(&[(2, 100), (100, 100)], Autoreset::NextStep);
    let mut length = 0;
    for episode in 0..3 {
        envs.step(Actions::Discrete(&[0, 0])).unwrap();
        let transition = envs.step(Actions::Discrete(&[1, 0])).unwrap();
        let observation = vec![tag(seed(0, episode)), 2.0];
        let ended = Finished {
            env: 0,
            seed: seed(0, episode),
            ending: Ending::Terminated,
            episode_return: 13.0,
            length: 2,
            observation,
            scores: Vec::new(),
        };
        assert_eq!(transition.finished, [ended]);
        assert_eq!(transition.resets, [false, false]);
        length += 2;
        assert_eq!(envs.observation_rows(), [tag(seed(0, episode)), 2.0, tag(seed(1, 0)), length as f32], "the final row stays");

        // the action 2 would pay 20
        let transition = envs.step(Actions::Discrete(&[2, 2])).unwrap();
        length += 1;
        assert_eq!(transition.resets, [true, false]);
        assert_eq!(transition.rewards, [0.0, 20.0 + length as f32]);
        assert_eq!((transition.endings.as_slice(), transition.finished.len()), ([Ending::Running; 2].as_slice(), 0));
        assert_eq!(envs.observation_rows(), [tag(seed(0, episode + 1)), 0.0, tag(seed(1, 0)), length as f32]);
    }
}

#[test]
fn without_autoreset_a_finished_environment_cannot_be_stepped() {
    let mut envs = vec_env(&[(100, 100), (1, 100)], Autoreset::Disabled);
    let transition = envs.step(Actions::Discrete(&[0, 0])).unwrap();
    assert_eq!(transition.finished.len(), 1);
    let before = envs.save();
    let error = envs.step(Actions::Discrete(&[0, 0])).unwrap_err();
    assert_eq!(error, EnvError::Finished { env: 4 });
    assert_eq!(envs.save(), before, "nothing moves");
    assert_eq!(envs.observation_rows()[2..], [tag(seed(1, 0)), 1.0], "the final row stays");

    envs.reset_finished().unwrap();
    assert_eq!(envs.observation_rows(), [tag(seed(0, 0)), 1.0, tag(seed(1, 1)), 0.0]);
    let again = envs.save();
    envs.reset_finished().unwrap();
    assert_eq!(envs.save(), again, "only what is finished is reset");
    let transition = envs.step(Actions::Discrete(&[1, 1])).unwrap();
    assert_eq!((transition.rewards.as_slice(), transition.resets.as_slice()), ([12.0, 11.0].as_slice(), [false; 2].as_slice()));
    assert_eq!((transition.finished[0].length, transition.finished[0].episode_return), (1, 11.0));
}

#[test]
fn termination_and_truncation_are_kept_apart() {
    let mut envs = vec_env(&[(3, 9), (9, 3), (3, 3)], Autoreset::SameStep);
    for _ in 0..2 {
        assert_eq!(envs.step(Actions::Discrete(&[0; 3])).unwrap().endings, [Ending::Running; 3]);
    }
    let transition = envs.step(Actions::Discrete(&[0; 3])).unwrap();
    assert_eq!(transition.endings, [Ending::Terminated, Ending::Truncated, Ending::Both]);
    assert_eq!(transition.finished.iter().map(|finished| finished.ending).collect::<Vec<_>>(), transition.endings);
    assert_eq!(transition.endings.iter().map(|e| e.terminated()).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(transition.endings.iter().map(|e| e.truncated()).collect::<Vec<_>>(), [false, true, true]);
    assert!(transition.endings.iter().all(|ending| ending.done()) && !Ending::Running.done());
}

/// What an inner limit truncated stays truncated under an outer one.
#[test]
fn time_limits_nest() {
    let mut env = TimeLimit::new(TimeLimit::new(Count::new(9), 2), 5);
    let mut row = [0.0; 2];
    env.reset(0, &mut row);
    assert!(!env.step(Action::Discrete(0), &mut row).done());
    let step = env.step(Action::Discrete(0), &mut row);
    assert_eq!((step.terminated, step.truncated), (false, true));
}

#[test]
fn wrong_actions_are_refused_and_nothing_moves() {
    let mut envs = vec_env(&[(9, 9), (9, 9)], Autoreset::SameStep);
    envs.step(Actions::Discrete(&[0, 0])).unwrap();
    let (before, rows) = (envs.save(), envs.observation_rows().to_vec());
    let cases: [(Actions<'_>, &str); 6] = [
        (Actions::Discrete(&[0]), "actions: expected 2, one per environment, got 1"),
        (Actions::Discrete(&[0, 0, 0]), "actions: expected 2, one per environment, got 3"),
        (Actions::Discrete(&[]), "actions: expected 2, one per environment, got 0"),
        (Actions::Discrete(&[2, 3]), "action of environment 4: expected Discrete(3), that is 0 to 2, got Discrete(3)"),
        (Actions::Discrete(&[u32::MAX, 0]), "action of environment 3: expected Discrete(3), that is 0 to 2, got Discrete(4294967295)"),
        (
            Actions::Continuous { rows: &[0.0, 1.0], width: 1 },
            "action of environment 3: expected Discrete(3), that is 0 to 2, got Continuous([0.0])",
        ),
    ];
    for (actions, expected) in cases {
        assert_eq!(envs.step(actions).unwrap_err().to_string(), expected);
        assert_eq!((envs.save(), envs.observation_rows()), (before.clone(), rows.as_slice()), "{expected}");
    }
    assert_eq!(envs.step(Actions::Discrete(&[2, 2])).unwrap().rewards, [22.0; 2]);
}

/// Steers a point; here for its actions, which are rows of two numbers.
#[derive(Clone)]
struct Steer;

impl Env for Steer {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![-1.0], high: vec![1.0] }
    }
    fn action_space(&self) -> Space {
        Space::Box { low: vec![-1.0, 0.0], high: vec![1.0, 0.5] }
    }
    fn reset(&mut self, _seed: u64, observation: &mut [f32]) {
        observation[0] = 0.0;
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let Action::Continuous(action) = action else { panic!("expected numbers") };
        observation[0] = action[0];
        Step { reward: f64::from(action[1]), terminated: false, truncated: false }
    }
    fn save(&self) -> Vec<u64> {
        Vec::new()
    }
    fn load(&mut self, _state: &[u64]) -> Result<(), EnvError> {
        Ok(())
    }
}

#[test]
fn rows_of_numbers_are_checked_against_the_box() {
    let mut envs = World::new("steer", || Steer).vec_env(0..2, SEED).unwrap();
    let mut step = |rows: &[f32], width| {
        let result = envs.step(Actions::Continuous { rows, width }).map(|transition| transition.rewards.clone());
        result.map(|rewards| (rewards, envs.observation_rows().to_vec()))
    };
    let edge = [-1.0, 0.5, 1.0, 0.0];
    assert_eq!(step(&edge, 2), Ok((vec![0.5, 0.0], vec![-1.0, 1.0])), "the bounds belong to the box");
    for outside in [0.6, -0.1, f32::NAN, f32::INFINITY] {
        let error = step(&[0.0, 0.0, 0.0, outside], 2).unwrap_err();
        assert!(matches!(error, EnvError::Action { env: 1, .. }), "{error}");
    }
    assert!(matches!(step(&[0.0, 0.0], 1), Err(EnvError::Action { env: 0, .. })));
    assert!(matches!(step(&[0.0, 0.0], 2), Err(EnvError::ActionCount { expected: 2, got: 1 })));
    assert!(matches!(step(&[0.0; 5], 2), Err(EnvError::ActionCount { expected: 2, .. })), "half a row too much");
    assert_eq!(step(&edge, 2).unwrap().1, [-1.0, 1.0]);
}

/// Returns `value` as reward or observation on step `at` (0: the reset).
#[derive(Clone)]
struct Fault {
    count: Count,
    at: u32,
    in_reward: bool,
    value: f64,
}

impl Env for Fault {
    fn observation_space(&self) -> Space {
        self.count.observation_space()
    }
    fn action_space(&self) -> Space {
        self.count.action_space()
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.count.reset(seed, observation);
        if self.at == 0 {
            observation[1] = self.value as f32;
        }
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        let mut step = self.count.step(action, observation);
        if self.count.steps == self.at {
            match self.in_reward {
                true => step.reward = self.value,
                false => observation[1] = self.value as f32,
            }
        }
        step
    }
    fn save(&self) -> Vec<u64> {
        self.count.save()
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.count.load(state)
    }
}

/// Environment 3 is sound and ends after every step; environment 4 ends after 5 and has the fault.
fn faulty(at: u32, in_reward: bool, value: f64) -> Result<VecEnv, EnvError> {
    let sound = Fault { count: Count::new(1), at: u32::MAX, in_reward, value };
    let faulty = Fault { count: Count::new(5), at, in_reward, value };
    VecEnv::new(Box::new(ScalarBatch::new(vec![sound, faulty])), 3..5, SEED, Autoreset::SameStep)
}

#[test]
fn a_number_that_is_not_finite_is_named_with_environment_step_and_seed() {
    let seed = seed(1, 0);
    // 1e300 is finite until it is rounded to f32
    let values = [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf"), (1e300, "inf")];
    for (in_reward, what) in [(true, "reward"), (false, "observation[1]")] {
        for (value, got) in values {
            for at in [1, 4, 5] {
                let mut envs = faulty(at, in_reward, value).unwrap();
                for _ in 1..at {
                    envs.step(Actions::Discrete(&[0, 0])).unwrap();
                }
                let error = envs.step(Actions::Discrete(&[0, 0])).unwrap_err().to_string();
                let place = format!("(step {at} of the episode with seed {seed})");
                assert_eq!(error, format!("{what} of environment 4 is {got}, expected a finite number {place}"));
            }
        }
    }
    let error = faulty(0, false, f64::NAN).err().expect("an error").to_string();
    let place = format!("(step 0 of the episode with seed {seed})");
    assert_eq!(error, format!("observation[1] of environment 4 is NaN, expected a finite number {place}"));
}

#[test]
fn each_environment_plays_the_episodes_of_its_own_seeds() {
    for autoreset in [Autoreset::SameStep, Autoreset::NextStep, Autoreset::Disabled] {
        let mut envs = vec_env(&[(2, 9), (3, 9), (9, 4)], autoreset);
        let mut played = [0_u64; 3];
        for _ in 0..60 {
            let transition = envs.step(Actions::Discrete(&[0; 3])).unwrap().clone();
            for finished in transition.finished {
                let expected = seed(finished.env as u64, played[finished.env]);
                assert_eq!((finished.seed, finished.observation[0]), (expected, tag(expected)), "{autoreset:?}");
                played[finished.env] += 1;
            }
            if autoreset == Autoreset::Disabled {
                envs.reset_finished().unwrap();
            }
        }
        let expected = if autoreset == Autoreset::NextStep { [20, 15, 12] } else { [30, 20, 15] };
        assert_eq!(played, expected, "{autoreset:?}");
    }
}

#[test]
fn a_time_limit_continues_where_it_was_saved() {
    let (mut env, mut row) = (TimeLimit::new(Count::new(100), 5), [0.0; 2]);
    env.reset(1, &mut row);
    for _ in 0..3 {
        env.step(Action::Discrete(0), &mut row);
    }
    let words = env.save();
    let mut later = TimeLimit::new(Count::new(100), 5);
    later.load(&words).unwrap();
    assert_eq!(later.save(), words);
    for truncated in [false, true] {
        let expected = env.step(Action::Discrete(2), &mut row);
        assert_eq!(expected.truncated, truncated);
        let mut later_row = [0.0; 2];
        assert_eq!((later.step(Action::Discrete(2), &mut later_row), later_row), (expected, row));
    }
    later.reset(2, &mut row);
    for truncated in [false, false, false, false, true] {
        assert_eq!(later.step(Action::Discrete(0), &mut row).truncated, truncated, "a reset begins the count anew");
    }
}

#[test]
fn a_time_limit_refuses_a_state_that_is_none() {
    let mut env = TimeLimit::new(Count::new(100), 5);
    let error = |words: &[u64], env: &mut TimeLimit<Count>| env.load(words).unwrap_err().to_string();
    assert_eq!(error(&[], &mut env), "state of the environment: expected the elapsed steps, got nothing");
    assert_eq!(error(&[0, 1, 6], &mut env), "state of the environment: elapsed steps: expected at most 5, got 6");
    assert_eq!(
        error(&[0, 1, u64::MAX], &mut env),
        format!("state of the environment: elapsed steps: expected at most 5, got {}", u64::MAX)
    );
    assert_eq!(error(&[0, 3], &mut env), "state of the environment: expected 2 words, got 1");
}

#[test]
fn a_vector_refuses_saved_words_that_are_cut_short() {
    let mut envs = vec_env(&[(9, 9), (9, 9)], Autoreset::SameStep);
    let words = envs.save();
    for len in 0..words.len() {
        assert!(matches!(envs.load(&words[..len]), Err(EnvError::State(_))), "{len} of {} words", words.len());
    }
    assert_eq!(envs.load(&[words.as_slice(), &[7]].concat()), Ok([7].as_slice()));
}

#[test]
fn a_vector_refuses_saved_words_that_make_no_sense() {
    let mut envs = vec_env(&[(9, 9)], Autoreset::SameStep);
    let words = envs.save();
    let mut refuses = |i: usize, word: u64, expected: &str| {
        let mut words = words.clone();
        words[i] = word;
        let error = envs.load(&words).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refuses(2, f64::NAN.to_bits(), "expected a finite return, got NaN");
    refuses(3, 1 << 32, "the length of its episode is no 32-bit number");
    refuses(4, 1, "it waits for a reset");
    refuses(4, 2, "expected 0 or 1 for whether it waits, got 2");
    let mut disabled = vec_env(&[(9, 9)], Autoreset::Disabled);
    let waiting: Vec<u64> = words.iter().enumerate().map(|(i, word)| if i == 4 { 1 } else { *word }).collect();
    assert!(disabled.load(&waiting).is_ok(), "without autoreset an environment may wait");
}

/// A game without a move left at its end: the mask of the final state is all false, and nobody is asked to choose from it.
struct LastMove(u32);

impl Env for LastMove {
    fn observation_space(&self) -> Space {
        Space::Box { low: vec![0.0], high: vec![9.0] }
    }
    fn action_space(&self) -> Space {
        Space::Discrete(2)
    }
    fn reset(&mut self, seed: u64, observation: &mut [f32]) {
        self.0 = 1 + (seed % 3) as u32;
        observation[0] = self.0 as f32;
    }
    fn step(&mut self, _: Action<'_>, observation: &mut [f32]) -> Step {
        self.0 -= 1;
        observation[0] = self.0 as f32;
        Step { reward: 0.0, terminated: self.0 == 0, truncated: false }
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        mask.copy_from_slice(&[self.0 > 0, false]);
        true
    }
    fn save(&self) -> Vec<u64> {
        vec![self.0.into()]
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.0 = state[0] as u32;
        Ok(())
    }
}

#[test]
fn an_environment_that_waits_is_not_asked_for_its_mask() {
    let world = World::new("last-move", || LastMove(0));
    for autoreset in [Autoreset::SameStep, Autoreset::NextStep, Autoreset::Disabled] {
        let mut envs = world.vec_env_with(0..8, 1, autoreset).unwrap();
        let mut ended = 0;
        for _ in 0..4 {
            let masks = envs.action_masks().unwrap().to_vec();
            assert!(masks.chunks(2).all(|mask| mask[0]), "{autoreset:?}: {masks:?}");
            ended += envs.step_unfinished(Actions::Discrete(&[0; 8])).unwrap().finished.len();
        }
        assert!(ended >= 8, "{autoreset:?}: {ended}");
    }
}

/// Groups of two begin alike, their neighbours otherwise; and those that have ended stand still until they are told to go on.
#[test]
fn groups_begin_alike_and_finished_ones_wait() {
    let world = World::new("last-move", || LastMove(0));
    let mut envs = world.vec_env_with(0..6, Starts { seed: 1, group: 2 }, Autoreset::Disabled).unwrap();
    let start = envs.observation_rows().to_vec();
    assert!(start.chunks(2).all(|pair| pair[0] == pair[1]) && start.iter().any(|x| *x != start[0]), "{start:?}");
    let mut lengths = [0; 6];
    for _ in 0..3 {
        for finished in &envs.step_unfinished(Actions::Discrete(&[0; 6])).unwrap().finished {
            lengths[finished.env] = finished.length;
        }
    }
    assert!(lengths.iter().zip(&start).all(|(length, start)| *length == *start as u32), "{lengths:?} from {start:?}");
    assert_eq!(envs.observation_rows(), [0.0; 6]);
    assert!(envs.step(Actions::Discrete(&[0; 6])).is_err(), "an ordinary step does not pass over them");
    envs.begin_next(3).unwrap();
    let waiting: Vec<bool> = envs.observation_rows().iter().map(|x| *x == 0.0).collect();
    assert_eq!(waiting, [true, true, true, false, true, true]);
}

/// As [`LastMove`], but without a move two steps too early.
struct Stuck(LastMove);

impl Env for Stuck {
    fn observation_space(&self) -> Space {
        self.0.observation_space()
    }
    fn action_space(&self) -> Space {
        self.0.action_space()
    }
    fn reset(&mut self, _: u64, observation: &mut [f32]) {
        self.0.reset(2, observation); // three steps long
    }
    fn step(&mut self, action: Action<'_>, observation: &mut [f32]) -> Step {
        self.0.step(action, observation)
    }
    fn action_mask(&self, mask: &mut [bool]) -> bool {
        mask.copy_from_slice(&[self.0.0 == 3, false]);
        true
    }
    fn save(&self) -> Vec<u64> {
        self.0.save()
    }
    fn load(&mut self, state: &[u64]) -> Result<(), EnvError> {
        self.0.load(state)
    }
}

#[test]
fn a_running_episode_without_a_move_is_an_error_with_its_place() {
    let mut envs = World::new("stuck", || Stuck(LastMove(0))).vec_env(4..6, 1).unwrap();
    let message = envs.step(Actions::Discrete(&[0, 0])).unwrap_err().to_string();
    let seed = episode_seed(1, 4, 0);
    let expected = format!("action mask of environment 4: expected at least one action, got none (step 1 of the episode with seed {seed})");
    assert_eq!(message, expected);
}

#[test]
fn clipping_keeps_to_the_bounds_and_hides_no_nan() {
    let space = Space::Box { low: vec![-1.0, 0.0], high: vec![1.0, f32::INFINITY] };
    let mut rows = [-3.0, -3.0, 0.5, 7.0, f32::NAN, 2.0];
    space.clip(&mut rows);
    assert_eq!(rows[..4], [-1.0, 0.0, 0.5, 7.0]);
    assert!(rows[4].is_nan());
}
