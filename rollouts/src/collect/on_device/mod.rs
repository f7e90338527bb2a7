//! Environments that stay on the policy's device.

mod rows;
mod texts;

use std::any::Any;

use gradus_agents::{Collection, Rollout};
use gradus_envs::{EnvError, EnvSpec};
use gradus_nets::{Behaviour, torch};

use super::{Episode, NotThere};
use crate::WrapperConfig;
use crate::normaliser::Normaliser;
use rows::Rows;
use texts::Texts;

/// The environments of a run on a device.
pub(super) enum OnDevice {
    /// Environments that are stepped.
    Rows(Rows),
    /// Text environments, whose completions are generated.
    Texts(Box<Texts>),
}

impl OnDevice {
    pub fn new(
        world: &EnvSpec,
        (envs, seed): (usize, u64),
        (collection, wrappers): (Collection, &WrapperConfig),
        policy: &dyn Behaviour,
    ) -> Result<Self, NotThere> {
        Ok(match &world.text {
            Some(text) => Self::Texts(Box::new(Texts::new((world, text), (envs, seed), collection, policy)?)),
            None => Self::Rows(Rows::new(world, (envs, seed), (collection, wrappers), policy)?),
        })
    }

    /// Returns the names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        match self {
            Self::Rows(_) => &[],
            Self::Texts(texts) => texts.score_names(),
        }
    }

    /// Collects the next rollout. Also returns the episodes that ended in it, in the order in which they ended. `before` is the number of
    /// steps before the rollout. At most `max_concurrent` completions are generated at once (0: all). If the device fails, the policy
    /// reports it, too.
    pub fn collect(
        &mut self,
        policy: &dyn Behaviour,
        normaliser: &mut Normaliser,
        (before, max_concurrent): (u64, usize),
    ) -> Result<(Rollout, Vec<Episode>), EnvError> {
        match self {
            Self::Rows(rows) => rows.collect(policy, normaliser, before),
            Self::Texts(texts) => texts.collect(policy, normaliser, (before, max_concurrent)),
        }
    }

    /// Returns the words of the environments and the positions of their action streams, in the format of environments on the host.
    pub fn save(&self) -> (Vec<u64>, Vec<u64>) {
        match self {
            Self::Rows(rows) => rows.save(),
            Self::Texts(texts) => texts.save(),
        }
    }

    /// Loads the words that [`save`](OnDevice::save) or environments on the host saved, and returns the remaining words. The error message
    /// is one line.
    pub fn load<'a>(&mut self, words: &'a [u64], positions: &[u64]) -> Result<&'a [u64], String> {
        match self {
            Self::Rows(rows) => rows.load(words, positions),
            Self::Texts(texts) => texts.load(words, positions),
        }
    }
}

/// Returns `policy` if it is a perceptron on libtorch.
fn perceptron(policy: &dyn Behaviour) -> Option<&torch::ActorCritic> {
    (policy as &dyn Any).downcast_ref()
}

/// Returns `policy` if it is a transformer on libtorch.
pub(super) fn transformer(policy: &dyn Behaviour) -> Option<&torch::Transformer> {
    (policy as &dyn Any).downcast_ref()
}
