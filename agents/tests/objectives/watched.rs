//! A policy that checks the objectives that an update gives it: their derivatives are slopes of the loss, and they agree with `updates`.

use std::sync::Mutex;

use gradus_base::tensors::{Tensors, TensorsError};
use gradus_nets::{
    Actor, Batch, Behaviour, Evaluation, Group, Network, Objective, OptimiserStep, Outputs, Policy, PolicyOutput, Store, Sums,
    UpdatedGroups,
};

/// A policy that checks objectives.
pub struct Watched<P> {
    policy: P,
    updates: Vec<UpdatedGroups>,
}

impl<P> Watched<P> {
    pub fn new(policy: P) -> Self {
        Self { policy, updates: Vec::new() }
    }

    /// Returns what the objectives moved, in order and without repetitions.
    pub fn updates(&self) -> &[UpdatedGroups] {
        &self.updates
    }
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

impl<P: Policy> Policy for Watched<P> {
    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        let watched = WatchedObjective { objective, has: Mutex::default() };
        let sums = self.policy.gradient(store, batch, &watched);
        let expected = match watched.has.into_inner().unwrap() {
            [true, true] => UpdatedGroups::All,
            [true, false] => UpdatedGroups::Critic,
            [false, true] => UpdatedGroups::Actor,
            [false, false] => panic!("no decision has a derivative"),
        };
        assert_eq!(objective.updates(), expected);
        if self.updates.last() != Some(&expected) {
            self.updates.push(expected);
        }
        sums
    }

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.policy.evaluate(store, batch, objective)
    }

    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        self.policy.values(store, values);
    }

    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        self.policy.log_probs(store, log_probs);
    }

    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        self.policy.distributions(store, rows);
    }

    fn distribution_width(&self) -> usize {
        self.policy.distribution_width()
    }

    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>) {
        self.policy.fisher_vector_product(store, batch, vector, product);
    }

    fn supports_fisher(&self) -> bool {
        self.policy.supports_fisher()
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        self.policy.snapshot()
    }
}

impl<P: Policy> Network for Watched<P> {
    fn gradient_norm(&self) -> f32 {
        self.policy.gradient_norm()
    }

    fn apply(&mut self, step: &OptimiserStep) {
        self.policy.apply(step);
    }

    fn groups(&self) -> Vec<Group> {
        self.policy.groups()
    }

    fn parameters(&self) -> &[f32] {
        self.policy.parameters()
    }

    fn set_parameters(&mut self, parameters: &[f32]) {
        self.policy.set_parameters(parameters);
    }

    fn last_gradient(&self) -> &[f32] {
        self.policy.last_gradient()
    }
}

impl<P: Policy> Behaviour for Watched<P> {
    fn observation_width(&self) -> usize {
        self.policy.observation_width()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        self.policy.actor()
    }

    fn save(&self) -> Tensors {
        self.policy.save()
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load(tensors)
    }
}
