//! Networks of continuous actions: an actor, and critics that estimate Q(s, a).

use std::ops::Range;

use gradus_base::random::Stream;
use gradus_envs::Space;

use crate::loss::LogProb;
use crate::noise::RowNoise;
use crate::squashed::LogStdBounds;
use crate::{Batch, Behaviour, Evaluated, Evaluation, Network, NetworkConfig, Of, QValues, Store, Sums, ValueObjective};

/// What a [`QActorCritic`] consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QActorHead {
    /// How the actor chooses actions.
    pub actor: QActor,
    /// Number of critics, each a network of its own.
    pub critics: usize,
}

/// How an actor chooses continuous actions. mu(s) and sigma(s) are outputs of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QActor {
    /// a = tanh mu(s).
    Deterministic,
    /// a = tanh u with u ~ N(mu(s), sigma(s)^2), a squashed Gaussian.
    Squashed(LogStdBounds),
}

/// The loss of an actor, as a function of an action a that it chooses itself and of the critics' estimates Q_k(s, a).
///
/// The gradient goes through the action: the loss depends on the actor's parameters through log pi(a|s) and through a, and so through every
/// Q_k(s, a). The critics' parameters are held.
///
/// ```
/// use gradus_nets::loss::LogProb;
/// use gradus_nets::{ActorObjective, Evaluation, Of, QValues};
///
/// /// The loss of soft actor-critic: alpha log pi(a|s) - min Q_k(s, a).
/// struct Soft { alpha: f32 }
///
/// impl ActorObjective for Soft {
///     fn decision(&self, _: usize, log_prob: Of<LogProb>, q: QValues<'_>) -> Evaluation {
///         (self.alpha * log_prob - q.min()).into()
///     }
/// }
///
/// let mut direction = [0.0; 2];
/// let loss = Soft { alpha: 0.5 }.decision(0, Of::variable(-1.0), QValues::new(&[3.0, 2.0], &mut direction)).loss;
/// assert_eq!((loss.value, loss.slopes.log_prob, direction.map(|d| loss.q * d)), (-2.5, 0.5, [0.0, -1.0]));
/// ```
pub trait ActorObjective: Sync {
    /// Number of critics that the loss reads, from the first on.
    fn critics(&self, all: usize) -> usize {
        all
    }

    /// Returns the loss in the observation of decision number `index` of the store. `log_prob` is log pi(a|s), 0 for a deterministic actor;
    /// `q` has Q_k(s, a) of the critics that the loss reads.
    fn decision(&self, index: usize, log_prob: Of<LogProb>, q: QValues<'_>) -> Evaluation;
}

/// An actor of continuous actions, and critics that estimate Q(s, a). As a [`Behaviour`], it takes the actor's actions.
///
/// The actor's parameters form the group `actor`, those of all critics the group `critic`; each gradient updates one of them.
///
/// Actions are scaled: -1 and 1 are the bounds of each dimension. Only the actions in a [`Store`] and those of an [`Actor`](crate::Actor) are
/// as the environment takes them. log pi(a|s) of a [`Behaviour`] is the logarithm of the density of the environment's actions, and everywhere
/// else of the scaled ones.
pub trait QActorCritic: Behaviour + Network {
    /// The parts of the network.
    fn head(&self) -> QActorHead;

    /// Numbers per action.
    fn action_width(&self) -> usize;

    /// Computes the actor's actions in the observations number `rows` of `store`, and log pi(a|s), 0 for a deterministic actor. With a
    /// stream, samples the actions; without one, takes tanh mu(s).
    ///
    /// With gSDE, one noise matrix is drawn for all observations. In Stable-Baselines3 the actions of the target and those of the actor's step share it.
    fn actions(&mut self, store: &Store, rows: Range<usize>, noise: Option<&mut Stream>, actions: &mut Vec<f32>, log_probs: &mut Vec<f32>);

    /// Computes Q_k(s, a) in the observations number `rows` of `store`, for the row of `actions` that belongs to each. For each observation,
    /// `values` gets one number per critic.
    fn q_values(&mut self, store: &Store, rows: Range<usize>, actions: &[f32], values: &mut Vec<f32>);

    /// Evaluates `objective` over `batch` and computes its gradient with respect to the critics' parameters, which is kept until the next
    /// gradient. The objective gets Q_k(s, a) of all critics for the action a in the store.
    fn critic_gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn ValueObjective) -> Evaluated;

    /// Evaluates `objective` in the observations of `batch` and computes its gradient with respect to the actor's parameters, which is kept
    /// until the next gradient. The actor chooses its actions as in [`actions`](QActorCritic::actions).
    fn actor_gradient(&mut self, store: &Store, batch: Batch<'_>, noise: Option<&mut Stream>, objective: &dyn ActorObjective) -> Sums;

    /// Returns an independent copy with the current parameters.
    fn snapshot(&self) -> Box<dyn QActorCritic>;

    /// Moves every parameter p' towards the parameter p of `online`: p' <- tau p + (1 - tau) p'. With `tau` 1, copies the parameters.
    ///
    /// # Panics
    /// If the two networks differ in engine or shape.
    fn track(&mut self, online: &dyn QActorCritic, tau: f32);
}

/// Returns the standard normal numbers that an actor of `actions` dimensions adds to its actions: with gSDE, a matrix of `features` x `actions` numbers for each row, which
/// stays for `gsde_sample_every` calls; otherwise new numbers in every call.
pub(crate) fn actor_noise(config: &NetworkConfig, features: usize, actions: usize) -> RowNoise {
    if config.gsde { RowNoise::new(features * actions, config.gsde_sample_every) } else { RowNoise::new(actions, 1) }
}

/// Fills with standard normal numbers.
pub(crate) fn fill_normal(stream: &mut Stream, numbers: &mut [f32]) {
    numbers.iter_mut().for_each(|number| *number = stream.normal());
}

/// The bounds of an environment's actions.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionScale {
    low: Vec<f32>,
    high: Vec<f32>,
}

impl ActionScale {
    /// Returns the bounds of a box, unless one of them is infinite or equals its counterpart.
    pub fn of(space: &Space) -> Option<Self> {
        match space {
            Space::Box { low, high }
                if !low.is_empty() && low.iter().zip(high).all(|(low, high)| (high - low).is_finite() && low < high) =>
            {
                Some(Self { low: low.clone(), high: high.clone() })
            }
            _ => None,
        }
    }

    /// Numbers per action.
    pub fn width(&self) -> usize {
        self.low.len()
    }

    /// Replaces scaled actions by those that the environment takes.
    ///
    /// ```
    /// use gradus_envs::Space;
    /// use gradus_nets::ActionScale;
    ///
    /// let scale = ActionScale::of(&Space::Box { low: vec![-2.0, 0.0], high: vec![2.0, 1.0] }).unwrap();
    /// let mut action = [0.5, -1.0];
    /// scale.unscale(&mut action);
    /// assert_eq!(action, [1.0, 0.0]);
    /// scale.scale(&mut action);
    /// assert_eq!(action, [0.5, -1.0]);
    /// ```
    pub fn unscale(&self, actions: &mut [f32]) {
        for action in actions.chunks_exact_mut(self.width()) {
            for ((a, low), high) in action.iter_mut().zip(&self.low).zip(&self.high) {
                *a = (low + 0.5 * (*a + 1.0) * (high - low)).clamp(*low, *high);
            }
        }
    }

    /// The inverse of [`unscale`](ActionScale::unscale).
    pub fn scale(&self, actions: &mut [f32]) {
        for action in actions.chunks_exact_mut(self.width()) {
            for ((a, low), high) in action.iter_mut().zip(&self.low).zip(&self.high) {
                *a = 2.0 * ((*a - low) / (high - low)) - 1.0;
            }
        }
    }

    /// The sum of the logarithms of the scales (high - low) / 2: what is subtracted from log pi of a scaled action to get that of the
    /// environment's action.
    pub fn log_scale(&self) -> f32 {
        self.low.iter().zip(&self.high).map(|(low, high)| gradus_base::math::ln(0.5 * (high - low))).sum()
    }
}
