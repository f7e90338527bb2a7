//! Helpers shared by several test files.

#![allow(dead_code)] // each test file uses only some of the helpers

pub mod identity;
pub mod texts;

use std::ops::Range;

use gradus_agents::{End, GroupId, OptimiserConfig, Report, Rollout, Segment, UpdateContext};
use gradus_nets::{ActionRows, Schedule, Store};

pub fn context(iteration: u64) -> UpdateContext {
    UpdateContext { seed: 1, iteration, progress: 0.0 }
}

pub fn optimiser() -> OptimiserConfig {
    OptimiserConfig { learning_rate: 0.01, schedule: Schedule::Constant, ..OptimiserConfig::default() }
}

pub fn metric(report: &Report, name: &str) -> f64 {
    report.iter().find(|(key, _)| *key == name).unwrap_or_else(|| panic!("no {name} in {report:?}")).1
}

pub fn near(got: &[f64], expected: &[f64], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    assert!(got.iter().zip(expected).all(|(g, e)| (g - e).abs() <= 1e-6), "{what}: got {got:?}, expected {expected:?}");
}

/// Returns a rollout with numeric observations. Each item of `episodes` holds the decisions and the group of one episode.
pub fn decisions(rewards: &[f32], episodes: &[(Range<usize>, u32)]) -> Rollout {
    let n = rewards.len();
    let segment = |(range, group): &(Range<usize>, u32)| Segment { range: range.clone(), end: End::Terminated, group: GroupId(*group) };
    let store = Store::new(1, vec![0.0; n], ActionRows::Discrete(vec![0; n]));
    Rollout::new(store, rewards.into(), vec![-1.0; n], episodes.iter().map(segment).collect())
}
