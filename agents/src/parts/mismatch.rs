//! Comparison of two log-probabilities of every sampled token: that of the sampler, and that of the policy in training.
//!
//! pi_old is the policy that sampled the tokens. With d = log pi_old - log pi of a sampled token:
//!
//! | metric | definition | over |
//! | --- | --- | --- |
//! | `train/old_approx_kl` (`kl/old_k1` in `metrics.csv`) | mean of d: the k1 estimate of KL(pi_old \|\| pi) | all minibatches of an update |
//! | `sampling/sampling_logp_difference/mean`, `.../max` | mean and maximum of abs(d) | the first minibatch |
//!
//! `train/approx_kl` is the k3 estimate of the same divergence. k1 and k3 are both unbiased. k1 can be negative, k3 cannot. If they differ
//! strongly, pi is too far from pi_old for either estimate.
//!
//! The first minibatch is computed before any optimiser step, so its abs(d) should be at most a rounding error. This check needs no extra
//! pass over the texts. If abs(d) is larger, sampling and training compute different probabilities, and the ratios are wrong. The names of
//! the metrics are those of CleanRL and TRL.

use gradus_nets::{DIAGNOSTICS, Evaluation, Objective, Outputs, PolicyOutput, Sums, UpdatedGroups};

/// Indices of the diagnostics of this comparison: the last two. The diagnostics of algorithms have smaller indices.
const K1: usize = DIAGNOSTICS - 1;
const DISTANCE: usize = DIAGNOSTICS - 2;

/// An objective that also compares the policy with the sampler. The loss and its derivatives are those of the inner objective.
pub(crate) struct AgainstSampler<'a> {
    objective: &'a dyn Objective,
    /// Log-probabilities of the sampler; `None`: no comparison.
    old_log_probs: Option<&'a [f32]>,
}

impl<'a> AgainstSampler<'a> {
    pub fn new(objective: &'a dyn Objective, old_log_probs: Option<&'a [f32]>) -> Self {
        Self { objective, old_log_probs }
    }
}

impl Objective for AgainstSampler<'_> {
    fn decision(&self, i: usize, pi: Outputs) -> Evaluation {
        self.objective.decision(i, pi)
    }

    fn slice(&self, indices: &[u32], weights: &[f32], outputs: &mut [PolicyOutput], sums: &mut Sums) {
        if let Some(old_log_probs) = self.old_log_probs {
            // skips decisions of weight 0
            for ((index, weight), now) in indices.iter().zip(weights).zip(&*outputs).filter(|((_, weight), _)| **weight != 0.0) {
                let d = old_log_probs[*index as usize] - now.log_prob;
                sums.diagnostics[K1] += f64::from(weight * d);
                sums.diagnostics[DISTANCE] += f64::from(weight * d.abs());
                sums.largest = sums.largest.max(d.abs());
            }
        }
        self.objective.slice(indices, weights, outputs, sums);
    }

    fn updates(&self) -> UpdatedGroups {
        self.objective.updates()
    }
}

/// The comparison over one update.
#[derive(Default)]
pub(crate) struct Mismatch {
    /// Mean and maximum of abs(d) in the first minibatch.
    first: Option<[f64; 2]>,
    k1: f64,
    minibatches: f64,
}

impl Mismatch {
    /// Adds a minibatch. `means` holds its diagnostics as means over decisions.
    pub fn add(&mut self, means: &Sums) {
        self.first.get_or_insert([means.diagnostics[DISTANCE], f64::from(means.largest)]);
        self.k1 += means.diagnostics[K1];
        self.minibatches += 1.0;
    }

    /// Returns the comparison's part of the update's report.
    pub fn report(&self) -> [(&'static str, f64); 3] {
        let [mean, largest] = self.first.unwrap_or([f64::NAN; 2]);
        [
            ("train/old_approx_kl", self.k1 / self.minibatches),
            ("sampling/sampling_logp_difference/mean", mean),
            ("sampling/sampling_logp_difference/max", largest),
        ]
    }
}
