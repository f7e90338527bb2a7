//! Advantages and policy gradients of all estimators on the same rollout.
//!
//! The rollout holds groups of whole episodes. An estimator is left out if the data that it needs are missing (values, greedy episodes,
//! groups of at least two episodes, or step ends). The gradients are those of the first step after a rollout: the ratio is 1 and nothing
//! is clipped. PPO, GRPO and REINFORCE then differ only in their advantages.

use gradus_nets::{Batch, Policy};

use crate::agent::UpdateContext;
use crate::error::AgentError;
use crate::parts::aggregation::Aggregation;
use crate::parts::gae::Gae;
use crate::parts::groups::{self, GroupAdvantages, GroupStd, Supervision, against_greedy, against_others};
use crate::parts::minibatches::Minibatches;
use crate::parts::reference::KlPenalty;
use crate::parts::returns::{Truncated, discounted, whiten};
use crate::policy_gradient::reinforce::ReinforceObjective;
use crate::rollout::Rollout;

/// The advantages of one estimator.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Name of the estimator.
    pub name: &'static str,
    /// A of every decision.
    pub advantages: Vec<f32>,
}

/// Computes the advantages of every estimator that the rollout supports. `values` holds V of all rows of the rollout's store; without a
/// critic it is `None`.
pub fn side_by_side(rollout: &Rollout, values: Option<&[f32]>, gamma: f32, lambda: f32) -> Vec<Estimate> {
    let mut estimates = Vec::new();
    let mut add = |name, advantages| estimates.push(Estimate { name, advantages });
    let mut returns = vec![0.0; rollout.len()];
    for segment in &rollout.segments {
        let range = segment.range.clone();
        discounted(&rollout.rewards[range.clone()], 0.0, gamma, &mut returns[range]);
    }
    add("reinforce", returns.clone());
    // normalised over the scored decisions; the other decisions get 0
    let mut whitened = returns.clone();
    let mut valid: Vec<f32> = returns.iter().copied().filter(|g| !g.is_nan()).collect();
    whiten(&mut valid, false);
    let mut valid = valid.into_iter();
    whitened.iter_mut().for_each(|g| *g = if g.is_nan() { 0.0 } else { valid.next().unwrap_or(0.0) });
    add("reinforce++", whitened);
    if rollout.greedy_rewards.len() > rollout.segments.iter().map(|segment| segment.group.0 as usize).max().unwrap_or(0) {
        add("remax", groups::by_decision(rollout, &against_greedy(rollout, &returns, gamma)));
    }
    if groups::by_id(&rollout.segments).iter().any(|group| group.len() > 1) {
        add("rloo", groups::by_decision(rollout, &against_others(rollout, &returns)));
        let grouped = |supervision, std| GroupAdvantages::new(rollout, &rollout.rewards, supervision, std).advantages;
        for (name, std) in [("grpo", GroupStd::Population), ("grpo, batch std", GroupStd::Batch), ("dr. grpo", GroupStd::None)] {
            add(name, grouped(Supervision::Outcome, std));
        }
        if rollout.step_ends.iter().any(|ends| *ends) {
            add("grpo, process", grouped(Supervision::Process, GroupStd::Population));
        }
    }
    if let Some(values) = values {
        let (mut advantages, mut targets) = (Vec::new(), Vec::new());
        Gae { gamma, lambda, truncated: Truncated::Bootstraps }.of_rollout(rollout, values, &mut advantages, &mut targets);
        add("gae", advantages);
    }
    estimates
}

/// Norms and angles of the estimators' gradients.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Euclidean norm of each gradient.
    pub norms: Vec<f64>,
    /// Cosine of the angle between each pair of gradients; NaN if one of the two gradients is 0.
    pub cosines: Vec<Vec<f64>>,
}

/// Compares the policy gradients of the estimates. The loss is minus the sum of weight x A log pi over the scored decisions. The policy's
/// parameters do not change.
pub fn compare(
    policy: &mut dyn Policy,
    rollout: &Rollout,
    estimates: &[Estimate],
    how: Aggregation,
    context: UpdateContext,
) -> Result<Comparison, AgentError> {
    let batch = Minibatches::scored(rollout, how, 1).all();
    let zeros = vec![0.0; rollout.len()];
    let mut gradients: Vec<Vec<f32>> = Vec::new();
    for Estimate { advantages, .. } in estimates {
        context.check_advantages(rollout, advantages)?;
        let kl_penalty = KlPenalty::default();
        let objective = ReinforceObjective {
            clip: None,
            advantages,
            returns: &zeros,
            kl_penalty: &kl_penalty,
            entropy_coefficient: 0.0,
            value_coefficient: None,
        };
        context.gradient(policy, (&rollout.store, Batch::new(&batch.indices, &batch.weights)), &objective, 0)?;
        gradients.push(policy.last_gradient().to_vec());
    }
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let norms: Vec<f64> = gradients.iter().map(|g| dot(g, g).sqrt()).collect();
    let cosine = |(a, of_a): (&Vec<f32>, &f64), (b, of_b): (&Vec<f32>, &f64)| {
        if *of_a > 0.0 && *of_b > 0.0 { dot(a, b) / (of_a * of_b) } else { f64::NAN }
    };
    let all = || gradients.iter().zip(&norms);
    let cosines = all().map(|a| all().map(|b| cosine(a, b)).collect()).collect();
    Ok(Comparison { norms, cosines })
}
