//! Sampling of tokens from a distribution: temperature, top-k, top-p, min-p.

use gradus_base::math::{exp, ln};

/// Truncation of a distribution before an action is sampled: temperature, top-k, top-p and min-p, in this order. Each setting applies to
/// the renormalised result of the previous one. The most probable action is never removed.
///
/// The reported log-probabilities are those of the policy, not of the truncated distribution. At temperature 1, the two differ by the
/// logarithm of the kept actions' total probability. Truncation is therefore only for generation. Training samples from the whole
/// distribution, and its temperature is part of the policy (`transformer.temperature`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 selects the most probable action (of several, the first).
    pub temperature: f32,
    /// Keeps only the k most probable actions; 0 keeps all.
    pub top_k: usize,
    /// Keeps only the fewest most probable actions that together reach this probability (Holtzman et al., arXiv 1904.09751); 1 keeps all.
    pub top_p: f32,
    /// Keeps only actions with at least this fraction of the highest probability (Nguyen et al., arXiv 2407.01082); 0 keeps all.
    pub min_p: f32,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { temperature: 1.0, top_k: 0, top_p: 1.0, min_p: 0.0 }
    }
}

/// A [`Sampling`] setting that is out of range.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{key}: expected {expected}, got {got}")]
pub struct SamplingError {
    /// Name of the setting.
    pub key: &'static str,
    /// The values allowed.
    pub expected: &'static str,
    /// The value given.
    pub got: f32,
}

impl Sampling {
    /// Always selects the most probable action.
    pub const GREEDY: Self = Self { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0 };

    /// Checks that every setting is in range.
    pub fn check(&self) -> Result<(), SamplingError> {
        let Self { temperature, top_p, min_p, .. } = *self;
        let table = [
            (temperature >= 0.0 && temperature.is_finite(), "temperature", "a number from 0 up", temperature),
            (top_p > 0.0 && top_p <= 1.0, "top_p", "a number above 0 and up to 1", top_p),
            ((0.0..=1.0).contains(&min_p), "min_p", "a number from 0 to 1", min_p),
        ];
        match table.into_iter().find(|(holds, ..)| !holds) {
            Some((_, key, expected, got)) => Err(SamplingError { key, expected, got }),
            None => Ok(()),
        }
    }

    /// Replaces log-probabilities by those of the truncated distribution; removed actions get minus infinity.
    ///
    /// ```
    /// use gradus_nets::Sampling;
    ///
    /// let mut log_probs = [0.5_f32, 0.3, 0.2].map(f32::ln);
    /// Sampling { top_p: 0.7, ..Sampling::default() }.truncate(&mut log_probs);
    /// let left = log_probs.map(f32::exp);
    /// assert!((left[0] - 0.625).abs() < 1e-6 && (left[1] - 0.375).abs() < 1e-6 && left[2] == 0.0);
    /// ```
    pub fn truncate(&self, log_probs: &mut [f32]) {
        let mut order: Vec<usize> = (0..log_probs.len()).collect();
        // equally probable actions stay in the order of their numbers
        order.sort_unstable_by(|a, b| log_probs[*b].total_cmp(&log_probs[*a]).then(a.cmp(b)));
        let Some(first) = order.first().copied() else { return };
        if self.temperature == 0.0 {
            log_probs.fill(f32::NEG_INFINITY);
            log_probs[first] = 0.0;
            return;
        }
        if self.temperature != 1.0 {
            // log-probabilities are taken relative to that of the most probable action, which stays 0 at any temperature
            let most = log_probs[first];
            log_probs.iter_mut().for_each(|l| *l = (*l - most) / self.temperature);
            normalise(log_probs);
        }
        if self.top_k > 0 && self.top_k < order.len() {
            keep(log_probs, &mut order, self.top_k);
        }
        if self.top_p < 1.0 {
            let mut mass = 0.0;
            let enough = order.iter().position(|action| {
                mass += exp(log_probs[*action]);
                mass >= self.top_p
            });
            let kept = enough.map_or(order.len(), |last| last + 1);
            keep(log_probs, &mut order, kept);
        }
        if self.min_p > 0.0 {
            let least = log_probs[first] + ln(self.min_p);
            let kept = order.partition_point(|action| log_probs[*action] >= least);
            keep(log_probs, &mut order, kept);
        }
    }
}

/// Removes all but the first `kept` actions of `order`, but keeps at least one; then renormalises.
fn keep(log_probs: &mut [f32], order: &mut Vec<usize>, kept: usize) {
    order.drain(kept.max(1)..).for_each(|action| log_probs[action] = f32::NEG_INFINITY);
    normalise(log_probs);
}

fn normalise(log_probs: &mut [f32]) {
    crate::categorical::log_softmax(log_probs);
}
