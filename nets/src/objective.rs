//! What an algorithm asks of the engine.

use crate::cpu::simd::{Kernel, Level, Simd, dispatch};

/// What the policy now says of one decision; and, in the same shape, derivatives with respect to it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Output {
    /// log pi(a|s), the log-probability of the action that was taken.
    pub log_prob: f32,
    /// H(pi(.|s)), the entropy of the distribution over actions.
    pub entropy: f32,
    /// V(s), what the critic expects of the return.
    pub value: f32,
    /// KL(pi_old(.|s) || pi(.|s)), exact; 0 where the batch has no old distributions.
    pub kl_old: f32,
    /// KL(pi(.|s) || pi_ref(.|s)), exact; 0 where the batch has no reference distributions.
    pub kl_ref: f32,
}

/// How many diagnostics an objective can sum up; on texts the agents' own comparison with the sampler takes the last two.
pub const DIAGNOSTICS: usize = 12;

/// An objective's judgement of one decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decision {
    /// The loss.
    pub loss: f32,
    /// The derivatives of the loss with respect to log pi, H, V and the two divergences.
    pub derivative: Output,
    /// Numbers of the algorithm's own choice, averaged with the weights of the decisions.
    pub diagnostics: [f32; DIAGNOSTICS],
}

/// Weighted sums over a batch of decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Sum of weight x loss.
    pub loss: f64,
    /// Sums of weight x diagnostic.
    pub diagnostics: [f64; DIAGNOSTICS],
}

impl Sums {
    /// Adds the sums of other decisions.
    pub fn add(&mut self, other: &Sums) {
        self.loss += other.loss;
        for (sum, more) in self.diagnostics.iter_mut().zip(other.diagnostics) {
            *sum += more;
        }
    }
}

/// A loss over decisions, as a function of what the policy says of each: an algorithm's heart.
///
/// Every decision of a batch has a weight fixed beforehand, and the loss of the batch is the sum of weight x loss, however the
/// batch is cut. Most objectives judge each decision alone and write [`decision`](Objective::decision) only. It is called from many
/// threads at once.
///
/// ```
/// use gradus_nets::{Decision, Objective, Output};
///
/// /// REINFORCE: minimise -G log pi(a|s).
/// struct Reinforce { returns: Vec<f32> }
///
/// impl Objective for Reinforce {
///     fn decision(&self, index: usize, now: Output) -> Decision {
///         let g = self.returns[index];
///         Decision {
///             loss: -g * now.log_prob,
///             derivative: Output { log_prob: -g, ..Default::default() },
///             ..Default::default()
///         }
///     }
/// }
///
/// let now = Output { log_prob: -0.5, entropy: 0.7, ..Default::default() };
/// assert_eq!(Reinforce { returns: vec![2.0] }.decision(0, now).loss, 1.0);
/// ```
pub trait Objective: Sync {
    /// Judges decision number `index` of the rollout, of which the policy now says `now`.
    fn decision(&self, index: usize, now: Output) -> Decision;

    /// Judges a slice of decisions. Where observations are texts, a slice holds the decisions of one text that the batch has, in
    /// the batch's order, so that an objective may judge whole sequences; elsewhere it is any part of the batch. Adds to `sums`, and
    /// replaces what the policy says of each (`outputs`) by weight x derivative.
    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [Output], sums: &mut Sums) {
        dispatch(Level::best(), Slice { objective: self, indices, weights, outputs, sums });
    }
}

/// A slice of decisions that are judged one by one; with all vector instructions, for an objective has exponentials.
struct Slice<'a, O: ?Sized> {
    objective: &'a O,
    indices: &'a [u32],
    weights: &'a [f32],
    outputs: &'a mut [Output],
    sums: &'a mut Sums,
}

impl<O: Objective + ?Sized> Kernel for Slice<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { objective, indices, weights, outputs, sums } = self;
        // of its own, so that it stays in registers
        let mut own = Sums::default();
        for ((index, weight), output) in indices.iter().zip(weights).zip(outputs) {
            if *weight == 0.0 {
                *output = Output::default(); // whatever is said of it: 0 times NaN would not be 0
                continue;
            }
            let Decision { loss, derivative, diagnostics } = objective.decision(*index as usize, *output);
            own.loss += f64::from(weight * loss);
            for (sum, diagnostic) in own.diagnostics.iter_mut().zip(diagnostics) {
                *sum += f64::from(weight * diagnostic);
            }
            *output = Output {
                log_prob: weight * derivative.log_prob,
                entropy: weight * derivative.entropy,
                value: weight * derivative.value,
                kl_old: weight * derivative.kl_old,
                kl_ref: weight * derivative.kl_ref,
            };
        }
        sums.add(&own);
    }
}
