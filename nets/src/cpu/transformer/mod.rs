//! A causal transformer as policy and critic, for environments of text.
//!
//! The outputs for a token depend, bit for bit, only on the text up to this token. They do not depend on the rest of the batch, on how a
//! batch is split into tiles, or on whether earlier tokens were cached. The log-probabilities in sampling are therefore equal to those in
//! learning.

mod act;
mod attention;
mod head;
mod layout;
mod pass;
mod plan;
mod rows;
mod trunk;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use gradus_envs::Space;

use self::act::TextActor;
use self::layout::{Layout, Numbers, OfModel};
use self::pass::{Answer, Lane, Question, Workspace};
use self::plan::Plan;
use super::aligned::Aligned;
use super::layer::{Transpose, padded};
use super::weights::{Named, Weights, behaviour_by_weights, network_by_weights};
use crate::cpu::footprint::Footprint;
use crate::{ActionRows, Actor, Batch, Behaviour, NetworkError, Objective, Policy, Store, Sums, TransformerConfig};
use gradus_base::simd::{Level, dispatch};
use gradus_base::tensors::{Tensors, TensorsError, with_prefix, without_prefix};
use gradus_base::threads;

/// A transformer on the CPU.
pub struct Transformer {
    layout: Layout,
    level: Level,
    /// The parameters that are not trained, and transposed copies of their matrices: those of a pretrained model, beside which adapters are trained. Copies of
    /// the policy share them.
    frozen: Arc<[Aligned; 2]>,
    /// The trained parameters, and transposed copies of their matrices.
    weights: Weights,
    transposed: Aligned,
    lanes: Vec<Lane>,
    /// Free workspaces; each running thread takes one.
    workspaces: Mutex<Vec<Workspace>>,
}

impl Transformer {
    /// Creates a transformer for these spaces: `observations` is a [`Space::Text`], and `actions` has one action per token.
    pub fn new(config: &TransformerConfig, observations: &Space, actions: &Space, seed: u64) -> Result<Self, NetworkError> {
        let (vocabulary, context) = config.check(observations, actions)?;
        let layout = Layout::new(config, vocabulary, context);
        if layout.parameters > 1 << 33 {
            return Err(NetworkError::Transformer {
                key: "layers",
                expected: "at most 2^33 parameters in all".into(),
                got: layout.parameters.to_string(),
            });
        }
        let weights = Weights::new(layout.initial(seed), layout.groups());
        let transposed = Aligned::zeros(layout.transposed - layout.frozen_transposed);
        // the parameters that are not trained are 0 until a model is loaded
        let frozen = Arc::new([layout.frozen, layout.frozen_transposed].map(Aligned::zeros));
        let (lanes, workspaces) = (Vec::new(), Mutex::new(Vec::new()));
        let mut policy = Self { layout, level: Level::best(), frozen, weights, transposed, lanes, workspaces };
        policy.parameters_changed();
        Ok(policy)
    }

    /// Returns the memory of a transformer; see [`TransformerConfig::footprint`].
    pub(crate) fn footprint(config: &TransformerConfig, vocabulary: usize, context: usize, tokens: f64) -> Footprint {
        Layout::footprint(config, vocabulary, context, tokens)
    }

    /// Restricts the kernels to an instruction set. The results stay the same.
    pub fn with_level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Holds the log-probabilities of at most this many decisions at once. The outputs stay the same, and the gradient up to rounding.
    pub fn with_chunk(mut self, decisions: usize) -> Self {
        self.layout.chunk = decisions.max(1);
        self
    }

    /// Returns the gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.layout.to_tensors(&self.weights.gradient, "")
    }

    fn parameters(&self) -> Numbers<'_> {
        Numbers { frozen: &self.frozen[0], trained: &self.weights.values }
    }

    fn transposed(&self) -> Numbers<'_> {
        Numbers { frozen: &self.frozen[1], trained: &self.transposed }
    }

    fn parameters_changed(&mut self) {
        let Self { layout, level, weights, transposed, .. } = self;
        if layout.frozen == 0 {
            return transpose_model(*level, layout, &weights.values, transposed);
        }
        let (rank, mut rest, mut copies) = (layout.padded_rank, &mut transposed[..], Vec::new());
        // the copies are consecutive, in the order of the adapters
        for (inputs, lora) in layout.adapters() {
            for (at, rows, columns) in [(lora.a, inputs, rank), (lora.b, rank, lora.outputs)] {
                let (copy, behind) = rest.split_at_mut(rows * columns);
                copies.push((&weights.values[at - layout.frozen..][..rows * columns], (rows, columns), rows, copy));
                rest = behind;
            }
        }
        let level = *level;
        threads::for_each(&mut copies, |_, (from, shape, stride, to)| transpose(level, from, *shape, (to, *stride)));
    }

    /// Panics unless the store and the batch fit this policy.
    fn assert_fits(&self, store: &Store, batch: Option<Batch<'_>>) {
        let n = self.layout.vocabulary;
        let context = store.texts().context();
        assert!(context <= self.layout.context, "texts: expected at most {} tokens, got up to {context}", self.layout.context);
        let ActionRows::Discrete(actions) = &store.actions else { panic!("actions: expected tokens, got rows of numbers") };
        assert!(actions.iter().all(|action| (*action as usize) < n), "actions: expected tokens below {n}");
        assert!(store.texts().tokens().iter().all(|token| (*token as usize) < n), "texts: expected tokens below {n}");
        if let Some(masks) = &store.masks {
            assert_eq!(masks.len(), actions.len() * n, "masks: expected {n} entries per decision");
        }
        let Some(batch) = batch else { return };
        assert_eq!(batch.indices.len(), batch.weights.len(), "batch: expected one weight per decision");
        for rows in [batch.old, batch.reference].into_iter().flatten() {
            let expected = actions.len() * n;
            assert_eq!(rows.len(), expected, "distributions: expected {expected} numbers, got {}", rows.len());
        }
    }

    fn question<'a>(&'a self, store: &'a Store, plan: &'a Plan) -> Question<'a> {
        let Self { layout, level, workspaces, .. } = self;
        Question { layout, level: *level, parameters: self.parameters(), transposed: self.transposed(), store, plan, workspaces }
    }

    fn forward_backward(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective, with_gradient: bool) -> Sums {
        self.assert_fits(store, Some(batch));
        let plan = Plan::new(store.texts(), batch.indices.iter().map(|index| *index as usize));
        let ranges = plan.lanes(self.layout.most_lanes());
        let mut lanes = std::mem::take(&mut self.lanes);
        while lanes.len() < ranges.len() {
            lanes.push(Lane { gradient: Aligned::zeros(0), sums: Sums::default() });
        }
        let length = if with_gradient { self.weights.values.len() } else { 0 };
        for lane in &mut lanes[..ranges.len()] {
            if lane.gradient.len() < length {
                lane.gradient = Aligned::zeros(length);
            }
        }
        let question = self.question(store, &plan);
        threads::for_each(&mut lanes[..ranges.len()], |i, lane| {
            question.forward_backward(batch, objective, ranges[i].clone(), lane, with_gradient)
        });
        let mut sums = Sums::default();
        lanes[..ranges.len()].iter().for_each(|lane| sums.add(&lane.sums));
        if with_gradient {
            let gradients: Vec<&[f32]> = lanes[..ranges.len()].iter().map(|lane| &*lane.gradient).collect();
            self.weights.take_gradient(self.level, &gradients, objective.updates());
        }
        self.lanes = lanes;
        sums
    }

    /// Evaluates the policy on the first `rows` prefixes of a store. Writes one row of `numbers` per prefix.
    fn describe(&mut self, store: &Store, rows: usize, answer: Answer, numbers: &mut Vec<f32>) {
        self.assert_fits(store, None);
        let width = if answer == Answer::Distributions { self.layout.vocabulary } else { 1 };
        numbers.clear();
        numbers.resize(rows * width, 0.0);
        let plan = Plan::new(store.texts(), 0..rows);
        let question = self.question(store, &plan);
        let results = threads::map(&mut plan.lanes(self.layout.most_lanes()), |_, tiles| question.describe(tiles.clone(), answer));
        for (place, number) in plan.places.iter().zip(results.concat().chunks_exact(width)) {
            numbers[*place as usize * width..][..width].copy_from_slice(number);
        }
    }
}

/// Writes transposed copies of the matrices of all layers and of the logits.
fn transpose_model(level: Level, layout: &Layout, parameters: &[f32], transposed: &mut [f32]) {
    let (matrices, unembedding) = transposed.split_at_mut(layout.unembedding);
    let mut rest = matrices;
    let mut copies = Vec::new();
    // the copies are consecutive, in the order of the matrices
    for linear in layout.linears() {
        let (copy, behind) = rest.split_at_mut(linear.len());
        copies.push((&parameters[linear.at..linear.at + linear.len()], (linear.inputs, linear.outputs), linear.inputs, copy));
        rest = behind;
    }
    let (n, w) = (layout.vocabulary, layout.width);
    copies.push((&parameters[layout.logits..][..n * w], (n, w), padded(n), unembedding));
    threads::for_each(&mut copies, |_, (from, shape, stride, to)| transpose(level, from, *shape, (to, *stride)));
}

/// Writes the transpose of `rows` x `columns` numbers, a multiple of 16 columns, into rows of `stride` numbers, a multiple of 16.
fn transpose(level: Level, from: &[f32], (rows, columns): (usize, usize), (to, stride): (&mut [f32], usize)) {
    dispatch(level, Transpose { from: (from, columns), shape: (rows, columns), to: (to, stride) });
}

impl Behaviour for Transformer {
    fn observation_width(&self) -> usize {
        self.layout.context + 1
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(TextActor::new(self))
    }

    fn load_pretrained(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        let Self { layout, level, weights, frozen, .. } = self;
        let model = OfModel(layout);
        let mut known = BTreeSet::new();
        model.for_each_tensor(&mut |name, _, _| _ = known.insert(name));
        if let Some(other) = tensors.keys().find(|name| !known.contains(*name)) {
            return Err(TensorsError::Unexpected(other.clone()));
        }
        if layout.frozen == 0 {
            let of_critic = if layout.critic.is_some() { without_prefix(tensors, "model.") } else { Tensors::new() };
            let mut all = with_prefix(of_critic, "critic.");
            all.extend(tensors.iter().map(|(name, tensor)| (name.clone(), tensor.clone())));
            let mut values = model.flat_from(layout.parameters, &all, "")?;
            let own = layout.value_head..layout.value_head + layout.width;
            values[own.clone()].copy_from_slice(&weights.values[own]);
            weights.values = values;
        } else {
            let parameters = model.flat_from(layout.frozen, tensors, "")?;
            let mut transposed = Aligned::zeros(layout.frozen_transposed);
            transpose_model(*level, layout, &parameters, &mut transposed);
            *frozen = Arc::new([parameters, transposed]);
        }
        self.parameters_changed();
        Ok(())
    }

    fn merged(&self) -> Option<Tensors> {
        let Self { layout, weights, frozen, .. } = self;
        let mut all = if layout.frozen == 0 { weights.values.clone() } else { frozen[0].clone() };
        for linear in layout.linears() {
            for lora in linear.lora.into_iter().flatten() {
                let rank = layout.padded_rank;
                let a = &weights.values[lora.a - layout.frozen..][..linear.inputs * rank];
                let b = &weights.values[lora.b - layout.frozen..][..rank * lora.outputs];
                for (row, a) in all[linear.at..][..linear.len()].chunks_exact_mut(linear.outputs).zip(a.chunks_exact(rank)) {
                    for (a, b) in a.iter().zip(b.chunks_exact(lora.outputs)) {
                        row[lora.column..].iter_mut().zip(b).for_each(|(w, b)| *w += layout.scale * a * b);
                    }
                }
            }
        }
        Some(OfModel(layout).to_tensors(&all, ""))
    }

    behaviour_by_weights!();
}

network_by_weights!(Transformer);

impl Policy for Transformer {
    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        self.describe(store, store.rows(), Answer::Values, values);
    }

    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        self.describe(store, store.actions.len(), Answer::LogProbs, log_probs);
    }

    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        self.describe(store, store.actions.len(), Answer::Distributions, rows);
    }

    fn distribution_width(&self) -> usize {
        self.layout.vocabulary
    }

    fn evaluate(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.forward_backward(store, batch, objective, false)
    }

    fn gradient(&mut self, store: &Store, batch: Batch<'_>, objective: &dyn Objective) -> Sums {
        self.forward_backward(store, batch, objective, true)
    }

    fn fisher_vector_product(&mut self, _: &Store, _: Batch<'_>, _: &[f32], _: &mut Vec<f32>) {
        panic!("a transformer has no Fisher-vector product");
    }

    fn supports_fisher(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        Box::new(Self {
            layout: self.layout.clone(),
            level: self.level,
            frozen: self.frozen.clone(),
            weights: self.weights.clone(),
            transposed: self.transposed.clone(),
            lanes: Vec::new(),
            workspaces: Mutex::new(Vec::new()),
        })
    }
}
