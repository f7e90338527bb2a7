//! Multilayer perceptrons whose layers may branch, behind convolutional layers if they see images, and the positions of their parameters. All
//! networks on the CPU except the transformer consist of them.

mod cell;
mod gradient;
mod images;
mod passes;
mod tile;
mod view;

use std::ops::Range;
use std::sync::Arc;

use super::layer::{Layer, padded, spread};
use super::weights::Visit;
use crate::init::{orthogonal, uniform};
use crate::{Activation, Cell, NetworkConfig};
use cell::Recurrent;
pub(super) use gradient::gradient;
use gradus_base::random::Stream;
use gradus_envs::Image;
pub(super) use passes::GradientOf;
pub(super) use tile::{Observed, ROWS, Tile};
use view::View;

/// Parameters of a block: what one thread computes of the gradient at a time. Blocks are small, so that every thread gets its share.
const BLOCK: usize = 3072;
/// Parameters whose squares are added up in order; the gradient's norm comes from these sums.
const SUMMED: usize = 8192;

/// What a layer computes from what it reads.
#[derive(Clone, Debug)]
pub(in crate::cpu) enum Kind {
    /// x W + b.
    Dense,
    /// The same of each window of an image.
    Convolution(Arc<View>),
    /// The largest numbers of each window.
    Pool(Arc<View>),
    /// x itself.
    Same,
    /// A recurrent cell, whose gates the layer before has begun; x W + b is that of what it remembers.
    Cell(Recurrent),
}

/// How PyTorch numbers what an output reads: channel by channel, and the pixels of each. Here it is pixel by pixel.
#[derive(Clone, Copy, Debug)]
struct Order {
    channels: usize,
    pixels: usize,
    /// Distance between pixels.
    stride: usize,
}

impl Order {
    fn len(self) -> usize {
        self.channels * self.pixels
    }

    /// The position here of PyTorch's input number `i`.
    fn at(self, i: usize) -> usize {
        i % self.pixels * self.stride + i / self.pixels
    }
}

/// A layer, and the normalisation and activation after it.
#[derive(Clone, Debug)]
pub(in crate::cpu) struct Dense {
    /// The weights, if the layer has some.
    pub layer: Layer,
    pub kind: Kind,
    order: Order,
    /// Pixels of the outputs, each a row of the layer; 1 if they are no image.
    pub pixels: usize,
    /// The layer whose outputs are added to those of this one.
    pub adds: Option<usize>,
    /// Range of the parameters.
    parameters: Range<usize>,
    /// Position of the gains of the layer normalisation; the shifts follow them.
    pub norm: Option<usize>,
    /// Number of units of each gate, if the layer computes those of a recurrent cell.
    units: Option<usize>,
    /// Whether an activation follows.
    pub is_hidden: bool,
    /// The layer whose outputs this one reads; `None`: the observations.
    pub reads: Option<usize>,
    name: String,
    norm_name: String,
}

impl Dense {
    /// Width of a row of outputs (of an image, of a pixel), padding included.
    pub fn stride(&self) -> usize {
        if let Kind::Cell(cell) = &self.kind { cell.stride() } else { self.layer.y_stride }
    }

    /// Number of outputs that have weights, without those between the gates of a recurrent cell.
    fn weighted(&self) -> usize {
        self.units.map_or(self.layer.outputs, |units| self.layer.outputs / padded(units) * units)
    }

    /// The position of output number `i` of them.
    fn output(&self, i: usize) -> usize {
        self.units.map_or(i, |units| i / units * padded(units) + i % units)
    }

    /// Numbers of the outputs for an observation, padding included.
    pub fn row(&self) -> usize {
        self.pixels * self.stride()
    }

    /// Numbers of the image that a convolution reads, with its padding; 0 if it has none.
    fn padded_len(&self) -> usize {
        if let Kind::Convolution(view) = &self.kind { view.padded_len() } else { 0 }
    }

    /// Whether the layer has weights.
    fn has_weights(&self) -> bool {
        matches!(self.kind, Kind::Dense | Kind::Convolution(_) | Kind::Cell(_))
    }

    /// Range of the gains.
    pub fn gains(&self, norm: usize) -> Range<usize> {
        norm..norm + padded(self.layer.outputs)
    }

    /// Range of the shifts.
    pub fn shifts(&self, norm: usize) -> Range<usize> {
        norm + padded(self.layer.outputs)..norm + 2 * padded(self.layer.outputs)
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
    /// The image that the inputs are, if they are one: whole numbers, which are divided by the largest.
    pub image: Option<Image>,
    pub activation: Activation,
    /// All layers; a layer reads an earlier one.
    pub layers: Vec<Dense>,
    pub blocks: Vec<Block>,
    /// Lengths of the parts of the parameters whose squares are added up in order.
    pub summed: Vec<usize>,
    /// Range of the parameters.
    pub range: Range<usize>,
    /// Numbers that the recurrent cells remember.
    pub memory: usize,
}

impl Perceptron {
    /// The range of the parameters of some consecutive layers.
    pub fn parameters_of(&self, layers: Range<usize>) -> Range<usize> {
        match self.layers[layers].split_last() {
            Some((last, before)) => before.first().unwrap_or(last).parameters.start..last.parameters.end,
            None => 0..0,
        }
    }

    /// Reserves room for the transposed weights of those of `layers` that are wide and read activations. Their backward pass then reads the
    /// transposed weights. Returns how many numbers they are.
    pub fn keep_transposed(&mut self, layers: Range<usize>) -> usize {
        let mut end = 0;
        let reads =
            |dense: &&mut Dense| matches!(dense.kind, Kind::Dense | Kind::Cell(_)) && dense.reads.is_some() && !dense.layer.is_narrow();
        for dense in self.layers[layers].iter_mut().filter(reads) {
            dense.layer.transposed = Some(end);
            end += dense.layer.transposed_len();
        }
        end
    }

    /// Creates a perceptron without layers, whose parameters begin at `begin`.
    pub fn new(activation: Activation, width: usize, begin: usize) -> Self {
        Self { width, image: None, activation, layers: Vec::new(), blocks: Vec::new(), summed: Vec::new(), range: begin..begin, memory: 0 }
    }

    /// Adds the layers of a chain that reads layer `reads`: the hidden layers, a recurrent cell if the configuration has one and `remembers` is
    /// true, and the output. Returns its last layer, or `reads` if it has none.
    pub fn chain(
        &mut self,
        config: &NetworkConfig,
        name: &str,
        mut reads: Option<usize>,
        (hidden, remembers): (&[usize], bool),
        output: Option<usize>,
    ) -> Option<usize> {
        // numbered as in PyTorch's `Sequential`, in which normalisations and activations have numbers too
        let place = |number: usize| number * (2 + usize::from(config.layer_norm));
        for (number, width) in hidden.iter().enumerate() {
            reads = Some(self.dense(config, (name, place(number)), reads, *width, true));
        }
        if remembers && config.cell != Cell::None {
            reads = Some(self.remember(config, name, reads));
        }
        match output {
            Some(width) => Some(self.dense(config, (name, place(hidden.len())), reads, width, false)),
            None => reads,
        }
    }

    /// Adds a layer of a chain.
    fn dense(
        &mut self,
        config: &NetworkConfig,
        (name, number): (&str, usize),
        reads: Option<usize>,
        outputs: usize,
        is_hidden: bool,
    ) -> usize {
        let names = [format!("{name}.{number}"), format!("{name}.{}", number + 1)];
        let (inputs, order) = self.read_by(reads);
        let dense = Dense { reads, is_hidden, ..Dense::new(Kind::Dense, (inputs, outputs), order, 1, names) };
        self.push(dense, is_hidden && config.layer_norm)
    }

    /// Adds a recurrent cell that reads layer `reads`.
    fn remember(&mut self, config: &NetworkConfig, name: &str, reads: Option<usize>) -> usize {
        let cell = Recurrent { cell: config.cell, units: config.cell_width, at: self.memory, bias: config.cell_bias };
        self.memory += cell.memory();
        let gates = cell.cell.gates() * cell.stride();
        let names = |layer: &str| [format!("{name}.cell.{layer}"), String::new()];
        let (inputs, order) = self.read_by(reads);
        let of_inputs = Dense { reads, units: Some(cell.units), ..Dense::new(Kind::Dense, (inputs, gates), order, 1, names("ih")) };
        let reads = Some(self.push(of_inputs, false));
        let order = Order { channels: cell.units, pixels: 1, stride: 0 };
        let own = Dense::new(Kind::Cell(cell), (cell.units, gates), order, 1, names("hh"));
        self.push(Dense { reads, units: Some(cell.units), ..own }, false)
    }

    /// What a layer that reads layer `reads` gets: the numbers, and how PyTorch numbers them.
    fn read_by(&self, reads: Option<usize>) -> (usize, Order) {
        let plain = |inputs| (inputs, Order { channels: inputs, pixels: 1, stride: 0 });
        match reads.map(|layer| &self.layers[layer]) {
            None => plain(self.width),
            Some(Dense { kind: Kind::Cell(cell), .. }) => plain(cell.units),
            Some(read) if read.pixels == 1 => plain(read.layer.outputs),
            Some(read) => (read.row(), Order { channels: read.layer.outputs, pixels: read.pixels, stride: read.stride() }),
        }
    }

    /// Whether a layer sees the image that the inputs are.
    pub fn sees(&self) -> bool {
        self.layers.first().is_some_and(|dense| !matches!(dense.kind, Kind::Dense))
    }

    /// Numbers of a row of inputs in a tile.
    pub fn input_row(&self) -> usize {
        if self.sees() { self.width } else { padded(self.width) }
    }

    /// Adds a layer, with parameters at the end; returns its number.
    fn push(&mut self, dense: Dense, has_norm: bool) -> usize {
        let begin = self.range.end;
        // a cell reads what it remembers, not the layer before it
        let x_stride = match dense.reads {
            Some(read) if !matches!(dense.kind, Kind::Cell(_)) => self.layers[read].row(),
            _ => padded(dense.layer.inputs),
        };
        let is_spread = dense.is_hidden && matches!(dense.kind, Kind::Dense);
        let y_stride = if is_spread { spread(dense.layer.outputs) } else { padded(dense.layer.outputs) };
        let layer = Layer { weights: begin, bias: begin, x_stride, y_stride, ..dense.layer };
        let mut dense = Dense { parameters: begin..begin, layer, ..dense };
        if dense.has_weights() {
            dense.layer.bias = begin + dense.layer.weight_len();
            dense.parameters.end = dense.layer.bias + padded(dense.layer.outputs);
        }
        if has_norm {
            dense.norm = Some(dense.parameters.end);
            dense.parameters.end += 2 * padded(dense.layer.outputs);
        }
        self.range.end = dense.parameters.end;
        self.summed.extend(blocks(0, &dense, SUMMED).into_iter().map(|block| block.length));
        self.blocks.extend(blocks(self.layers.len(), &dense, BLOCK / dense.pixels));
        self.layers.push(dense);
        self.layers.len() - 1
    }

    /// Sets the parameters. With `orthogonal`, weights are orthogonal and biases are 0; `gain` gives the gain of each layer. Otherwise,
    /// weights and biases are uniform within 1 / sqrt(inputs) of 0, as in PyTorch's `Linear`. Gains of layer normalisations are 1 and shifts
    /// are 0. The weights of recurrent cells have the gain 1, or are uniform within 1 / sqrt(units) of 0, as in PyTorch.
    pub fn initialise(&self, is_orthogonal: bool, gain: impl Fn(&Dense) -> f64, parameters: &mut [f32], stream: &mut Stream) {
        for dense in self.layers.iter().filter(|dense| dense.has_weights()) {
            let (layer, inputs, outputs) = (&dense.layer, dense.order.len(), dense.weighted());
            let reach = 1.0 / (dense.units.unwrap_or(inputs) as f64).sqrt();
            let gain = if dense.units.is_some() { 1.0 } else { gain(dense) };
            let weights = match is_orthogonal {
                true => orthogonal(outputs, inputs, gain, stream),
                false => uniform(outputs * inputs, reach, stream),
            };
            for (i, weight) in weights.into_iter().enumerate() {
                parameters[layer.weight(dense.output(i / inputs), dense.order.at(i % inputs))] = weight;
            }
            if !is_orthogonal {
                let biases = uniform(outputs, reach, stream).into_iter().enumerate();
                biases.for_each(|(i, bias)| parameters[layer.bias + dense.output(i)] = bias);
            }
            if let Kind::Cell(cell) = &dense.kind {
                let second = cell.units..2 * cell.units;
                second.for_each(|i| parameters[layer.bias + dense.output(i)] += cell.bias);
            }
            if let Some(norm) = dense.norm {
                parameters[norm..norm + layer.outputs].fill(1.0);
            }
        }
    }

    /// Visits the tensors of all layers; see [`Named`](super::weights::Named).
    pub fn for_each_tensor(&self, visit: Visit<'_>) {
        for dense in self.layers.iter().filter(|dense| dense.has_weights()) {
            let Dense { layer, order, kind, norm, name, norm_name, .. } = dense;
            let (outputs, inputs) = (dense.weighted(), order.len());
            let weight = |i| layer.weight(dense.output(i / inputs), order.at(i % inputs));
            if dense.units.is_some() {
                // as PyTorch's cells name them: weight_ih, bias_ih, weight_hh, bias_hh
                let (cell, own) = name.rsplit_once('.').expect("names of cells have two parts");
                visit(format!("{cell}.weight_{own}"), &[outputs, inputs], &weight);
                visit(format!("{cell}.bias_{own}"), &[outputs], &|i| layer.bias + dense.output(i));
                continue;
            }
            match kind {
                Kind::Convolution(view) => {
                    let size = view.window.size;
                    visit(format!("{name}.weight"), &[outputs, view.from.channels, size, size], &weight);
                }
                _ => visit(format!("{name}.weight"), &[outputs, inputs], &weight),
            }
            visit(format!("{name}.bias"), &[outputs], &|i| layer.bias + i);
            if let Some(norm) = norm {
                visit(format!("{norm_name}.weight"), &[outputs], &|i| norm + i);
                visit(format!("{norm_name}.bias"), &[outputs], &|i| norm + padded(outputs) + i);
            }
        }
    }
}

impl Dense {
    /// Creates a layer that reads this many numbers and writes that many, for each of some pixels, without parameters yet.
    fn new(kind: Kind, (inputs, outputs): (usize, usize), order: Order, pixels: usize, [name, norm_name]: [String; 2]) -> Self {
        let layer = Layer {
            inputs,
            outputs,
            x_stride: 0,
            y_stride: 0,
            weights: 0,
            bias: 0,
            is_wide: !matches!(kind, Kind::Dense),
            transposed: None,
        };
        Self {
            layer,
            kind,
            order,
            pixels,
            adds: None,
            parameters: 0..0,
            norm: None,
            units: None,
            is_hidden: false,
            reads: None,
            name,
            norm_name,
        }
    }
}

/// Divides the parameters of layer number `i` into blocks of about `size`.
fn blocks(i: usize, dense: &Dense, size: usize) -> Vec<Block> {
    let layer = &dense.layer;
    if !dense.has_weights() {
        return Vec::new();
    }
    let (rows, stride) = if layer.is_narrow() { (layer.outputs, padded(layer.inputs)) } else { (layer.inputs, padded(layer.outputs)) };
    // the products compute six rows at a time
    let height = (size / stride / 6 * 6).max(6);
    let weights = (0..rows).step_by(height).map(|first| {
        let rows = first..rows.min(first + height);
        Block { layer: i, length: rows.len() * stride, part: Part::Weights(rows) }
    });
    let row = |part| Block { layer: i, length: padded(layer.outputs), part };
    let norms = dense.norm.iter().flat_map(|_| [row(Part::Gains), row(Part::Shifts)]);
    weights.chain([row(Part::Bias)]).chain(norms).collect()
}
