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

use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::math::{exp, exp_inline, ln};
use crate::{DIAGNOSTICS, PolicyOutput};

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

impl<O: Copy> From<f32> for Of<O> {
    /// Returns a constant.
    #[inline(always)]
    fn from(value: f32) -> Self {
        Self::constant(value)
    }
}

impl<O: Copy> Neg for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        Self::new(-self.value, -self.slope)
    }
}

impl<O: Copy> Add for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::new(self.value + other.value, self.slope + other.slope)
    }
}

impl<O: Copy> Sub for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::new(self.value - other.value, self.slope - other.slope)
    }
}

impl<O: Copy> Mul for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self::new(self.value * other.value, self.slope * other.value + self.value * other.slope)
    }
}

impl<O: Copy> Add<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn add(self, constant: f32) -> Self {
        Self::new(self.value + constant, self.slope)
    }
}

impl<O: Copy> Sub<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, constant: f32) -> Self {
        Self::new(self.value - constant, self.slope)
    }
}

impl<O: Copy> Mul<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f32) -> Self {
        Self::new(self.value * factor, self.slope * factor)
    }
}

impl<O: Copy> Div<f32> for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn div(self, divisor: f32) -> Self {
        Self::new(self.value / divisor, self.slope / divisor)
    }
}

impl<O: Copy> Div for Of<O> {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        let value = self.value / other.value;
        Self::new(value, (self.slope - value * other.slope) / other.value)
    }
}

impl<O: Copy> Div<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn div(self, other: Of<O>) -> Of<O> {
        Of::constant(self) / other
    }
}

impl<O: Copy> Add<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn add(self, other: Of<O>) -> Of<O> {
        other + self
    }
}

impl<O: Copy> Sub<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn sub(self, other: Of<O>) -> Of<O> {
        Of::new(self - other.value, -other.slope)
    }
}

impl<O: Copy> Mul<Of<O>> for f32 {
    type Output = Of<O>;

    #[inline(always)]
    fn mul(self, other: Of<O>) -> Of<O> {
        other * self
    }
}

/// One term of a sum.
impl<O: Copy> IntoIterator for Of<O> {
    type Item = Self;
    type IntoIter = std::iter::Once<Self>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self)
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

impl<O: Output> From<Of<O>> for Loss {
    #[inline(always)]
    fn from(of: Of<O>) -> Self {
        let mut loss = Loss { value: of.value, ..Loss::default() };
        *O::slope(&mut loss) = of.slope;
        loss
    }
}

impl<O: Output> Add<Of<O>> for Loss {
    type Output = Self;

    #[inline(always)]
    fn add(mut self, of: Of<O>) -> Self {
        self.value += of.value;
        *O::slope(&mut self) += of.slope;
        self
    }
}

impl<O: Output> Sub<Of<O>> for Loss {
    type Output = Self;

    #[inline(always)]
    fn sub(mut self, of: Of<O>) -> Self {
        self.value -= of.value;
        *O::slope(&mut self) -= of.slope;
        self
    }
}

impl<O: Output> Add<Loss> for Of<O> {
    type Output = Loss;

    #[inline(always)]
    fn add(self, loss: Loss) -> Loss {
        Loss::from(self) + loss
    }
}

impl Add for Loss {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let (a, b) = (self.slopes, other.slopes);
        let slopes = PolicyOutput {
            log_prob: a.log_prob + b.log_prob,
            entropy: a.entropy + b.entropy,
            value: a.value + b.value,
            kl_old: a.kl_old + b.kl_old,
            kl_ref: a.kl_ref + b.kl_ref,
        };
        Self { value: self.value + other.value, slopes, q: self.q + other.q }
    }
}

impl<O: Output> Sub<Loss> for Of<O> {
    type Output = Loss;

    #[inline(always)]
    fn sub(self, loss: Loss) -> Loss {
        Loss::from(self) - loss
    }
}

impl Neg for Loss {
    type Output = Self;

    #[inline(always)]
    fn neg(self) -> Self {
        -1.0 * self
    }
}

impl Sub for Loss {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul<f32> for Loss {
    type Output = Self;

    #[inline(always)]
    fn mul(self, factor: f32) -> Self {
        factor * self
    }
}

impl Mul<Loss> for f32 {
    type Output = Loss;

    #[inline(always)]
    fn mul(self, loss: Loss) -> Loss {
        let PolicyOutput { log_prob, entropy, value, kl_old, kl_ref } = loss.slopes;
        let slopes = PolicyOutput {
            log_prob: self * log_prob,
            entropy: self * entropy,
            value: self * value,
            kl_old: self * kl_old,
            kl_ref: self * kl_ref,
        };
        Loss { value: self * loss.value, slopes, q: self * loss.q }
    }
}

/// Sums and differences of functions of two different outputs.
macro_rules! sums {
    ($($a:ident $b:ident),+ $(,)?) => {
        $(sums!(@one $a $b); sums!(@one $b $a);)+
    };
    (@one $a:ident $b:ident) => {
        impl Add<Of<$b>> for Of<$a> {
            type Output = Loss;

            #[inline(always)]
            fn add(self, other: Of<$b>) -> Loss {
                Loss::from(self) + other
            }
        }

        impl Sub<Of<$b>> for Of<$a> {
            type Output = Loss;

            #[inline(always)]
            fn sub(self, other: Of<$b>) -> Loss {
                Loss::from(self) - other
            }
        }
    };
}

sums! {
    LogProb Entropy, LogProb Value, LogProb KlOld, LogProb KlRef, LogProb Q, Entropy Value, Entropy KlOld, Entropy KlRef, Entropy Q,
    Value KlOld, Value KlRef, Value Q, KlOld KlRef, KlOld Q, KlRef Q,
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

/// Several numbers of one decision: the values, quantiles or logits of an action, or the values of several critics.
///
/// Each method makes one number of them and uses them up, because the number's slope is relative to its own direction: the derivatives of
/// the number with respect to the numbers that it is made of.
#[derive(Debug)]
pub struct QValues<'a> {
    values: &'a [f32],
    direction: &'a mut [f32],
}

impl<'a> QValues<'a> {
    /// Creates the numbers; `direction` gets the derivatives. The derivative of a loss with respect to number k is [`Loss::q`] times
    /// `direction[k]`.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn new(values: &'a [f32], direction: &'a mut [f32]) -> Self {
        assert_eq!(values.len(), direction.len(), "expected a derivative for each number");
        direction.fill(0.0);
        Self { values, direction }
    }

    /// Returns the values.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Returns number `k`.
    ///
    /// # Panics
    /// If there is no such number.
    pub fn at(self, k: usize) -> Of<Q> {
        self.direction[k] = 1.0;
        Of::variable(self.values[k])
    }

    /// Returns the smallest number; of several, the first.
    ///
    /// # Panics
    /// If there are no numbers.
    pub fn min(self) -> Of<Q> {
        let q = self.values;
        self.at((1..q.len()).fold(0, |least, k| if q[k] < q[least] { k } else { least }))
    }

    /// Returns the mean.
    pub fn mean(self) -> Of<Q> {
        let share = 1.0 / self.values.len() as f32;
        self.sum(|_, q| share * q)
    }

    /// Returns the sum of `terms(k, q_k)`, which is a term or several, over all numbers q_k.
    ///
    /// ```
    /// use gradus_nets::{Loss, QValues};
    ///
    /// // half the squared errors of two critics, whose target is 2
    /// let mut direction = [0.0; 2];
    /// let loss: Loss = (0.5 * QValues::new(&[1.0, 4.0], &mut direction).sum(|_, q| (q - 2.0).squared())).into();
    /// assert_eq!((loss.value, direction.map(|d| loss.q * d)), (2.5, [-1.0, 2.0]));
    /// ```
    pub fn sum<T: IntoIterator<Item = Of<Q>>>(self, mut terms: impl FnMut(usize, Of<Q>) -> T) -> Of<Q> {
        let mut total = 0.0;
        for (k, (value, slope)) in self.values.iter().zip(self.direction).enumerate() {
            for term in terms(k, Of::variable(*value)) {
                total += term.value;
                *slope += term.slope;
            }
        }
        Of::variable(total)
    }

    /// Returns log softmax(q)_k, the logarithm of the probability of number `k` if the numbers are logits.
    ///
    /// ```
    /// use gradus_nets::QValues;
    ///
    /// let mut direction = [0.0; 2];
    /// let log_prob = QValues::new(&[1000.0, 1000.0], &mut direction).log_softmax(1);
    /// assert_eq!((log_prob.value(), direction), (-std::f32::consts::LN_2, [-0.5, 0.5]));
    /// ```
    ///
    /// # Panics
    /// If there is no such number.
    pub fn log_softmax(self, k: usize) -> Of<Q> {
        let (highest, sum) = normaliser(self.values);
        self.direction.iter_mut().zip(self.values).for_each(|(d, q)| *d = -exp(q - highest) / sum);
        self.direction[k] += 1.0;
        Of::variable(-ln(sum) - (highest - self.values[k]))
    }

    /// Returns the cross-entropy - sum_k p_k log softmax(q)_k of probabilities p and the numbers as logits: the loss of a categorical
    /// distribution, as in C51 (Bellemare et al., arXiv 1707.06887).
    ///
    /// # Panics
    /// If there is not one probability for each number.
    pub fn cross_entropy(self, probabilities: &[f32]) -> Of<Q> {
        assert_eq!(self.values.len(), probabilities.len(), "expected a probability for each number");
        let (highest, sum) = normaliser(self.values);
        let (mut loss, log_sum, total) = (0.0, ln(sum), probabilities.iter().sum::<f32>());
        for ((p, q), d) in probabilities.iter().zip(self.values).zip(self.direction) {
            loss += if *p == 0.0 { 0.0 } else { p * (log_sum + (highest - q)) };
            *d = total * (exp(q - highest) / sum) - p;
        }
        Of::variable(loss)
    }
}

/// Returns the largest of some logits, and the sum of e^(q - largest).
fn normaliser(logits: &[f32]) -> (f32, f32) {
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    (highest, logits.iter().map(|q| exp(q - highest)).sum())
}
