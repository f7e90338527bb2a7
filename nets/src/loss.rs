//! Losses as formulas: numbers that know their derivatives.
//!
//! An objective gets the policy's outputs for one decision as numbers of type [`Of`]: the log-probability of the action is an
//! `Of<LogProb>`, the critic's value an `Of<Value>`. Each knows its value and its slope, which is its derivative with respect to the
//! output. Arithmetic and the functions of [`Of`] apply the chain rule. The sum of functions of different outputs is a [`Loss`]. So an
//! objective is the formula of the paper, and its gradient follows from it:
//!
//! ```
//! use gradus_nets::{Evaluation, Loss, Outputs, PolicyOutput};
//!
//! /// PPO's loss of one decision.
//! fn loss(pi: Outputs, old_log_prob: f32, advantage: f32, target: f32) -> Loss {
//!     let ratio = (pi.log_prob - old_log_prob).exp();
//!     let policy = -(ratio * advantage).min(ratio.clamp(0.8, 1.2) * advantage);
//!     let value = 0.5 * (pi.value - target).squared();
//!     policy + 0.5 * value - 0.01 * pi.entropy
//! }
//!
//! // A = 2, and the ratio is 1: d/d log pi = -A; d/dV = (V - R) / 2
//! let now = PolicyOutput { log_prob: -0.7, value: 3.0, ..Default::default() };
//! let loss = loss(now.into(), -0.7, 2.0, 1.0);
//! assert_eq!((loss.value, loss.slopes.log_prob, loss.slopes.value, loss.slopes.entropy), (-1.0, -2.0, 1.0, -0.01));
//! ```
//!
//! A product of functions of two outputs is not a sum of functions of one output each, and does not compile:
//!
//! ```compile_fail
//! # fn loss(pi: gradus_nets::Outputs) -> gradus_nets::Loss {
//! (pi.log_prob * pi.value).into()
//! # }
//! ```
//!
//! To treat a factor as a constant, use its value: [`Of::stop`], which PyTorch calls `detach`.
//!
//! - [`min`](Of::min), [`max`](Of::max) and [`clamp`](Of::clamp) select one of their arguments with its slope; they multiply nothing, so an
//!   infinite argument that is not selected does no harm. Of equal arguments the first is selected. If the first is NaN, so is the result.
//! - A decision with weight 0 has loss 0 and slopes 0, whatever its formula is.

mod arithmetic;
mod q_values;

use std::marker::PhantomData;

use crate::{DIAGNOSTICS, PolicyOutput};
use gradus_base::math::{exp, exp_inline, ln};
pub use q_values::QValues;

/// An output of the policy. A function of it, an [`Of`], can be a term of a [`Loss`].
pub trait Output: Copy {
    /// The place of the derivative with respect to this output.
    fn slope(loss: &mut Loss) -> &mut f32;
}

macro_rules! outputs {
    ($($(#[$doc:meta])* $name:ident: $($place:ident).+;)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name {}

            impl Output for $name {
                #[inline(always)]
                fn slope(loss: &mut Loss) -> &mut f32 {
                    &mut loss.$($place).+
                }
            }
        )+
    };
}

outputs! {
    /// log pi(a|s), the log-probability of the action taken.
    LogProb: slopes.log_prob;
    /// H(pi(.|s)), the entropy of the distribution over actions.
    Entropy: slopes.entropy;
    /// V(s), the critic's estimate of the return.
    Value: slopes.value;
    /// KL(pi_old(.|s) || pi(.|s)).
    KlOld: slopes.kl_old;
    /// KL(pi(.|s) || pi_ref(.|s)).
    KlRef: slopes.kl_ref;
    /// Numbers of one decision: [`QValues`].
    Q: q;
}

/// A function of the output `O`: its value and its slope, the derivative with respect to the output.
///
/// `O` is a name. A loss of several decisions may be a function of another number, such as the difference of two scores; then any type will
/// do, and the slope has to be spread to the decisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Of<O> {
    value: f32,
    slope: f32,
    output: PhantomData<O>,
}

impl<O: Copy> Of<O> {
    /// The output itself, with slope 1.
    #[inline(always)]
    pub fn variable(value: f32) -> Self {
        Self::new(value, 1.0)
    }

    /// A constant, with slope 0.
    #[inline(always)]
    pub fn constant(value: f32) -> Self {
        Self::new(value, 0.0)
    }

    #[inline(always)]
    fn new(value: f32, slope: f32) -> Self {
        Self { value, slope, output: PhantomData }
    }

    /// Returns the value.
    #[inline(always)]
    pub fn value(self) -> f32 {
        self.value
    }

    /// Returns the derivative with respect to the output.
    #[inline(always)]
    pub fn slope(self) -> f32 {
        self.slope
    }

    /// Returns the value as a constant: no derivative flows through it. It is [`value`](Of::value), said for a reason.
    #[inline(always)]
    pub fn stop(self) -> f32 {
        self.value
    }

    /// Returns f(x), given its value and its derivative at x: the chain rule. For functions that are not here.
    ///
    /// ```
    /// use gradus_nets::Of;
    /// use gradus_nets::loss::Value;
    ///
    /// let x = 2.0 * Of::<Value>::variable(3.0);
    /// let square = x.function(36.0, 12.0); // x^2 and 2 x
    /// assert_eq!(square, x.squared());
    /// ```
    #[inline(always)]
    pub fn function(self, value: f32, derivative: f32) -> Self {
        Self::new(value, self.slope * derivative)
    }

    /// Returns e^x.
    #[inline(always)]
    pub fn exp(self) -> Self {
        let y = exp_inline(self.value);
        self.function(y, y)
    }

    /// Returns x^2.
    #[inline(always)]
    pub fn squared(self) -> Self {
        self * self
    }

    /// Returns |x|; its slope at 0 is 0.
    #[inline(always)]
    pub fn abs(self) -> Self {
        let sign = if self.value > 0.0 { 1.0 } else { -1.0 };
        self.function(self.value.abs(), if self.value == 0.0 { 0.0 } else { sign })
    }

    /// Returns the smaller of two functions or constants; of equal ones the first.
    #[inline(always)]
    pub fn min(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        if other.value < self.value { other } else { self }
    }

    /// Returns the larger of two functions or constants; of equal ones the first.
    #[inline(always)]
    pub fn max(self, other: impl Into<Self>) -> Self {
        let other = other.into();
        if other.value > self.value { other } else { self }
    }

    /// Limits x to `low` to `high`. Beyond them the slope is 0.
    #[inline(always)]
    pub fn clamp(self, low: f32, high: f32) -> Self {
        self.max(low).min(high)
    }

    /// Limits the value to `low` to `high` but keeps the slope, so that the loss still pulls x back.
    #[inline(always)]
    pub fn bounded(self, low: f32, high: f32) -> Self {
        Self::new(Self::constant(self.value).clamp(low, high).value, self.slope)
    }

    /// Limits x to `distance` around `centre`: [`clamp`](Of::clamp), but x within the distance is not rounded.
    #[inline(always)]
    pub fn near(self, centre: f32, distance: f32) -> Self {
        let moved = self - centre;
        if moved.value.abs() > distance { moved.clamp(-distance, distance) + centre } else { self }
    }

    /// Returns the loss of an error x by Huber (1964): x^2 / 2 up to an absolute value of `delta`, which may be infinite, and a line beyond.
    ///
    /// ```
    /// use gradus_nets::Of;
    /// use gradus_nets::loss::Value;
    ///
    /// let huber = |error, delta| Of::<Value>::variable(error).huber(delta);
    /// let losses = [huber(1.0, 2.0), huber(-3.0, 2.0), huber(-3.0, f32::INFINITY)];
    /// assert_eq!(losses.map(|loss| (loss.value(), loss.slope())), [(0.5, 1.0), (4.0, -2.0), (4.5, -3.0)]);
    /// ```
    #[inline(always)]
    pub fn huber(self, delta: f32) -> Self {
        let size = self.value.abs();
        let inside = 0.5 * (self.value * self.value);
        let value = if size <= delta { inside } else { delta * (size - 0.5 * delta) };
        self.function(value, Self::constant(self.value).clamp(-delta, delta).value)
    }

    /// Returns log sigmoid(x), which overflows for no x.
    ///
    /// ```
    /// use gradus_nets::Of;
    /// use gradus_nets::loss::Value;
    ///
    /// let y = Of::<Value>::variable(-100.0).log_sigmoid();
    /// assert_eq!((y.value(), y.slope()), (-100.0, 1.0));
    /// ```
    #[inline]
    pub fn log_sigmoid(self) -> Self {
        -(-self).softplus()
    }

    /// Returns log(1 + e^x), which overflows for no x. Its derivative is sigmoid(x).
    #[inline]
    pub fn softplus(self) -> Self {
        let x = self.value;
        let small = exp(-x.abs());
        let (least, sigmoid) = (ln(1.0 + small), 1.0 / (1.0 + small));
        if x > 0.0 { self.function(least + x, sigmoid) } else { self.function(least, small * sigmoid) }
    }

    /// Returns the cross-entropy of a Bernoulli variable with the probability sigmoid(x) and a label from 0 to 1: - label log sigmoid(x) -
    /// (1 - label) log(1 - sigmoid(x)). It overflows for no x. Its derivative is sigmoid(x) - label.
    #[inline]
    pub fn cross_entropy(self, label: f32) -> Self {
        let x = self.value;
        let small = exp(-x.abs());
        let sigmoid = if x >= 0.0 { 1.0 / (1.0 + small) } else { small / (1.0 + small) };
        self.function(x.max(0.0) - label * x + ln(1.0 + small), sigmoid - label)
    }
}

/// A sum of functions of several outputs: its value, and its derivatives with respect to the outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// The value.
    pub value: f32,
    /// The derivatives with respect to the outputs of a policy.
    pub slopes: PolicyOutput,
    /// The slope of the function of [`QValues`].
    pub q: f32,
}

/// The loss of one decision, and what is reported of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// The loss and its derivatives.
    pub loss: Loss,
    /// Diagnostics that the algorithm defines, averaged with the decisions' weights.
    pub diagnostics: [f32; DIAGNOSTICS],
    /// The error of a value. The engine returns the errors of all decisions of a batch; a replay buffer turns them into priorities.
    pub error: f32,
}

impl<L: Into<Loss>> From<L> for Evaluation {
    #[inline(always)]
    fn from(loss: L) -> Self {
        Self { loss: loss.into(), ..Self::default() }
    }
}

impl Loss {
    /// Adds the diagnostics of the decision.
    ///
    /// # Panics
    /// If there are more than [`DIAGNOSTICS`].
    #[inline(always)]
    pub fn with_diagnostics<const N: usize>(self, diagnostics: [f32; N]) -> Evaluation {
        Evaluation { loss: self, diagnostics: crate::diagnostics(diagnostics), error: 0.0 }
    }
}

impl<O: Output> Of<O> {
    /// Adds the diagnostics of the decision to this loss.
    ///
    /// # Panics
    /// If there are more than [`DIAGNOSTICS`].
    #[inline(always)]
    pub fn with_diagnostics<const N: usize>(self, diagnostics: [f32; N]) -> Evaluation {
        Loss::from(self).with_diagnostics(diagnostics)
    }
}

impl Evaluation {
    /// Adds the error of the decision's value.
    #[inline(always)]
    pub fn with_error(self, error: f32) -> Self {
        Self { error, ..self }
    }
}

/// The policy's outputs for one decision, as numbers that know their derivatives. In a formula they are called `pi`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outputs {
    /// log pi(a|s), the log-probability of the action taken.
    pub log_prob: Of<LogProb>,
    /// H(pi(.|s)), the entropy of the distribution over actions.
    pub entropy: Of<Entropy>,
    /// V(s), the critic's estimate of the return.
    pub value: Of<Value>,
    /// KL(pi_old(.|s) || pi(.|s)), computed exactly; 0 if the batch has no old distributions.
    pub kl_old: Of<KlOld>,
    /// KL(pi(.|s) || pi_ref(.|s)), computed exactly; 0 if the batch has no reference distributions.
    pub kl_ref: Of<KlRef>,
}

impl From<PolicyOutput> for Outputs {
    #[inline(always)]
    fn from(now: PolicyOutput) -> Self {
        Self {
            log_prob: Of::variable(now.log_prob),
            entropy: Of::variable(now.entropy),
            value: Of::variable(now.value),
            kl_old: Of::variable(now.kl_old),
            kl_ref: Of::variable(now.kl_ref),
        }
    }
}

impl From<Outputs> for PolicyOutput {
    #[inline(always)]
    fn from(pi: Outputs) -> Self {
        Self {
            log_prob: pi.log_prob.value,
            entropy: pi.entropy.value,
            value: pi.value.value,
            kl_old: pi.kl_old.value,
            kl_ref: pi.kl_ref.value,
        }
    }
}
