//! Supervised fine-tuning, or behaviour cloning: makes the decisions of a store more probable, whichever policy took them.
//!
//! > L = - mean_t log pi(a_t|s_t)
//!
//! It prepares a policy for reinforcement learning, which needs some successes to reinforce. The decisions are the tokens of completions.
//! Prompts belong to the states and have no loss.

use gradus_base::range::at_least;
use gradus_base::{Settings, settings};
use gradus_nets::{Evaluation, Objective, Outputs, Policy, UpdatedGroups};
use serde::{Deserialize, Serialize};

use crate::agent::{Report, UpdateContext};
use crate::error::{AgentError, ConfigError};
use crate::parts::aggregation::Aggregation;
use crate::parts::learner::Learner;
use crate::parts::minibatches::Minibatches;
use crate::parts::optimiser::OptimiserConfig;
use crate::rollout::{End, GroupId, Rollout, Segment};

settings! {
    /// The settings of supervised fine-tuning.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct SftConfig {
        /// Passes over the decisions.
        pub epochs: usize = 1 => at_least(1),
        /// Decisions in a minibatch; texts are not split.
        pub minibatch_size: usize = 128 => at_least(1),
        /// Aggregation of decision losses: token-mean, sequence-mean or sequence-sum.
        pub aggregation: Aggregation = Aggregation::TokenMean,
    }
}

impl SftConfig {
    /// Checks that every setting is in range.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges("sft")?;
        let has_length = self.aggregation != Aggregation::ConstantLength;
        ConfigError::unless(has_length, "sft.aggregation", "token-mean, sequence-mean or sequence-sum", "constant-length")
    }
}

/// The loss of one decision, -log pi(a|s).
struct Cloning;

impl Cloning {
    const METRICS: &'static [&'static str] = &["sft/loss", "sft/entropy", "sft/likely"];
}

impl Objective for Cloning {
    fn decision(&self, _: usize, pi: Outputs) -> Evaluation {
        let loss = -pi.log_prob;
        // with a probability above 1/2, no other action is more probable
        let is_likeliest = f32::from(u8::from(pi.log_prob.value() > -std::f32::consts::LN_2));
        loss.with_diagnostics([loss.value(), pi.entropy.value(), is_likeliest])
    }

    fn updates(&self) -> UpdatedGroups {
        UpdatedGroups::Actor
    }
}

/// Creates a rollout from demonstrations: each range of decisions is one episode, and all rewards are 0.
pub fn demonstrations(store: gradus_nets::Store, ranges: Vec<std::ops::Range<usize>>) -> Rollout {
    let n = store.actions.len();
    let segments = ranges.into_iter().map(|range| Segment { range, end: End::Terminated, group: GroupId(0) }).collect();
    Rollout::new(store, vec![0.0; n], vec![0.0; n], segments)
}

/// Fine-tunes `policy` on demonstrations, with one optimiser step per minibatch.
///
/// The report holds means over all minibatches (the loss, the entropy, the fraction of decisions with a probability above one half, and the
/// gradient norm) and the learning rate.
pub fn fine_tune(
    policy: &mut dyn Policy,
    demonstrations: &Rollout,
    config: &SftConfig,
    optimiser: &OptimiserConfig,
    context: UpdateContext,
) -> Result<Report, AgentError> {
    config.check()?;
    optimiser.check()?;
    let mut learner = Learner::new(policy, demonstrations, optimiser, context)
        .with_minibatches(Minibatches::new(demonstrations, &[], config.aggregation, 0))
        .with_metrics(Cloning::METRICS);
    for _ in 0..config.epochs {
        for minibatch in learner.minibatches_of_size(config.minibatch_size) {
            learner.gradient(&minibatch, &Cloning)?;
            learner.step();
        }
    }
    learner.check_parameters()?;
    let mut report = learner.metrics();
    report.extend([("sft/grad_norm", learner.grad_norm()), ("sft/learning_rate", learner.learning_rate())]);
    Ok(report)
}
