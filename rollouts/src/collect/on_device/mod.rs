//! Environments that stay on the policy's device, and completions that are generated there. The engine `torch` has such devices.

#[cfg(feature = "tch")]
mod rows;
#[cfg(feature = "tch")]
mod texts;
#[cfg(feature = "tch")]
mod writer;

use gradus_agents::{Collection, Rollout};
use gradus_envs::{EnvError, EnvSpec};
use gradus_nets::Behaviour;

use super::shard::Shard;
use super::{Episode, NotThere};
use crate::WrapperConfig;
use crate::normaliser::Normaliser;

/// The environments of a run on a device.
pub(super) trait OnDevice: Send {
    /// Returns the names of the scores of episodes.
    fn score_names(&self) -> &[String] {
        &[]
    }

    /// Collects the next rollout. Also returns the episodes that ended in it, in the order in which they ended. `limits` are the number
    /// of steps before the rollout, and how many completions are generated at once, at most (0: all). If the device fails, the policy reports
    /// it, too.
    fn collect(
        &mut self,
        policy: &dyn Behaviour,
        normaliser: &mut Normaliser,
        limits: (u64, usize),
    ) -> Result<(Rollout, Vec<Episode>), EnvError>;

    /// Returns the words of the environments and the positions of their action streams, in the format of environments on the host.
    fn save(&self) -> (Vec<u64>, Vec<u64>);

    /// Loads the words that [`save`](OnDevice::save) or environments on the host saved, and returns the remaining words. The error message
    /// is one line.
    fn load<'a>(&mut self, words: &'a [u64], positions: &[u64]) -> Result<&'a [u64], String>;
}

/// Generates the tokens of environments on the host.
pub(super) trait Writer: Send {
    /// Generates the scripts of all environments for the next rollout, `max_concurrent` at once (0: all). The error message is one line,
    /// and the policy reports it, too.
    fn write(&self, policy: &dyn Behaviour, shards: &mut [Shard], max_concurrent: usize) -> Result<(), String>;
}

/// Creates the environments of a run on the policy's device: environments that are stepped, or texts whose completions are generated.
#[cfg(feature = "tch")]
pub(super) fn environments(
    world: &EnvSpec,
    (envs, seed): (usize, u64),
    (collection, wrappers): (Collection, &WrapperConfig),
    policy: &dyn Behaviour,
) -> Result<Box<dyn OnDevice>, NotThere> {
    Ok(match &world.text {
        Some(text) => Box::new(texts::Texts::new((world, text), (envs, seed), collection, policy)?),
        None => Box::new(rows::Rows::new(world, (envs, seed), (collection, wrappers), policy)?),
    })
}

/// Creates the writer of the texts of environments on the host.
#[cfg(feature = "tch")]
pub(super) fn writer(world: &EnvSpec, collection: Collection, policy: &dyn Behaviour) -> Result<Box<dyn Writer>, NotThere> {
    Ok(Box::new(writer::OnLibtorch::new(world, collection, policy)?))
}

/// What a build without the feature `tch` answers.
#[cfg(not(feature = "tch"))]
const ABSENT: NotThere = NotThere::Unsuited("this gradus was built without the feature `tch`");

#[cfg(not(feature = "tch"))]
pub(super) fn environments(
    _: &EnvSpec,
    _: (usize, u64),
    _: (Collection, &WrapperConfig),
    _: &dyn Behaviour,
) -> Result<Box<dyn OnDevice>, NotThere> {
    Err(ABSENT)
}

#[cfg(not(feature = "tch"))]
pub(super) fn writer(_: &EnvSpec, _: Collection, _: &dyn Behaviour) -> Result<Box<dyn Writer>, NotThere> {
    Err(ABSENT)
}

/// Returns `policy` if it has type `P`.
#[cfg(feature = "tch")]
fn as_type<P: 'static>(policy: &dyn Behaviour) -> Option<&P> {
    (policy as &dyn std::any::Any).downcast_ref()
}
