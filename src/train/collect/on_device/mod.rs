//! Environments that stay on the policy's device.

mod rows;
mod texts;

use std::any::Any;

use gradus_agents::{Collection, Rollout};
use gradus_envs::{EnvError, World};
use gradus_nets::{Behaviour, torch};

use super::{Episode, NotThere};
use crate::act::normaliser::Normaliser;
use crate::config::WrapperConfig;
use rows::Rows;
use texts::Texts;

/// The environments of a run on a device.
pub(super) enum OnDevice {
    /// Those that are stepped.
    Rows(Rows),
    /// Those that are written.
    Texts(Box<Texts>),
}

impl OnDevice {
    pub fn new(
        world: &World,
        (envs, seed): (usize, u64),
        (collection, wrappers): (Collection, &WrapperConfig),
        policy: &dyn Behaviour,
    ) -> Result<Self, NotThere> {
        Ok(match &world.text {
            Some(text) => Self::Texts(Box::new(Texts::new((world, text), (envs, seed), collection, policy)?)),
            None => Self::Rows(Rows::new(world, (envs, seed), (collection, wrappers), policy)?),
        })
    }

    /// The names of the scores of episodes.
    pub fn score_names(&self) -> &[String] {
        match self {
            Self::Rows(_) => &[],
            Self::Texts(texts) => texts.score_names(),
        }
    }

    /// The next rollout, and the episodes that ended in it, in the order in which they did; `before` steps were made before it, and
    /// `max_concurrent` texts are written at once (0: all). Where the device fails, the policy says so, too.
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

    /// The environments and the positions of their streams of actions, as the host's would be saved.
    pub fn save(&self) -> (Vec<u64>, Vec<u64>) {
        match self {
            Self::Rows(rows) => rows.save(),
            Self::Texts(texts) => texts.save(),
        }
    }

    /// Goes on from what [`save`](Resident::save) or the host's environments saved; returns the words that are left. An error is one line.
    pub fn load<'a>(&mut self, words: &'a [u64], positions: &[u64]) -> Result<&'a [u64], String> {
        match self {
            Self::Rows(rows) => rows.load(words, positions),
            Self::Texts(texts) => texts.load(words, positions),
        }
    }
}

/// `policy`, where it is a perceptron of libtorch.
fn perceptron(policy: &dyn Behaviour) -> Option<&torch::ActorCritic> {
    (policy as &dyn Any).downcast_ref()
}

/// `policy`, where it is a transformer of libtorch.
pub(super) fn transformer(policy: &dyn Behaviour) -> Option<&torch::Transformer> {
    (policy as &dyn Any).downcast_ref()
}
