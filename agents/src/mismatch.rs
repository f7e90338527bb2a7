//! The log-probabilities of the policy that drew the tokens of a rollout, compared with those of the policy that learns.
//!
//! With d = log pi_old - log pi of a token that was drawn, pi_old as the sampler had it:
//!
//! | figure | what it is | over |
//! | --- | --- | --- |
//! | `train/old_approx_kl` (`kl/old_k1` on texts) | the mean of d: k1 of KL(pi_old \|\| pi), of which `train/approx_kl` is k3 | all minibatches of an update |
//! | `sampling/sampling_logp_difference/mean`, `.../max` | the mean and the largest of abs(d) | the first minibatch |
//!
//! k1 is negative now and then, and k3 never: both have the divergence for their mean, and where they part the policy has moved too far for
//! either. The first minibatch is computed before anything was learned, so there d is rounding and no more, at no additional pass over the
//! texts. Where it is more, sampling and learning compute differently, and no ratio is what it seems to be. The names are CleanRL's and TRL's.

use std::sync::atomic::{AtomicU32, Ordering};

use gradus_nets::{DIAGNOSTICS, LossGrad, Moves, Objective, PolicyOutput, Sums};

/// Where the diagnostics stand in the sums: behind those of every algorithm.
const K1: usize = DIAGNOSTICS - 1;
const DISTANCE: usize = DIAGNOSTICS - 2;

/// An objective that is compared with what the sampler said, too. The loss and its derivatives are the objective's own.
pub(crate) struct AgainstSampler<'a> {
    objective: &'a dyn Objective,
    /// What the sampler said; `None`: nothing is compared.
    old_log_probs: Option<&'a [f32]>,
    /// The bits of the largest distance: numbers that are not negative have the order of their bits.
    largest: AtomicU32,
}

impl<'a> AgainstSampler<'a> {
    pub fn new(objective: &'a dyn Objective, old_log_probs: Option<&'a [f32]>) -> Self {
        Self { objective, old_log_probs, largest: AtomicU32::new(0) }
    }
}

impl Objective for AgainstSampler<'_> {
    fn decision(&self, i: usize, now: PolicyOutput) -> LossGrad {
        self.objective.decision(i, now)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        if let Some(old_log_probs) = self.old_log_probs {
            // masked decisions are skipped
            for ((index, weight), now) in indices.iter().zip(weights).zip(&*outputs).filter(|((_, weight), _)| **weight != 0.0) {
                let d = old_log_probs[*index as usize] - now.log_prob;
                sums.diagnostics[K1] += f64::from(weight * d);
                sums.diagnostics[DISTANCE] += f64::from(weight * d.abs());
                self.largest.fetch_max(d.abs().to_bits(), Ordering::Relaxed);
            }
        }
        self.objective.slice(indices, weights, outputs, sums);
    }

    fn moves(&self) -> Moves {
        self.objective.moves()
    }
}

/// What an update has seen of it.
#[derive(Default)]
pub(crate) struct Mismatch {
    /// The mean and the largest distance in the first minibatch.
    first: Option<[f64; 2]>,
    k1: f64,
    minibatches: f64,
}

impl Mismatch {
    /// One more minibatch, with its diagnostics as means over decisions.
    pub fn add(&mut self, seen: &AgainstSampler<'_>, means: &Sums) {
        let largest = f32::from_bits(seen.largest.load(Ordering::Relaxed));
        self.first.get_or_insert([means.diagnostics[DISTANCE], f64::from(largest)]);
        self.k1 += means.diagnostics[K1];
        self.minibatches += 1.0;
    }

    /// Its part of an agent's report.
    pub fn report(&self) -> [(&'static str, f64); 3] {
        let [mean, largest] = self.first.unwrap_or_default();
        [
            ("train/old_approx_kl", self.k1 / self.minibatches.max(1.0)),
            ("sampling/sampling_logp_difference/mean", mean),
            ("sampling/sampling_logp_difference/max", largest),
        ]
    }
}
