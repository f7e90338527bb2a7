//! A causal transformer on libtorch, as policy and critic for text environments. Its layers and the names of its parameters are those of
//! the engine `cpu`.
//!
//! The texts of a batch are padded on the right. A token does not attend to later tokens, so the padding does not affect the results.

mod act;
mod backward;
mod frozen;
mod trunk;
mod write;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use gradus_envs::Space;
use tch::{Kind, TchError, Tensor, no_grad};

use self::act::TextActor;
use self::backward::{LOGITS, LOGITS_ON_GPU};
use self::frozen::Frozen;
use self::trunk::{Attend, Weights};
pub(super) use self::write::Drawn;
pub use self::write::{StreamPosition, Written};
use super::common::{behaviour_by_parameters, impl_network, objectives_by_parameters};
use super::distribution::Distribution;
use super::fault::{Fault, one_line};
use super::forward_backward::{Said, Slices, assert_batch, forward_backward, forward_backward_parts, rows_of};
use super::library::{open, use_threads};
use super::parameters::{Parameters, to_device, to_host};
use super::raw::{Graph, Shared};
use crate::texts::Asked;
use crate::{
    ActionRows, Actor, Batch, Behaviour, Critic, Device, NetworkError, Objective, Observations, Policy, Store, Sums, TorchConfig,
    UpdatedGroups,
};
use crate::{TransformerConfig, cpu};
use gradus_base::tensors::{Data, Tensors, TensorsError, get_f32};

/// A transformer on libtorch.
pub struct Transformer {
    config: TransformerConfig,
    torch: TorchConfig,
    vocabulary: usize,
    context: usize,
    parameters: Parameters,
    /// The parameters that are not trained, with adapters.
    frozen: Option<Arc<Frozen>>,
    /// Cosines and sines of the angle of each position and pair of dimensions; `None` without rotary positions.
    rotary: Option<(Shared, Shared)>,
    /// The most decisions whose logits are held at once.
    chunk: usize,
    /// The recorded launches of the last generation, whose memory those of the next one use again.
    repeated: Mutex<Option<Graph>>,
    fault: Fault,
}

/// The texts of a store on the device.
pub(super) struct Rows {
    /// A row for each text, padded with 0.
    pub tokens: Shared,
    pub actions: Shared,
    pub masks: Option<Shared>,
    /// All tokens are below this number.
    pub vocabulary: usize,
}

/// A query for some prefixes of a store.
struct Question {
    /// The number of each text that has one of the prefixes.
    texts: Vec<i64>,
    /// Number of tokens to which the texts are padded.
    longest: usize,
    /// Index of each prefix's last token among the tokens of the padded texts.
    ends: Vec<i64>,
}

impl Transformer {
    /// Creates a transformer on `device`, with the same parameters as the engine `cpu` creates for these arguments.
    pub fn new(
        (config, torch): (&TransformerConfig, &TorchConfig),
        (observations, actions): (&Space, &Space),
        seed: u64,
        device: Device,
    ) -> Result<Self, NetworkError> {
        let (vocabulary, context) = config.check(observations, actions)?;
        let initial = cpu::Transformer::new(config, observations, actions, seed)?;
        let (parameters, model) = (initial.save(), if config.lora_rank > 0 { initial.merged() } else { None });
        drop(initial);
        let on = open(device, torch.precision).map_err(NetworkError::Device)?;
        let failed = |error: TchError| NetworkError::Device(format!("device {device}: {}", one_line(&error)));
        let fault = Fault::none(device);
        let parameters = Parameters::new(&parameters, on, fault.clone()).map_err(failed)?;
        // adapters add nothing before their training
        let frozen = model.map(|model| Frozen::new(&model, on, torch.precision).map(Arc::new)).transpose().map_err(failed)?;
        let rotary = trunk::rotary(config, context, on).map_err(failed)?;
        let chunk = (if on.is_cuda() { LOGITS_ON_GPU } else { LOGITS } / vocabulary).max(1);
        Ok(Self {
            config: config.clone(),
            torch: torch.clone(),
            vocabulary,
            context,
            parameters,
            frozen,
            rotary,
            chunk,
            repeated: Mutex::default(),
            fault,
        })
    }

    /// Holds the logits of at most this many decisions at once. The outputs stay the same, and the gradient up to rounding.
    pub fn with_chunk(mut self, decisions: usize) -> Self {
        self.chunk = decisions.max(1);
        self
    }

    /// Returns the texts of a store on the device; they are copied once.
    fn rows(&self, store: &Store) -> Result<Arc<Rows>, TchError> {
        let (n, device) = (self.vocabulary, self.parameters.device());
        if let Observations::Texts(texts) = store.observations() {
            let context = texts.context();
            assert!(context <= self.context, "texts: expected at most {} tokens, got up to {context}", self.context);
        }
        let fits = |rows: &Rows| rows.tokens.device() == device && rows.vocabulary <= n;
        store.copy(fits, || {
            let texts = store.texts();
            let ActionRows::Discrete(actions) = &store.actions else { panic!("actions: expected tokens, got {}", store.actions.kind()) };
            assert!(actions.iter().all(|action| (*action as usize) < n), "actions: expected tokens below {n}");
            assert!(texts.tokens().iter().all(|token| (*token as usize) < n), "texts: expected tokens below {n}");
            let longest = (0..texts.len()).map(|text| texts.text(text).len()).max().unwrap_or(0);
            let mut tokens = vec![0_i64; texts.len() * longest];
            for (text, row) in tokens.chunks_exact_mut(longest.max(1)).enumerate() {
                row.iter_mut().zip(texts.text(text)).for_each(|(to, token)| *to = i64::from(*token));
            }
            let tokens = to_device(&tokens, device)?.f_view([texts.len() as i64, longest as i64])?.into();
            let actions = to_device(&actions.iter().map(|a| i64::from(*a)).collect::<Vec<_>>(), device)?.into();
            let masks = match &store.masks {
                Some(masks) => Some(to_device(masks, device)?.f_view([-1, n as i64])?.into()),
                None => None,
            };
            Ok(Rows { tokens, actions, masks, vocabulary: n })
        })
    }

    /// Splits a query into micro-batches of whole texts, the longest first.
    fn parts(&self, store: &Store, rows: impl Iterator<Item = usize> + Clone) -> Vec<Part> {
        let mut asked = Asked::of(store.prefixes(), rows.clone());
        let rows: Vec<usize> = rows.collect();
        let most = if self.torch.micro_batch == 0 { usize::MAX } else { self.torch.micro_batch };
        // texts of similar lengths have little padding
        if self.torch.micro_batch > 0 {
            asked.sequences.sort_by_key(|sequence| std::cmp::Reverse(sequence.tokens));
        }
        let (mut parts, mut longest): (Vec<Part>, usize) = (Vec::new(), 0);
        for sequence in &asked.sequences {
            let grown = longest.max(sequence.tokens);
            if parts.last().is_none_or(|part| (part.question.texts.len() + 1).saturating_mul(grown) > most) {
                parts.push(Part::default());
                longest = 0;
            }
            let Some(part) = parts.last_mut() else { continue };
            longest = longest.max(sequence.tokens);
            part.question.longest = longest;
            for at in sequence.asked.clone() {
                part.places.push(asked.places[at]);
                part.rows.push(rows[asked.places[at] as usize] as i64);
                part.lengths.push((part.question.texts.len(), asked.lengths[at] as usize));
            }
            part.question.texts.push(sequence.text as i64);
            part.ends.push(part.rows.len());
        }
        for part in &mut parts {
            let longest = part.question.longest;
            part.question.ends = part.lengths.iter().map(|(text, length)| (text * longest + length - 1) as i64).collect();
        }
        parts
    }

    /// Returns the outputs of the policy's and of the critic's trunk at the last tokens of prefixes, for each trunk whose entry in `of` is
    /// true.
    fn ends(&self, weights: &Weights, rows: &Rows, question: &Question, of: [bool; 2]) -> Result<[Option<Tensor>; 2], TchError> {
        let device = self.parameters.device();
        use_threads(self.size(), question.texts.len() * question.longest);
        let tokens = rows.tokens.f_narrow(1, 0, question.longest as i64)?.f_index_select(0, &to_device(&question.texts, device)?)?;
        let ends = to_device(&question.ends, device)?;
        let trunk = |prefix: &str| {
            let x = weights.forward(&self.config, (prefix, &tokens), None, Attend::Whole(None))?;
            x.f_reshape([-1, self.config.width as i64])?.f_index_select(0, &ends)
        };
        let has_own = self.config.critic == Critic::Separate;
        let policy = if of[0] || !has_own { Some(trunk("model")?) } else { None };
        let critic = match (of[1], has_own) {
            (true, true) => Some(trunk("critic")?),
            (true, false) => policy.as_ref().map(Tensor::shallow_clone),
            _ => None,
        };
        Ok([policy, critic])
    }

    fn weights(&self) -> Result<Weights, TchError> {
        let rotary = self.rotary.as_ref().map(|(cos, sin)| (cos.shallow_clone(), sin.shallow_clone()));
        Weights::new(&self.parameters, (self.frozen.clone(), self.scale()), rotary, self.torch.precision)
    }

    /// Factor of what the adapters add.
    fn scale(&self) -> f64 {
        f64::from(self.config.lora_alpha / self.config.lora_rank.max(1) as f32)
    }

    /// Number of parameters, trained or not.
    fn size(&self) -> usize {
        self.parameters.len() + self.frozen.as_ref().map_or(0, |frozen| frozen.len())
    }

    /// Returns the parameters of the model, with products of adapters added to its matrices.
    fn merged_with_adapters(&self, frozen: &Frozen) -> Result<Tensors, TchError> {
        let (mut model, trained) = (frozen.save()?, self.parameters.views(Kind::Float)?);
        for (name, tensor) in &mut model {
            let part = |which: &str| trained.find(&name.replace(".weight", &format!(".{which}.weight")));
            if let (Some(a), Some(b), Data::F32(numbers)) = (part("lora_A"), part("lora_B"), &mut tensor.data) {
                let added = to_host(&no_grad(|| b.f_matmul(a)?.f_mul_scalar(self.scale()))?)?;
                numbers.iter_mut().zip(added).for_each(|(w, added)| *w += added);
            }
        }
        Ok(model)
    }

    /// Returns the outputs for some decisions of a part, with the outputs of the policy's and of the critic's trunk for them.
    fn said_of(
        &self,
        (weights, rows): (&Weights, &Rows),
        [policy, critic]: [&Tensor; 2],
        decisions: &[i64],
        batch: Batch<'_>,
    ) -> Result<Said, TchError> {
        let (device, n) = (self.parameters.device(), self.vocabulary);
        let index = to_device(decisions, device)?;
        let masks = rows.masks.as_ref().map(|masks| masks.f_index_select(0, &index)).transpose()?;
        let distribution = Distribution::categorical(&weights.logits(policy, self.config.temperature)?, masks.as_ref())?;
        let indices: Vec<u32> = decisions.iter().map(|row| *row as u32).collect();
        let given = |of: Option<&[f32]>| -> Result<Option<Tensor>, TchError> {
            of.map(|of| to_device(&rows_of(of, &indices, n), device)?.f_view([-1, n as i64])).transpose()
        };
        let kl_old = given(batch.old)?.map(|old| distribution.kl_old(&old)).transpose()?;
        let kl_ref = given(batch.reference)?.map(|reference| distribution.kl_ref(&reference)).transpose()?;
        let log_prob = distribution.log_prob(&rows.actions.f_index_select(0, &index)?)?;
        Ok(Said { log_prob, entropy: distribution.entropy()?, value: weights.values(critic)?, kl_old, kl_ref })
    }

    /// Returns log pi, H and V of the decisions of a batch as tensors with their autograd graph. If `batch` has old or reference
    /// distributions, also returns the KL divergences between them and the policy's distributions. The decisions are ordered by text; the
    /// second result is their positions in the batch.
    pub fn said(&self, store: &Store, batch: Batch<'_>) -> Result<(Said, Vec<u32>), TchError> {
        let mut part = Part::default();
        for more in self.parts(store, batch.indices.iter().map(|index| *index as usize)) {
            part.join(more);
        }
        let (rows, weights) = (self.rows(store)?, self.weights()?);
        let [Some(policy), Some(critic)] = self.ends(&weights, &rows, &part.question, [true, true])? else {
            unreachable!("both outputs were requested")
        };
        Ok((self.said_of((&weights, &rows), [&policy, &critic], &part.rows, batch)?, part.places))
    }

    /// Sets the gradient for [`apply`](crate::Network::apply) to the gradient of `loss`. The gradient updates all parameter groups.
    pub fn differentiate(&mut self, loss: &Tensor) -> Result<(), TchError> {
        let gradients = Tensor::f_run_backward(&[loss], &[self.parameters.leaf()], false, false)?;
        self.parameters.take_gradient(gradients.into_iter().next(), UpdatedGroups::All);
        Ok(())
    }

    fn forward_backward(
        &self,
        store: &Store,
        batch: Batch<'_>,
        objective: &dyn Objective,
        with_gradient: bool,
    ) -> Result<(Sums, Option<Tensor>), TchError> {
        assert_batch(batch, store.actions.len(), self.vocabulary);
        let rows = self.rows(store)?;
        let parts = self.parts(store, batch.indices.iter().map(|index| *index as usize));
        let of = |part: &Part| -> (Vec<u32>, Vec<f32>) {
            part.places.iter().map(|place| (batch.indices[*place as usize], batch.weights[*place as usize])).unzip()
        };
        if self.torch.gradient_checkpointing || parts.iter().any(|part| self.chunks(part.rows.len()).count() > 1) {
            let (mut sums, mut gradient) = (Sums::default(), None);
            for part in parts {
                let (indices, weights) = of(&part);
                let slices = Slices { indices: &indices, weights: &weights, ends: &part.ends };
                let to = if with_gradient { Some(&mut gradient) } else { None };
                sums.add(&self.in_segments(&rows, &part, batch, (objective, slices), to)?);
            }
            return Ok((sums, gradient));
        }
        let pass = self.weights()?;
        forward_backward_parts(parts.into_iter(), self.parameters.leaf(), with_gradient, |part| {
            let (indices, weights) = of(&part);
            let slices = Slices { indices: &indices, weights: &weights, ends: &part.ends };
            let [Some(policy), Some(critic)] = self.ends(&pass, &rows, &part.question, [true, true])? else {
                unreachable!("both outputs were requested")
            };
            forward_backward(&self.said_of((&pass, &rows), [&policy, &critic], &part.rows, batch)?, slices, objective, with_gradient)
        })
    }

    /// Returns the policy's outputs `what` for the first `rows` observations of a store: `width` numbers per observation.
    fn describe(&self, store: &Store, rows: usize, (what, width): (Answer, usize)) -> Result<Vec<f32>, TchError> {
        let mut numbers = vec![f32::NAN; rows * width];
        no_grad(|| {
            let (on_device, weights) = (self.rows(store)?, self.weights()?);
            for part in self.parts(store, 0..rows) {
                let asked = [what != Answer::Values, what == Answer::Values];
                let [policy, critic] = self.ends(&weights, &on_device, &part.question, asked)?;
                let answer = match (what, policy, critic) {
                    (Answer::Values, _, Some(critic)) => weights.values(&critic)?,
                    (_, Some(policy), _) => {
                        let answer = |range: Range<usize>| {
                            let index = to_device(&part.rows[range.clone()], self.parameters.device())?;
                            let masks = on_device.masks.as_ref().map(|masks| masks.f_index_select(0, &index)).transpose()?;
                            let policy = policy.f_narrow(0, range.start as i64, range.len() as i64)?;
                            let logits = weights.logits(&policy, self.config.temperature)?;
                            let distribution = Distribution::categorical(&logits, masks.as_ref())?;
                            match what {
                                Answer::LogProbs => distribution.log_prob(&on_device.actions.f_index_select(0, &index)?),
                                _ => distribution.rows(),
                            }
                        };
                        let parts = self.chunks(part.rows.len()).map(answer).collect::<Result<Vec<_>, TchError>>()?;
                        Tensor::f_cat(&parts, 0)?
                    }
                    _ => continue,
                };
                for (row, answer) in part.rows.iter().zip(to_host(&answer)?.chunks_exact(width)) {
                    numbers[*row as usize * width..][..width].copy_from_slice(answer);
                }
            }
            Ok::<(), TchError>(())
        })?;
        Ok(numbers)
    }

    /// Records an error of the policy's environments and returns it in one line.
    pub(super) fn failed(&self, error: &TchError) -> String {
        self.fault.note(error);
        one_line(error)
    }

    /// The device.
    pub(super) fn device(&self) -> tch::Device {
        self.parameters.device()
    }

    /// The sizes of the vocabulary and of the context, in tokens.
    pub(super) fn writes_and_reads(&self) -> (usize, usize) {
        (self.vocabulary, self.context)
    }

    /// Returns the gradient of the last batch by name, in PyTorch's layout.
    pub fn gradient_tensors(&self) -> Tensors {
        self.parameters.save_gradient()
    }
}

/// The outputs that are requested for some observations.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Values,
    LogProbs,
    Distributions,
}

/// A micro-batch of decisions, ordered by text.
struct Part {
    /// The row of each decision in the store.
    rows: Vec<i64>,
    /// The position of each decision in the query.
    places: Vec<u32>,
    /// The text of each decision, as an index into the texts of this part, and the length of its prefix.
    lengths: Vec<(usize, usize)>,
    /// The end of each text's decisions in `rows`.
    ends: Vec<usize>,
    question: Question,
}

impl Default for Part {
    fn default() -> Self {
        let question = Question { texts: Vec::new(), longest: 0, ends: Vec::new() };
        Self { rows: Vec::new(), places: Vec::new(), lengths: Vec::new(), ends: Vec::new(), question }
    }
}

impl Part {
    /// Appends the decisions of `other`.
    fn join(&mut self, other: Part) {
        let (texts, n) = (self.question.texts.len(), self.rows.len());
        self.lengths.extend(other.lengths.into_iter().map(|(text, length)| (texts + text, length)));
        self.ends.extend(other.ends.into_iter().map(|end| n + end));
        self.rows.extend(other.rows);
        self.places.extend(other.places);
        self.question.texts.extend(other.question.texts);
        self.question.longest = self.question.longest.max(other.question.longest);
        let longest = self.question.longest;
        self.question.ends = self.lengths.iter().map(|(text, length)| (text * longest + length - 1) as i64).collect();
    }
}

impl Behaviour for Transformer {
    behaviour_by_parameters!();

    fn observation_width(&self) -> usize {
        self.context + 1
    }

    fn actor(&self) -> Box<dyn Actor + '_> {
        Box::new(TextActor::new(self))
    }

    fn load_pretrained(&mut self, tensors: &Tensors) -> Result<(), TensorsError> {
        if let Some(frozen) = &self.frozen {
            frozen.check(tensors)?;
            // the device need not hold both at once; after an error the policy cannot be used
            self.frozen = None;
            let new = Frozen::new(tensors, self.device(), self.torch.precision);
            self.frozen = Some(Arc::new(new.map_err(|error| TensorsError::State(one_line(&error)))?));
            return Ok(());
        }
        let mut all = self.save();
        let is_of_model = |name: &str| !name.starts_with("critic.") && name != "value_head.weight";
        if let Some(other) = tensors.keys().find(|name| !is_of_model(name) || !all.contains_key(*name)) {
            return Err(TensorsError::Unexpected(other.clone()));
        }
        for (name, own) in all.iter_mut().filter(|(name, _)| !name.ends_with("value_head.weight")) {
            let name = name.strip_prefix("critic.").map_or_else(|| name.clone(), |rest| format!("model.{rest}"));
            own.data = Data::F32(get_f32(tensors, &name, &own.shape)?.into());
        }
        self.load(&all)
    }

    fn merged(&self) -> Option<Tensors> {
        let Some(frozen) = &self.frozen else {
            let mut all = self.save();
            all.retain(|name, _| !name.ends_with("value_head.weight"));
            return Some(all);
        };
        self.merged_with_adapters(frozen).map_err(|error| self.fault.note(&error)).ok()
    }
}

impl_network!(Transformer);

impl Policy for Transformer {
    objectives_by_parameters!();

    fn values(&mut self, store: &Store, values: &mut Vec<f32>) {
        *values = self.fault.guard(|| self.describe(store, store.rows(), (Answer::Values, 1)));
        values.resize(store.rows(), f32::NAN);
    }

    fn log_probs(&mut self, store: &Store, log_probs: &mut Vec<f32>) {
        *log_probs = self.fault.guard(|| self.describe(store, store.actions.len(), (Answer::LogProbs, 1)));
        log_probs.resize(store.actions.len(), f32::NAN);
    }

    fn distributions(&mut self, store: &Store, rows: &mut Vec<f32>) {
        *rows = self.fault.guard(|| self.describe(store, store.actions.len(), (Answer::Distributions, self.vocabulary)));
        rows.resize(store.actions.len() * self.vocabulary, f32::NAN);
    }

    fn distribution_width(&self) -> usize {
        self.vocabulary
    }

    fn fisher_vector_product(&mut self, _: &Store, _: Batch<'_>, _: &[f32], _: &mut Vec<f32>) {
        panic!("a transformer has no Fisher-vector product");
    }

    fn supports_fisher(&self) -> bool {
        false
    }

    fn snapshot(&self) -> Box<dyn Policy> {
        let (parameters, fault) = (self.parameters.snapshot(), self.fault.clone());
        let rotary = self.rotary.as_ref().map(|(cos, sin)| (cos.shallow_clone().into(), sin.shallow_clone().into()));
        Box::new(Self {
            config: self.config.clone(),
            torch: self.torch.clone(),
            parameters,
            frozen: self.frozen.clone(),
            rotary,
            repeated: Mutex::default(),
            fault,
            ..*self
        })
    }
}
