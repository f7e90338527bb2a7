//! Configuration of transformers.

use gradus_base::range::{above, at_least};
use gradus_base::{Settings, settings};
use gradus_envs::Space;
use serde::{Deserialize, Serialize};

use crate::NetworkError;

/// How a transformer encodes the position of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// A learned vector for each position is added to the token's embedding.
    Learned,
    /// Queries and keys are rotated by angles proportional to the position (Su et al., arXiv 2104.09864).
    Rotary,
}

/// The feed-forward part of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedForward {
    /// W2 gelu(W1 x), with the tanh approximation of gelu (Hendrycks and Gimpel, arXiv 1606.08415).
    Gelu,
    /// W2 (silu(W1 x) * W3 x) (Shazeer, arXiv 2002.05202).
    Swiglu,
}

/// How a norm scales the numbers of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Norm {
    /// By their root mean square: RMSNorm (Zhang and Sennrich, arXiv 1910.07467).
    Rms,
    /// By their standard deviation, after the mean is subtracted, and with a bias: LayerNorm (Ba et al., arXiv 1607.06450).
    Layer,
}

/// Which matrices have a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Biases {
    /// None.
    None,
    /// Those of queries, keys and values, as in Qwen2.
    Qkv,
    /// All, as in GPT-2.
    All,
}

/// The matrices beside which low-rank adapters are trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoraTargets {
    /// Those of queries, keys, values and the output of the attention.
    Attention,
    /// All matrices of the layers.
    All,
}

/// The network that computes the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Critic {
    /// A head on the policy's trunk.
    Head,
    /// A separate transformer of the same shape.
    Separate,
}

settings! {
    /// A causal transformer for environments of text: each part of a layer reads a norm of the residual stream.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TransformerConfig {
        /// Number of layers; each layer has an attention and a feed-forward part.
        pub layers: usize = 2 => at_least(1).up_to(64),
        /// Numbers per token in the residual stream, a multiple of 16 times the number of heads.
        pub width: usize = 64,
        /// Number of attention heads per layer.
        pub heads: usize = 4 => at_least(1).up_to(64),
        /// The feed-forward part: gelu or swiglu.
        pub feed_forward: FeedForward = FeedForward::Swiglu,
        /// Hidden width of the feed-forward part, a multiple of 16.
        pub feed_forward_width: usize = 176,
        /// Encoding of positions: learned or rotary.
        pub positions: Positions = Positions::Rotary,
        /// Network that computes the values: head (on the policy's trunk) or separate (a second transformer of the same shape; with adapters,
        /// the same model beside adapters of its own).
        pub critic: Critic = Critic::Head,
        /// Whether a separate critic uses the policy's embeddings instead of its own.
        pub shared_embeddings: bool = false,
        /// Divides the logits of the policy, both in sampling and in learning.
        pub temperature: f32 = 1.0 => above(0.0),
        /// Number of heads of keys and values, which divides the number of heads: each is read by as many queries (grouped-query attention); 0: as many as heads.
        #[serde(default)]
        pub kv_heads: usize = 0,
        /// Numbers of a query, key or value, a multiple of 16; 0: the width, divided by the heads.
        #[serde(default)]
        pub head_width: usize = 0,
        /// Norms: rms (RMSNorm) or layer (LayerNorm).
        #[serde(default = "rms")]
        pub norm: Norm = Norm::Rms,
        /// Constant eps that norms add to the mean square.
        #[serde(default = "epsilon")]
        pub norm_epsilon: f32 = 1e-5 => above(0.0),
        /// Matrices with a bias: none, qkv (queries, keys and values) or all.
        #[serde(default = "none")]
        pub biases: Biases = Biases::None,
        /// Whether queries and keys have a norm for each head.
        #[serde(default)]
        pub qk_norm: bool = false,
        /// Base of the rotary angles.
        #[serde(default = "base")]
        pub rotary_base: f32 = 10_000.0 => above(1.0),
        /// Slower rotary angles for longer texts, as in Llama 3: the factor, the two frequency factors, low and high, and the context of the first training;
        /// empty: none.
        #[serde(default)]
        pub rotary_scaling: Vec<f32> = Vec::new(),
        /// Whether the logits are products with the embeddings. Otherwise they have a matrix of their own.
        #[serde(default = "yes")]
        pub tied: bool = true,
        /// Rank of low-rank adapters (LoRA): only they and the value head are trained, and the other parameters stay as they are; 0: all are trained.
        #[serde(default)]
        pub lora_rank: usize = 0 => at_least(0).up_to(1024),
        /// Factor alpha of the adapters: what they add is multiplied by alpha / rank.
        #[serde(default = "alpha")]
        pub lora_alpha: f32 = 16.0 => above(0.0),
        /// Matrices with adapters: attention (queries, keys, values and output) or all.
        #[serde(default = "all")]
        pub lora_targets: LoraTargets = LoraTargets::All,
    }
}

fn rms() -> Norm {
    Norm::Rms
}

fn none() -> Biases {
    Biases::None
}

fn epsilon() -> f32 {
    TransformerConfig::default().norm_epsilon
}

fn base() -> f32 {
    TransformerConfig::default().rotary_base
}

fn alpha() -> f32 {
    TransformerConfig::default().lora_alpha
}

fn all() -> LoraTargets {
    LoraTargets::All
}

fn yes() -> bool {
    true
}

impl TransformerConfig {
    /// Numbers of a query, key or value.
    pub fn numbers_per_head(&self) -> usize {
        if self.head_width > 0 { self.head_width } else { self.width / self.heads }
    }

    /// Number of heads of keys and values.
    pub fn key_value_heads(&self) -> usize {
        if self.kv_heads > 0 { self.kv_heads } else { self.heads }
    }

    /// Returns the frequency of each pair of rotated numbers; empty without rotary positions.
    pub fn frequencies(&self) -> Vec<f64> {
        if self.positions == Positions::Learned {
            return Vec::new();
        }
        let pairs = self.numbers_per_head() / 2;
        let plain = (0..pairs).map(|i| libm::pow(self.rotary_base.into(), -(i as f64) / pairs as f64));
        let &[factor, low, high, context] = &self.rotary_scaling[..] else { return plain.collect() };
        // numbers that turn often within the first context keep their frequency, those that turn rarely become slower, with a transition between
        let scaled = |frequency: f64| {
            let turns = f64::from(context) * frequency / std::f64::consts::TAU;
            let kept = ((turns - f64::from(low)) / f64::from(high - low)).clamp(0.0, 1.0);
            frequency * (kept + (1.0 - kept) / f64::from(factor))
        };
        plain.map(scaled).collect()
    }

    /// Returns the vocabulary and the context, or why the transformer cannot be built.
    pub(crate) fn check(&self, observations: &Space, actions: &Space) -> Result<(usize, usize), NetworkError> {
        let out_of_range = |key: &'static str, expected: &str, got: &dyn ToString| {
            Err(NetworkError::Transformer { key, expected: expected.into(), got: got.to_string() })
        };
        self.check_ranges("transformer").map_err(NetworkError::Range)?;
        let head_group = if self.head_width > 0 { 16 } else { 16 * self.heads };
        if self.width == 0 || self.width > 8192 || !self.width.is_multiple_of(head_group) {
            let for_heads = if self.head_width > 0 { String::new() } else { format!(" (16 for each of {} heads)", self.heads) };
            return out_of_range("width", &format!("a multiple of {head_group}{for_heads}, up to 8192"), &self.width);
        }
        if !self.head_width.is_multiple_of(16) || self.head_width > 1024 {
            return out_of_range("head_width", "a multiple of 16, up to 1024", &self.head_width);
        }
        if !self.heads.is_multiple_of(self.key_value_heads()) {
            return out_of_range("kv_heads", &format!("a number that divides the {} heads, or 0", self.heads), &self.kv_heads);
        }
        match self.rotary_scaling[..] {
            [] => {}
            [factor, low, high, context] if factor >= 1.0 && 0.0 < low && low < high && context >= 1.0 => {}
            _ => {
                let expected = "four numbers: a factor of at least 1, a low and a higher frequency factor, and a context";
                return out_of_range("rotary_scaling", expected, &format!("{:?}", self.rotary_scaling));
            }
        }
        let hidden = self.feed_forward_width;
        if hidden == 0 || hidden > 32_768 || !hidden.is_multiple_of(16) {
            return out_of_range("feed_forward_width", "a multiple of 16, up to 32768", &hidden);
        }
        match (observations, actions) {
            (Space::Text { vocabulary, context }, Space::Discrete(n)) if vocabulary == n && *n > 0 && *context > 0 => {
                Ok((*n as usize, *context))
            }
            (Space::Text { .. }, actions) => Err(NetworkError::Tokens(actions.to_string())),
            (observations, _) => Err(NetworkError::Texts(observations.to_string())),
        }
    }
}
