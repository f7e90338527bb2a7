//! Several numbers of one decision, such as quantiles and critics.

use super::{Of, Q};
use gradus_base::math::{exp, ln};

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
    /// Creates the numbers; `direction` gets the derivatives. The derivative of a loss with respect to number k is [`Loss::q`](super::Loss::q) times
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
