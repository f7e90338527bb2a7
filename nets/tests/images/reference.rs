//! Networks that see images in f64, written from the definitions: images as planes of rows of pixels, weights in PyTorch's layout.

use std::collections::BTreeMap;

use gradus_base::tensors::{Data, Tensors};
use gradus_envs::Image;
use gradus_nets::Activation;

/// A layer, as a test writes it.
#[derive(Clone, Copy)]
pub enum Layer {
    /// Stride, padding, and whether the activation follows.
    Convolution(usize, usize, bool),
    /// Size, stride, padding.
    Pool(usize, usize, usize),
    /// Two residual blocks, and whether the activation follows.
    Residuals(bool),
}

/// Named tensors: their shapes and numbers.
pub type Parameters = BTreeMap<String, (Vec<usize>, Vec<f64>)>;

pub fn parameters(tensors: &Tensors) -> Parameters {
    let numbers = |data: &Data| match data {
        Data::F32(data) => data.iter().map(|x| f64::from(*x)).collect(),
        _ => panic!("parameters are f32"),
    };
    tensors.iter().map(|(name, tensor)| (name.clone(), (tensor.shape.clone(), numbers(&tensor.data)))).collect()
}

pub struct Reference<'a> {
    pub layers: &'a [Layer],
    pub activation: Activation,
    pub image: Image,
}

/// Planes x height x width.
#[derive(Clone)]
struct Planes {
    planes: Vec<Vec<Vec<f64>>>,
}

impl Planes {
    fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let plane = |plane: &Vec<Vec<f64>>| plane.iter().map(|row| row.iter().map(|x| f(*x)).collect()).collect();
        Self { planes: self.planes.iter().map(plane).collect() }
    }

    fn at(&self, plane: usize, y: isize, x: isize) -> Option<f64> {
        let row = self.planes[plane].get(usize::try_from(y).ok()?)?;
        row.get(usize::try_from(x).ok()?).copied()
    }

    /// For each plane of `n` and each window, what `f` makes of the plane's number and the window's first pixel.
    fn windows(&self, n: usize, [size, stride, padding]: [usize; 3], f: impl Fn(usize, isize, isize) -> f64) -> Self {
        let outputs = |pixels: usize| (pixels + 2 * padding - size) / stride + 1;
        let (height, width) = (outputs(self.planes[0].len()), outputs(self.planes[0][0].len()));
        let first = |i: usize| (i * stride) as isize - padding as isize;
        let plane = |k: usize| (0..height).map(|y| (0..width).map(|x| f(k, first(y), first(x))).collect()).collect();
        Self { planes: (0..n).map(plane).collect() }
    }
}

impl Reference<'_> {
    fn activate(&self, x: f64) -> f64 {
        match self.activation {
            Activation::Tanh => x.tanh(),
            Activation::Relu => x.max(0.0),
        }
    }

    fn convolve(
        &self,
        (parameters, name): (&Parameters, &str),
        number: &mut usize,
        x: &Planes,
        [stride, padding]: [usize; 2],
        is_active: bool,
    ) -> Planes {
        let (shape, weights) = &parameters[&format!("{name}.convolutions.{number}.weight")];
        let biases = &parameters[&format!("{name}.convolutions.{number}.bias")].1;
        let [_, planes, size, _] = shape[..] else { panic!("a convolution has four dimensions, got {shape:?}") };
        let mut y = x.windows(biases.len(), [size, stride, padding], |k, y, left| {
            let mut sum = biases[k];
            for c in 0..planes {
                for dy in 0..size {
                    for dx in 0..size {
                        let weight = weights[((k * planes + c) * size + dy) * size + dx];
                        sum += weight * x.at(c, y + dy as isize, left + dx as isize).unwrap_or(0.0);
                    }
                }
            }
            sum
        });
        if let Some((_, gains)) = parameters.get(&format!("{name}.norms.{number}.weight")) {
            let shifts = &parameters[&format!("{name}.norms.{number}.bias")].1;
            for i in 0..y.planes[0].len() {
                for j in 0..y.planes[0][0].len() {
                    let pixel: Vec<f64> = y.planes.iter().map(|plane| plane[i][j]).collect();
                    let normal = normalised(&pixel, gains, shifts);
                    y.planes.iter_mut().zip(normal).for_each(|(plane, normal)| plane[i][j] = normal);
                }
            }
        }
        *number += 1;
        if is_active { y.map(|x| self.activate(x)) } else { y }
    }

    /// The outputs of the convolutional layers, plane by plane; or the numbers of the image, without them.
    pub fn features(&self, parameters: &Parameters, name: &str, row: &[f64]) -> Vec<f64> {
        let Image { frames, height, width, channels, largest } = self.image;
        let number = |f: usize, y: usize, x: usize, c: usize| row[((f * height + y) * width + x) * channels + c] / f64::from(largest);
        if self.layers.is_empty() {
            return row.iter().map(|x| x / f64::from(largest)).collect();
        }
        let plane = |k: usize| (0..height).map(|y| (0..width).map(|x| number(k / channels, y, x, k % channels)).collect()).collect();
        let mut x = Planes { planes: (0..frames * channels).map(plane).collect() };
        let convolutions = &mut 0;
        for layer in self.layers {
            x = match *layer {
                Layer::Convolution(stride, padding, is_active) => {
                    self.convolve((parameters, name), convolutions, &x, [stride, padding], is_active)
                }
                Layer::Pool(size, stride, padding) => x.windows(x.planes.len(), [size, stride, padding], |k, y, left| {
                    let pixels = (0..size as isize).flat_map(|dy| (0..size as isize).map(move |dx| (dy, dx)));
                    pixels.filter_map(|(dy, dx)| x.at(k, y + dy, left + dx)).fold(f64::NEG_INFINITY, f64::max)
                }),
                Layer::Residuals(is_active) => {
                    for _ in 0..2 {
                        let f = x.map(|x| self.activate(x));
                        let f = self.convolve((parameters, name), convolutions, &f, [1, 1], true);
                        let f = self.convolve((parameters, name), convolutions, &f, [1, 1], false);
                        let sums = x.planes.iter().flatten().flatten().zip(f.planes.iter().flatten().flatten()).map(|(x, f)| x + f);
                        let mut sums = sums.collect::<Vec<f64>>().into_iter();
                        x = x.map(|_| 0.0);
                        x.planes.iter_mut().flatten().flatten().for_each(|x| *x = sums.next().unwrap());
                    }
                    if is_active { x.map(|x| self.activate(x)) } else { x }
                }
            };
        }
        x.planes.into_iter().flatten().flatten().collect()
    }

    /// A chain of dense layers `name`; with `is_active`, the activation also follows the last one.
    pub fn chain(&self, parameters: &Parameters, name: &str, is_active: bool, mut x: Vec<f64>) -> Vec<f64> {
        let has_norm = parameters.get(&format!("{name}.1.bias")).is_some();
        let stride = if has_norm { 3 } else { 2 };
        let numbers = (0..).step_by(stride).take_while(|i| parameters.contains_key(&format!("{name}.{i}.weight")));
        let numbers: Vec<usize> = numbers.collect();
        for i in &numbers {
            let (weights, biases) = (&parameters[&format!("{name}.{i}.weight")].1, &parameters[&format!("{name}.{i}.bias")].1);
            assert_eq!(weights.len(), biases.len() * x.len(), "{name}.{i}");
            x = biases.iter().zip(weights.chunks(x.len())).map(|(b, w)| b + w.iter().zip(&x).map(|(w, x)| w * x).sum::<f64>()).collect();
            if let Some((_, gains)) = parameters.get(&format!("{name}.{}.weight", i + 1)).filter(|_| has_norm) {
                x = normalised(&x, gains, &parameters[&format!("{name}.{}.bias", i + 1)].1);
            }
            if is_active || Some(i) != numbers.last() {
                x.iter_mut().for_each(|x| *x = self.activate(*x));
            }
        }
        x
    }
}

fn normalised(x: &[f64], gains: &[f64], shifts: &[f64]) -> Vec<f64> {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let normal = |(x, (gain, shift)): (&f64, (&f64, &f64))| (x - mean) / (variance + 1e-5).sqrt() * gain + shift;
    x.iter().zip(gains.iter().zip(shifts)).map(normal).collect()
}
