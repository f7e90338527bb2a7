//! Every estimator's view of the same rollout: the advantages side by side, and the gradients that they make.
//!
//! A rollout of groups of whole episodes is what all of them can read; what one needs and the rollout has not (values, greedy returns,
//! steps) leaves that one out. The ratio is 1 and nothing is clipped, as in the first step after the rollout was collected: what is left
//! of PPO, GRPO and REINFORCE is their advantages.

use gradus_nets::{Batch, Policy};

use crate::groups::{self, GroupAdvantages, GroupStd, Supervision, against_greedy, against_others};
use crate::reference::KlPenalty;
use crate::reinforce::ReinforceObjective;
use crate::returns::{Truncated, discounted, gae_of_rollout, whiten};
use crate::{AgentError, Aggregation, Minibatches, Rollout, UpdateContext};

/// What one estimator says.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// What it is called.
    pub name: &'static str,
    /// A, by decision.
    pub advantages: Vec<f32>,
}

/// The advantages of every estimator that the rollout has enough for. `values`: V of all rows of its store, where there is a critic.
pub fn side_by_side(rollout: &Rollout, values: Option<&[f32]>, gamma: f32, lambda: f32) -> Vec<Estimate> {
    let mut estimates = Vec::new();
    let mut add = |name, advantages| estimates.push(Estimate { name, advantages });
    let mut returns = vec![0.0; rollout.len()];
    for segment in &rollout.segments {
        let range = segment.range.clone();
        discounted(&rollout.rewards[range.clone()], 0.0, gamma, &mut returns[range]);
    }
    add("reinforce", returns.clone());
    // over what could be scored; the rest has 0
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
        gae_of_rollout(rollout, values, (gamma, lambda, Truncated::Bootstraps), &mut advantages, &mut targets);
        add("gae", advantages);
    }
    estimates
}

/// The gradients of some estimators, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The Euclidean norm of each one's gradient.
    pub norms: Vec<f64>,
    /// The cosine of the angle between each two; NaN where one of them is 0.
    pub cosines: Vec<Vec<f64>>,
}

/// The policy gradient that each estimate makes, - sum of weight x A log pi, and how they lie to each other. The policy stays as it is.
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
        let objective =
            ReinforceObjective { advantages, returns: &zeros, kl_penalty: &kl_penalty, entropy_coefficient: 0.0, value_coefficient: None };
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
