//! Networks of action values, behind one interface for all engines.

use std::ops::Range;

use crate::{Batch, Behaviour, DIAGNOSTICS, Network, Store, Sums};

/// The outputs of a network of action values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QHead {
    /// Numbers for each action: 1, the value itself, or more, samples of the distribution of returns whose mean is the value.
    pub atoms: usize,
    /// Whether the network has a dueling architecture (Wang et al., arXiv 1511.06581, equation 9): Q(s, a) = V(s) + A(s, a) - mean_a' A(s, a').
    /// V and A each have the last hidden layer and the output layer for themselves, and share the other layers.
    pub dueling: bool,
}

impl Default for QHead {
    /// One value per action, without the dueling architecture.
    fn default() -> Self {
        Self { atoms: 1, dueling: false }
    }
}

/// The loss of an algorithm that learns action values, as a function of Q(s, a) of the action a that was taken.
///
/// The loss of a batch is the sum of weight x loss over its decisions. It does not depend on how the engine splits the batch. Many threads
/// call the method at once.
///
/// ```
/// use gradus_nets::{ValueLoss, ValueObjective};
///
/// /// Half the squared error to a target.
/// struct Squared { targets: Vec<f32> }
///
/// impl ValueObjective for Squared {
///     fn decision(&self, index: usize, q: &[f32], derivative: &mut [f32]) -> ValueLoss {
///         let error = q[0] - self.targets[index];
///         derivative[0] = error;
///         ValueLoss::of(0.5 * error * error)
///     }
/// }
///
/// let mut derivative = [0.0];
/// let loss = Squared { targets: vec![1.0] }.decision(0, &[3.0], &mut derivative).loss;
/// assert_eq!((loss, derivative), (2.0, [2.0]));
/// ```
pub trait ValueObjective: Sync {
    /// Returns the loss of decision number `index` of the store. `q` has the numbers that the network outputs for the action taken, one per
    /// atom. Writes the derivative of the loss with respect to each of them into `derivative`.
    fn decision(&self, index: usize, q: &[f32], derivative: &mut [f32]) -> ValueLoss;
}

/// The loss of one decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ValueLoss {
    /// The loss.
    pub loss: f32,
    /// Diagnostics that the algorithm defines, averaged with the decisions' weights.
    pub diagnostics: [f32; DIAGNOSTICS],
}

impl ValueLoss {
    /// Returns a loss without diagnostics.
    pub fn of(loss: f32) -> Self {
        Self { loss, ..Self::default() }
    }
}

/// A network that maps an observation to the value Q(s, a) of every action. As a [`Behaviour`], it takes the action of the greatest value.
///
/// A target network is a [`snapshot`](QNetwork::snapshot) that [`track`](QNetwork::track)s the network.
pub trait QNetwork: Behaviour + Network {
    /// Number of actions.
    fn actions(&self) -> usize;

    /// The outputs.
    fn head(&self) -> QHead;

    /// Computes Q(s, a) of all actions in the observations number `rows` of `store`. For each observation and each action, `values` gets one
    /// number per atom.
    fn q_values(&mut self, store: &Store, rows: Range<usize>, values: &mut Vec<f32>);

    /// Evaluates the objective over `batch`, without a gradient.
    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Sums;

    /// Evaluates the objective over `batch` and computes its gradient, which is kept until the next call.
    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Sums;

    /// Returns an independent copy with the current parameters.
    fn snapshot(&self) -> Box<dyn QNetwork>;

    /// Moves every parameter p' towards the parameter p of `online`: p' <- tau p + (1 - tau) p'. With `tau` 1, copies the parameters.
    ///
    /// # Panics
    /// If the two networks differ in engine or shape.
    fn track(&mut self, online: &dyn QNetwork, tau: f32);
}

/// Returns the action with the greatest value; of several, the first. `q` has `atoms` numbers for each action, whose mean is the action's
/// value. With `mask`, only actions whose entry is true are considered.
///
/// ```
/// use gradus_nets::greedy;
/// assert_eq!((greedy(&[1.0, 3.0, 2.0, 2.5], 2, None), greedy(&[1.0, 3.0, 2.0], 1, Some(&[true, false, true]))), (1, 2));
/// ```
pub fn greedy(q: &[f32], atoms: usize, mask: Option<&[bool]>) -> usize {
    let mut best = (None, f32::NEG_INFINITY);
    for (action, q) in q.chunks_exact(atoms).enumerate() {
        let value = if atoms == 1 { q[0] } else { q.iter().sum::<f32>() };
        if mask.is_none_or(|mask| mask[action]) && (best.0.is_none() || value > best.1) {
            best = (Some(action), value);
        }
    }
    best.0.unwrap_or(0)
}
