//! The interface between agents and engines.

use gradus_envs::random::Stream;

use crate::tensors::{Tensors, TensorsError};
use crate::{ActionRows, Objective, OptimiserStep, Sampling, Store, Sums};

/// A part of the parameters that the optimiser treats as one: it has its own learning rate and its own clock, the number of steps that Adam's
/// bias correction counts.
///
/// What actor and critic share is the group `trunk`, which every gradient moves: its clock counts all steps. So a trunk that one objective
/// moves for the policy and another for the values has one clock and one set of moments for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `trunk`, `actor` or `critic`.
    pub name: &'static str,
    /// Where it lies in [`Network::parameters`].
    pub range: std::ops::Range<usize>,
}

/// Decisions of a rollout, each with its weight in the loss.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Which decisions.
    pub indices: &'a [u32],
    /// Their weights; 1/n each gives the mean.
    pub weights: &'a [f32],
    /// What [`Policy::distributions`] once said of all decisions of the store, for [`PolicyOutput::kl_old`](crate::PolicyOutput::kl_old).
    pub old: Option<&'a [f32]>,
    /// The same of the reference policy, for [`PolicyOutput::kl_ref`](crate::PolicyOutput::kl_ref).
    pub reference: Option<&'a [f32]>,
}

impl<'a> Batch<'a> {
    /// These decisions, without old or reference distributions.
    pub fn new(indices: &'a [u32], weights: &'a [f32]) -> Self {
        Self { indices, weights, old: None, reference: None }
    }
}

/// How an action is chosen from the distribution.
pub enum Choice<'a> {
    /// The most probable one, the lowest of equals; of continuous ones the mean.
    Greedy,
    /// At random, by one stream per row.
    Sample(&'a mut [Stream]),
    /// At random from what [`Sampling`] leaves of the distribution, by one stream per row; discrete actions only. The log-probabilities
    /// reported are the policy's own.
    Truncated(&'a mut [Stream], &'a Sampling),
}

impl<'a> Choice<'a> {
    /// As `sampling` says, drawn from one stream per row.
    ///
    /// ```
    /// use gradus_nets::{Choice, Sampling};
    ///
    /// assert!(matches!(Choice::by(&Sampling::GREEDY, &mut []), Choice::Greedy));
    /// assert!(matches!(Choice::by(&Sampling::default(), &mut []), Choice::Sample(_)));
    /// assert!(matches!(Choice::by(&Sampling { top_k: 5, ..Sampling::default() }, &mut []), Choice::Truncated(..)));
    /// ```
    pub fn by(sampling: &'a Sampling, streams: &'a mut [Stream]) -> Self {
        if sampling.temperature == 0.0 {
            Choice::Greedy
        } else if *sampling == Sampling::default() {
            Choice::Sample(streams)
        } else {
            Choice::Truncated(streams, sampling)
        }
    }
}

/// Chooses actions with the policy's present parameters. A worker has one of its own, so that many can act at once.
pub trait Actor: Send {
    /// Chooses an action for each row of `observations` and reports its log-probability.
    ///
    /// With `masks`, one place per row and action, only actions that are true can be chosen, and at least one per row must be. Actions
    /// of a box are not clipped to its bounds: that is left to who hands them to the environment, so that the log-probability is that
    /// of the action drawn, as in Stable-Baselines3.
    ///
    /// The result for a row depends on that row, its mask and its stream alone. With gSDE it depends on the calls before, too: the actor
    /// keeps the noise of every row, so row i of every call must be the same environment.
    fn act(&mut self, observations: &[f32], masks: Option<&[bool]>, choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]);
}

/// Something that acts, such as a network, a table or a rule: all that a collector, an evaluation or a player needs of it. It is the behaviour
/// policy of Sutton and Barto.
///
/// It is [`Any`](std::any::Any), so that an engine can recognise its own policies and this interface names no engine.
pub trait Behaviour: std::any::Any + Send + Sync {
    /// Numbers per observation.
    fn observation_width(&self) -> usize;

    /// Something that chooses actions.
    fn actor(&self) -> Box<dyn Actor + '_>;

    /// What was learnt, by name: of a network its parameters in PyTorch's layout.
    fn save(&self) -> Tensors;

    /// Takes over what [`save`](Behaviour::save) saved; on an error nothing has changed.
    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError>;

    /// What went wrong on the device, in one line, if anything did: since then every answer is 0 or NaN. To be asked after a rollout and
    /// after an update.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Whether it is best asked about many observations at once, by one actor.
    fn wants_one_actor(&self) -> bool {
        false
    }

    /// What its optimiser remembers, for a checkpoint; nothing where it has none.
    fn save_optimiser(&self) -> Tensors {
        Tensors::new()
    }

    /// Takes over what [`save_optimiser`](Behaviour::save_optimiser) saved; on an error nothing has changed.
    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        match tensors.keys().next() {
            Some(name) => Err(TensorsError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }
}

/// Parameters that follow gradients, in named groups.
pub trait Network: Send + Sync {
    /// The Euclidean norm of the gradient.
    fn gradient_norm(&self) -> f32;

    /// Moves the parameters by the gradient: those of the groups that the objective of the last [`gradient`](Policy::gradient)
    /// [moves](Objective::moves). The other groups neither move nor decay, and their clocks stand still.
    fn apply(&mut self, step: &OptimiserStep);

    /// The named parts of the parameters, in order.
    fn groups(&self) -> Vec<Group>;

    /// All parameters, flat. Engines may pad layers: padding is zero, has gradient zero and stays zero.
    fn parameters(&self) -> &[f32];

    /// Whether every parameter is a number.
    fn is_finite(&self) -> bool {
        // no early end: then the loop takes many at a time
        self.parameters().chunks(256).all(|some| some.iter().fold(true, |all, parameter| all & parameter.is_finite()))
    }

    /// Replaces all parameters, which have the order and length of [`parameters`](Network::parameters); padding must still be 0.
    fn set_parameters(&mut self, parameters: &[f32]);

    /// The gradient of the last [`gradient`](Policy::gradient), in the order of the parameters.
    fn last_gradient(&self) -> &[f32];
}

/// A policy and its critic: observations in; a distribution over actions and a value out; and the gradient of any [`Objective`].
pub trait Policy: Behaviour + Network {
    /// V(s) for every observation of `store`, into `values`.
    fn values(&mut self, store: &Store, values: &mut Vec<f32>);

    /// log pi(a|s) of every decision of `store`, into `log_probs`.
    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>);

    /// The distribution of every decision of `store`, into `rows`: [`distribution_width`](Policy::distribution_width) numbers each.
    /// Discrete actions have log-probabilities; continuous ones have means, then log standard deviations.
    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>);

    /// Numbers per row of [`distributions`](Policy::distributions).
    fn distribution_width(&self) -> usize;

    /// The objective over `batch`, without a gradient.
    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums;

    /// The objective over `batch` and its gradient, which is kept until the next call.
    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums;

    /// F v, into `product`, in the order of the parameters: the sum over the batch of weight x J' F_head J v, with F_head the Fisher
    /// information of the head's distribution and J its Jacobian with respect to the parameters. It is also the second derivative of
    /// KL(old || new) at new = old, times v (TRPO, arXiv 1502.05477, appendix C). The critic's own parameters have 0.
    ///
    /// # Panics
    /// If the policy does not [support](Policy::supports_fisher) it.
    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>);

    /// Whether there is a [`fisher_vector_product`](Policy::fisher_vector_product): not for gSDE.
    fn supports_fisher(&self) -> bool;

    /// A copy of its own, with the parameters as they are now.
    fn snapshot(&self) -> Box<dyn Policy>;
}
