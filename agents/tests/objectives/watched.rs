//! A listener that checks the objectives that an update gives to a policy: their derivatives are slopes of the loss, and they agree with
//! `updates`.

use std::sync::Mutex;

use gradus_nets::{Batch, Evaluation, Listener, Objective, Outputs, Policy, PolicyOutput, Store, Sums, UpdatedGroups, Wrapped};

/// A listener that checks objectives, and what they moved, in order and without repetitions.
#[derive(Default)]
pub struct Watched(pub Vec<UpdatedGroups>);

pub fn watched(policy: impl Policy + 'static) -> Wrapped<Watched> {
    Wrapped { policy: Box::new(policy), listener: Watched::default() }
}

/// An objective whose derivatives are checked, and whether a decision had a derivative with respect to the value, and another one.
struct WatchedObjective<'a> {
    objective: &'a dyn Objective,
    has: Mutex<[bool; 2]>,
}

impl Objective for WatchedObjective<'_> {
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        self.objective.decision(index, pi)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        let before = outputs.to_vec();
        self.objective.slice(indices, weights, outputs, sums);
        let loss = |changed: &[PolicyOutput]| {
            let (mut changed, mut sums) = (changed.to_vec(), Sums::default());
            self.objective.slice(indices, weights, &mut changed, &mut sums);
            sums.loss
        };
        for (i, slopes) in outputs.iter().enumerate() {
            let mut has = self.has.lock().unwrap();
            has[0] |= slopes.value != 0.0;
            has[1] |= *slopes != PolicyOutput { value: slopes.value, ..PolicyOutput::default() };
            let difference = |change: fn(&mut PolicyOutput, f32)| {
                let at = |by: f32| {
                    let mut changed = before.clone();
                    change(&mut changed[i], by);
                    loss(&changed)
                };
                (at(1e-2) - at(-1e-2)) / 2e-2
            };
            let of_log_prob = difference(|output, by| output.log_prob += by);
            let of_value = difference(|output, by| output.value += by);
            for (got, expected) in [(slopes.log_prob, of_log_prob), (slopes.value, of_value)] {
                assert!((f64::from(got) - expected).abs() < 1e-3 * expected.abs() + 1e-5, "decision {i}: expected {expected}, got {got}");
            }
        }
    }

    fn updates(&self) -> UpdatedGroups {
        self.objective.updates()
    }
}

impl Listener for Watched {
    fn gradient(&mut self, policy: &mut dyn Policy, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        let watched = WatchedObjective { objective, has: Mutex::default() };
        let sums = policy.gradient(store, batch, &watched);
        let expected = match watched.has.into_inner().unwrap() {
            [true, true] => UpdatedGroups::All,
            [true, false] => UpdatedGroups::Critic,
            [false, true] => UpdatedGroups::Actor,
            [false, false] => panic!("no decision has a derivative"),
        };
        assert_eq!(objective.updates(), expected);
        if self.0.last() != Some(&expected) {
            self.0.push(expected);
        }
        sums
    }
}
