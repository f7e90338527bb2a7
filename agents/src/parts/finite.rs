//! The checks that end a training with a message when a number is not finite.

use gradus_nets::{Batch, Network, Objective, Policy, Store, Sums};

use crate::agent::UpdateContext;
use crate::error::AgentError;
use crate::rollout::Rollout;

impl UpdateContext {
    /// Checks that all advantages are finite, except those in texts that could not be scored.
    pub(crate) fn check_advantages(&self, rollout: &Rollout, advantages: &[f32]) -> Result<(), AgentError> {
        // no early exit within a chunk, so that the inner loop vectorises
        if advantages.chunks(256).all(|some| some.iter().fold(true, |all, advantage| all & advantage.is_finite())) {
            return Ok(());
        }
        match rollout.scored_decisions().find(|decision| !advantages[*decision].is_finite()) {
            Some(decision) => {
                let got = f64::from(advantages[decision]);
                Err(AgentError::Advantage { got, decision, iteration: self.iteration, seed: self.seed })
            }
            None => Ok(()),
        }
    }

    /// Checks that all parameters are finite.
    pub(crate) fn check_parameters<N: Network + ?Sized>(&self, network: &N, epoch: usize) -> Result<(), AgentError> {
        if network.is_finite() {
            return Ok(());
        }
        let parameter = network.parameters().iter().find(|parameter| !parameter.is_finite());
        Err(self.not_finite("parameter", parameter.map_or(f64::NAN, |parameter| f64::from(*parameter)), epoch))
    }

    /// Checks that the loss and the norm of a gradient are finite. `epoch` is the number of the pass in the update.
    pub(crate) fn check_gradient(&self, (loss, norm): (f64, f64), epoch: usize) -> Result<(), AgentError> {
        match [("loss", loss), ("gradient norm", norm)].into_iter().find(|(_, got)| !got.is_finite()) {
            Some((what, got)) => Err(self.not_finite(what, got, epoch)),
            None => Ok(()),
        }
    }

    /// Computes the gradient of `objective` over a batch. Returns the sums and the gradient's norm, which are finite.
    pub(crate) fn gradient(
        &self,
        policy: &mut dyn Policy,
        (store, batch): (&Store, Batch<'_>),
        objective: &dyn Objective,
        epoch: usize,
    ) -> Result<(Sums, f64), AgentError> {
        let sums = policy.gradient(store, batch, objective);
        let norm = f64::from(policy.gradient_norm());
        self.check_gradient((sums.loss, norm), epoch)?;
        Ok((sums, norm))
    }

    pub(crate) fn not_finite(&self, what: &'static str, got: f64, epoch: usize) -> AgentError {
        AgentError::NotFinite { what, got, iteration: self.iteration, epoch, seed: self.seed }
    }
}
