//! The loss that an algorithm passes to an engine.

use crate::{Evaluation, Outputs};
use gradus_base::simd::{Kernel, Level, Simd, dispatch};

/// The policy's outputs for one decision, as the engine computes them. The same type holds derivatives with respect to these outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicyOutput {
    /// log pi(a|s), the log-probability of the action taken.
    pub log_prob: f32,
    /// H(pi(.|s)), the entropy of the distribution over actions.
    pub entropy: f32,
    /// V(s), the critic's estimate of the return.
    pub value: f32,
    /// KL(pi_old(.|s) || pi(.|s)), computed exactly; 0 if the batch has no old distributions.
    pub kl_old: f32,
    /// KL(pi(.|s) || pi_ref(.|s)), computed exactly; 0 if the batch has no reference distributions.
    pub kl_ref: f32,
}

impl PolicyOutput {
    #[inline(always)]
    fn numbers(self) -> [f32; 5] {
        [self.log_prob, self.entropy, self.value, self.kl_old, self.kl_ref]
    }

    #[inline(always)]
    fn from_numbers([log_prob, entropy, value, kl_old, kl_ref]: [f32; 5]) -> Self {
        Self { log_prob, entropy, value, kl_old, kl_ref }
    }
}

/// Number of diagnostics that an objective can report for a decision. In text environments, the agents use the last two diagnostics to
/// compare the policy's log-probabilities with those recorded when the tokens were sampled.
pub const DIAGNOSTICS: usize = 12;

/// Which parameter groups an objective updates: those that its loss depends on. Every objective updates a trunk shared by actor and critic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpdatedGroups {
    /// All groups: the loss depends on the policy and on the value.
    #[default]
    All,
    /// `actor` and `trunk`: the loss does not depend on the value, and the derivative with respect to the value is 0. The value is 0 where it is not computed.
    Actor,
    /// `critic` and `trunk`: the loss depends only on the value.
    Critic,
}

impl UpdatedGroups {
    /// Whether the objective updates the group with this [name](crate::Group::name).
    ///
    /// ```
    /// use gradus_nets::UpdatedGroups;
    /// assert_eq!(["trunk", "actor", "critic"].map(|name| UpdatedGroups::Critic.includes(name)), [true, false, true]);
    /// ```
    pub fn includes(self, group: &str) -> bool {
        match self {
            UpdatedGroups::All => true,
            UpdatedGroups::Actor => group != "critic",
            UpdatedGroups::Critic => group != "actor",
        }
    }
}

/// Weighted sums over a batch of decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Sum of weight x loss.
    pub loss: f64,
    /// Sums of weight x diagnostic.
    pub diagnostics: [f64; DIAGNOSTICS],
    /// The largest of the numbers that the objective compares, such as the size of an error; 0 if it compares none.
    pub largest: f32,
}

impl Sums {
    /// Adds the sums of other decisions.
    pub fn add(&mut self, other: &Sums) {
        self.loss += other.loss;
        self.largest = self.largest.max(other.largest);
        for (sum, more) in self.diagnostics.iter_mut().zip(other.diagnostics) {
            *sum += more;
        }
    }
}

/// The loss of an algorithm, as a function of the policy's outputs for each decision.
///
/// Every decision of a batch has a weight that is fixed beforehand. The loss of the batch is the sum of weight x loss. It does not depend
/// on how the engine splits the batch. Most objectives have one loss per decision and implement only [`decision`](Objective::decision).
/// Many threads call this method at once.
///
/// The loss is a formula in the policy's outputs, and its derivatives follow from it: see [`loss`](crate::loss).
///
/// ```
/// use gradus_nets::{Evaluation, Objective, Outputs, PolicyOutput};
///
/// /// REINFORCE: minimise -G log pi(a|s).
/// struct Reinforce { returns: Vec<f32> }
///
/// impl Objective for Reinforce {
///     fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
///         (-self.returns[index] * pi.log_prob).into()
///     }
/// }
///
/// let now = PolicyOutput { log_prob: -0.5, entropy: 0.7, ..Default::default() };
/// let loss = Reinforce { returns: vec![2.0] }.decision(0, now.into()).loss;
/// assert_eq!((loss.value, loss.slopes.log_prob), (1.0, -2.0));
/// ```
pub trait Objective: Sync {
    /// Returns the loss of decision number `index` of the rollout, as a function of the policy's current outputs `pi`.
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation;

    /// Evaluates a slice of decisions: adds to `sums`, and replaces the `outputs` by weight x derivative.
    ///
    /// If observations are texts, a slice holds all decisions of the batch that belong to one text, in the batch's order. An objective can
    /// then define one loss for a whole sequence. Otherwise a slice is any part of the batch.
    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        dispatch(Level::best(), Slice { objective: self, indices, weights, outputs, sums });
    }

    /// Returns the parameter groups that the gradient updates. [`Network::apply`](crate::Network::apply) leaves the other groups as they
    /// are: their values, their moments and their counts of optimiser steps. An engine may skip the forward pass of these other groups;
    /// their outputs are then 0.
    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::All
    }
}

/// Evaluates a slice of decisions one by one. It is compiled for each instruction set, because objectives compute exponentials.
struct Slice<'a, O: ?Sized> {
    objective: &'a O,
    indices: &'a [u32],
    weights: &'a [f32],
    outputs: &'a mut [PolicyOutput],
    sums: &'a mut Sums,
}

impl<O: Objective + ?Sized> Kernel for Slice<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { objective, indices, weights, outputs, sums } = self;
        // a local variable, so that the sums stay in registers
        let mut own = Sums::default();
        for ((index, weight), output) in indices.iter().zip(weights).zip(outputs) {
            if *weight == 0.0 {
                *output = PolicyOutput::default(); // not multiplied by the weight: 0 times NaN is NaN
                continue;
            }
            let Evaluation { loss, diagnostics, .. } = objective.decision(*index as usize, (*output).into());
            own.loss += f64::from(weight * loss.value);
            for (sum, diagnostic) in own.diagnostics.iter_mut().zip(diagnostics) {
                *sum += f64::from(weight * diagnostic);
            }
            *output = (*weight * loss).slopes;
        }
        sums.add(&own);
    }
}

/// Returns the diagnostics of a decision: the given numbers, then zeros.
///
/// # Panics
/// If there are more than [`DIAGNOSTICS`] numbers.
#[inline(always)]
#[allow(clippy::manual_memcpy)] // memcpy would keep the numbers out of vector registers
pub fn diagnostics<const N: usize>(numbers: [f32; N]) -> [f32; DIAGNOSTICS] {
    let mut diagnostics = [0.0; DIAGNOSTICS];
    for i in 0..N {
        diagnostics[i] = numbers[i];
    }
    diagnostics
}

/// An objective whose loss for a decision is a branch-free function of a few numbers. Sixteen decisions are evaluated at a time.
///
/// It is an [`Objective`] whose [`decision`](Objective::decision) applies [`loss`](Pointwise::loss) to the
/// [`known`](Pointwise::known) numbers. Both methods must be `#[inline(always)]`, and `loss` must select values instead of branching.
/// The compiler then vectorises the evaluation.
pub trait Pointwise: Sync {
    /// Type of the loss's inputs other than the policy's outputs: an array `[f32; N]`.
    type Known: Known;

    /// Returns the inputs for decision number `index` of the rollout.
    fn known(&self, index: usize) -> Self::Known;

    /// Returns the loss of a decision, given its inputs, as a function of the policy's current outputs `pi`.
    fn loss(&self, known: Self::Known, pi: Outputs) -> Evaluation;

    /// Returns the parameter groups that the gradient updates; see [`Objective::updates`].
    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::All
    }
}

impl<O: Pointwise> Objective for O {
    #[inline(always)]
    fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
        self.loss(self.known(index), pi)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        dispatch(Level::best(), Lanes { objective: self, indices, weights, outputs, sums });
    }

    fn updates(&self) -> UpdatedGroups {
        Pointwise::updates(self)
    }
}

/// The inputs of a [`Pointwise`] loss: one array per decision. The inputs of sixteen decisions are stored by column.
pub trait Known: Copy {
    /// The inputs of sixteen decisions, by column.
    type Columns: Copy;

    /// Inputs of sixteen decisions, all 0.
    const ZEROS: Self::Columns;

    /// Writes these inputs to position `lane` of every column.
    fn put(self, columns: &mut Self::Columns, lane: usize);

    /// Reads the inputs at position `lane` of every column.
    fn of_lane(columns: &Self::Columns, lane: usize) -> Self;
}

impl<const N: usize> Known for [f32; N] {
    type Columns = [[f32; LANES]; N];

    const ZEROS: Self::Columns = [[0.0; LANES]; N];

    #[inline(always)]
    fn put(self, columns: &mut Self::Columns, lane: usize) {
        for i in 0..N {
            columns[i][lane] = self[i];
        }
    }

    #[inline(always)]
    fn of_lane(columns: &Self::Columns, lane: usize) -> Self {
        let mut known = [0.0; N];
        for i in 0..N {
            known[i] = columns[i][lane];
        }
        known
    }
}

/// Evaluates a slice of decisions sixteen at a time.
struct Lanes<'a, O> {
    objective: &'a O,
    indices: &'a [u32],
    weights: &'a [f32],
    outputs: &'a mut [PolicyOutput],
    sums: &'a mut Sums,
}

const LANES: usize = 16;

impl<O: Pointwise> Kernel for Lanes<'_, O> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let Self { objective, indices, weights, outputs, sums } = self;
        let (mut losses, mut diagnostics) = ([0.0_f64; LANES], [[0.0_f64; LANES]; DIAGNOSTICS]);
        let batch = indices.chunks(LANES).zip(weights.chunks(LANES)).zip(outputs.chunks_mut(LANES));
        for ((indices, weights), outputs) in batch {
            // the inputs are stored by column; a lane without a decision holds zeros and has weight 0
            let (mut w, mut known, mut now) = ([0.0; LANES], O::Known::ZEROS, [[0.0; LANES]; 5]);
            for (lane, ((index, weight), output)) in indices.iter().zip(weights).zip(&*outputs).enumerate() {
                w[lane] = *weight;
                objective.known(*index as usize).put(&mut known, lane);
                [now[0][lane], now[1][lane], now[2][lane], now[3][lane], now[4][lane]] = output.numbers();
            }
            let mut slopes = [[0.0; LANES]; 5];
            for lane in 0..LANES {
                let inputs = O::Known::of_lane(&known, lane);
                let now = PolicyOutput::from_numbers([now[0][lane], now[1][lane], now[2][lane], now[3][lane], now[4][lane]]);
                let Evaluation { loss, diagnostics: own, .. } = objective.loss(inputs, now.into());
                // a decision with weight 0 adds 0, even if its loss is NaN
                let weighted = |x: f32| if w[lane] == 0.0 { 0.0 } else { w[lane] * x };
                losses[lane] += f64::from(weighted(loss.value));
                for i in 0..DIAGNOSTICS {
                    diagnostics[i][lane] += f64::from(weighted(own[i]));
                }
                let of_outputs = loss.slopes.numbers();
                for i in 0..5 {
                    slopes[i][lane] = weighted(of_outputs[i]);
                }
            }
            for (lane, output) in outputs.iter_mut().enumerate() {
                *output = PolicyOutput::from_numbers([slopes[0][lane], slopes[1][lane], slopes[2][lane], slopes[3][lane], slopes[4][lane]]);
            }
        }
        for lane in 0..LANES {
            sums.loss += losses[lane];
            for (sum, column) in sums.diagnostics.iter_mut().zip(&diagnostics) {
                *sum += column[lane];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A loss with two inputs per decision.
    struct Squares {
        a: Vec<f32>,
        b: Vec<f32>,
    }

    impl Pointwise for Squares {
        type Known = [f32; 2];

        #[inline(always)]
        fn known(&self, index: usize) -> [f32; 2] {
            [self.a[index], self.b[index]]
        }

        #[inline(always)]
        fn loss(&self, [a, b]: [f32; 2], pi: Outputs) -> Evaluation {
            let mut diagnostics = [0.0; DIAGNOSTICS];
            (diagnostics[0], diagnostics[DIAGNOSTICS - 1]) = (a * pi.entropy.value(), pi.kl_ref.value());
            // in a lane without a decision, a / b is 0 / 0
            let loss = a / b * pi.log_prob + b * pi.entropy + 0.5 * (pi.value - a).squared() + pi.kl_old * pi.kl_old * b + 2.0 * pi.kl_ref;
            loss.with_diagnostics(diagnostics)
        }
    }

    /// The loss of [`Squares`], evaluated one decision at a time.
    struct OneByOne<'a>(&'a Squares);

    impl Objective for OneByOne<'_> {
        fn decision(&self, index: usize, pi: Outputs) -> Evaluation {
            self.0.decision(index, pi)
        }
    }

    /// Decisions are evaluated sixteen at a time and one by one. The derivatives have the same bits, and the sums agree up to rounding.
    #[test]
    fn sixteen_at_a_time_gives_the_same_numbers_as_one_by_one() {
        let number = |i: usize, k: usize| ((i * k) % 23) as f32 / 23.0 - 0.4;
        let objective = Squares { a: (0..50).map(|i| number(i, 7)).collect(), b: (0..50).map(|i| number(i, 5)).collect() };
        for n in [1, 15, 16, 17, 49] {
            let indices: Vec<u32> = (0..n).map(|i| (i * 3 % 50) as u32).collect();
            let weights: Vec<f32> = (0..n).map(|i| if i % 6 == 2 { 0.0 } else { number(i, 11) }).collect();
            let output = |i: usize| match i % 6 {
                2 => PolicyOutput { log_prob: f32::NAN, entropy: f32::NAN, value: f32::INFINITY, kl_old: 1.0, kl_ref: f32::NAN },
                _ => {
                    PolicyOutput { log_prob: number(i, 3), entropy: number(i, 2), value: number(i, 13), kl_old: number(i, 17), kl_ref: 0.3 }
                }
            };
            let (mut alone, mut together): (Vec<_>, Vec<_>) = (0..n).map(|i| (output(i), output(i))).unzip();
            let (mut sums, mut sums_together) = (Sums { loss: 2.0, ..Sums::default() }, Sums { loss: 2.0, ..Sums::default() });
            OneByOne(&objective).slice(&indices, &weights, &mut alone, &mut sums);
            objective.slice(&indices, &weights, &mut together, &mut sums_together);
            assert_eq!(alone, together, "{n} decisions");
            let numbers = |sums: Sums| [&[sums.loss], &sums.diagnostics[..]].concat();
            for (one, many) in numbers(sums).into_iter().zip(numbers(sums_together)) {
                assert!((one - many).abs() < 1e-12, "{n} decisions: {one} and {many}");
            }
        }
    }
}
