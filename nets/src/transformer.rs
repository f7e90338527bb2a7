//! What a transformer looks like.

use crate::settings;
use gradus_envs::Space;
use serde::{Deserialize, Serialize};

use crate::NetworkError;

/// How a transformer knows where a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// A learned vector for each place is added to the token's.
    Learned,
    /// Queries and keys are turned by angles proportional to the place (Su et al., arXiv 2104.09864).
    Rotary,
}

/// What stands between the attentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FeedForward {
    /// W2 gelu(W1 x), with the approximation by tanh (Hendrycks and Gimpel, arXiv 1606.08415).
    Gelu,
    /// W2 (silu(W1 x) * W3 x) (Shazeer, arXiv 2002.05202).
    Swiglu,
}

/// Where values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Critic {
    /// A head on the policy's trunk.
    Head,
    /// A transformer of its own, of the same shape.
    Separate,
}

settings! {
    /// A causal transformer for worlds of text: pre-norm with RMSNorm, no biases, and an output that is tied to the embeddings.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    pub struct TransformerConfig {
        /// How many layers, each an attention and a feed-forward part.
        pub layers: usize = 2,
        /// Numbers per token: a multiple of 16 for each head.
        pub width: usize = 64,
        /// Heads of each attention.
        pub heads: usize = 4,
        /// The feed-forward part: gelu or swiglu.
        pub feed_forward: FeedForward = FeedForward::Swiglu,
        /// Hidden numbers of the feed-forward part, a multiple of 16.
        pub feed_forward_width: usize = 176,
        /// How places are known: learned or rotary.
        pub positions: Positions = Positions::Rotary,
        /// Where values come from: head (on the policy's trunk) or separate (a transformer of its own).
        pub critic: Critic = Critic::Head,
        /// Whether a separate critic reads the policy's embeddings instead of its own.
        pub shared_embeddings: bool = false,
        /// Divides the logits wherever the policy is asked, in sampling and in learning alike.
        pub temperature: f32 = 1.0,
    }
}

impl TransformerConfig {
    /// The vocabulary and the context, or why there can be no such transformer.
    pub(crate) fn check(&self, observations: &Space, actions: &Space) -> Result<(usize, usize), NetworkError> {
        let out_of_range = |key: &'static str, expected: &str, got: &dyn ToString| {
            Err(NetworkError::Transformer { key, expected: expected.into(), got: got.to_string() })
        };
        if !(1..=64).contains(&self.layers) {
            return out_of_range("layers", "1 to 64", &self.layers);
        }
        if !(1..=64).contains(&self.heads) {
            return out_of_range("heads", "1 to 64", &self.heads);
        }
        let head_group = 16 * self.heads;
        if self.width == 0 || self.width > 8192 || !self.width.is_multiple_of(head_group) {
            let expected = format!("a multiple of 16 for each of {} heads, that is of {head_group}, up to 8192", self.heads);
            return out_of_range("width", &expected, &self.width);
        }
        let hidden = self.feed_forward_width;
        if hidden == 0 || hidden > 32_768 || !hidden.is_multiple_of(16) {
            return out_of_range("feed_forward_width", "a multiple of 16, up to 32768", &hidden);
        }
        if !(self.temperature > 0.0 && self.temperature.is_finite()) {
            return out_of_range("temperature", "a number above 0", &self.temperature);
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
