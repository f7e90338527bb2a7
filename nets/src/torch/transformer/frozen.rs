//! The parameters of a model beside which adapters are trained.

use gradus_base::tensors::{Tensor as Named, Tensors, TensorsError, get_f32};
use tch::{Device, Kind, TchError, Tensor};

use super::super::parameters::{to_device, to_host};
use super::super::raw::Shared;
use crate::Precision;

/// Parameters that are not trained. Copies of a policy share them.
pub(super) struct Frozen {
    /// By name, in order. The layers' matrices and biases are in the precision in which the layers multiply, the others in f32.
    tensors: Vec<(String, Shared)>,
}

/// Whether this is a matrix or a bias of a layer.
fn is_multiplied(name: &str) -> bool {
    name.contains(".self_attn.") && !name.contains("_norm.") || name.contains(".mlp.")
}

impl Frozen {
    pub fn new(tensors: &Tensors, device: Device, precision: Precision) -> Result<Self, TchError> {
        let up = |(name, tensor): (&String, &Named)| {
            let numbers = get_f32(tensors, name, &tensor.shape).map_err(|error| TchError::FileFormat(error.to_string()))?;
            let kind = if precision == Precision::Bf16 && is_multiplied(name) { Kind::BFloat16 } else { Kind::Float };
            let shape: Vec<i64> = tensor.shape.iter().map(|n| *n as i64).collect();
            Ok((name.clone(), to_device(numbers, device)?.f_view(shape.as_slice())?.f_to_kind(kind)?.into()))
        };
        Ok(Self { tensors: tensors.iter().map(up).collect::<Result<_, TchError>>()? })
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.tensors.iter().map(|(_, tensor)| tensor.numel()).sum()
    }

    /// Returns the parameter `name`, if it exists. A critic with layers of its own has those of the model.
    pub fn find(&self, name: &str) -> Option<&Tensor> {
        let find = |name: &str| self.tensors.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok();
        let at = match name.strip_prefix("critic.") {
            Some(rest) => find(&format!("model.{rest}")),
            None => find(name),
        };
        at.map(|at| &*self.tensors[at].1)
    }

    /// Returns the parameters on the host.
    pub fn save(&self) -> Result<Tensors, TchError> {
        let down = |(name, tensor): &(String, Shared)| {
            let shape: Vec<usize> = tensor.size().iter().map(|n| *n as usize).collect();
            Ok((name.clone(), Named::f32(&shape, to_host(&tensor.f_to_kind(Kind::Float)?)?)))
        };
        self.tensors.iter().map(down).collect()
    }

    /// Checks that tensors are those of the same model.
    pub fn check(&self, tensors: &Tensors) -> Result<(), TensorsError> {
        for (name, own) in &self.tensors {
            let shape: Vec<usize> = own.size().iter().map(|n| *n as usize).collect();
            get_f32(tensors, name, &shape)?;
        }
        let other = tensors.keys().find(|name| self.tensors.binary_search_by(|(known, _)| known.cmp(name)).is_err());
        other.map_or(Ok(()), |name| Err(TensorsError::Unexpected(name.clone())))
    }
}
