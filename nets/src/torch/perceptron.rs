//! What the networks of multilayer perceptrons share: their layers, their parameters on a device, and the observations of a store there.

use std::sync::Arc;

use tch::{TchError, Tensor};

use super::fault::{Fault, one_line};
use super::library::open;
use super::parameters::{Parameters, Views, to_device};
use super::raw::Shared;
use crate::{Activation, Device, NetworkConfig, NetworkError, Observations, Precision, Store, TorchConfig};
use gradus_base::tensors::Tensors;

/// Added to the variance of a row of a layer normalisation, as in the engine `cpu`.
const EPSILON: f64 = 1e-5;

/// The observations of a store on a device.
pub(super) struct Rows(pub Shared);

/// Applies the hidden layers of a chain and, if `has_output`, its output layer.
pub(super) fn chain(
    config: &NetworkConfig,
    (views, name): (&Views, &str),
    mut x: Tensor,
    hidden: usize,
    has_output: bool,
) -> Result<Tensor, TchError> {
    // numbered as in PyTorch's `Sequential`
    let stride = if config.layer_norm { 3 } else { 2 };
    let of = |number: usize, what: &str| views.get(&format!("{name}.{number}.{what}"));
    for i in 0..hidden + usize::from(has_output) {
        x = x.f_linear(of(stride * i, "weight")?, Some(of(stride * i, "bias")?))?;
        if i == hidden {
            break;
        }
        if config.layer_norm {
            let (gain, shift) = (of(stride * i + 1, "weight")?, of(stride * i + 1, "bias")?);
            x = x.f_layer_norm(gain.size(), Some(gain), Some(shift), EPSILON, false)?;
        }
        x = match config.activation {
            Activation::Tanh => x.f_tanh()?,
            Activation::Relu => x.f_relu()?,
        };
    }
    Ok(x)
}

/// Copies the parameters of a network of the engine `cpu` to `device`.
pub(super) fn parameters(values: &Tensors, torch: &TorchConfig, device: Device) -> Result<(Parameters, Fault), NetworkError> {
    if torch.precision == Precision::Bf16 {
        return Err(NetworkError::Device("torch.precision: expected f32 or tf32 for a multilayer perceptron, got bf16".into()));
    }
    let (on, fault) = (open(device, torch.precision).map_err(NetworkError::Device)?, Fault::none(device));
    let parameters = Parameters::new(values, on, fault.clone())
        .map_err(|error| NetworkError::Device(format!("device {device}: {}", one_line(&error))))?;
    Ok((parameters, fault))
}

/// Copies the observations of a store to a device: rows of numbers, or of bytes.
pub(super) fn observations(store: &Store, device: tch::Device) -> Result<Shared, TchError> {
    let numbers = match store.observations() {
        Observations::Rows { rows, .. } => to_device(rows, device)?,
        Observations::Bytes { rows, .. } => to_device(rows, device)?,
        _ => panic!("observations: expected rows of numbers, got rows on another device"),
    };
    Ok(numbers.f_view([-1, store.width() as i64])?.into())
}

/// Returns the observations of a store, rows of `width` numbers, on the device of these parameters; they are copied once.
pub(super) fn rows(store: &Store, width: usize, parameters: &Parameters) -> Result<Arc<Rows>, TchError> {
    let device = parameters.device();
    assert_eq!(store.width(), width, "observations: expected rows of {width}, got {}", store.width());
    store.copy(|rows: &Rows| rows.0.device() == device, || Ok::<Rows, TchError>(Rows(observations(store, device)?)))
}
