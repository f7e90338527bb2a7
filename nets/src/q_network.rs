//! Networks of action values, behind one interface for all engines.

use std::ops::Range;

use crate::{Batch, Behaviour, Evaluation, Network, QValues, Store, Sums};

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
/// use gradus_nets::{Evaluation, QValues, ValueObjective};
///
/// /// Half the squared error to a target.
/// struct Squared { targets: Vec<f32> }
///
/// impl ValueObjective for Squared {
///     fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation {
///         let error = q.at(0) - self.targets[index];
///         Evaluation::from(0.5 * error.squared()).with_error(error.value())
///     }
/// }
///
/// let mut direction = [0.0];
/// let loss = Squared { targets: vec![1.0] }.decision(0, QValues::new(&[3.0], &mut direction)).loss;
/// assert_eq!((loss.value, loss.q * direction[0]), (2.0, 2.0));
/// ```
pub trait ValueObjective: Sync {
    /// Returns the loss of decision number `index` of the store, and the error of its value. `q` has the numbers that the network outputs for
    /// the action taken, one per atom.
    fn decision(&self, index: usize, q: QValues<'_>) -> Evaluation;
}

/// The value of an objective over a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evaluated {
    /// The sums over the batch.
    pub sums: Sums,
    /// The [error](Evaluation::error) of each decision, in the order of the batch; 0 for a decision with weight 0.
    pub errors: Vec<f32>,
}

impl Evaluated {
    /// Adds a decision with this weight.
    pub(crate) fn add(&mut self, weight: f32, evaluation: &Evaluation) {
        let Evaluation { loss, diagnostics, error } = evaluation;
        self.errors.push(*error);
        self.sums.loss += f64::from(weight * loss.value);
        self.sums.diagnostics.iter_mut().zip(diagnostics).for_each(|(sum, diagnostic)| *sum += f64::from(weight * diagnostic));
    }

    /// Adds the decisions of another evaluation, which follow.
    pub(crate) fn extend(&mut self, other: &Evaluated) {
        self.sums.add(&other.sums);
        self.errors.extend(&other.errors);
    }

    /// Forgets all decisions.
    pub(crate) fn clear(&mut self) {
        self.sums = Sums::default();
        self.errors.clear();
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
    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated;

    /// Evaluates the objective over `batch` and computes its gradient, which is kept until the next call.
    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated;

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
