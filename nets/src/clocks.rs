//! The optimiser's clocks in a checkpoint. All engines store them in the same form.
//!
//! Each parameter group has a clock t, the number of optimiser steps that updated the group. Adam's bias correction depends on it. The
//! clock is stored as the bits of beta1^t and beta2^t in the tensor `powers.<group>`.

use crate::Group;
use gradus_base::tensors::{Tensor, Tensors, TensorsError, get_u64};

/// The clock t = 0: beta1^0 and beta2^0.
pub(crate) const START: [f64; 2] = [1.0; 2];

/// The tensor of older checkpoints, in which all groups share one clock.
const SHARED: &str = "powers";

fn name(group: &Group) -> String {
    format!("powers.{}", group.name)
}

/// Returns the names of these groups' clock tensors.
#[cfg(feature = "tch")]
pub(crate) fn names(groups: &[Group]) -> Vec<String> {
    groups.iter().map(name).collect()
}

/// Adds the clocks of these groups to the tensors.
pub(crate) fn save(groups: &[Group], clocks: &[[f64; 2]], tensors: &mut Tensors) {
    let clocks = groups.iter().zip(clocks);
    tensors.extend(clocks.map(|(group, clock)| (name(group), Tensor::u64(clock.map(f64::to_bits).to_vec()))));
}

/// Converts a checkpoint with one clock for all groups to one clock per group; leaves other checkpoints unchanged. The conversion is exact:
/// the shared clock counted the steps of every group that had a gradient. It also advanced for groups without a gradient, but the moments
/// of those groups are 0.
pub(crate) fn converted(groups: &[Group], tensors: &Tensors) -> Tensors {
    let mut tensors = tensors.clone();
    if let Some(shared) = tensors.remove(SHARED) {
        tensors.extend(groups.iter().map(|group| (name(group), shared.clone())));
    }
    tensors
}

/// Reads the clocks of these groups.
pub(crate) fn load(groups: &[Group], tensors: &Tensors) -> Result<Vec<[f64; 2]>, TensorsError> {
    let clock = |group: &Group| {
        let name = name(group);
        let powers = match get_u64(tensors, &name)? {
            [first, second] => [f64::from_bits(*first), f64::from_bits(*second)],
            other => return Err(TensorsError::Shape { name, expected: "U64 [2]".into(), got: format!("U64 [{}]", other.len()) }),
        };
        in_range(&name, powers.into_iter(), 1.0)?;
        Ok(powers)
    };
    groups.iter().map(clock).collect()
}

/// Checks that all of these numbers are from 0 to `high`, inclusive.
pub(crate) fn in_range(name: &str, numbers: impl Iterator<Item = f64>, high: f64) -> Result<(), TensorsError> {
    match numbers.enumerate().find(|(_, x)| !(0.0..=high).contains(x)) {
        Some((position, got)) => Err(TensorsError::NotFinite { name: name.into(), got: got.to_string(), position }),
        None => Ok(()),
    }
}
