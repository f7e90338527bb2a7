//! A policy that records gradients instead of applying them.

use gradus::nets::tensors::{Tensors, TensorsError};
use gradus::nets::{Actor, Batch, Behaviour, Group, Network, Objective, OptimiserStep, Policy, Store, Sums};

/// A policy that records the gradient at each optimiser step and keeps its parameters.
pub struct GradientRecorder {
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// The gradients, in the order of the steps.
    pub gradients: Vec<Vec<f32>>,
}

impl Behaviour for GradientRecorder {
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

    fn save_optimiser(&self) -> Tensors {
        self.policy.save_optimiser()
    }

    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load_optimiser(tensors)
    }
}

impl Network for GradientRecorder {
    fn apply(&mut self, _: &OptimiserStep) {
        self.gradients.push(self.policy.last_gradient().to_vec());
    }

    fn gradient_norm(&self) -> f32 {
        self.policy.gradient_norm()
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

impl Policy for GradientRecorder {
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

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.policy.evaluate(store, batch, objective)
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.policy.gradient(store, batch, objective)
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
