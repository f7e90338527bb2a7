//! Gradients of losses that depend on several decisions at once: a first pass records the network's output for each decision, the loss is
//! computed, and a second pass hands the derivatives of the loss to the engine as an objective over single decisions.

use std::sync::atomic::{AtomicU32, Ordering};

use gradus_nets::{Batch, Evaluation, Moves, Objective, Outputs, Policy, Store};

/// The output on which the loss depends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// log pi(a|s).
    LogProb,
    /// V(s).
    Value,
}

impl Output {
    fn moves(self) -> Moves {
        match self {
            Output::LogProb => Moves::Actor,
            Output::Value => Moves::Critic,
        }
    }
}

/// Returns the output for each row of the store: NaN for the rows that are not in `rows`.
pub(crate) fn outputs(output: Output, policy: &mut dyn Policy, store: &Store, rows: &[u32]) -> Vec<f32> {
    let recorder = Recorder { output, numbers: (0..store.rows()).map(|_| AtomicU32::new(f32::NAN.to_bits())).collect() };
    policy.evaluate(store, Batch::new(rows, &vec![1.0; rows.len()]), &recorder);
    recorder.numbers.into_iter().map(|number| f32::from_bits(number.into_inner())).collect()
}

/// An objective that records an output of each decision.
struct Recorder {
    output: Output,
    numbers: Vec<AtomicU32>,
}

impl Objective for Recorder {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        let number = match self.output {
            Output::LogProb => pi.log_prob.value(),
            Output::Value => pi.value.value(),
        };
        self.numbers[i].store(number.to_bits(), Ordering::Relaxed);
        Evaluation::default()
    }

    fn moves(&self) -> Moves {
        self.output.moves()
    }
}

/// A loss given by its derivative with respect to the output of each decision.
pub(crate) struct Derivatives<'a> {
    pub output: Output,
    pub derivatives: &'a [f32],
}

impl Objective for Derivatives<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        match self.output {
            Output::LogProb => (self.derivatives[i] * pi.log_prob).into(),
            Output::Value => (self.derivatives[i] * pi.value).into(),
        }
    }

    fn moves(&self) -> Moves {
        self.output.moves()
    }
}
