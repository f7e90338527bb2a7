//! The interface between agents and engines.

use std::any::Any;
use std::sync::{Mutex, PoisonError};

use gradus_base::random::Stream;

use crate::{ActionRows, Evaluation, Objective, OptimiserStep, Outputs, PolicyOutput, Sampling, Store, Sums, UpdatedGroups};
use gradus_base::tensors::{Tensors, TensorsError};

/// A group of parameters. The optimiser has a learning rate and a clock for each group. The clock is the number of optimiser steps that
/// updated the group; Adam's bias correction uses it.
///
/// The layers that actor and critic share form the group `trunk`. Every gradient updates it, so its clock counts all steps. It has one set
/// of moments, even if separate objectives update it for the policy and for the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// `trunk`, `actor` or `critic`; `q` of a network of action values.
    pub name: &'static str,
    /// Its range in [`Network::parameters`].
    pub range: std::ops::Range<usize>,
}

/// Decisions of a rollout, each with its weight in the loss.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Indices of the decisions.
    pub indices: &'a [u32],
    /// Weight of each decision. With weights of 1/n, the loss is the mean.
    pub weights: &'a [f32],
    /// Distributions of the old policy for all decisions of the store, as [`Policy::distributions`] returns them; needed for
    /// [`PolicyOutput::kl_old`](crate::PolicyOutput::kl_old).
    pub old: Option<&'a [f32]>,
    /// Distributions of the reference policy, in the same form; needed for [`PolicyOutput::kl_ref`](crate::PolicyOutput::kl_ref).
    pub reference: Option<&'a [f32]>,
}

impl<'a> Batch<'a> {
    /// Creates a batch without old or reference distributions.
    pub fn new(indices: &'a [u32], weights: &'a [f32]) -> Self {
        Self { indices, weights, old: None, reference: None }
    }
}

/// How an action is chosen from the distribution.
pub enum Choice<'a> {
    /// The most probable action (of several, the first), or the mean of continuous actions.
    Greedy,
    /// Sampled, with one stream per row.
    Sample(&'a mut [Stream]),
    /// Sampled from the policy's distribution after its truncation by [`Sampling`], with one stream per row; discrete actions only. The
    /// reported log-probabilities are those of the policy, without the truncation.
    Truncated(&'a mut [Stream], &'a Sampling),
}

impl<'a> Choice<'a> {
    /// Returns the choice that `sampling` describes, with one stream per row.
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

/// What an actor keeps from one call to the next, such as gSDE's noise, or the keys and values of a text; `None` if it keeps nothing.
pub type ActorState = Option<Box<dyn Any + Send>>;

/// Chooses actions with the policy's current parameters. Each thread has its own actor, so several threads can choose actions at once.
pub trait Actor: Send {
    /// Chooses an action for each row of `observations` and reports its log-probability.
    ///
    /// With `masks` (rows x actions), only actions whose entry is true can be chosen. Each row must allow at least one action. Continuous
    /// actions are not clipped to the bounds of their box: the caller clips them for the environment, so that the log-probability is that
    /// of the sampled action, as in Stable-Baselines3.
    ///
    /// The result for a row depends only on that row, its mask and its stream. With gSDE it also depends on earlier calls: the actor keeps
    /// the noise of every row, so row i must belong to the same environment in every call, unless the actor [is told](Actor::release).
    fn act(&mut self, observations: &[f32], masks: Option<&[bool]>, choice: Choice<'_>, actions: &mut ActionRows, log_probs: &mut [f32]);

    /// What a policy with a memory remembers of the episode of each row: [`memory_width`](Behaviour::memory_width) numbers a row, which
    /// [`act`](Actor::act) reads and replaces. At the beginning of an episode they are 0. Rows that are missing begin an episode. `None` without
    /// a memory.
    ///
    /// Who acts in several environments, or in several episodes one after the other, sets the numbers before each call.
    fn memory(&mut self) -> Option<&mut Vec<f32>> {
        None
    }

    /// Forgets what the actor keeps of `row`, such as gSDE's noise, because the row's episode has ended. Another episode takes the row if `is_taken`; otherwise there is one row
    /// less, and the last row moves into it.
    fn release(&mut self, row: usize, is_taken: bool) {
        let _ = (row, is_taken);
    }

    /// Takes the actor's state, for [`set_state`](Actor::set_state). An actor borrows its policy; who acts in one step at a time makes an actor
    /// for each step, and keeps only the state.
    fn take_state(&mut self) -> ActorState {
        None
    }

    /// Continues with the state of another actor of the same policy, whose parameters have not changed since.
    fn set_state(&mut self, state: ActorState) {
        let _ = state;
    }
}

/// Puts the content of a state that this actor's kind has taken into `own`; a state of another kind changes nothing.
pub(crate) fn restore<T: Any>(own: &mut T, state: ActorState) {
    if let Some(Ok(state)) = state.map(Box::<dyn Any + Send>::downcast) {
        *own = *state;
    }
}

/// What a behaviour computes from an observation, for people to look at. Parts that it does not have are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inspection {
    /// V(s); of critics of actions, the smallest Q(s, a) for the most probable action a.
    pub value: Option<f64>,
    /// Q(s, a) of every action.
    pub action_values: Vec<f64>,
    /// The probability of every action, of actions that are one choice.
    pub probabilities: Vec<f64>,
}

impl Inspection {
    /// Returns V(s), or else the largest action value.
    pub fn best_value(&self) -> Option<f64> {
        let largest = || self.action_values.iter().copied().reduce(f64::max);
        self.value.or_else(largest)
    }

    /// Returns the action of the largest value or, without action values, of the largest probability; of several, all. Numbers that differ by rounding only, at most 1e-9 of
    /// their size, count as equal.
    pub fn best_actions(&self) -> Vec<usize> {
        let numbers = if self.action_values.is_empty() { &self.probabilities } else { &self.action_values };
        let largest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let least = if largest.is_finite() { largest - 1e-9 * largest.abs() } else { largest };
        (0..numbers.len()).filter(|action| numbers[*action] >= least).collect()
    }
}

/// What the filters of a network's first convolutional layer make of an image, after the activation: how strongly each of them answers at each place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureMaps {
    /// Rows of a map.
    pub height: usize,
    /// Numbers of a row.
    pub width: usize,
    /// The maps, each row by row.
    pub maps: Vec<Vec<f32>>,
}

/// A behaviour policy (Sutton and Barto), such as a network, a table or a rule. Code that collects rollouts or evaluates a policy needs
/// only this interface.
///
/// The supertrait [`Any`] lets an engine recognise its own policies, although this interface names no engine.
pub trait Behaviour: Any + Send + Sync {
    /// Numbers per observation.
    fn observation_width(&self) -> usize;

    /// Returns an actor, which chooses actions.
    fn actor(&self) -> Box<dyn Actor + '_>;

    /// Numbers that the policy remembers of an episode; 0 without a memory.
    fn memory_width(&self) -> usize {
        0
    }

    /// Largest number of decisions of a [`Sequence`](crate::Sequence), through which gradients flow back; 0: no limit.
    fn sequence_length(&self) -> usize {
        0
    }

    /// Returns what the behaviour computes from each of some observations, which are rows of numbers; nothing if it cannot be looked into.
    fn inspect(&mut self, observations: &[f32]) -> Vec<Inspection> {
        let _ = observations;
        Vec::new()
    }

    /// As [`inspect`](Behaviour::inspect), of the observations of an episode, in order: a policy with a memory remembers those before. `inspect`
    /// itself takes every observation as the first of an episode.
    fn inspect_episode(&mut self, observations: &[f32]) -> Vec<Inspection> {
        self.inspect(observations)
    }

    /// Returns what the first convolutional layer makes of each of some observations; nothing without such a layer, and on devices.
    fn feature_maps(&mut self, observations: &[f32]) -> Vec<FeatureMaps> {
        let _ = observations;
        Vec::new()
    }

    /// Returns the learned state as named tensors. For a network, these are its parameters in PyTorch's layout.
    fn save(&self) -> Tensors;

    /// Restores the state that [`save`](Behaviour::save) returned. On an error, nothing changes.
    fn load(&mut self, tensors: &Tensors) -> Result<(), TensorsError>;

    /// Replaces the parameters of a transformer by those of a pretrained model, other than those of adapters and of the value head, which the model does not
    /// have. A critic with layers of its own begins as a copy. On an error, nothing changes.
    fn load_pretrained(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let _ = tensors;
        Err(TensorsError::State("expected a transformer, got another network".into()))
    }

    /// Returns the parameters of a transformer as those of a model without adapters, whose products are added to its matrices. Returns `None` for other networks.
    fn merged(&self) -> Option<Tensors> {
        None
    }

    /// Returns a one-line description of the device's first error, if there was one. After an error, all results are 0 or NaN. Call this
    /// method after every rollout and every update.
    fn fault(&self) -> Option<String> {
        None
    }

    /// Whether the policy is fastest with a single actor that handles many observations at once.
    fn wants_one_actor(&self) -> bool {
        false
    }

    /// Returns the optimiser's state for a checkpoint; empty if the policy has no optimiser.
    fn save_optimiser(&self) -> Tensors {
        Tensors::new()
    }

    /// Restores the state that [`save_optimiser`](Behaviour::save_optimiser) returned. On an error, nothing changes.
    fn load_optimiser(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        match tensors.keys().next() {
            Some(name) => Err(TensorsError::Unexpected(name.clone())),
            None => Ok(()),
        }
    }
}

/// Parameters in named groups, updated by gradient steps.
pub trait Network: Send + Sync {
    /// Returns the Euclidean norm of the gradient.
    fn gradient_norm(&self) -> f32;

    /// Takes one optimiser step with the gradient of the last [`gradient`](Policy::gradient) call. It changes only the groups that the
    /// objective of this call [updates](Objective::updates). The parameters of the other groups do not decay, and their clocks do not advance.
    fn apply(&mut self, step: &OptimiserStep);

    /// Returns the groups of the parameters, in order.
    fn groups(&self) -> Vec<Group>;

    /// Returns all parameters as one flat slice. Engines may pad layers; the padding and its gradient are always 0.
    fn parameters(&self) -> &[f32];

    /// Whether every parameter is finite.
    fn is_finite(&self) -> bool {
        are_finite(self.parameters())
    }

    /// Replaces all parameters, in the order and length of [`parameters`](Network::parameters); padding must stay 0.
    fn set_parameters(&mut self, parameters: &[f32]);

    /// Returns the gradient that the last [`gradient`](Policy::gradient) call computed, in the order of the parameters.
    fn last_gradient(&self) -> &[f32];
}

/// Returns whether every number is finite. It is a separate function because a default method's body is compiled in the crate that uses
/// the method, and that crate may be compiled without optimisation.
fn are_finite(parameters: &[f32]) -> bool {
    // no early exit within a chunk, so that the inner loop vectorises
    parameters.chunks(256).all(|some| some.iter().fold(true, |all, parameter| all & parameter.is_finite()))
}

/// A policy and its critic. It maps observations to a distribution over actions and a value, and computes the gradient of any
/// [`Objective`].
pub trait Policy: Behaviour + Network {
    /// Computes V(s) for every observation of `store`.
    fn values(&mut self, store: &Store, values: &mut Vec<f32>);

    /// Computes log pi(a|s) for every decision of `store`.
    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>);

    /// Computes the distribution of every decision of `store` into `rows`, with [`distribution_width`](Policy::distribution_width) numbers
    /// per decision. For discrete actions, these are log-probabilities; for continuous actions, means, then log standard deviations.
    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>);

    /// Numbers per row of [`distributions`](Policy::distributions).
    fn distribution_width(&self) -> usize;

    /// Evaluates the objective over `batch`, without a gradient.
    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums;

    /// Computes the outputs of the decisions `indices` of `store` that an objective would get which [updates](UpdatedGroups) these groups. Returns one
    /// output for each row of the store; those of other decisions are 0.
    fn outputs(&mut self, store: &Store, indices: &[u32], updates: UpdatedGroups) -> Vec<PolicyOutput> {
        let seen = OutputRecorder { outputs: Mutex::new(vec![PolicyOutput::default(); store.rows()]), updates };
        self.evaluate(store, Batch::new(indices, &vec![1.0; indices.len()]), &seen);
        seen.outputs.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evaluates the objective over `batch` and computes its gradient, which is kept until the next call.
    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums;

    /// Computes the product F v of the Fisher information F and `vector` into `product`, in the order of the parameters. F v is the sum
    /// over the batch of weight x J' F_head J v. F_head is the Fisher information of the head's distribution. J is the Jacobian of the
    /// distribution's parameters with respect to the policy's parameters. F is also the Hessian of KL(old || new) at new = old (TRPO,
    /// arXiv 1502.05477, appendix C). The product is 0 for the critic's own parameters.
    ///
    /// # Panics
    /// If the policy does not [support](Policy::supports_fisher) this product.
    fn fisher_vector_product(&mut self, store: &Store, batch: Batch<'_>, vector: &[f32], product: &mut Vec<f32>);

    /// Whether [`fisher_vector_product`](Policy::fisher_vector_product) is available. gSDE and transformers do not have it.
    fn supports_fisher(&self) -> bool;

    /// Returns an independent copy with the current parameters.
    fn snapshot(&self) -> Box<dyn Policy>;
}

/// An objective that keeps the outputs that it gets.
struct OutputRecorder {
    outputs: Mutex<Vec<PolicyOutput>>,
    updates: UpdatedGroups,
}

impl Objective for OutputRecorder {
    fn decision(&self, _: usize, _: Outputs) -> Evaluation {
        Evaluation::default()
    }

    fn slice(&self, indices: &[u32], _: &[f32], outputs: &mut [PolicyOutput], _: &mut Sums) {
        let mut seen = self.outputs.lock().unwrap_or_else(PoisonError::into_inner);
        indices.iter().zip(outputs).for_each(|(index, output)| seen[*index as usize] = *output);
    }

    fn updates(&self) -> UpdatedGroups {
        self.updates
    }
}
