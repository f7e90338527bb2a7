//! The convolutional layers through which networks see images.

use tch::{Kind, TchError, Tensor};

use super::parameters::Views;
use crate::network::Input;
use crate::trunk::{Step, Window};
use crate::{Activation, NetworkConfig};

/// Added to the variance of a pixel of a layer normalisation, as in the engine `cpu`.
const EPSILON: f64 = 1e-5;

/// Returns what the hidden layers read: the outputs of the convolutional layers of the part `name`, plane by plane; without such layers the numbers of images divided by
/// the largest, or the observations themselves.
pub(super) fn see(config: &NetworkConfig, input: Input, (views, name): (&Views, &str), observations: &Tensor) -> Result<Tensor, TchError> {
    let Some(image) = input.image else { return Ok(observations.shallow_clone()) };
    let numbers = observations.f_to_kind(Kind::Float)?.f_div_scalar(f64::from(image.largest))?;
    if config.trunk.is_none() {
        return Ok(numbers);
    }
    let [frames, height, width, channels] = [image.frames, image.height, image.width, image.channels].map(|n| n as i64);
    let planes = numbers.f_view([-1, frames, height, width, channels])?.f_permute([0, 1, 4, 2, 3])?;
    let x = planes.f_reshape([-1, frames * channels, height, width])?;
    let mut seen = Seen { config, views, name, x, convolutions: 0 };
    let mut kept = None;
    for step in config.trunk.steps() {
        match step {
            Step::Convolve { window, is_hidden, in_section, .. } => seen.convolve(window, is_hidden, in_section)?,
            Step::Pool(window) => seen.pool(window)?,
            Step::Activate => seen.activate()?,
            Step::Keep => kept = Some(seen.x.shallow_clone()),
            Step::Add => seen.x = kept.take().map_or_else(|| Ok(seen.x.shallow_clone()), |kept| seen.x.f_add(&kept))?,
        }
    }
    seen.x.f_flatten(1, -1)
}

/// The outputs of the layers so far: rows x planes x height x width.
struct Seen<'a> {
    config: &'a NetworkConfig,
    views: &'a Views,
    name: &'a str,
    x: Tensor,
    convolutions: usize,
}

impl Seen<'_> {
    fn activate(&mut self) -> Result<(), TchError> {
        self.x = match self.config.activation {
            Activation::Tanh => self.x.f_tanh()?,
            Activation::Relu => self.x.f_relu()?,
        };
        Ok(())
    }

    fn pool(&mut self, window: Window) -> Result<(), TchError> {
        let [size, stride, padding] = [window.size, window.stride, window.padding].map(|n| [n as i64; 2]);
        // `max_pool2d` takes a padding of at most half of a window, so the padding is written out
        let around = [padding[0]; 4];
        let padded = self.x.f_pad(&around[..], "constant", f64::NEG_INFINITY)?;
        self.x = padded.f_max_pool2d(size, stride, [0, 0], [1, 1], false)?;
        Ok(())
    }

    fn convolve(&mut self, window: Window, is_hidden: bool, in_section: bool) -> Result<(), TchError> {
        let number = self.convolutions;
        self.convolutions += 1;
        let of = |kind: &str, what: &str| self.views.get(&format!("{}.{kind}.{number}.{what}", self.name));
        let [stride, padding] = [window.stride, window.padding].map(|n| [n as i64; 2]);
        let (weight, bias) = (of("convolutions", "weight")?, of("convolutions", "bias")?);
        self.x = self.x.f_conv2d(weight, Some(bias), stride, padding, [1, 1], 1)?;
        if self.config.layer_norm && !in_section {
            let (gain, shift) = (of("norms", "weight")?, of("norms", "bias")?);
            let pixels = self.x.f_permute([0, 2, 3, 1])?;
            self.x = pixels.f_layer_norm(gain.size(), Some(gain), Some(shift), EPSILON, false)?.f_permute([0, 3, 1, 2])?;
        }
        if is_hidden { self.activate() } else { Ok(()) }
    }
}
