//! Plays and compares episodes for the checker.

use std::cell::RefCell;

use gradus_base::panics;
use gradus_base::random::{Purpose, Stream};
use gradus_envs::{Action, Env, Space, Step};

/// Replaces infinite bounds: actions of an unbounded dimension are drawn from -10 to 10.
const UNBOUNDED: f32 = 10.0;

/// An owned action: discrete if `row` is empty, otherwise continuous.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub number: u32,
    pub row: Vec<f32>,
}

impl Chosen {
    pub fn as_action(&self) -> Action<'_> {
        if self.row.is_empty() { Action::Discrete(self.number) } else { Action::Continuous(&self.row) }
    }
}

/// The observation and the result of one step. The record of a reset has no result.
#[derive(Clone, Debug)]
pub(super) struct StepRecord {
    pub row: Vec<f32>,
    pub step: Option<Step>,
}

impl StepRecord {
    pub fn done(&self) -> bool {
        self.step.is_some_and(|step| step.done())
    }
}

/// What is wrong with an environment that could not be reset or stepped; its numbers mean nothing.
pub(super) struct Broken(pub String);

/// Raises the cause of a NaN among an environment's last numbers, if it has one.
fn unbroken(env: &dyn Env, numbers: &[f32]) {
    if numbers.iter().any(|number| number.is_nan())
        && let Some(fault) = env.fault()
    {
        panics::raise(Broken(fault));
    }
}

/// Creates environments with `make` and plays episodes with random actions.
pub(super) struct Player<'a> {
    pub make: &'a dyn Fn() -> Box<dyn Env>,
    pub observations: Space,
    pub actions: Space,
    last_played: RefCell<String>,
}

impl<'a> Player<'a> {
    pub fn new(make: &'a dyn Fn() -> Box<dyn Env>) -> Self {
        let env = make();
        Self { make, observations: env.observation_space(), actions: env.action_space(), last_played: RefCell::default() }
    }

    pub fn env(&self) -> Box<dyn Env> {
        (self.make)()
    }

    /// The last seed or action given to an environment, for the report of a panic.
    pub fn last_played(&self) -> String {
        self.last_played.borrow().clone()
    }

    /// Returns the random stream for the actions of an episode with seed `seed`.
    pub fn stream(seed: u64) -> Stream {
        Stream::new(seed, Purpose::Action, 0)
    }

    /// Draws a random action.
    pub fn sample(&self, stream: &mut Stream) -> Chosen {
        match &self.actions {
            Space::Discrete(_) | Space::MultiDiscrete(_) => {
                Chosen { number: stream.below(self.actions.elements().unwrap_or(1)), row: Vec::new() }
            }
            Space::Box { low, high } => {
                let sides = low.iter().zip(high).map(|(low, high)| within(*low, *high));
                let row = sides.map(|[low, high]| (stream.uniform(low.into(), high.into()) as f32).clamp(low, high)).collect();
                Chosen { number: 0, row }
            }
            Space::Image(_) | Space::Text { .. } => Chosen { number: 0, row: Vec::new() }, // rejected by the check of spaces
        }
    }

    /// Begins the episode with seed `seed`. The row is first filled with NaN, so that numbers that are not written are detected.
    pub fn reset(&self, env: &mut dyn Env, seed: u64) -> StepRecord {
        let mut row = vec![f32::NAN; self.observations.width()];
        *self.last_played.borrow_mut() = format!("reset with seed {seed}");
        env.reset(seed, &mut row);
        unbroken(env, &row);
        StepRecord { row, step: None }
    }

    pub fn step(&self, env: &mut dyn Env, action: &Chosen) -> StepRecord {
        let mut row = vec![f32::NAN; self.observations.width()];
        *self.last_played.borrow_mut() = format!("{:?}", action.as_action());
        let step = env.step(action.as_action(), &mut row);
        unbroken(env, if step.reward.is_nan() { &[f32::NAN] } else { &row });
        StepRecord { row, step: Some(step) }
    }

    /// Continues with random actions, for at most `steps` steps or to the end of the episode.
    pub fn go_on(&self, env: &mut dyn Env, stream: &mut Stream, steps: usize) -> Vec<StepRecord> {
        let mut records: Vec<StepRecord> = Vec::new();
        while records.len() < steps && !records.last().is_some_and(StepRecord::done) {
            records.push(self.step(env, &self.sample(stream)));
        }
        records
    }

    /// Plays the episode with seed `seed`, for at most `steps` steps or to its end. The first record is that of the reset.
    pub fn play(&self, env: &mut dyn Env, seed: u64, steps: usize) -> Vec<StepRecord> {
        let mut records = vec![self.reset(env, seed)];
        records.extend(self.go_on(env, &mut Self::stream(seed), steps));
        records
    }
}

/// Returns the bounds of an interval, with finite replacements for infinite ones.
pub(super) fn within(low: f32, high: f32) -> [f32; 2] {
    match (low.is_finite(), high.is_finite()) {
        (true, true) => [low, high],
        (true, false) => [low, low + 2.0 * UNBOUNDED],
        (false, true) => [high - 2.0 * UNBOUNDED, high],
        (false, false) => [-UNBOUNDED, UNBOUNDED],
    }
}

/// Describes the first number whose bits differ between two rows.
pub(super) fn differing(expected: &[f32], got: &[f32]) -> Option<String> {
    let i = expected.iter().zip(got).position(|(expected, got)| expected.to_bits() != got.to_bits())?;
    Some(format!("observation[{i}]: expected {:?}, got {:?}", expected[i], got[i]))
}

/// Describes the first difference between two episodes; their first records belong to step `first`.
pub(super) fn difference(first: usize, expected: &[StepRecord], got: &[StepRecord]) -> Option<String> {
    for (t, (a, b)) in expected.iter().zip(got).enumerate() {
        let place = if first + t == 0 { "start".to_string() } else { format!("step {}", first + t) };
        if let Some(difference) = differing(&a.row, &b.row) {
            return Some(format!("{place}: {difference}"));
        }
        if let (Some(a), Some(b)) = (a.step, b.step) {
            if a.reward.to_bits() != b.reward.to_bits() {
                return Some(format!("{place}: reward: expected {:?}, got {:?}", a.reward, b.reward));
            }
            let flags = |step: Step| format!("terminated {} and truncated {}", step.terminated, step.truncated);
            if flags(a) != flags(b) {
                return Some(format!("{place}: expected {}, got {}", flags(a), flags(b)));
            }
        }
    }
    None
}
