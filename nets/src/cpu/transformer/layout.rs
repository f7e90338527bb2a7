//! The parameters of a transformer: their positions in the flat vector, their names and their initial values.

use std::ops::Range;

use gradus_base::random::{Purpose, Stream};
use gradus_base::trig::sin_cos;
use rand_distr::{Distribution, StandardNormal};

use crate::cpu::aligned::Aligned;
use crate::cpu::footprint::Footprint;
use crate::cpu::layer::padded;
use crate::cpu::weights::{Named, Visit};
use crate::{Biases, Critic, FeedForward, Group, LoraTargets, Norm, Positions, TransformerConfig};

/// Approximate number of tokens per tile; a longer text has its own tile.
pub(super) const TILE_TOKENS: usize = 192;
/// The largest number of lanes of a batch, each with its own gradient, and so of the cores that share a batch. The limit must not depend on
/// how many cores the machine has.
const MAX_LANES: usize = 8;
/// The most numbers in the gradients of all lanes, unless two need more.
const GRADIENTS: usize = 1 << 28;
/// The most log-probabilities that a pass holds; those of a tile with more decisions are computed in chunks, and again in the backward pass.
const LOG_PROBS: usize = 1 << 24;

/// The standard deviation of initial embeddings.
const EMBEDDING_STD: f64 = 0.02;

/// Numbers in a page of memory.
const PAGE: usize = 1024;

/// The parameters, or the transposed copies of matrices: those that are not trained, and behind them the others.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    pub frozen: &'a [f32],
    pub trained: &'a [f32],
}

impl<'a> Numbers<'a> {
    /// The `n` numbers from `at` on.
    #[inline(always)]
    pub fn get(self, at: usize, n: usize) -> &'a [f32] {
        match at.checked_sub(self.frozen.len()) {
            Some(at) => &self.trained[at..at + n],
            None => &self.frozen[at..at + n],
        }
    }
}

/// The gradient of the trained parameters.
pub(super) struct Gradient<'a> {
    /// Number of parameters that are not trained.
    pub frozen: usize,
    pub numbers: &'a mut [f32],
}

impl Gradient<'_> {
    /// The `n` numbers from `at` on; `None` if their parameters are not trained.
    #[inline(always)]
    pub fn get(&mut self, at: usize, n: usize) -> Option<&mut [f32]> {
        at.checked_sub(self.frozen).map(|at| &mut self.numbers[at..at + n])
    }
}

/// A low-rank adapter of some outputs of a matrix (Hu et al., arXiv 2106.09685): y += scale x A B. A has inputs x rank numbers, and B rank x outputs, with the
/// rank padded to a multiple of 16.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lora {
    /// The first of the matrix's outputs.
    pub column: usize,
    pub outputs: usize,
    pub a: usize,
    pub b: usize,
    pub a_transposed: usize,
    pub b_transposed: usize,
}

/// A matrix: y = x W + b, stored by input (inputs x outputs). Both numbers are multiples of 16. The backward pass uses a transposed copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Linear {
    pub inputs: usize,
    pub outputs: usize,
    pub at: usize,
    pub transposed: usize,
    pub bias: Option<usize>,
    pub lora: [Option<Lora>; 3],
}

impl Linear {
    pub fn len(&self) -> usize {
        self.inputs * self.outputs
    }
}

/// The positions of a norm's factors and, in a LayerNorm, of its bias.
#[derive(Clone, Copy, Debug)]
pub(super) struct NormAt {
    pub gain: usize,
    pub bias: Option<usize>,
    pub width: usize,
}

/// The positions of a layer's parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerAt {
    pub attention_norm: NormAt,
    /// Queries, keys and values, concatenated.
    pub qkv: Linear,
    /// The factors of the norms of a query and of a key, if they have norms.
    pub qk_norm: Option<[usize; 2]>,
    pub out: Linear,
    pub norm: NormAt,
    /// With a gated activation, the gate projection and the up projection, concatenated.
    pub up: Linear,
    pub down: Linear,
}

/// The positions of the parameters of a stack of layers.
#[derive(Clone, Debug)]
pub(super) struct TrunkAt {
    pub embeddings: usize,
    pub positions: Option<usize>,
    pub layers: Vec<LayerAt>,
    pub norm: NormAt,
}

impl TrunkAt {
    fn linears(&self) -> impl Iterator<Item = Linear> + '_ {
        self.layers.iter().flat_map(|layer| [layer.qkv, layer.out, layer.up, layer.down])
    }
}

/// The positions of all parameters.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub vocabulary: usize,
    pub context: usize,
    pub width: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_width: usize,
    pub hidden: usize,
    pub gated: bool,
    pub epsilon: f32,
    pub temperature: f32,
    /// The most decisions whose log-probabilities a pass holds.
    pub chunk: usize,
    pub policy: TrunkAt,
    /// The layers of a separate critic. With adapters, its parameters are those of the policy that are not trained, and adapters of its own.
    pub critic: Option<TrunkAt>,
    pub value_head: usize,
    /// Position of the matrix that makes the logits, one row for each token; that of the policy's embeddings if they are tied.
    pub logits: usize,
    /// Position of the first of the critic's own parameters.
    pub critic_from: usize,
    /// Number of parameters, and of those that are not trained, which are the first.
    pub parameters: usize,
    pub frozen: usize,
    /// Rank of the adapters, and padded, and their scale.
    pub rank: usize,
    pub padded_rank: usize,
    pub scale: f32,
    /// Position of the policy's transposed embeddings among the transposed copies.
    pub unembedding: usize,
    /// Numbers in the transposed copies, and in those of matrices that are not trained, which are the first.
    pub transposed: usize,
    pub frozen_transposed: usize,
    /// cos and sin of the angle of each position and pair of dimensions; empty without rotary positions.
    pub rotary: Vec<[f32; 2]>,
}

/// Allocates consecutive ranges.
#[derive(Default)]
struct Places {
    parameters: usize,
    transposed: usize,
}

impl Places {
    fn take(&mut self, n: usize) -> usize {
        self.parameters += n;
        self.parameters - n
    }

    fn linear(&mut self, inputs: usize, outputs: usize, has_bias: bool) -> Linear {
        let transposed = self.transposed;
        self.transposed += inputs * outputs;
        let at = self.take(inputs * outputs);
        Linear { inputs, outputs, at, transposed, bias: has_bias.then(|| self.take(outputs)), lora: [None; 3] }
    }

    /// Adds adapters for parts of a matrix with these numbers of outputs.
    fn adapt(&mut self, linear: &mut Linear, rank: usize, parts: &[usize]) {
        let mut column = 0;
        for (lora, outputs) in linear.lora.iter_mut().zip(parts) {
            let (a_transposed, b_transposed) = (self.transposed, self.transposed + linear.inputs * rank);
            self.transposed += (linear.inputs + outputs) * rank;
            let (a, b) = (self.take(linear.inputs * rank), self.take(rank * outputs));
            *lora = Some(Lora { column, outputs: *outputs, a, b, a_transposed, b_transposed });
            column += outputs;
        }
    }

    /// Adds adapters for the matrices of a trunk.
    fn adapt_trunk(&mut self, trunk: &mut TrunkAt, config: &TransformerConfig) {
        let (rank, head, hidden) = (padded(config.lora_rank), config.numbers_per_head(), config.feed_forward_width);
        let (queries, keys) = (config.heads * head, config.key_value_heads() * head);
        let ups: &[usize] = if config.feed_forward == FeedForward::Swiglu { &[hidden, hidden] } else { &[hidden] };
        for layer in &mut trunk.layers {
            self.adapt(&mut layer.qkv, rank, &[queries, keys, keys]);
            self.adapt(&mut layer.out, rank, &[config.width]);
            if config.lora_targets == LoraTargets::All {
                self.adapt(&mut layer.up, rank, ups);
                self.adapt(&mut layer.down, rank, &[config.width]);
            }
        }
    }

    fn norm(&mut self, config: &TransformerConfig) -> NormAt {
        let width = config.width;
        let gain = self.take(width);
        NormAt { gain, bias: (config.norm == Norm::Layer).then(|| self.take(width)), width }
    }

    fn trunk(&mut self, config: &TransformerConfig, (vocabulary, context): (usize, usize), embeddings: Option<usize>) -> TrunkAt {
        let (width, hidden) = (config.width, config.feed_forward_width);
        let embeddings = embeddings.unwrap_or_else(|| self.take(vocabulary * width));
        let positions = (config.positions == Positions::Learned).then(|| self.take(context * width));
        let ups = if config.feed_forward == FeedForward::Swiglu { 2 * hidden } else { hidden };
        let (head, all) = (config.numbers_per_head(), config.biases == Biases::All);
        let (queries, keys) = (config.heads * head, config.key_value_heads() * head);
        let layer = |_| LayerAt {
            attention_norm: self.norm(config),
            qkv: self.linear(width, queries + 2 * keys, config.biases != Biases::None),
            qk_norm: config.qk_norm.then(|| [self.take(head), self.take(head)]),
            out: self.linear(queries, width, all),
            norm: self.norm(config),
            up: self.linear(width, ups, all),
            down: self.linear(hidden, width, all),
        };
        let layers = (0..config.layers).map(layer).collect();
        TrunkAt { embeddings, positions, layers, norm: self.norm(config) }
    }
}

impl Layout {
    pub fn new(config: &TransformerConfig, vocabulary: usize, context: usize) -> Self {
        let frequencies = config.frequencies();
        let rotary = (0..context * frequencies.len())
            .map(|i| {
                let (sin, cos) = sin_cos((i / frequencies.len()) as f64 * frequencies[i % frequencies.len()]);
                [cos as f32, sin as f32]
            })
            .collect();
        Self { rotary, ..Self::without_angles(config, vocabulary, context) }
    }

    /// Same as [`new`](Self::new), but without the rotary angles, so that it allocates nothing that is large.
    fn without_angles(config: &TransformerConfig, vocabulary: usize, context: usize) -> Self {
        let mut places = Places::default();
        let mut policy = places.trunk(config, (vocabulary, context), None);
        let logits = if config.tied { policy.embeddings } else { places.take(vocabulary * config.width) };
        let is_frozen = config.lora_rank > 0;
        let frozen = if is_frozen { places.parameters } else { 0 };
        let (unembedding, padded_rank) = (places.transposed, padded(config.lora_rank));
        let frozen_transposed = if is_frozen { unembedding + config.width * padded(vocabulary) } else { 0 };
        let mut critic = (is_frozen && config.critic == Critic::Separate).then(|| policy.clone());
        if is_frozen {
            places.transposed = frozen_transposed;
            places.adapt_trunk(&mut policy, config);
        }
        let critic_from = places.parameters;
        match &mut critic {
            Some(critic) => places.adapt_trunk(critic, config),
            None if config.critic == Critic::Separate => {
                let embeddings = config.shared_embeddings.then_some(policy.embeddings);
                critic = Some(places.trunk(config, (vocabulary, context), embeddings));
            }
            None => {}
        }
        let value_head = places.take(config.width);
        let unembedding = if is_frozen { unembedding } else { places.transposed };
        Self {
            vocabulary,
            context,
            width: config.width,
            heads: config.heads,
            kv_heads: config.key_value_heads(),
            head_width: config.numbers_per_head(),
            epsilon: config.norm_epsilon,
            hidden: config.feed_forward_width,
            gated: config.feed_forward == FeedForward::Swiglu,
            temperature: config.temperature,
            chunk: (LOG_PROBS / padded(vocabulary)).max(1),
            policy,
            critic,
            value_head,
            logits,
            critic_from,
            parameters: places.parameters,
            frozen,
            rank: config.lora_rank,
            padded_rank,
            scale: config.lora_alpha / config.lora_rank.max(1) as f32,
            unembedding,
            transposed: if is_frozen { places.transposed } else { unembedding + config.width * padded(vocabulary) },
            frozen_transposed,
            rotary: Vec::new(),
        }
    }

    /// Returns the memory of a transformer. Cached keys and values, and the activations of a text, are counted for texts of `tokens`
    /// tokens.
    pub fn footprint(config: &TransformerConfig, vocabulary: usize, context: usize, tokens: f64) -> Footprint {
        let layout = Self::without_angles(config, vocabulary, context);
        let bytes = |numbers: f64| 4.0 * numbers;
        let (width, layers) = (layout.width as f64, config.layers as f64);
        let tile = tokens.max(TILE_TOKENS as f64);
        // the activations of a layer: two streams, two norms, queries, keys and values, their attention, and the feed-forward part
        let of_layer = tile * (4.0 * width + (layout.qkv_width() + layout.query_width() + layout.ups() + layout.hidden) as f64)
            + config.heads as f64 * tile * tokens;
        let angles = if config.positions == Positions::Rotary { (context * layout.head_width) as f64 } else { 0.0 };
        Footprint {
            parameters: bytes((layout.parameters - layout.frozen) as f64),
            transposed: bytes((layout.frozen + layout.transposed) as f64 + angles),
            workspace: bytes(
                layout.trunks().count() as f64 * layers * of_layer + 2.0 * tile.min(layout.chunk as f64) * padded(vocabulary) as f64,
            ),
            // the last token is never read; keys are stored by dimension, so they use the room for the whole context, except in pages that
            // no key reaches
            decision: 0.0,
            row: bytes(layers * layout.kv_width() as f64 * (tokens - 1.0 + padded(context).min(tokens as usize + PAGE) as f64)),
            most_lanes: layout.most_lanes(),
            lane: TILE_TOKENS,
        }
    }

    /// Returns the parameter groups, in order. The group `trunk` holds the parameters that actor and critic share: all except the
    /// value head's, or only the embeddings if a separate critic uses them.
    pub fn groups(&self) -> Vec<Group> {
        let shared = match &self.critic {
            None => self.critic_from,
            Some(_) if self.frozen > 0 => self.frozen,
            // the embeddings are the first parameters
            Some(critic) if critic.embeddings == self.policy.embeddings => self.vocabulary * self.width,
            Some(_) => 0,
        };
        let parts = [("trunk", 0..shared), ("actor", shared..self.critic_from), ("critic", self.critic_from..self.parameters)];
        let trained = |range: Range<usize>| range.start.saturating_sub(self.frozen)..range.end.saturating_sub(self.frozen);
        let parts = parts.map(|(name, range)| (name, trained(range)));
        parts.into_iter().filter(|(_, range)| !range.is_empty()).map(|(name, range)| Group { name, range }).collect()
    }

    /// The largest number of lanes of a batch.
    pub fn most_lanes(&self) -> usize {
        (GRADIENTS / (self.parameters - self.frozen)).clamp(2, MAX_LANES)
    }

    /// Numbers of all queries of a token.
    pub fn query_width(&self) -> usize {
        self.heads * self.head_width
    }

    /// Numbers of all keys of a token, or of all values.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_width
    }

    /// Numbers of the queries, keys and values of a token.
    pub fn qkv_width(&self) -> usize {
        self.query_width() + 2 * self.kv_width()
    }

    /// Whether queries and keys have norms.
    pub fn has_qk_norm(&self) -> bool {
        self.policy.layers.iter().any(|layer| layer.qk_norm.is_some())
    }

    /// Number of heads of queries that read a head of keys and values.
    pub fn sharing(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Numbers per token before the activation of the feed-forward part.
    pub fn ups(&self) -> usize {
        if self.gated { 2 * self.hidden } else { self.hidden }
    }

    pub fn trunks(&self) -> impl Iterator<Item = &TrunkAt> {
        std::iter::once(&self.policy).chain(&self.critic)
    }

    /// The trunk whose output the value head reads.
    pub fn value_trunk(&self) -> &TrunkAt {
        self.critic.as_ref().unwrap_or(&self.policy)
    }

    /// All adapters, each with the number of its inputs.
    pub fn adapters(&self) -> impl Iterator<Item = (usize, Lora)> + '_ {
        let linears = self.trunks().flat_map(TrunkAt::linears);
        linears.flat_map(|linear| linear.lora.into_iter().flatten().map(move |lora| (linear.inputs, lora)))
    }

    /// The trunks whose matrices are different ones: a critic with adapters has those of the policy.
    pub fn models(&self) -> impl Iterator<Item = &TrunkAt> {
        self.trunks().take(if self.frozen > 0 { 1 } else { 2 })
    }

    /// All matrices, each once.
    pub fn linears(&self) -> impl Iterator<Item = Linear> + '_ {
        self.models().flat_map(TrunkAt::linears)
    }

    /// Returns the initial parameters. Matrices are normal with variance 1 / inputs, embeddings with standard deviation 0.02. Norms are 1,
    /// and biases and the value head are 0. As in GPT-2, the standard deviation of the matrices that write into the residual stream is divided by the
    /// square root of their number.
    pub fn initial(&self, seed: u64) -> Aligned {
        let mut parameters = Aligned::zeros(self.parameters - self.frozen);
        let mut stream = Stream::new(seed, Purpose::Initialisation, 0);
        if self.frozen > 0 {
            // as in peft: A uniform with bounds 1 / sqrt(inputs), and B 0
            for (inputs, lora) in self.adapters() {
                let bound = 1.0 / (inputs as f64).sqrt();
                for row in parameters[lora.a - self.frozen..][..inputs * self.padded_rank].chunks_exact_mut(self.padded_rank) {
                    row[..self.rank].iter_mut().for_each(|x| *x = stream.uniform(-bound, bound) as f32);
                }
            }
            return parameters;
        }
        let mut normal = |numbers: &mut [f32], std: f64| {
            numbers.iter_mut().for_each(|x| {
                let z: f64 = StandardNormal.sample(&mut stream);
                *x = (std * z) as f32;
            });
        };
        let mut known = usize::MAX;
        for trunk in self.trunks() {
            if trunk.embeddings != known {
                normal(&mut parameters[trunk.embeddings..][..self.vocabulary * self.width], EMBEDDING_STD);
                known = trunk.embeddings;
            }
            if let Some(positions) = trunk.positions {
                normal(&mut parameters[positions..][..self.context * self.width], EMBEDDING_STD);
            }
            let writers = (2 * trunk.layers.len()) as f64;
            for layer in &trunk.layers {
                for (linear, writes) in [(layer.qkv, false), (layer.out, true), (layer.up, false), (layer.down, true)] {
                    let std = 1.0 / (linear.inputs as f64 * if writes { writers } else { 1.0 }).sqrt();
                    normal(&mut parameters[linear.at..][..linear.len()], std);
                }
                for norm in [layer.attention_norm, layer.norm] {
                    parameters[norm.gain..][..norm.width].fill(1.0);
                }
                for gain in layer.qk_norm.into_iter().flatten() {
                    parameters[gain..][..self.head_width].fill(1.0);
                }
            }
            parameters[trunk.norm.gain..][..trunk.norm.width].fill(1.0);
        }
        if self.logits != self.policy.embeddings {
            normal(&mut parameters[self.logits..][..self.vocabulary * self.width], EMBEDDING_STD);
        }
        parameters
    }
}

impl Layout {
    /// Calls `visit` for every tensor other than those of adapters and of the value head.
    fn for_each_of_model(&self, visit: Visit<'_>) {
        let (w, h, queries, keys) = (self.width, self.hidden, self.query_width(), self.kv_width());
        // PyTorch stores matrices by output; `column` is the first column of a part of a concatenated matrix
        let matrix = |visit: Visit<'_>, name: String, linear: Linear, column, outputs| {
            let Linear { inputs, outputs: stride, at, bias, .. } = linear;
            visit(format!("{name}.weight"), &[outputs, inputs], &|i| at + (i % inputs) * stride + column + i / inputs);
            if let Some(bias) = bias {
                visit(format!("{name}.bias"), &[outputs], &|i| bias + column + i);
            }
        };
        let norm = |visit: Visit<'_>, name: String, norm: NormAt| {
            visit(format!("{name}.weight"), &[norm.width], &|i| norm.gain + i);
            if let Some(bias) = norm.bias {
                visit(format!("{name}.bias"), &[norm.width], &|i| bias + i);
            }
        };
        for (i, trunk) in self.models().enumerate() {
            let prefix = if i == 0 { "model" } else { "critic" };
            if i == 0 || trunk.embeddings != self.policy.embeddings {
                visit(format!("{prefix}.embed_tokens.weight"), &[self.vocabulary, w], &|i| trunk.embeddings + i);
            }
            if let Some(positions) = trunk.positions {
                visit(format!("{prefix}.embed_positions.weight"), &[self.context, w], &|i| positions + i);
            }
            for (l, layer) in trunk.layers.iter().enumerate() {
                let name = |part: &str| format!("{prefix}.layers.{l}.{part}");
                norm(visit, name("input_layernorm"), layer.attention_norm);
                for (part, column, outputs) in [("q_proj", 0, queries), ("k_proj", queries, keys), ("v_proj", queries + keys, keys)] {
                    matrix(visit, name(&format!("self_attn.{part}")), layer.qkv, column, outputs);
                }
                for (part, gain) in ["self_attn.q_norm.weight", "self_attn.k_norm.weight"].into_iter().zip(layer.qk_norm.iter().flatten()) {
                    visit(name(part), &[self.head_width], &|i| gain + i);
                }
                matrix(visit, name("self_attn.o_proj"), layer.out, 0, w);
                norm(visit, name("post_attention_layernorm"), layer.norm);
                if self.gated {
                    matrix(visit, name("mlp.gate_proj"), layer.up, 0, h);
                }
                matrix(visit, name("mlp.up_proj"), layer.up, if self.gated { h } else { 0 }, h);
                matrix(visit, name("mlp.down_proj"), layer.down, 0, w);
            }
            norm(visit, format!("{prefix}.norm"), trunk.norm);
            if i == 0 && self.logits != self.policy.embeddings {
                visit("lm_head.weight".into(), &[self.vocabulary, w], &|i| self.logits + i);
            }
        }
    }

    /// Calls `visit` for every matrix of an adapter, with the names of peft; those of a critic begin with `critic`.
    fn for_each_of_adapters(&self, visit: Visit<'_>) {
        let (rank, stride) = (self.rank, self.padded_rank);
        let mut adapter = |name: String, inputs: usize, lora: Option<Lora>| {
            let Some(Lora { a, b, outputs, .. }) = lora else { return };
            let (a, b) = (a - self.frozen, b - self.frozen);
            visit(format!("{name}.lora_A.weight"), &[rank, inputs], &|i| a + (i % inputs) * stride + i / inputs);
            visit(format!("{name}.lora_B.weight"), &[outputs, rank], &|i| b + (i % rank) * outputs + i / rank);
        };
        let ups: &[&str] = if self.gated { &["mlp.gate_proj", "mlp.up_proj"] } else { &["mlp.up_proj"] };
        let layers =
            self.trunks().zip(["model", "critic"]).flat_map(|(trunk, name)| trunk.layers.iter().enumerate().map(move |l| (name, l)));
        for (prefix, (l, LayerAt { qkv, out, up, down, .. })) in layers {
            let parts: [(&Linear, &[&str]); 4] = [
                (qkv, &["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"]),
                (out, &["self_attn.o_proj"]),
                (up, ups),
                (down, &["mlp.down_proj"]),
            ];
            for (linear, names) in parts {
                names.iter().zip(linear.lora).for_each(|(name, lora)| adapter(format!("{prefix}.layers.{l}.{name}"), linear.inputs, lora));
            }
        }
    }
}

/// The trained parameters.
impl Named for Layout {
    fn for_each_tensor(&self, visit: Visit<'_>) {
        if self.frozen == 0 {
            self.for_each_of_model(visit);
        } else {
            self.for_each_of_adapters(visit);
        }
        let name = if self.critic.is_some() { "critic.value_head.weight" } else { "value_head.weight" };
        visit(name.into(), &[1, self.width], &|i| self.value_head - self.frozen + i);
    }
}

/// The parameters of a pretrained model, which has no value head and no adapters.
pub(super) struct OfModel<'a>(pub &'a Layout);

impl Named for OfModel<'_> {
    fn for_each_tensor(&self, visit: Visit<'_>) {
        self.0.for_each_of_model(visit);
    }
}
