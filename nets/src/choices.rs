//! The distribution over actions that consist of several choices, such as Gymnasium's `MultiDiscrete`: each choice has a categorical
//! distribution of its own, in its own range of a row of logits. An action is one number, whose digits are the choices.
//!
//! The choices are independent given the state. So log pi(a|s), the entropy and the divergences are sums over the choices, and the Fisher
//! information has a block for each. A discrete action is the case of one choice.

use std::ops::Range;

use crate::categorical;
use crate::{Choice, PolicyOutput};

/// The choices of an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choices {
    parts: Vec<Part>,
}

/// One choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its place in a row of logits.
    pub range: Range<usize>,
    /// The number of actions for each of its values: the product of the sizes of all later choices.
    weight: u32,
}

impl Part {
    /// Returns the value of this choice in an action.
    #[inline(always)]
    pub fn value(&self, action: u32) -> u32 {
        action / self.weight % self.range.len() as u32
    }
}

impl Choices {
    /// Choices with these numbers of values, whose product must fit into 32 bits.
    pub fn of(sizes: &[u32]) -> Self {
        let (mut begin, mut weight) = (0, sizes.iter().product::<u32>());
        let part = |size: &u32| {
            weight /= size;
            let range = begin..begin + *size as usize;
            begin = range.end;
            Part { range, weight }
        };
        Self { parts: sizes.iter().map(part).collect() }
    }

    /// Numbers in a row of logits.
    pub fn logits(&self) -> usize {
        self.parts.last().map_or(0, |part| part.range.end)
    }

    /// Whether an action is one choice.
    #[inline(always)]
    pub fn is_one(&self) -> bool {
        self.parts.len() == 1
    }

    /// The choices, in order.
    #[inline(always)]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether a mask leaves at least one value of each choice.
    pub fn are_possible(&self, mask: &[bool]) -> bool {
        self.parts.iter().all(|part| mask[part.range.clone()].contains(&true))
    }

    /// Turns logits into log-probabilities.
    #[inline(always)]
    pub fn log_softmax(&self, logits: &mut [f32]) {
        if self.is_one() {
            return categorical::log_softmax(logits);
        }
        for part in &self.parts {
            categorical::log_softmax(&mut logits[part.range.clone()]);
        }
    }

    /// Returns log pi(a|s).
    #[inline(always)]
    pub fn log_prob(&self, log_probs: &[f32], action: u32) -> f32 {
        if self.is_one() {
            return log_probs[action as usize];
        }
        let mut sum = 0.0;
        for part in &self.parts {
            sum += log_probs[part.range.clone()][part.value(action) as usize];
        }
        sum
    }

    /// Returns the entropy.
    #[inline(always)]
    pub fn entropy(&self, log_probs: &[f32]) -> f32 {
        if self.is_one() {
            return categorical::entropy(log_probs);
        }
        let mut sum = 0.0;
        for part in &self.parts {
            sum += categorical::entropy(&log_probs[part.range.clone()]);
        }
        sum
    }

    /// Computes the derivatives of the loss with respect to the logits from those with respect to log pi(a) and H.
    #[inline(always)]
    pub fn backward(&self, log_probs: &[f32], action: u32, entropy: f32, derivative: PolicyOutput, d_logits: &mut [f32]) {
        if self.is_one() {
            return categorical::backward(log_probs, action as usize, entropy, derivative, d_logits);
        }
        for part in &self.parts {
            let (own, d) = (&log_probs[part.range.clone()], &mut d_logits[part.range.clone()]);
            categorical::backward(own, part.value(action) as usize, categorical::entropy(own), derivative, d);
        }
    }

    /// Adds the derivatives through KL(new || reference).
    #[inline(always)]
    pub fn backward_kl_ref(&self, log_probs: &[f32], reference: &[f32], derivative: f32, d_logits: &mut [f32]) {
        for Part { range, .. } in &self.parts {
            let (own, reference) = (&log_probs[range.clone()], &reference[range.clone()]);
            categorical::backward_kl_ref(own, reference, categorical::kl(own, reference), derivative, &mut d_logits[range.clone()]);
        }
    }

    /// Multiplies a change of the logits by weight x Fisher information, in place.
    #[inline(always)]
    pub fn fisher(&self, log_probs: &[f32], weight: f32, change: &mut [f32]) {
        for Part { range, .. } in &self.parts {
            categorical::fisher(&log_probs[range.clone()], weight, &mut change[range.clone()]);
        }
    }

    /// Returns the places of the chosen values among the logits, for each action a row.
    #[cfg(feature = "tch")]
    pub fn places(&self, actions: &[u32]) -> Vec<i64> {
        let place = |action: u32| self.parts.iter().map(move |part| part.range.start as i64 + i64::from(part.value(action)));
        actions.iter().flat_map(|action| place(*action)).collect()
    }

    /// The shape of [`places`](Choices::places) as a tensor: of actions that are one choice, one number for each.
    #[cfg(feature = "tch")]
    pub fn shape(&self) -> Vec<i64> {
        if self.is_one() { vec![-1] } else { vec![-1, self.parts.len() as i64] }
    }

    /// Chooses the action of row `row`, one choice after the other.
    #[inline(always)]
    pub fn choose(&self, log_probs: &[f32], choice: &mut Choice<'_>, row: usize) -> u32 {
        let mut action = 0;
        for Part { range, weight } in &self.parts {
            action += *weight * categorical::choose(&log_probs[range.clone()], choice, row) as u32;
        }
        action
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Choices of 3 and 2 values, whose probabilities are 1/8, 2/8, 5/8 and 1/4, 3/4.
    fn distribution() -> (Choices, [f32; 5]) {
        let mut row = [0.0, 2.0_f32.ln(), 5.0_f32.ln(), 0.0, 3.0_f32.ln()];
        let choices = Choices::of(&[3, 2]);
        choices.log_softmax(&mut row);
        (choices, row)
    }

    fn near(got: f32, expected: f32) {
        assert!((got - expected).abs() < 1e-6, "expected {expected}, got {got}");
    }

    /// The probabilities of all six actions are the products, and the entropy is that of the six.
    #[test]
    fn an_action_has_the_product_of_the_probabilities() {
        let (choices, row) = distribution();
        let (first, second) = ([0.125, 0.25, 0.625], [0.25, 0.75]);
        let mut entropy = 0.0;
        for action in 0..6 {
            let p: f32 = first[action / 2] * second[action % 2];
            near(choices.log_prob(&row, action as u32), p.ln());
            entropy -= p * p.ln();
        }
        near(choices.entropy(&row), entropy);
        assert_eq!(choices.choose(&row, &mut Choice::Greedy, 0), 5);
        assert_eq!(choices.logits(), 5);
        assert!(choices.are_possible(&[true, false, false, false, true]) && !choices.are_possible(&[true, true, true, false, false]));
    }

    /// Derivatives of log pi(a) + H / 2 - KL(pi || reference) by finite differences of the logits.
    #[test]
    fn derivatives_are_those_of_finite_differences() {
        let logits = [0.3, -0.4, 1.1, 0.2, -0.9];
        let choices = Choices::of(&[3, 2]);
        let reference = {
            let mut row = [0.0, 0.5, -0.5, 0.7, 0.1];
            choices.log_softmax(&mut row);
            row
        };
        let loss = |logits: [f32; 5]| {
            let mut row = logits;
            choices.log_softmax(&mut row);
            choices.log_prob(&row, 3) + 0.5 * choices.entropy(&row) - categorical::kl(&row, &reference)
        };
        let (mut row, mut d) = (logits, [f32::NAN; 5]);
        choices.log_softmax(&mut row);
        let derivative = PolicyOutput { log_prob: 1.0, entropy: 0.5, ..PolicyOutput::default() };
        choices.backward(&row, 3, choices.entropy(&row), derivative, &mut d);
        choices.backward_kl_ref(&row, &reference, -1.0, &mut d);
        for i in 0..5 {
            let moved = |by: f32| {
                let mut logits = logits;
                logits[i] += by;
                loss(logits)
            };
            let expected = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            assert!((d[i] - expected).abs() < 2e-4, "logit {i}: expected {expected}, got {}", d[i]);
        }
    }

    /// One choice is a categorical distribution, with the same bits.
    #[test]
    fn one_choice_is_a_discrete_action() {
        let choices = Choices::of(&[3]);
        let mut row = [0.1, 0.7, -0.3];
        choices.log_softmax(&mut row);
        assert!(choices.is_one());
        assert_eq!((choices.log_prob(&row, 1), choices.entropy(&row)), (row[1], categorical::entropy(&row)));
        let (mut ours, mut theirs) = ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]);
        choices.fisher(&row, 0.5, &mut ours);
        categorical::fisher(&row, 0.5, &mut theirs);
        assert_eq!(ours, theirs);
    }
}
