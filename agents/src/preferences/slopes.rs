//! Losses of several decisions at once: of the log-ratios of two texts, or of the scores of a ranking.
//!
//! Such a loss is a formula in a few numbers that are linear in the outputs of the decisions, such as a difference of sums. A first pass
//! ([`Policy::outputs`](gradus_nets::Policy::outputs)) gives the outputs, the formula the slope of each, and a second pass its gradient.

use gradus_nets::{Evaluation, Objective, Outputs, UpdatedGroups};

/// The derivative of a loss with respect to one output of each decision, as an objective with this gradient: the sum of slope x output.
pub(crate) enum Slopes<'a> {
    OfLogProbs(&'a [f32]),
    OfValues(&'a [f32]),
}

impl Objective for Slopes<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        match self {
            Slopes::OfLogProbs(slopes) => (slopes[i] * pi.log_prob).into(),
            Slopes::OfValues(slopes) => (slopes[i] * pi.value).into(),
        }
    }

    fn updates(&self) -> UpdatedGroups {
        match self {
            Slopes::OfLogProbs(_) => UpdatedGroups::Actor,
            Slopes::OfValues(_) => UpdatedGroups::Critic,
        }
    }
}
