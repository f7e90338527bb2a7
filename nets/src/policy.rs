//! The interface between agents and engines.

use gradus_envs::random::Stream;

use crate::tensors::{Tensors, TensorsError};
use crate::{ActionRows, Objective, OptimiserStep, Store, Sums};

/// A part of the parameters that has its own learning rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `trunk`, `actor` or `critic`.
    pub name: &'static str,
    /// Where it lies in [`Policy::parameters`].
    pub range: std::ops::Range<usize>,
}

/// Decisions of a rollout, each with its weight in the loss.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Which decisions.
    pub indices: &'a [u32],
    /// Their weights; 1/n each gives the mean.
    pub weights: &'a [f32],
}

/// How an action is chosen from the distribution.
pub enum Choice<'a> {
    /// The most probable one; the lowest of equals.
    Greedy,
    /// At random, by one stream per row.
    Sample(&'a mut [Stream]),
}

/// Chooses actions with the policy's present parameters. A worker has one of its own, so that many can act at once.
pub trait Actor: Send {
    /// Chooses an action for each row of `observations` and reports its log-probability. The result for a row depends on that row
    /// and its stream alone.
    fn act(&mut self, observations: &[f32], choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]);
}

/// A policy and its critic: observations in; a distribution over actions and a value out; and the gradient of any [`Objective`].
pub trait Policy: Send + Sync {
    /// Numbers per observation.
    fn observation_width(&self) -> usize;

    /// Something that chooses actions.
    fn actor(&self) -> Box<dyn Actor + '_>;

    /// V(s) for every observation of `store`, into `values`.
    fn values(&mut self, store: &Store, values: &mut Vec<f32>);

    /// The objective over `batch`, without a gradient.
    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums;

    /// The objective over `batch` and its gradient, which is kept until the next call.
    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums;

    /// The Euclidean norm of the gradient.
    fn gradient_norm(&self) -> f32;

    /// Moves the parameters by the gradient.
    fn apply(&mut self, step: &OptimiserStep);

    /// The named parts of the parameters, in order.
    fn groups(&self) -> Vec<Group>;

    /// All parameters, flat. Engines may pad layers: padding is zero, has gradient zero and stays zero.
    fn parameters(&self) -> &[f32];

    /// The gradient of the last [`gradient`](Policy::gradient), in the order of the parameters.
    fn last_gradient(&self) -> &[f32];

    /// A copy of its own, with the parameters as they are now.
    fn snapshot(&self) -> Box<dyn Policy>;

    /// The parameters by name, in PyTorch's layout.
    fn save(&self) -> Tensors;

    /// Takes over parameters by name; on an error nothing has changed.
    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError>;

    /// What the optimiser remembers, for a checkpoint.
    fn save_optimiser(&self) -> Tensors;

    /// Takes over what the optimiser remembers; on an error nothing has changed.
    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError>;
}
