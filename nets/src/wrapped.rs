//! A policy with a listener, for what looks at a training from outside: a check of gradients, a record of them.

use gradus_base::tensors::{Tensors, TensorsError};

use crate::{Actor, Batch, Behaviour, FeatureMaps, Group, Inspection, Network, Objective, OptimiserStep, Policy, Store, Sums};

/// What happens when an agent trains a policy. Without methods of its own, a listener changes nothing.
pub trait Listener: Send + Sync + 'static {
    /// Computes a gradient, as [`Policy::gradient`] does.
    fn gradient(&mut self, policy: &mut dyn Policy, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        policy.gradient(store, batch, objective)
    }

    /// Takes a step of the optimiser, as [`Network::apply`] does.
    fn apply(&mut self, policy: &mut dyn Policy, step: &OptimiserStep) {
        policy.apply(step);
    }
}

/// A policy that is another one, except that its listener computes gradients and takes steps. Its snapshots have no listener.
pub struct Wrapped<L> {
    /// The policy.
    pub policy: Box<dyn Policy>,
    /// The listener.
    pub listener: L,
}

impl<L: Listener> Behaviour for Wrapped<L> {
    fn observation_width(&self) -> usize {
        self.policy.observation_width()
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        self.policy.actor()
    }

    fn memory_width(&self) -> usize {
        self.policy.memory_width()
    }

    fn sequence_length(&self) -> usize {
        self.policy.sequence_length()
    }

    fn inspect(&mut self, observations: &[f32]) -> Vec<Inspection> {
        self.policy.inspect(observations)
    }

    fn inspect_episode(&mut self, observations: &[f32]) -> Vec<Inspection> {
        self.policy.inspect_episode(observations)
    }

    fn feature_maps(&mut self, observations: &[f32]) -> Vec<FeatureMaps> {
        self.policy.feature_maps(observations)
    }

    fn save(&self) -> Tensors {
        self.policy.save()
    }

    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load(tensors)
    }

    fn load_pretrained(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load_pretrained(tensors)
    }

    fn merged(&self) -> Option<Tensors> {
        self.policy.merged()
    }

    fn fault(&self) -> Option<String> {
        self.policy.fault()
    }

    fn wants_one_actor(&self) -> bool {
        self.policy.wants_one_actor()
    }

    fn save_optimiser(&self) -> Tensors {
        self.policy.save_optimiser()
    }

    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        self.policy.load_optimiser(tensors)
    }
}

impl<L: Listener> Network for Wrapped<L> {
    fn gradient_norm(&self) -> f32 {
        self.policy.gradient_norm()
    }

    fn apply(&mut self, step: &OptimiserStep) {
        self.listener.apply(self.policy.as_mut(), step);
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

impl<L: Listener> Policy for Wrapped<L> {
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
        self.listener.gradient(self.policy.as_mut(), store, batch, objective)
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
