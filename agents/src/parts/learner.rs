//! The parts of an update that most agents share: minibatches, checked gradients, optimiser steps and the report.
//!
//! An agent defines the loss as an [`Objective`] over decisions. It also decides when to take an optimiser step:
//!
//! ```text
//! learner = Learner::new(policy, rollout, optimiser, context)
//! for each epoch:
//!     for each minibatch of learner.minibatches(n):      the decisions are in a new random order
//!         learner.gradient(minibatch, objective)?         returns an error unless the loss and the gradient are finite
//!         learner.step()
//! learner.check_parameters()?                             returns an error unless the parameters are finite
//! learner.report(..)                                      returns means over the minibatches
//! ```

use gradus_base::random::{Purpose, Stream};
use gradus_nets::{Batch, Objective, OptimiserStep, Policy, Sums};

use crate::agent::{Report, UpdateContext};
use crate::error::AgentError;
use crate::parts::aggregation::Aggregation;
use crate::parts::minibatches::{Minibatch, Minibatches};
use crate::parts::mismatch::{AgainstSampler, Mismatch};
use crate::parts::optimiser::OptimiserConfig;
use crate::parts::reference::{KL_REFERENCE, KlPenalty};
use crate::rollout::Rollout;

/// One update of a policy.
pub struct Learner<'a> {
    policy: &'a mut dyn Policy,
    rollout: &'a Rollout,
    step: OptimiserStep,
    context: UpdateContext,
    minibatches: Minibatches,
    shuffling: Stream,
    /// Number of passes begun.
    passes: usize,
    kl_penalty: Option<&'a KlPenalty>,
    old_distributions: Option<&'a [f32]>,
    metrics: &'static [&'static str],
    last: Sums,
    totals: Sums,
    norms: f64,
    gradients: f64,
    mismatch: Mismatch,
}

impl<'a> Learner<'a> {
    /// Starts an update of `policy` with a rollout that the policy collected. The learning rate is that of `optimiser` at the training
    /// progress in `context`.
    ///
    /// All decisions have the same weight. Texts that could not be scored are left out.
    pub fn new(policy: &'a mut dyn Policy, rollout: &'a Rollout, optimiser: &OptimiserConfig, context: UpdateContext) -> Self {
        Self {
            policy,
            rollout,
            step: optimiser.step(context.progress),
            context,
            minibatches: Minibatches::scored(rollout, Aggregation::TokenMean, 0),
            shuffling: Stream::new(context.seed, Purpose::Shuffle, context.iteration),
            passes: 0,
            kl_penalty: None,
            old_distributions: None,
            metrics: &[],
            last: Sums::default(),
            totals: Sums::default(),
            norms: 0.0,
            gradients: 0.0,
            mismatch: Mismatch::default(),
        }
    }

    /// Replaces the minibatches, which hold the decisions and their weights.
    pub fn with_minibatches(self, minibatches: Minibatches) -> Self {
        Self { minibatches, ..self }
    }

    /// Sets the names of the objective's diagnostics, in order.
    pub fn with_metrics(self, metrics: &'static [&'static str]) -> Self {
        Self { metrics, ..self }
    }

    /// Sets the KL penalty. Its `stop_kl` may stop the update, and its metrics become part of the report. On texts, the report then also
    /// compares the policy's log-probabilities with those that were recorded when the tokens were sampled.
    pub fn with_kl_penalty(self, kl_penalty: &'a KlPenalty) -> Self {
        Self { kl_penalty: Some(kl_penalty), ..self }
    }

    /// Adds the action distributions of pi_old, for objectives that contain the divergence from pi_old.
    pub fn with_old_distributions(self, old_distributions: Option<&'a [f32]>) -> Self {
        Self { old_distributions, ..self }
    }

    /// Returns the policy.
    pub fn policy(&mut self) -> &mut dyn Policy {
        self.policy
    }

    /// Returns the number of decisions.
    pub fn decisions(&self) -> usize {
        self.minibatches.decisions()
    }

    /// Returns all decisions as one minibatch.
    pub fn all(&self) -> Minibatch {
        self.minibatches.all()
    }

    /// Begins a pass: shuffles the decisions and returns at most `count` minibatches (see [`Minibatches::parts`]).
    pub fn minibatches(&mut self, count: usize) -> Vec<Minibatch> {
        self.shuffle();
        self.minibatches.parts(count)
    }

    /// Begins a pass: shuffles the decisions and returns minibatches of `decisions` decisions (see [`Minibatches::of_size`]).
    pub fn minibatches_of_size(&mut self, decisions: usize) -> Vec<Minibatch> {
        self.shuffle();
        self.minibatches.of_size(decisions)
    }

    fn shuffle(&mut self) {
        self.minibatches.shuffle(&mut self.shuffling);
        self.passes += 1;
    }

    /// Computes the gradient of a minibatch's loss, for the next [`step`](Learner::step). Returns an error unless the loss and the
    /// gradient's norm are finite.
    pub fn gradient(&mut self, minibatch: &Minibatch, objective: &dyn Objective) -> Result<(), AgentError> {
        let batch = Batch {
            old: self.old_distributions,
            reference: self.kl_penalty.and_then(KlPenalty::distributions),
            ..Batch::new(&minibatch.indices, &minibatch.weights)
        };
        let objective = AgainstSampler::new(objective, self.compares_sampler().then_some(&*self.rollout.log_probs));
        let epoch = self.epoch();
        let (sums, norm) = self.context.gradient(self.policy, (&self.rollout.store, batch), &objective, epoch)?;
        self.last = minibatch.averaged(sums);
        self.mismatch.add(&self.last);
        self.totals.add(&self.last);
        self.norms += norm;
        self.gradients += 1.0;
        Ok(())
    }

    /// Takes an optimiser step with the last gradient.
    pub fn step(&mut self) {
        self.policy.apply(&self.step);
    }

    /// Whether the divergence from the reference in the last minibatch exceeded `stop_kl`. If so, take no further step.
    pub fn exceeds_stop_kl(&self) -> bool {
        self.kl_penalty.is_some_and(|kl_penalty| kl_penalty.stops_at(self.last(KL_REFERENCE)))
    }

    /// Returns the diagnostic called `metric` for the last minibatch.
    pub fn last(&self, metric: &str) -> f64 {
        self.last.diagnostics[self.position(metric)]
    }

    /// Returns the mean of the diagnostic called `metric` over all minibatches so far; NaN without one.
    pub fn mean(&self, metric: &str) -> f64 {
        self.totals.diagnostics[self.position(metric)] / self.gradients
    }

    /// Returns the mean gradient norm over all minibatches so far; NaN without one.
    pub fn grad_norm(&self) -> f64 {
        self.norms / self.gradients
    }

    /// Returns the learning rate of the update.
    pub fn learning_rate(&self) -> f64 {
        f64::from(self.step.learning_rate)
    }

    /// Returns an error unless every parameter is finite. Call it after the last step.
    pub fn check_parameters(&self) -> Result<(), AgentError> {
        self.context.check_parameters(self.policy, self.epoch())
    }

    /// Returns the objective's diagnostics as means over all minibatches, except the divergence from the reference.
    pub fn metrics(&self) -> Report {
        let own = self.metrics.iter().filter(|metric| **metric != KL_REFERENCE);
        own.map(|metric| (*metric, self.mean(metric))).collect()
    }

    /// Returns the update's report; what is a mean over minibatches is NaN if there was none. It has, in this order: the loss and the objective's diagnostics, as means over all minibatches; `of_rollout`;
    /// the gradient norm and the learning rate; `of_update`; on texts, the comparison with the recorded log-probabilities; the metrics of
    /// the KL penalty.
    ///
    /// `of_rollout` and `of_update` are metrics of the agent.
    pub fn report(
        &self,
        of_rollout: impl IntoIterator<Item = (&'static str, f64)>,
        of_update: impl IntoIterator<Item = (&'static str, f64)>,
    ) -> Report {
        let mut report = vec![("train/loss", self.totals.loss / self.gradients)];
        report.extend(self.metrics());
        report.extend(of_rollout);
        report.extend([("train/grad_norm", self.grad_norm()), ("train/learning_rate", self.learning_rate())]);
        report.extend(of_update);
        if self.compares_sampler() {
            report.extend(self.mismatch.report());
        }
        if let Some(kl_penalty) = self.kl_penalty {
            report.extend(kl_penalty.report(self.rollout, self.mean(KL_REFERENCE)));
        }
        report
    }

    fn compares_sampler(&self) -> bool {
        self.kl_penalty.is_some() && self.rollout.is_text()
    }

    /// Number of the current pass, counted from 0.
    fn epoch(&self) -> usize {
        self.passes.saturating_sub(1)
    }

    /// # Panics
    /// If `metric` is not the name of one of the objective's diagnostics.
    fn position(&self, metric: &str) -> usize {
        let position = self.metrics.iter().position(|name| *name == metric);
        position.unwrap_or_else(|| panic!("metric: expected one of {:?}, got {metric}", self.metrics))
    }
}
