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
    /// A causal transformer for environments of text: pre-norm with RMSNorm, without biases, with tied embeddings.
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
        /// Network that computes the values: head (on the policy's trunk) or separate (a second transformer of the same shape).
        pub critic: Critic = Critic::Head,
        /// Whether a separate critic uses the policy's embeddings instead of its own.
        pub shared_embeddings: bool = false,
        /// Divides the logits of the policy, both in sampling and in learning.
        pub temperature: f32 = 1.0 => above(0.0),
    }
}

impl TransformerConfig {
    /// Returns the vocabulary and the context, or why the transformer cannot be built.
    pub(crate) fn check(&self, observations: &Space, actions: &Space) -> Result<(usize, usize), NetworkError> {
        let out_of_range = |key: &'static str, expected: &str, got: &dyn ToString| {
            Err(NetworkError::Transformer { key, expected: expected.into(), got: got.to_string() })
        };
        self.check_ranges("transformer").map_err(NetworkError::Range)?;
        let head_group = 16 * self.heads;
        if self.width == 0 || self.width > 8192 || !self.width.is_multiple_of(head_group) {
            let expected = format!("a multiple of {head_group} (16 for each of {} heads), up to 8192", self.heads);
            return out_of_range("width", &expected, &self.width);
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
