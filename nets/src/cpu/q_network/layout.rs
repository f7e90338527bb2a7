//! The layers of a network of action values and the positions of their parameters.

use std::ops::Range;

use super::super::layer::{Layer, padded};
use super::super::weights::{Named, Visit};
use crate::{Activation, Group, NetworkConfig, QHead};

/// Parameters of a block: what one thread computes of the gradient at a time. Blocks are small, so that every thread gets its share.
const BLOCK: usize = 3072;
/// Parameters whose squares are added up in order; the gradient's norm comes from these sums.
const SUMMED: usize = 8192;

/// A dense layer, and the normalisation and activation after it.
#[derive(Clone, Debug)]
pub(super) struct Dense {
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

    /// Range of the shifts.
    pub fn shifts(&self, norm: usize) -> Range<usize> {
        norm + self.stride()..norm + 2 * self.stride()
    }
}

/// Some of the parameters: consecutive in the flat vector.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub layer: usize,
    pub part: Part,
    pub length: usize,
}

/// Which of a layer's parameters a block has.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// The rows of the weight matrix, as it is stored.
    Weights(Range<usize>),
    Bias,
    Gains,
    Shifts,
}

/// The layers of a network.
#[derive(Clone, Debug)]
pub(super) struct QLayout {
    pub width: usize,
    pub actions: usize,
    pub head: QHead,
    pub activation: Activation,
    /// All layers; a layer reads an earlier one.
    pub layers: Vec<Dense>,
    /// The output layers: of Q, or of V and A.
    pub outputs: Vec<usize>,
    pub blocks: Vec<Block>,
    /// Lengths of the parts of the parameters whose squares are added up in order.
    pub summed: Vec<usize>,
    pub parameters: usize,
}

impl QLayout {
    pub fn new(config: &NetworkConfig, head: QHead, width: usize, actions: usize) -> Self {
        let mut layout = QLayout {
            width,
            actions,
            head,
            activation: config.activation,
            layers: Vec::new(),
            outputs: Vec::new(),
            blocks: Vec::new(),
            summed: Vec::new(),
            parameters: 0,
        };
        let q = actions * head.atoms;
        if head.dueling {
            // V and A have the last hidden layer for themselves
            let (own, shared) = config.hidden.split_last().map_or((None, &[][..]), |(own, shared)| (Some(*own), shared));
            let trunk = layout.chain(config, "trunk", None, shared, None);
            let value = layout.chain(config, "value", trunk, own.as_slice(), Some(head.atoms));
            let advantage = layout.chain(config, "advantage", trunk, own.as_slice(), Some(q));
            layout.outputs = [value, advantage].into_iter().flatten().collect();
        } else {
            layout.outputs = layout.chain(config, "q", None, &config.hidden, Some(q)).into_iter().collect();
        }
        layout.blocks = layout.layers.iter().enumerate().flat_map(|(i, dense)| blocks(i, dense, BLOCK)).collect();
        layout.summed = layout.layers.iter().flat_map(|dense| blocks(0, dense, SUMMED)).map(|block| block.length).collect();
        layout
    }

    /// Adds the layers of a chain that reads layer `reads`. Returns its last layer, or `reads` if it has none.
    fn chain(
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
            let mut layer = Layer { inputs, outputs, weights: self.parameters, bias: 0, transposed: None };
            layer.bias = layer.weights + layer.weight_len();
            self.parameters = layer.bias + padded(outputs);
            let norm = (is_hidden && config.layer_norm).then_some(self.parameters);
            self.parameters += norm.map_or(0, |_| 2 * padded(outputs));
            // numbered as in PyTorch's `Sequential`, in which normalisations and activations have numbers too
            let (own, normalisation) = (format!("{name}.{number}"), format!("{name}.{}", number + 1));
            number += 2 + usize::from(config.layer_norm);
            self.layers.push(Dense { layer, norm, is_hidden, reads, name: own, norm_name: normalisation });
            reads = Some(self.layers.len() - 1);
        }
        reads
    }

    /// The parameter groups: one, with all parameters.
    pub fn groups(&self) -> Vec<Group> {
        vec![Group { name: "q", range: 0..self.parameters }]
    }

    /// Numbers per observation that the network outputs.
    pub fn q_width(&self) -> usize {
        self.actions * self.head.atoms
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

impl Named for QLayout {
    fn for_each_tensor(&self, visit: Visit<'_>) {
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
