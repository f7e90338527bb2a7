//! Placeholders for the types that run environments and generate texts on a device, in a build without the feature `tch`.

use gradus_agents::{Collection, Rollout};
use gradus_envs::{EnvError, EnvSpec};
use gradus_nets::Behaviour;

use super::shard::Shard;
use super::{Episode, NotThere};
use crate::WrapperConfig;
use crate::normaliser::Normaliser;

/// Environments on a device: a type without values.
pub(super) enum OnDevice {}

impl OnDevice {
    pub fn new(_: &EnvSpec, _: (usize, u64), _: (Collection, &WrapperConfig), _: &dyn Behaviour) -> Result<Self, NotThere> {
        Err(NotThere::Unsuited("this gradus was built without the feature `tch`"))
    }

    pub fn score_names(&self) -> &[String] {
        match *self {}
    }

    pub fn collect(&mut self, _: &dyn Behaviour, _: &mut Normaliser, _: (u64, usize)) -> Result<(Rollout, Vec<Episode>), EnvError> {
        match *self {}
    }

    pub fn save(&self) -> (Vec<u64>, Vec<u64>) {
        match *self {}
    }

    pub fn load<'a>(&mut self, _: &'a [u64], _: &[u64]) -> Result<&'a [u64], String> {
        match *self {}
    }
}

/// A writer of texts on a device: a type without values.
pub(super) enum Writer {}

impl Writer {
    pub fn new(_: &EnvSpec, _: Collection, _: &dyn Behaviour) -> Result<Self, NotThere> {
        Err(NotThere::Unsuited("this gradus was built without the feature `tch`"))
    }

    pub fn write(&self, _: &dyn Behaviour, _: &mut [Shard], _: usize) -> Result<(), String> {
        match *self {}
    }
}
