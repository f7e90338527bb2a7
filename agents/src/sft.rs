//! Supervised fine-tuning, which is behaviour cloning: make the decisions of a store more probable, whoever took them.
//!
//! > L = - mean_t log pi(a_t|s_t)
//!
//! It warms a policy up before reinforcement learning has anything to reinforce. The store's segments say which decisions belong together:
//! completions, whose prompts are states and get no gradient.

use gradus_envs::random::{Purpose, Stream};
use gradus_nets::{Batch, DIAGNOSTICS, LossGrad, Moves, Objective, Policy, PolicyOutput, Sums};
use serde::{Deserialize, Serialize};

use crate::{AgentError, Aggregation, ConfigError, End, GroupId, Minibatches, OptimiserConfig, Report, Rollout, Segment, UpdateContext};

/// The settings of supervised fine-tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftConfig {
    /// Passes over the decisions.
    pub epochs: usize,
    /// Decisions in a minibatch; texts are not cut.
    pub minibatch_size: usize,
    /// How losses of decisions become one: token-mean, sequence-mean or sequence-sum.
    pub aggregation: Aggregation,
}

impl Default for SftConfig {
    fn default() -> Self {
        Self { epochs: 1, minibatch_size: 128, aggregation: Aggregation::TokenMean }
    }
}

impl SftConfig {
    /// Whether every setting is in range.
    pub fn check(&self) -> Result<(), ConfigError> {
        ConfigError::unless_at_least_one("sft.epochs", self.epochs)?;
        ConfigError::unless_at_least_one("sft.minibatch_size", self.minibatch_size)?;
        let has_length = self.aggregation != Aggregation::ConstantLength;
        ConfigError::unless(has_length, "sft.aggregation", "token-mean, sequence-mean or sequence-sum", "constant-length")
    }
}

/// - log pi(a|s).
struct Cloning;

const LOSS: usize = 0;
const ENTROPY: usize = 1;
const IS_LIKELIEST: usize = 2;

impl Objective for Cloning {
    fn decision(&self, _: usize, now: PolicyOutput) -> LossGrad {
        let mut diagnostics = [0.0; DIAGNOSTICS];
        diagnostics[LOSS] = -now.log_prob;
        diagnostics[ENTROPY] = now.entropy;
        // more than ln 1/2: no other action can be more probable
        diagnostics[IS_LIKELIEST] = f32::from(u8::from(now.log_prob > -std::f32::consts::LN_2));
        LossGrad { loss: -now.log_prob, derivative: PolicyOutput { log_prob: -1.0, ..PolicyOutput::default() }, diagnostics }
    }

    fn moves(&self) -> Moves {
        Moves::Actor
    }
}

/// Decisions to be cloned as a rollout: each range of decisions is one episode, nobody was paid anything.
pub fn demonstrations(store: gradus_nets::Store, ranges: Vec<std::ops::Range<usize>>) -> Rollout {
    let n = store.actions.len();
    let segments = ranges.into_iter().map(|range| Segment { range, end: End::Terminated, group: GroupId(0) }).collect();
    Rollout::new(store, vec![0.0; n], vec![0.0; n], segments)
}

/// Fine-tunes `policy` on demonstrations: all passes that `config` asks for, each minibatch a step.
///
/// The report's figures are means over all minibatches: the loss, the entropy, and the share of decisions with a probability above a half.
pub fn fine_tune(
    policy: &mut dyn Policy,
    demonstrations: &Rollout,
    config: &SftConfig,
    optimiser: &OptimiserConfig,
    context: UpdateContext,
) -> Result<Report, AgentError> {
    config.check()?;
    optimiser.check()?;
    let step = optimiser.step(context.progress);
    let mut stream = Stream::new(context.seed, Purpose::Shuffle, context.iteration);
    let mut deck = Minibatches::new(demonstrations, &[], config.aggregation, 0);
    let (mut means, mut grad_norm, mut minibatches) = (Sums::default(), 0.0, 0.0_f64);
    for epoch in 0..config.epochs {
        deck.shuffle(&mut stream);
        for minibatch in deck.of_size(config.minibatch_size) {
            let batch = Batch::new(&minibatch.indices, &minibatch.weights);
            let (sums, norm) = context.gradient(policy, (&demonstrations.store, batch), &Cloning, epoch)?;
            policy.apply(&step);
            means.add(&minibatch.averaged(sums));
            grad_norm += norm;
            minibatches += 1.0;
        }
    }
    context.check_parameters(policy, config.epochs - 1)?;
    let minibatches = minibatches.max(1.0);
    Ok(vec![
        ("sft/loss", means.diagnostics[LOSS] / minibatches),
        ("sft/entropy", means.diagnostics[ENTROPY] / minibatches),
        ("sft/likely", means.diagnostics[IS_LIKELIEST] / minibatches),
        ("sft/grad_norm", grad_norm / minibatches),
        ("sft/learning_rate", f64::from(step.learning_rate)),
    ])
}
