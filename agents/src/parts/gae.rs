//! Values, advantages and value targets of a whole rollout, by [generalised advantage estimation](crate::parts::returns::gae).

use gradus_base::threads;
use gradus_nets::Policy;

use crate::agent::UpdateContext;
use crate::error::AgentError;
use crate::parts::returns::{SHARED_FROM, Truncated, explained_variance, gae};
use crate::rollout::{End, Rollout, Segment};

/// Number of parts into which the segments of a large rollout are cut, one for each thread at a time.
const PARTS: usize = 64;

/// The parameters of generalised advantage estimation (Schulman et al., arXiv 1506.02438).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gae {
    /// Discount factor gamma.
    pub gamma: f32,
    /// Parameter lambda.
    pub lambda: f32,
    /// How the return of a truncated episode is computed.
    pub truncated: Truncated,
}

/// Values, advantages and value targets of a rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// V(s) of all rows of the store.
    pub values: Vec<f32>,
    /// Advantage A of every decision; 0 in texts that could not be scored.
    pub advantages: Vec<f32>,
    /// Value target R of every decision; V(s) in texts that could not be scored.
    pub targets: Vec<f32>,
}

impl Gae {
    /// Computes advantages by [`gae`] and value targets A_t + V(s_t) of a whole rollout, given the values of all rows of its store.
    ///
    /// # Panics
    /// If the segments do not cover the rollout.
    pub fn of_rollout(self, rollout: &Rollout, values: &[f32], advantages: &mut Vec<f32>, targets: &mut Vec<f32>) {
        self.of_rewards(rollout, &rollout.rewards, values, advantages, targets);
    }

    /// Computes the same as [`of_rollout`](Gae::of_rollout), with `rewards` instead of the rewards of `rollout`.
    fn of_rewards(self, rollout: &Rollout, rewards: &[f32], values: &[f32], advantages: &mut Vec<f32>, targets: &mut Vec<f32>) {
        let covered: usize = rollout.segments.iter().map(|segment| segment.range.len()).sum();
        assert_eq!(covered, rollout.len(), "segments: expected every decision in exactly one segment");
        advantages.resize(rollout.len(), 0.0);
        targets.resize(rollout.len(), 0.0);
        let estimate = |segments: &[Segment], first: usize, advantages: &mut [f32], targets: &mut [f32]| {
            for segment in segments {
                let (range, here) = (segment.range.clone(), segment.range.start - first..segment.range.end - first);
                let bootstrap = match (segment.end, self.truncated) {
                    (End::Truncated { .. }, Truncated::Ends) => 0.0,
                    _ => segment.bootstrap(values),
                };
                gae(&rewards[range.clone()], &values[range], bootstrap, self.gamma, self.lambda, &mut advantages[here]);
            }
            for (target, (advantage, value)) in targets.iter_mut().zip(advantages.iter().zip(&values[first..])) {
                *target = advantage + value;
            }
        };
        let follows = |pair: &[Segment]| pair[0].range.end == pair[1].range.start;
        if rollout.len() < SHARED_FROM || !rollout.segments.windows(2).all(follows) {
            return estimate(&rollout.segments, 0, advantages, targets);
        }
        let (mut parts, mut rest) = (Vec::new(), (advantages.as_mut_slice(), targets.as_mut_slice()));
        for segments in rollout.segments.chunks(rollout.segments.len().div_ceil(PARTS)) {
            let first = segments[0].range.start;
            let decisions = segments[segments.len() - 1].range.end - first;
            let ((advantages, more), (targets, others)) = (rest.0.split_at_mut(decisions), rest.1.split_at_mut(decisions));
            parts.push((segments, first, advantages, targets));
            rest = (more, others);
        }
        threads::for_each(&mut parts, |_, (segments, first, advantages, targets)| estimate(segments, *first, advantages, targets));
    }

    /// Computes the estimate from the critic's current values and `rewards`. Returns an error unless the advantages are finite.
    pub fn estimate(
        self,
        policy: &mut dyn Policy,
        rollout: &Rollout,
        rewards: &[f32],
        context: UpdateContext,
    ) -> Result<Estimate, AgentError> {
        let (mut values, mut advantages, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        policy.values(&rollout.store, &mut values);
        self.of_rewards(rollout, rewards, &values, &mut advantages, &mut targets);
        for segment in rollout.unscored() {
            let range = segment.range.clone();
            advantages[range.clone()].fill(0.0);
            targets[range.clone()].copy_from_slice(&values[range]);
        }
        context.check_advantages(rollout, &advantages)?;
        Ok(Estimate { values, advantages, targets })
    }
}

impl Estimate {
    /// Returns the fraction of the variance of `rollout`'s targets that the values explain, without texts that could not be scored.
    pub fn explained_variance(&self, rollout: &Rollout) -> f64 {
        explained_of_scored(rollout, &self.values, &self.targets)
    }
}

/// Returns the fraction of the targets' variance that the values explain, without texts that could not be scored.
pub(crate) fn explained_of_scored(rollout: &Rollout, values: &[f32], targets: &[f32]) -> f64 {
    if rollout.unscored().next().is_none() {
        return explained_variance(&values[..targets.len()], targets);
    }
    let (values, targets): (Vec<f32>, Vec<f32>) = rollout.scored_decisions().map(|i| (values[i], targets[i])).unzip();
    explained_variance(&values, &targets)
}
