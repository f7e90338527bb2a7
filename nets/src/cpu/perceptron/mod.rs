//! Multilayer perceptrons whose layers may branch, and the positions of their parameters. All networks on the CPU except the transformer
//! consist of them.

mod gradient;
mod passes;
mod tile;

use std::ops::Range;

use super::layer::{Layer, padded};
use super::weights::Visit;
use crate::init::{orthogonal, uniform};
use crate::{Activation, NetworkConfig};
pub(super) use gradient::gradient;
use gradus_base::random::Stream;
pub(super) use passes::GradientOf;
pub(super) use tile::{Observed, ROWS, Tile};

/// Parameters of a block: what one thread computes of the gradient at a time. Blocks are small, so that every thread gets its share.
const BLOCK: usize = 3072;
/// Parameters whose squares are added up in order; the gradient's norm comes from these sums.
const SUMMED: usize = 8192;

/// A dense layer, and the normalisation and activation after it.
#[derive(Clone, Debug)]
pub(in crate::cpu) struct Dense {
    pub layer: Layer,
    /// Position of the gains of the layer normalisation; the shifts follow them.
    pub norm: Option<usize>,
    /// Whether an activation follows.
    pub is_hidden: bool,
    /// The layer whose outputs this one reads; `None`: the observations.
    pub reads: Option<usize>,
    name: String,
    norm_name: String,
}

impl Dense {
    /// Width of a row of outputs, padding included.
    pub fn stride(&self) -> usize {
        padded(self.layer.outputs)
    }

    /// Width of a row of inputs, padding included.
    pub fn input_stride(&self) -> usize {
        padded(self.layer.inputs)
    }

    /// Range of the gains.
    pub fn gains(&self, norm: usize) -> Range<usize> {
        norm..norm + self.stride()
    }

    /// End of the layer's parameters.
    fn end(&self) -> usize {
        self.norm.map_or(self.layer.bias + self.stride(), |norm| self.shifts(norm).end)
    }

    /// Range of the shifts.
    pub fn shifts(&self, norm: usize) -> Range<usize> {
        norm + self.stride()..norm + 2 * self.stride()
    }
}

/// Some of the parameters: consecutive in the flat vector.
#[derive(Clone, Debug)]
pub(in crate::cpu) struct Block {
    pub layer: usize,
    pub part: Part,
    pub length: usize,
}

/// Which of a layer's parameters a block has.
#[derive(Clone, Debug)]
pub(in crate::cpu) enum Part {
    /// The rows of the weight matrix, as it is stored.
    Weights(Range<usize>),
    Bias,
    Gains,
    Shifts,
}

/// A multilayer perceptron. Its parameters are consecutive in the flat vector.
#[derive(Clone, Debug)]
pub(super) struct Perceptron {
    /// Numbers per input.
    pub width: usize,
    pub activation: Activation,
    /// All layers; a layer reads an earlier one.
    pub layers: Vec<Dense>,
    pub blocks: Vec<Block>,
    /// Lengths of the parts of the parameters whose squares are added up in order.
    pub summed: Vec<usize>,
    /// Range of the parameters.
    pub range: Range<usize>,
}

impl Perceptron {
    /// The range of the parameters of some consecutive layers.
    pub fn parameters_of(&self, layers: Range<usize>) -> Range<usize> {
        match self.layers[layers].split_last() {
            Some((last, before)) => before.first().unwrap_or(last).layer.weights..last.end(),
            None => 0..0,
        }
    }

    /// Reserves room for the transposed weights of those of `layers` that are wide and read activations. Their backward pass then reads the
    /// transposed weights. Returns how many numbers they are.
    pub fn keep_transposed(&mut self, layers: Range<usize>) -> usize {
        let mut end = 0;
        for dense in self.layers[layers].iter_mut().filter(|dense| dense.reads.is_some() && !dense.layer.is_narrow()) {
            dense.layer.transposed = Some(end);
            end += dense.layer.transposed_len();
        }
        end
    }

    /// Creates a perceptron without layers, whose parameters begin at `begin`.
    pub fn new(activation: Activation, width: usize, begin: usize) -> Self {
        Self { width, activation, layers: Vec::new(), blocks: Vec::new(), summed: Vec::new(), range: begin..begin }
    }

    /// Adds the layers of a chain that reads layer `reads`. Returns its last layer, or `reads` if it has none.
    pub fn chain(
        &mut self,
        config: &NetworkConfig,
        name: &str,
        mut reads: Option<usize>,
        hidden: &[usize],
        output: Option<usize>,
    ) -> Option<usize> {
        let widths = hidden.iter().map(|width| (*width, true)).chain(output.map(|width| (width, false)));
        let mut number = 0;
        for (outputs, is_hidden) in widths {
            let inputs = reads.map_or(self.width, |layer| self.layers[layer].layer.outputs);
            let mut layer = Layer { inputs, outputs, weights: self.range.end, bias: 0, transposed: None };
            layer.bias = layer.weights + layer.weight_len();
            self.range.end = layer.bias + padded(outputs);
            let norm = (is_hidden && config.layer_norm).then_some(self.range.end);
            self.range.end += norm.map_or(0, |_| 2 * padded(outputs));
            // numbered as in PyTorch's `Sequential`, in which normalisations and activations have numbers too
            let (own, normalisation) = (format!("{name}.{number}"), format!("{name}.{}", number + 1));
            number += 2 + usize::from(config.layer_norm);
            let dense = Dense { layer, norm, is_hidden, reads, name: own, norm_name: normalisation };
            self.summed.extend(blocks(0, &dense, SUMMED).into_iter().map(|block| block.length));
            self.blocks.extend(blocks(self.layers.len(), &dense, BLOCK));
            self.layers.push(dense);
            reads = Some(self.layers.len() - 1);
        }
        reads
    }

    /// Sets the parameters. With `orthogonal`, weights are orthogonal and biases are 0; `gain` gives the gain of each layer. Otherwise,
    /// weights and biases are uniform within 1 / sqrt(inputs) of 0, as in PyTorch's `Linear`. Gains of layer normalisations are 1 and shifts
    /// are 0.
    pub fn initialise(&self, is_orthogonal: bool, gain: impl Fn(&Dense) -> f64, parameters: &mut [f32], stream: &mut Stream) {
        for dense in &self.layers {
            let layer = &dense.layer;
            let reach = 1.0 / (layer.inputs as f64).sqrt();
            let weights = match is_orthogonal {
                true => orthogonal(layer.outputs, layer.inputs, gain(dense), stream),
                false => uniform(layer.outputs * layer.inputs, reach, stream),
            };
            for (i, weight) in weights.into_iter().enumerate() {
                parameters[layer.weight(i / layer.inputs, i % layer.inputs)] = weight;
            }
            if !is_orthogonal {
                parameters[layer.bias..layer.bias + layer.outputs].copy_from_slice(&uniform(layer.outputs, reach, stream));
            }
            if let Some(norm) = dense.norm {
                parameters[norm..norm + layer.outputs].fill(1.0);
            }
        }
    }

    /// Visits the tensors of all layers; see [`Named`](super::weights::Named).
    pub fn for_each_tensor(&self, visit: Visit<'_>) {
        for Dense { layer, norm, name, norm_name, .. } in &self.layers {
            let (outputs, inputs) = (layer.outputs, layer.inputs);
            visit(format!("{name}.weight"), &[outputs, inputs], &|i| layer.weight(i / inputs, i % inputs));
            visit(format!("{name}.bias"), &[outputs], &|i| layer.bias + i);
            if let Some(norm) = norm {
                visit(format!("{norm_name}.weight"), &[outputs], &|i| norm + i);
                visit(format!("{norm_name}.bias"), &[outputs], &|i| norm + padded(outputs) + i);
            }
        }
    }
}

/// Divides the parameters of layer number `i` into blocks of about `size`.
fn blocks(i: usize, dense: &Dense, size: usize) -> Vec<Block> {
    let layer = &dense.layer;
    let (rows, stride) = if layer.is_narrow() { (layer.outputs, dense.input_stride()) } else { (layer.inputs, dense.stride()) };
    // the products compute six rows at a time
    let height = (size / stride / 6 * 6).max(6);
    let weights = (0..rows).step_by(height).map(|first| {
        let rows = first..rows.min(first + height);
        Block { layer: i, length: rows.len() * stride, part: Part::Weights(rows) }
    });
    let row = |part| Block { layer: i, length: dense.stride(), part };
    let norms = dense.norm.iter().flat_map(|_| [row(Part::Gains), row(Part::Shifts)]);
    weights.chain([row(Part::Bias)]).chain(norms).collect()
}
